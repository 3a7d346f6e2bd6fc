package kudoinit

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestLocalClient checks that an apply leaves in the process what the API server would, that a conflict is one, and that nothing is written.
func TestLocalClient(t *testing.T) {
	live := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "x"), Data: map[string]string{"kept": "1"}}
	server := apitest.Start(t, live)
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb != "get" {
			t.Errorf("%s was sent", r)
		}
		return nil, nil
	})
	c := NewLocalClient(server.Client())
	form := func(name, value string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": value}}}
		out.SetNamespace("ns")
		out.SetName(name)
		return out
	}
	sent := form("x", "2")
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner("ann"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	if data, _, _ := unstructured.NestedStringMap(sent.Object, "data"); data["key"] != "2" || data["kept"] != "1" {
		t.Errorf("the object would be %v", sent.Object)
	}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(form("absent", "2")), client.FieldOwner("ann")); !apierrors.IsNotFound(err) {
		t.Errorf("an object that does not exist: %v", err)
	}
	for verb, err := range map[string]error{
		"create": c.Create(t.Context(), live), "update": c.Update(t.Context(), live), "delete": c.Delete(t.Context(), live),
		"patch": c.Patch(t.Context(), live, client.MergeFrom(live)), "delete all of": c.DeleteAllOf(t.Context(), live),
	} {
		if err == nil {
			t.Errorf("%s is not refused", verb)
		}
	}
}
