package apply

import (
	"context"
	"encoding/json"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// changingResource is an object that another client changes after each read. A patch of another version of it is a conflict.
type changingResource struct {
	dynamic.ResourceInterface
	object *unstructured.Unstructured
	// changes is how many reads are followed by a change.
	changes int
}

func (r *changingResource) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	out := r.object.DeepCopy()
	if r.changes > 0 {
		r.changes--
		r.object.SetResourceVersion(r.object.GetResourceVersion() + "0")
	}
	return out, nil
}

func (r *changingResource) Patch(_ context.Context, name string, kind types.PatchType, data []byte, _ metav1.PatchOptions,
	_ ...string) (*unstructured.Unstructured, error) {
	patch := &unstructured.Unstructured{}
	if kind != types.MergePatchType || json.Unmarshal(data, &patch.Object) != nil {
		return nil, apierrors.NewBadRequest("want a merge patch")
	}
	if patch.GetResourceVersion() != r.object.GetResourceVersion() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, name, nil)
	}
	r.object.SetManagedFields(patch.GetManagedFields())
	return r.object.DeepCopy(), nil
}

// TestMigrateConflict: an object of KUDO that changes while its fields are moved, as a Job that ends, is a conflict, which may pass, and is
// not invalid.
func TestMigrateConflict(t *testing.T) {
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"parallelism": int64(1)}}}
	job.SetName("init")
	job.SetResourceVersion("1")
	job.SetAnnotations(map[string]string{v1beta1.LastAppliedAnnotation: `{"apiVersion":"batch/v1","kind":"Job","spec":{"parallelism":1}}`})
	job.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: oldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "batch/v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:parallelism":{}}}`)}})
	r := &changingResource{object: job, changes: 1}
	if _, err := migrate(t.Context(), r, "init", "kudo/i"); !apierrors.IsConflict(err) {
		t.Fatalf("the object has changed in between: %v, want a conflict", err)
	}
	got, err := migrate(t.Context(), r, "init", "kudo/i")
	if err != nil {
		t.Fatal(err)
	}
	fields := got.GetManagedFields()
	if len(fields) != 1 || fields[0].Manager != "kudo/i" || fields[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("the fields are of %+v, want kudo/i alone", fields)
	}
}

// TestPathExists checks which paths of managed fields lead to something in an object.
func TestPathExists(t *testing.T) {
	object := map[string]any{"a": nil, "list": []any{"x", map[string]any{"name": "n"}}}
	for _, tc := range []struct {
		reason string
		path   fieldpath.Path
		want   bool
	}{
		{"the object itself", nil, true},
		{"a field, even without a value", fieldpath.MakePathOrDie("a"), true},
		{"a field that is not there", fieldpath.MakePathOrDie("b"), false},
		{"a field of what is no map", fieldpath.MakePathOrDie("list", "a"), false},
		{"the last index", fieldpath.MakePathOrDie("list", 1, "name"), true},
		{"an index behind the last", fieldpath.MakePathOrDie("list", 2), false},
		{"an index of what is no list", fieldpath.MakePathOrDie("a", 0), false},
		{"an entry by its key", fieldpath.MakePathOrDie("list", fieldpath.KeyByFields("name", "n"), "name"), true},
		{"an entry with another key", fieldpath.MakePathOrDie("list", fieldpath.KeyByFields("name", "m")), false},
		{"an entry by its value", fieldpath.MakePathOrDie("list", value.NewValueInterface("x")), true},
	} {
		if got := pathExists(object, tc.path); got != tc.want {
			t.Errorf("%s: %s exists: %t, want %t", tc.reason, tc.path, got, tc.want)
		}
	}
}
