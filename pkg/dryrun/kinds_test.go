package dryrun

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"kudo.dev/kudo/pkg/apply"
)

// TestDefinedKinds checks that a kind is known once its definition was written, in the versions that are served, and that its objects are
// written and read without a request (P6).
func TestDefinedKinds(t *testing.T) {
	f := newLocal(t)
	kind := schema.GroupKind{Group: "example.com", Kind: "Pot"}
	mapped := func(versions ...string) string {
		mapping, err := f.Mapper().RESTMapping(kind, versions...)
		switch {
		case meta.IsNoMatchError(err):
			return "unknown"
		case err != nil:
			t.Fatal(err)
		}
		return mapping.Resource.Version + "/" + mapping.Resource.Resource + ", " + string(mapping.Scope.Name())
	}
	if got := mapped("v1"); got != "unknown" {
		t.Errorf("before it is defined, the kind is %s", got)
	}
	schemaOf := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer", "maximum": int64(9)}}}}
	definition := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "pots.example.com"}, "spec": map[string]any{"group": "example.com", "scope": "Namespaced",
			"names":    map[string]any{"plural": "pots", "kind": "Pot"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "schema": schemaOf}, map[string]any{"name": "v0", "served": false, "schema": schemaOf}}}}}
	definitions := f.Client().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := definitions.Apply(t.Context(), definition.GetName(), definition, force); err != nil {
		t.Fatal(err)
	}
	got := []string{mapped("v1"), mapped(), mapped("v0"), mapped("v2")}
	if diff := cmp.Diff([]string{"v1/pots, namespace", "v1/pots, namespace", "unknown", "unknown"}, got); diff != "" {
		t.Error(diff)
	}
	f.server.Requests()
	pot := func(name string, size int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Pot", "size": size,
			"metadata": map[string]any{"name": name, "namespace": "ns"}}}
	}
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "pots"}
	pots := f.Client().Resource(resource).Namespace("ns")
	if _, err := pots.Apply(t.Context(), "large", pot("large", 50), force); err == nil {
		t.Error("a pot that does not fit its definition is written")
	}
	if _, err := pots.Apply(t.Context(), "small", pot("small", 5), force); err != nil {
		t.Fatal(err)
	}
	if found, err := pots.Get(t.Context(), "small", metav1.GetOptions{}); err != nil || found.Object["size"] != int64(5) {
		t.Errorf("the pot is read as %v, %v", found, err)
	}
	reads, err := metadata.NewForConfig(f.server.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := f.Metadata(reads).Resource(resource).Namespace("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "small" {
		t.Errorf("listed are %v, %v", list, err)
	}
	if requests := f.server.Requests(); len(requests) > 0 {
		t.Errorf("requests %v", requests)
	}
	id := apply.IDOf(pot("small", 5))
	if !f.IsDefined(id) || f.IsDefined(apply.IDOf(definition)) {
		t.Error("the pots are of a defined kind, and definitions are not")
	}
}
