package dryrun

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/apitest"
)

// newLocal returns a cluster that only reads: the test fails at any other request.
func newLocal(t *testing.T, objects ...client.Object) fixture {
	t.Helper()
	server := apitest.Start(t, objects...)
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb != "get" && r.Verb != "list" {
			t.Errorf("%s was sent", r)
		}
		return nil, nil
	})
	c, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return fixture{NewLocal(c, server.Mapper(), nil), server}
}

// deployment returns a Deployment with a spec that is given as YAML.
func deployment(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: ns}\nspec:\n"+spec), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestMerge checks that an apply merges lists by their keys, keeps what others own, drops what the form no longer has, and keeps
// what the API server has set.
func TestMerge(t *testing.T) {
	first := deployment(t, `
  replicas: 2
  template:
    metadata: {labels: {app: web, old: "1"}}
    spec:
      containers:
      - {name: web, image: "web:1", ports: [{containerPort: 80}], env: [{name: A, value: "1"}, {name: B, value: "2"}]}
`)
	live, err := Merge(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}, first, force)
	if err != nil {
		t.Fatal(err)
	}
	containers := func(obj *unstructured.Unstructured) []any {
		list, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		return list
	}
	list := containers(live)
	list[0].(map[string]any)["terminationMessagePath"] = "/dev/termination-log"
	list = append(list, map[string]any{"name": "sidecar", "image": "mesh"})
	if err := unstructured.SetNestedSlice(live.Object, list, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	merged, err := Merge(live, deployment(t, `
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:2", ports: [{containerPort: 80}], env: [{name: B, value: "3"}]}
`), force)
	if err != nil {
		t.Fatal(err)
	}
	want := deployment(t, `
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:2", ports: [{containerPort: 80}], env: [{name: B, value: "3"}], terminationMessagePath: /dev/termination-log}
      - {name: sidecar, image: mesh}
`)
	if diff := cmp.Diff(want.Object["spec"], merged.Object["spec"]); diff != "" {
		t.Error(diff)
	}
}

// TestMergeUnknown checks that fields and kinds that are not known here are merged, too: their lists are replaced as a whole.
func TestMergeUnknown(t *testing.T) {
	for name, kind := range map[string]string{"a custom resource": "example.com/v1 Pool", "a field of a newer Kubernetes": "v1 Service"} {
		apiVersion, kind, _ := strings.Cut(kind, " ")
		form := func(items ...any) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind,
				"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"ofTheFuture": items, "keep": "1"}}}
		}
		live, err := Merge(&unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}, form("a", "b"), force)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		merged, err := Merge(live, form("c"), force)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(form("c").Object["spec"], merged.Object["spec"]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestLocal checks that writes of a local cluster send nothing but reads, that later reads show them, and that a write of an object that
// has changed is a conflict.
func TestLocal(t *testing.T) {
	f := newLocal(t, configMap("old", "1"), configMap("gone", "1"), configMap("patched", "1"))
	live, err := f.maps().Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.maps().Apply(t.Context(), "old", body("old", "2", "0"), force); !apierrors.IsConflict(err) {
		t.Errorf("a write of another version: %v, want a conflict", err)
	}
	if _, err := f.maps().Apply(t.Context(), "old", body("old", "2", live.GetResourceVersion()), force); err != nil {
		t.Fatal(err)
	}
	if _, err := f.maps().Apply(t.Context(), "gone", body("gone", "2", apply.NoResourceVersion), force); !apierrors.IsConflict(err) {
		t.Errorf("a creation of what exists: %v, want a conflict", err)
	}
	created, err := f.maps().Apply(t.Context(), "new", body("new", "3", apply.NoResourceVersion), force)
	if err != nil || created.GetUID() == "" {
		t.Fatalf("%v, uid %q", err, created.GetUID())
	}
	if err := f.maps().Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for kind, patch := range map[types.PatchType]string{types.MergePatchType: `{"data":{"key":"4"}}`,
		types.JSONPatchType: `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`} {
		if _, err := f.maps().Patch(t.Context(), "patched", kind, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := f.maps().Patch(t.Context(), "patched", types.StrategicMergePatchType, []byte("{}"), metav1.PatchOptions{}); err == nil {
		t.Error("a strategic merge patch is not computed, and is no error")
	}
	got := map[string]string{}
	for _, change := range f.Changes() {
		got[change.ID.Name] = dataOf(change.Before) + " -> " + dataOf(change.After)
	}
	want := map[string]string{"old": "1 -> 2", "new": "(none) -> 3", "gone": "1 -> (none)", "patched": "1 -> 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if f.server.Get(configMap("new", "")) != nil || dataOf(f.server.Get(configMap("old", ""))) != "1" || f.server.Get(configMap("gone", "")) == nil {
		t.Error("the cluster has changed")
	}
}

// TestLocalConflict checks that a field that another manager has applied is a conflict without force, as for the API server.
func TestLocalConflict(t *testing.T) {
	f := newLocal(t)
	if _, err := f.maps().Apply(t.Context(), "x", body("x", "1", ""), metav1.ApplyOptions{FieldManager: "another"}); err != nil {
		t.Fatal(err)
	}
	_, err := f.maps().Apply(t.Context(), "x", body("x", "2", ""), metav1.ApplyOptions{FieldManager: "kudo"})
	if !apierrors.IsConflict(err) {
		t.Errorf("%v, want a conflict", err)
	}
}

// FuzzMerge must not panic, whatever the object of a package and the one that exists, and changes neither.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","managedFields":[{"manager":"m","operation":"Apply","apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},"spec":{"replicas":1}}`),
		[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"name":"x"},{"name":"x"}]}}}}`))
	f.Add([]byte(`{"apiVersion":"g/v1","kind":"K","metadata":{"managedFields":[{"fieldsV1":null}]}}`), []byte(`{"apiVersion":"g/v1","kind":"K","spec":[1]}`))
	f.Fuzz(func(t *testing.T, live, form []byte) {
		before, body := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if before.UnmarshalJSON(live) != nil || body.UnmarshalJSON(form) != nil {
			return
		}
		was, wanted := before.DeepCopy(), body.DeepCopy()
		if merged, err := Merge(before, body, force); (merged == nil) != (err != nil) {
			t.Errorf("merged is %v, and the error %v", merged, err)
		}
		if diff := cmp.Diff(was, before) + cmp.Diff(wanted, body); diff != "" {
			t.Error(diff)
		}
	})
}

// prunes drops a field, as long as an object has it.
type prunes string

// Prune implements Pruner.
func (p prunes) Prune(_ context.Context, obj *unstructured.Unstructured) ([]apply.Dropped, error) {
	if _, found := obj.Object[string(p)]; !found {
		return nil, nil
	}
	delete(obj.Object, string(p))
	return []apply.Dropped{{Path: "." + string(p)}}, nil
}

// TestLocalUndeclared checks that a field which the schema lacks is refused as by the API server, so that the engine leaves it out (P6).
func TestLocalUndeclared(t *testing.T) {
	f := newLocal(t, configMap("old", "1"))
	f.pruner = prunes("nonsense")
	sent := body("old", "2", "")
	sent.Object["nonsense"] = true
	if _, err := f.maps().Apply(t.Context(), "old", sent, force); !apply.IsSchemaError(err) || !strings.Contains(err.Error(), ".nonsense: field not declared") {
		t.Errorf("got %v", err)
	}
	delete(sent.Object, "nonsense")
	if got, err := f.maps().Apply(t.Context(), "old", sent, force); err != nil || dataOf(got) != "2" {
		t.Errorf("got %v, %v", got, err)
	}
}
