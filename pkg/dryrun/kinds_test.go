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

var (
	potKind     = schema.GroupKind{Group: "example.com", Kind: "Pot"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// potDefinition returns a definition of pots, in versions that are served, and in v0, which is not.
func potDefinition(served ...string) *unstructured.Unstructured {
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer", "maximum": int64(9)}}}}
	versions := []any{map[string]any{"name": "v0", "served": false, "schema": schema}}
	for _, version := range served {
		versions = append(versions, map[string]any{"name": version, "served": true, "schema": schema})
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "pots.example.com"}, "spec": map[string]any{"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "pots", "kind": "Pot"}, "versions": versions}}}
}

// TestChangedDefinition checks that a definition that exists maps no kind that it will only serve, since there may be objects, and that the
// change is known.
func TestChangedDefinition(t *testing.T) {
	f := newLocal(t, potDefinition("v1"))
	id := func(version string) apply.ID { return apply.ID{GroupVersionKind: potKind.WithVersion(version)} }
	write := func(definition *unstructured.Unstructured) {
		t.Helper()
		if _, err := f.Client().Resource(definitions).Apply(t.Context(), definition.GetName(), definition, force); err != nil {
			t.Fatal(err)
		}
	}
	if write(potDefinition("v1")); f.Defines(id("v1")) {
		t.Error("a definition that stays as it is counts as changed")
	}
	write(potDefinition("v1", "v2"))
	if _, err := f.Mapper().RESTMapping(potKind, "v2"); !meta.IsNoMatchError(err) {
		t.Errorf("version v2 is mapped: %v", err)
	}
	got := map[string]bool{"v0": f.Defines(id("v0")), "v1": f.Defines(id("v1")), "v2": f.Defines(id("v2"))}
	if diff := cmp.Diff(map[string]bool{"v0": false, "v1": true, "v2": true}, got); diff != "" {
		t.Error(diff)
	}
}

// TestDefinedKinds checks that a kind is known once its definition was written, in the versions that are served, and that its objects are
// written and read without a request (P6).
func TestDefinedKinds(t *testing.T) {
	f := newLocal(t)
	mapped := func(versions ...string) string {
		mapping, err := f.Mapper().RESTMapping(potKind, versions...)
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
	definition := potDefinition("v1")
	if _, err := f.Client().Resource(definitions).Apply(t.Context(), definition.GetName(), definition, force); err != nil {
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
