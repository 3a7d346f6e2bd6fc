package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// bomb is a document whose aliases unfold to a billion items.
func bomb() string {
	var out strings.Builder
	out.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\na0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for n := 1; n < 10; n++ {
		fmt.Fprintf(&out, "a%d: &a%d [%s*a%d]\n", n, n, strings.Repeat(fmt.Sprintf("*a%d,", n-1), 9), n-1)
	}
	return out.String()
}

// documents are bad ones: what is wrong with them is found by the manager at the latest, and named.
func documents() []struct{ name, text, want string } {
	head := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n"
	named := func(name string) string { return fmt.Sprintf(head, name) }
	return []struct{ name, text, want string }{
		{"aliases that unfold to a billion", bomb(), "bad.yaml"},
		{"deep nesting", named("deep") + "data: " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000), "bad.yaml"},
		{"a binary value", named("binary") + "data:\n  a: \"\x00\x01\xff\"\n", "bad.yaml"},
		{"a name that is too long", named(strings.Repeat("n", 300)), "nnn"},
		{"a name that is no name", named("No_Name!"), "No_Name!"},
		{"an object over the limit", named("huge") + "data:\n  a: {{ repeat 1200000 \"x\" | quote }}\n", "huge"},
		{"an object far over the limit", named("huge") + "data:\n  a: {{ repeat 4000000 \"x\" | quote }}\n", "bad.yaml"},
		{"no document at all", "just text", "bad.yaml"},
		{"a list where an object is wanted", "- a\n- b\n", "bad.yaml"},
		{"a template that calls itself", `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, "bad.yaml"},
		{"a template without end", named("x") + "{{ range", "bad.yaml"},
	}
}

// A bad document ends its plan with a message that names it; the manager and other plans continue.
func TestBadDocuments(t *testing.T) {
	w := ready(t)
	exits := manager.exitCount()
	for n, d := range documents() {
		t.Run(d.name, func(t *testing.T) {
			name := fmt.Sprintf("bad-%d", n)
			ov := gen.Version(w.ns, name, gen.Template("bad.yaml", strings.ToValidUTF8(d.text, "\x02")), gen.Apply("bad", "bad.yaml"), gen.Serial("deploy", "bad"))
			w.create(ov, gen.Instance(name, ov, nil))
			began := time.Now()
			i, err := suite.Await(ctx, w.ns, name, w.timeout, env.PlanEnded("deploy", 1))
			if err != nil {
				t.Fatalf("%v\n%s", err, manager.tail())
			}
			st := i.Status.PlanStatus["deploy"]
			if st.Status != v1beta1.FatalError {
				t.Errorf("the plan is %s", st.Status)
			}
			env.Contains(t, st.Message, d.want)
			t.Logf("%s: %.300s", time.Since(began).Round(time.Millisecond), st.Message)
		})
	}
	deployed(lifecycle.First)(w)
	if manager.exitCount() != exits {
		t.Errorf("the manager ended by itself %d times:\n%s", manager.exitCount()-exits, manager.tail())
	}
	w.untouched()
}

// The command line refuses bad packages in a moment, with a message, and creates nothing.
func TestBadPackages(t *testing.T) {
	operator := func(plans string) string {
		return "apiVersion: kudo.dev/v1beta1\nname: bad\noperatorVersion: 0.1.0\ntasks:\n- {name: bad, kind: Apply, spec: {resources: [bad.yaml]}}\nplans:\n" + plans
	}
	plain := operator("  deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [bad]}]}]}\n")
	for _, tc := range []struct{ name, operator, params, template, want string }{
		{"aliases in operator.yaml", "name: bad\n" + bomb(), "", "", "operator.yaml"},
		{"aliases in params.yaml", plain, "parameters: []\n" + bomb(), "", "params.yaml"},
		{"nesting in operator.yaml", "name: " + strings.Repeat("[", 50000), "", "", "operator.yaml"},
		{"nesting in params.yaml", plain, "parameters: " + strings.Repeat("{a: ", 20000), "", "params.yaml"},
		{"a name over the limit", strings.Replace(plain, "name: bad\n", "name: "+strings.Repeat("n", 300)+"\n", 1), "", "", "name"},
		{"a template over the limit of an object", plain, "", strings.Repeat("# xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", 80000), "bad.yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, ns := t.TempDir(), suite.NewNamespace(t)
			for name, text := range map[string]string{"operator.yaml": tc.operator, "params.yaml": tc.params, "templates/bad.yaml": tc.template} {
				path := filepath.Join(dir, name)
				env.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
				env.Must(t, os.WriteFile(path, []byte(text), 0o600))
			}
			began := time.Now()
			out, code := suite.Kudo("install", dir, "-n", ns, "--instance", "i")
			if code != 1 {
				t.Errorf("exit code %d, want 1: %.500s", code, out)
			}
			env.Contains(t, out, tc.want)
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %s", took)
			}
			if len(out) > 8000 {
				t.Errorf("the message has %d bytes", len(out))
			}
			t.Logf("%s: %.300s", time.Since(began).Round(time.Millisecond), out)
			list := &v1beta1.OperatorVersionList{}
			env.Must(t, suite.List(ctx, list, client.InNamespace(ns)))
			if len(list.Items) > 0 {
				t.Errorf("an OperatorVersion was created")
			}
		})
	}
}

// A plan of a thousand steps ends.
func TestThousandSteps(t *testing.T) {
	w := ready(t)
	steps := 1000
	tasks := make([]string, steps)
	for n := range tasks {
		tasks[n] = "done"
	}
	tasks[steps-1] = "one"
	ov := gen.Version(w.ns, "long", gen.Param("VALUE", "a", ""), gen.ConfigMaps("one", 3), gen.Task("done", v1beta1.DummyTask, v1beta1.TaskSpec{Done: true}), gen.Serial("deploy", tasks...))
	w.create(ov, gen.Instance("i", ov, nil))
	began := time.Now()
	runs("deploy", 1)(w)
	t.Logf("%d steps in %s", steps, time.Since(began).Round(time.Millisecond))
}

// Dependencies that go in a circle are noticed: Instances are not made one inside the other.
func TestCycle(t *testing.T) {
	w := ready(t)
	for _, pair := range [][2]string{{"ping", "pong"}, {"pong", "ping"}} {
		ov := gen.Version(w.ns, pair[0]+"-1.0.0", gen.Task("other", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: pair[1], OperatorVersion: "1.0.0"}), gen.Serial("deploy", "other"))
		ov.Spec.Operator.Name, ov.Spec.Version = pair[0], "1.0.0"
		w.create(ov)
	}
	root := gen.Version(w.ns, "ping-1.0.0")
	w.create(gen.Instance("i", root, nil))
	list := &v1beta1.InstanceList{}
	env.Eventually(t, "the end of the plan, or a fourth Instance", env.Condition(func() bool {
		env.Must(t, suite.List(ctx, list, client.InNamespace(w.ns)))
		failed := slices.IndexFunc(list.Items, func(i v1beta1.Instance) bool { return i.Name == "i" && env.PlanEnded("deploy", 1)(&i) })
		return len(list.Items) > 3 || failed >= 0
	}))
	if len(list.Items) > 3 {
		t.Errorf("a circle of two packages made %d Instances, the last of which is %s", len(list.Items), list.Items[len(list.Items)-1].Name)
	}
	if st := env.Read(t, suite, &v1beta1.Instance{}, w.ns, "i").Status.PlanStatus["deploy"]; st.Status != v1beta1.FatalError {
		t.Errorf("the plan of the first is %s, and does not say that it can never end: %.300s", st.Status, st.Message)
	}
	env.Must(t, suite.DeleteAllOf(ctx, &v1beta1.Instance{}, client.InNamespace(w.ns)))
}
