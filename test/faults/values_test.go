package faults

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// awaitWarning waits for a warning about an Instance that has all texts.
func (w *testbed) awaitWarning(name string, texts ...string) {
	w.Helper()
	env.Eventually(w, fmt.Sprintf("a warning with %q", texts), func() string {
		list := &corev1.EventList{}
		env.Must(w, suite.List(ctx, list, client.InNamespace(w.ns)))
		var all []string
		for _, e := range list.Items {
			all = append(all, e.Message)
			lacks := func(text string) bool { return !strings.Contains(e.Message, text) }
			if e.InvolvedObject.Name == name && e.Type == corev1.EventTypeWarning && !slices.ContainsFunc(texts, lacks) {
				return ""
			}
		}
		return strings.Join(all, "\n")
	})
}

// A key that stands twice in a document, or an item that stands twice in a list with keys: the last counts, and a warning
// names it.
func TestDuplicateKeys(t *testing.T) {
	w := ready(t)
	twice := strings.Replace(lifecycle.ServerYAML, "env: [", `env: [{name: VALUE, value: lost}, `, 1)
	ov := gen.Version(w.ns, "app", gen.Param("VALUE", "a", ""),
		gen.Template("twice.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice}\ndata:\n  key: lost\n  key: counts\n"),
		gen.Template("server.yaml", twice), gen.Apply("all", "twice.yaml", "server.yaml"), gen.Serial("deploy", "all"))
	w.create(ov, gen.Instance("i", ov, nil))
	runs("deploy", 1)(w)
	if cm := env.Read(t, suite, &corev1.ConfigMap{}, w.ns, "twice"); cm.Data["key"] != "counts" {
		t.Errorf("the ConfigMap has %v", cm.Data)
	}
	w.awaitWarning("i", "twice.yaml", "data.key", "duplicate")
	w.awaitWarning("i", "env[0]", "the same key")
	w.untouched()
}

// Values of parameters that are huge, or no text, arrive as they are, or are refused by name; the history holds them.
func TestHugeAndBinaryValues(t *testing.T) {
	w := ready(t)
	exits := manager.exitCount()
	ov := gen.Version(w.ns, "app", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	w.create(ov)
	huge := strings.Repeat("0123456789abcdef", 60000)
	for _, tc := range []struct{ name, value, refused string }{
		{"huge", huge[:900_000], ""},
		{"over-the-limit", huge + huge[:200_000], "cm-0"},
		{"control", "\x01\x02\t \u2028 \U0001f600 \\ \" ' {{ }} \r\n", ""},
		{"unescaped", "\x7f\u0085\u009f\ufffe", ""}, // the API server reads what is applied as YAML
		{"yaml", "a: [&x *x, !!binary x]\n--- \n...", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.create(gen.Instance(tc.name, ov, map[string]string{"VALUE": tc.value}))
			i := w.await(tc.name, env.PlanEnded("deploy", 1))
			st := i.Status.PlanStatus["deploy"]
			if tc.refused != "" {
				if st.Status != v1beta1.FatalError {
					t.Errorf("the plan is %s", st.Status)
				}
				env.Contains(t, st.Message, tc.refused)
				if len(st.Message) > 8000 {
					t.Errorf("the message has %d bytes", len(st.Message))
				}
				return
			}
			if st.Status != v1beta1.Complete {
				t.Fatalf("the plan is %s: %.500s", st.Status, st.Message)
			}
			if cm := env.Read(t, suite, &corev1.ConfigMap{}, w.ns, tc.name+"-cm-0"); cm.Data["key"] != tc.value {
				t.Errorf("%d bytes went in, and %d came out", len(tc.value), len(cm.Data["key"]))
			}
		})
	}
	data := []byte{0, 1, 0xff, 0xfe, 'x'}
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: binary}\ndata: {key: {{ b64enc \"\\x00\\x01\\xff\\xfex\" }}}\n"
	bin := gen.Version(w.ns, "binary", gen.Template("secret.yaml", secret), gen.Apply("s", "secret.yaml"), gen.Serial("deploy", "s"))
	w.create(bin, gen.Instance("binary", bin, nil))
	runsOf("binary", "deploy", 1)(w)
	if got := env.Read(t, suite, &corev1.Secret{}, w.ns, "binary").Data["key"]; !bytes.Equal(got, data) {
		t.Errorf("the Secret has %q", got)
	}
	if manager.exitCount() != exits {
		t.Errorf("the manager ended by itself %d times:\n%s", manager.exitCount()-exits, manager.tail())
	}
	w.untouched()
}

// An Instance whose name is too long for a label can never be recorded: it says so, and nothing is made.
func TestInstanceNameTooLong(t *testing.T) {
	w := ready(t)
	w.create(lifecycle.Cleaning(w.ns))
	name := strings.Repeat("n", 64)
	w.create(gen.Instance(name, lifecycle.Cleaning(w.ns), nil))
	i := w.await(name, func(i *v1beta1.Instance) bool {
		c := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		return c != nil && c.Reason == v1beta1.ReasonInvalidSpec
	})
	env.Contains(t, meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition).Message, "63", name)
	list := &corev1.ConfigMapList{}
	env.Must(t, suite.List(ctx, list, client.InNamespace(w.ns), client.MatchingLabels{"heritage": "kudo"}))
	if len(list.Items) > 0 {
		t.Errorf("%d ConfigMaps were made", len(list.Items))
	}
	if i.Status.Baseline != nil {
		t.Errorf("what was not started was taken for answered: %+v", i.Status.Baseline)
	}
	env.Must(t, suite.Delete(ctx, i))
	w.await(name, gone)
	w.untouched()
}
