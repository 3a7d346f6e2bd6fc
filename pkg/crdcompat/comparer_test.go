package crdcompat

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/test/apitest"
)

// shipDefinition is a CustomResourceDefinition of Ships, with the properties of their spec.
func shipDefinition(scope string, properties map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "ships.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": scope, "names": map[string]any{"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}},
			}}}},
		},
	}}
}

func ship(name string, spec map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Ship", "spec": spec}}
	obj.SetNamespace("ns")
	obj.SetName(name)
	return obj
}

func newComparer(t *testing.T, server *apitest.Server) *Comparer {
	t.Helper()
	c, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return NewComparer(c, server.Mapper())
}

func textSchema() map[string]any    { return map[string]any{"type": "string"} }
func integerSchema() map[string]any { return map[string]any{"type": "integer"} }

// TestCheckUpdate checks which changes of a CustomResourceDefinition are refused, and what the error says.
func TestCheckUpdate(t *testing.T) {
	base := map[string]any{"size": integerSchema(), "color": textSchema()}
	wrong := shipDefinition("Namespaced", base)
	wrong.Object["spec"] = "text"
	for _, tc := range []struct {
		reason       string
		live, wanted *unstructured.Unstructured
		objects      []*unstructured.Unstructured
		want         []string
	}{
		{reason: "nothing changes", live: shipDefinition("Namespaced", base), wanted: shipDefinition("Namespaced", base), objects: []*unstructured.Unstructured{ship("a", map[string]any{"size": int64(1)})}},
		{reason: "a property is added", live: shipDefinition("Namespaced", base),
			wanted: shipDefinition("Namespaced", map[string]any{"size": integerSchema(), "color": textSchema(), "name": textSchema()}), objects: []*unstructured.Unstructured{ship("a", map[string]any{"size": int64(1)})}},
		{reason: "the scope changes", live: shipDefinition("Namespaced", base), wanted: shipDefinition("Cluster", base), want: []string{"the change is not safe: ", "scope"}},
		{reason: "a property changes its type", live: shipDefinition("Namespaced", base), wanted: shipDefinition("Namespaced", map[string]any{"size": textSchema(), "color": textSchema()}),
			want: []string{"the change is not safe: ", "v1 ", "size"}},
		{reason: "all that is not safe is named", live: shipDefinition("Namespaced", base), wanted: shipDefinition("Namespaced", map[string]any{"size": textSchema()}),
			want: []string{"the change is not safe: ", "size", "; ", "color"}},
		{reason: "the definition of the cluster is malformed", live: wrong, wanted: shipDefinition("Namespaced", base), want: []string{"CustomResourceDefinition ships.example.com: "}},
		{reason: "the definition of the package is malformed", live: shipDefinition("Namespaced", base), wanted: wrong, want: []string{"CustomResourceDefinition ships.example.com: "}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server := apitest.Start(t)
			server.AddKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}, true)
			for _, object := range tc.objects {
				server.Put(object)
			}
			before := tc.live.DeepCopy()
			err := newComparer(t, server).CheckUpdate(t.Context(), tc.live, tc.wanted)
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if len(tc.want) > 0 && !strings.HasPrefix(err.Error(), tc.want[0]) {
				t.Errorf("error %q does not begin with %q", err, tc.want[0])
			}
			if before.GroupVersionKind() != tc.live.GroupVersionKind() || len(before.Object) != len(tc.live.Object) {
				t.Error("the definition of the cluster was changed by the check")
			}
		})
	}
}

// TestInvalidObjects checks that only a Comparer with the rights of its reader names the objects that a change would break.
func TestInvalidObjects(t *testing.T) {
	server := apitest.Start(t)
	server.AddKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}, true)
	server.Put(ship("of-another-tenant", map[string]any{"size": int64(1), "secret": "x"}))
	definition := shipDefinition("Namespaced", map[string]any{"size": integerSchema()})
	counting := newComparer(t, server)
	for _, tc := range []struct {
		comparer *Comparer
		want     string
	}{
		{counting, "the change is not safe: 1 of 1 objects would break; kubectl kudo package crd-diff --live names those that you may list"},
		{NewNamingComparer(counting.client, counting.mapper), "the change is not safe: 1 of 1 objects would break\n" +
			"  ns/of-another-tenant (v1): spec.secret: the field would be pruned"},
	} {
		err := tc.comparer.CheckUpdate(t.Context(), definition, definition)
		if err == nil || err.Error() != tc.want {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}

// TestIsSuperset checks that a definition of the cluster is kept where it allows all that the package needs.
func TestIsSuperset(t *testing.T) {
	base := map[string]any{"size": integerSchema()}
	more := map[string]any{"size": integerSchema(), "color": textSchema()}
	wrong := shipDefinition("Namespaced", base)
	wrong.Object["spec"] = "text"
	for _, tc := range []struct {
		reason       string
		live, wanted *unstructured.Unstructured
		want         bool
	}{
		{"they are the same", shipDefinition("Namespaced", base), shipDefinition("Namespaced", base), true},
		{"that of the cluster allows more", shipDefinition("Namespaced", more), shipDefinition("Namespaced", base), true},
		{"that of the cluster allows less", shipDefinition("Namespaced", base), shipDefinition("Namespaced", more), false},
		{"that of the cluster has another scope", shipDefinition("Cluster", more), shipDefinition("Namespaced", base), false},
		{"that of the cluster is malformed", wrong, shipDefinition("Namespaced", base), false},
		{"that of the package is malformed", shipDefinition("Namespaced", base), wrong, false},
	} {
		if got := (&Comparer{}).IsSuperset(tc.live, tc.wanted); got != tc.want {
			t.Errorf("%s: superset %t, want %t", tc.reason, got, tc.want)
		}
	}
}

// TestListObjects checks that objects are listed in parts, and that a kind that is not served is an error.
func TestListObjects(t *testing.T) {
	server := apitest.Start(t)
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}
	if _, err := newComparer(t, server).List(t.Context(), gvk, 2, ""); err == nil {
		t.Error("a kind that is not served has been listed")
	}
	server.AddKind(gvk, true)
	for _, name := range []string{"a", "b", "c"} {
		server.Put(ship(name, nil))
	}
	c := newComparer(t, server)
	first, err := c.List(t.Context(), gvk, 2, "")
	if err != nil || len(first.Items) != 2 || first.GetContinue() == "" {
		t.Fatalf("the first part: %v (%v), want 2 objects and a token", first, err)
	}
	second, err := c.List(t.Context(), gvk, 2, first.GetContinue())
	if err != nil || len(second.Items) != 1 || second.Items[0].GetName() != "c" || second.GetContinue() != "" {
		t.Errorf("the second part: %v (%v), want the last object", second, err)
	}
	server.Before(func(apitest.Request) (any, error) { return nil, errors.New("down") })
	if _, err := c.List(t.Context(), gvk, 2, ""); err == nil {
		t.Error("objects that cannot be listed are no error")
	}
}
