package remote

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// workWith returns a Work of cluster m1 with a manifest, which may be any value.
func workWith(name string, manifests any) *unstructured.Unstructured {
	work := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"workload": map[string]any{"manifests": manifests}}}}
	work.SetGroupVersionKind(WorkKind)
	work.SetNamespace(WorkNamespace("m1"))
	work.SetName(name)
	return work
}

// manifestOf returns a manifest of an object.
func manifestOf(apiVersion, kind, namespace, name string) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}}
}

// named returns an Instance.
func named(namespace, name string, uid types.UID) *v1beta1.Instance {
	return &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}}
}

// TestFindWork checks C36: the Work of an Instance is found by what it carries, among those of others and malformed ones.
func TestFindWork(t *testing.T) {
	server := apitest.Start(t)
	server.AddKind(WorkKind, true)
	for name, manifests := range map[string]any{
		"a": "none", "b": []any{"none"}, "c": []any{}, "d": []any{manifestOf("v1", "Instance", "lab", "book")},
		"e": []any{manifestOf("kudo.dev/v1beta1", "OperatorVersion", "lab", "book")},
		"f": []any{manifestOf("kudo.dev/v1beta1", "Instance", "other", "book")},
		"g": []any{manifestOf("kudo.dev/v1beta1", "Instance", "lab", "book")},
	} {
		server.Put(workWith(name, manifests))
	}
	for _, tc := range []struct{ reason, namespace, name, cluster, want string }{
		{"the Instance", "lab", "book", "m1", "g"},
		{"of another namespace", "other", "book", "m1", "f"},
		{"another Instance", "lab", "page", "m1", ""},
		{"another cluster", "lab", "book", "m2", ""},
	} {
		got, err := FindWork(t.Context(), server.Client(), named(tc.namespace, tc.name, "u1"), tc.cluster)
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.reason, got, err, tc.want)
		}
	}
	mine := manifestOf("kudo.dev/v1beta1", "Instance", "lab", "page")
	mine["metadata"].(map[string]any)["annotations"] = map[string]any{v1beta1.KarmadaUIDAnnotation: "u1"}
	server.Put(workWith("h", []any{mine}))
	for uid, want := range map[types.UID]string{"u1": "h", "u2": ""} {
		if got, err := FindWork(t.Context(), server.Client(), named("lab", "page", uid), "m1"); err != nil || got != want {
			t.Errorf("of the Instance with uid %s: %q, %v, want %q", uid, got, err, want)
		}
	}
	for n := range 2 * pageSize {
		server.Put(workWith(fmt.Sprintf("early-%03d", n), nil))
	}
	server.Put(workWith("late", []any{manifestOf("kudo.dev/v1beta1", "Instance", "lab", "late")}))
	server.Requests()
	if got, err := FindWork(t.Context(), server.Client(), named("lab", "late", "u1"), "m1"); err != nil || got != "late" || len(server.Requests()) != 3 {
		t.Errorf("on the third page: %q, %v", got, err)
	}
	for _, want := range []bool{true, false} {
		if has, err := HasWork(t.Context(), server.Client(), "m1", "g"); err != nil || has != want {
			t.Errorf("%v, %v, want %v", has, err, want)
		}
		server.Remove(workWith("g", nil))
	}
	server.Before(func(apitest.Request) (any, error) {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "works"}, "", nil)
	})
	if _, err := FindWork(t.Context(), server.Client(), named("lab", "book", "u1"), "m1"); !apierrors.IsForbidden(err) {
		t.Errorf("without the right to list: %v", err)
	}
	if _, err := HasWork(t.Context(), server.Client(), "m1", "g"); !apierrors.IsForbidden(err) {
		t.Errorf("without the right to read: %v", err)
	}
}
