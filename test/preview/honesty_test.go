package preview

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// password is the sensitive value of each Instance, which no preview may show.
const password = "hunter2-of-the-preview"

// cases are 20 upgrades by random mutations, or, if KUDO_PREVIEWS is set, that many and each mutation alone, by name.
func cases(t *testing.T) map[string]*source {
	out := map[string]*source{}
	text, n := os.Getenv("KUDO_PREVIEWS"), 20
	if text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("KUDO_PREVIEWS is %q: set a number", text)
		}
		for name, mutate := range mutations {
			only := base()
			only.version++
			mutate(only, rand.New(rand.NewSource(0)))
			out[name] = only
		}
	}
	for seed := range n {
		next, names := base().mutated(rand.New(rand.NewSource(int64(seed))))
		out[fmt.Sprintf("seed %d: %s", seed, strings.Join(names, ", "))] = next
	}
	return out
}

// TestHonest makes upgrades from a package by mutations, asks what they would do, does them, and compares plans, effects, fields and
// failures (P17).
func TestHonest(t *testing.T) {
	for name, next := range env.Sorted(cases(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkHonesty(t, base(), next)
		})
	}
}

func checkHonesty(t *testing.T, from, to *source) {
	t.Helper()
	ns := suite.NewNamespace(t)
	env.Must(t, suite.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "foreign"), Data: map[string]string{"of": "another"}}))
	suite.MustKudo(t, 0, "install", from.write(t), "--instance", "i", "-n", ns, "-p", "PASSWORD="+password, "--wait")
	next := to.write(t)
	before := objects(t, ns)
	text, code := suite.Kudo("upgrade", next, "--instance", "i", "-n", ns, "--dry-run", "-o", "json")
	if strings.Contains(text, password) {
		t.Fatalf("the preview shows a sensitive value:\n%s", text)
	}
	said := decode(t, text)
	if diff := cmp.Diff(versions(before), versions(objects(t, ns))); diff != "" {
		t.Fatalf("the preview has changed objects: %s", diff)
	}
	out, done := suite.Kudo("upgrade", next, "--instance", "i", "-n", ns, "--wait", "--wait-time", "120")
	for _, o := range said.Objects { // what is deleted may wait for its dependents
		if o.Effect == preview.Delete && code == done {
			env.Eventually(t, o.ID()+" deleted", env.Condition(func() bool { return objects(t, ns)[o.ID()] == nil }))
		}
	}
	after := objects(t, ns)
	if wouldFail, failed := code == 3, done == 3; wouldFail != failed {
		t.Fatalf("the preview ended with %d, and the upgrade with %d:\n%s\n%s", code, done, text, out)
	}
	compareRuns(t, ns, said)
	for _, o := range said.Objects {
		id := o.ID()
		if problem := compareObject(o, before[id], after[id]); problem != "" {
			t.Errorf("%s: said %s, but %s\n%s\n%s", id, o.Effect, problem, text, out)
		}
	}
	if !said.Fails() {
		compareOthers(t, said, before, after)
	}
}

// decode reads the preview of a text, behind which messages may stand.
func decode(t *testing.T, text string) *preview.Preview {
	t.Helper()
	begin := strings.Index(text, "{")
	if begin < 0 {
		t.Fatalf("no preview:\n%s", text)
	}
	p := &preview.Preview{}
	if err := json.NewDecoder(strings.NewReader(text[begin:])).Decode(p); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return p
}

// compareRuns compares the plans, and the step that fails.
func compareRuns(t *testing.T, ns string, said *preview.Preview) {
	t.Helper()
	i := env.Read(t, suite, &v1beta1.Instance{}, ns, "i")
	for _, run := range said.Runs {
		st := i.Status.PlanStatus[run.Plan]
		if failed := st.Status == v1beta1.FatalError; failed != (run.Failure != nil) {
			t.Errorf("plan %s has ended with %s: %s", run.Plan, st.Status, st.Message)
			continue
		}
		if run.Failure == nil {
			continue
		}
		step := ""
		for _, phase := range st.Phases {
			for _, s := range phase.Steps {
				if s.Status == v1beta1.FatalError {
					step = phase.Name + "/" + s.Name
				}
			}
		}
		if step != run.Failure.Step {
			t.Errorf("plan %s was said to fail at %s, and failed at %s", run.Plan, run.Failure.Step, step)
		}
	}
}

// compareObject says how what happened to an object differs from what was said; empty if it does not.
func compareObject(o preview.Object, before, after *unstructured.Unstructured) string {
	switch o.Effect {
	case preview.Create:
		if before != nil || after == nil {
			return "it was not created"
		}
	case preview.Delete:
		if before == nil || after != nil {
			return "it was not deleted"
		}
	case preview.Modify, preview.Unchanged, preview.Keep, preview.Refused, preview.Adopt:
		return compareFields(o, before, after)
	}
	return ""
}

func compareFields(o preview.Object, before, after *unstructured.Unstructured) string {
	if before == nil || after == nil {
		if before == nil && after == nil {
			return ""
		}
		return "it was created or deleted"
	}
	if before.GetUID() != after.GetUID() {
		return "it was replaced"
	}
	var said, happened []string
	if o.Effect == preview.Modify {
		for _, f := range o.Fields {
			said = append(said, f.String())
		}
	}
	for _, f := range preview.Compare(before, after, params.NewMask([]string{password})) {
		if !strings.Contains(f.Path, "deployment.kubernetes.io/revision") { // the controller of Deployments counts templates
			happened = append(happened, f.String())
		}
	}
	if diff := cmp.Diff(said, happened); diff != "" {
		return "other fields have changed (-said +happened): " + diff
	}
	restarted := generationOfTemplate(before) != generationOfTemplate(after)
	if says := o.Restart != nil && !o.Restart.Uncertain; o.Effect == preview.Modify && says != restarted && (o.Restart == nil || !o.Restart.Uncertain) {
		return fmt.Sprintf("restart: said %t, and the pod template has changed: %t", says, restarted)
	}
	return ""
}

// generationOfTemplate stands for the pod template of a workload; empty for other objects.
func generationOfTemplate(obj *unstructured.Unstructured) string {
	template, found, _ := unstructured.NestedMap(obj.Object, "spec", "template")
	if !found || obj.GetKind() == "Job" {
		return ""
	}
	text, _ := json.Marshal(template)
	return string(text)
}

// compareOthers wants that objects of which the preview says nothing have not changed.
func compareOthers(t *testing.T, said *preview.Preview, before, after map[string]*unstructured.Unstructured) {
	t.Helper()
	for id := range before {
		if slices.ContainsFunc(said.Objects, func(o preview.Object) bool { return o.ID() == id }) {
			continue
		}
		if after[id] == nil {
			t.Errorf("%s was deleted, and the preview does not name it", id)
		}
	}
}

// kinds are those that the packages have.
var kinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "batch", Version: "v1", Kind: "Job"},
}

// objects are those of a namespace, by kind and name, but for what Kubernetes and the account of the namespace have.
func objects(t *testing.T, ns string) map[string]*unstructured.Unstructured {
	t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := suite.List(t.Context(), list, client.InNamespace(ns)); err != nil && !meta.IsNoMatchError(err) {
			t.Fatal(err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			if item.GetName() != "kube-root-ca.crt" && metav1.GetControllerOf(item) == nil || v1beta1.OwnedBy(*controller(item), "Instance") {
				out[kind.Kind+" "+ns+"/"+item.GetName()] = item
			}
		}
	}
	return out
}

func controller(obj *unstructured.Unstructured) *metav1.OwnerReference {
	if found := metav1.GetControllerOf(obj); found != nil {
		return found
	}
	return &metav1.OwnerReference{}
}

func versions(all map[string]*unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for id, obj := range all {
		if obj.GetKind() != "Deployment" && obj.GetKind() != "StatefulSet" && obj.GetKind() != "Job" { // controllers write their status
			out[id] = obj.GetResourceVersion()
		}
	}
	return out
}
