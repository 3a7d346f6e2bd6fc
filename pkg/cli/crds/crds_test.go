package crds

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
)

// definition is that of ships, with these stored versions.
func definition(stored ...any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "ships.example.com", "uid": "crd", "generation": int64(1)},
		"spec": map[string]any{"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Ship", "plural": "ships"},
			"versions": []any{map[string]any{"name": "v1alpha1", "served": true, "storage": false}, map[string]any{"name": "v1", "served": true, "storage": true}}},
		"status": map[string]any{"storedVersions": stored},
	}}
}

// TestMigrate checks what crds migrate does, prints, and returns (P18).
func TestMigrate(t *testing.T) {
	for _, tc := range []struct {
		reason string
		stored []any
		args   []string
		before apitest.Hook
		code   int
		want   string
		trims  bool
	}{
		{"it rewrites the objects", []any{"v1alpha1", "v1"}, []string{"ships.example.com"}, nil, 0,
			"customresourcedefinition ships.example.com migrated: all objects are stored in version v1", true},
		{"there is nothing to do", []any{"v1"}, []string{"ships.example.com"}, nil, 0,
			"customresourcedefinition ships.example.com needs no migration: all objects are stored in version v1", false},
		{"there is no definition", nil, []string{"boats.example.com"}, nil, 1, "the cluster has no CustomResourceDefinition boats.example.com: kubectl get crds lists them", false},
		{"an object is refused", []any{"v1alpha1", "v1"}, []string{"ships.example.com"}, func(r apitest.Request) (any, error) {
			if r.Verb == "patch" && r.Name == "ship-1" {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "ships"}, r.Name, fmt.Errorf("it must not sail"))
			}
			return nil, nil
		}, 1, "Ship ns/ship-1 cannot be rewritten in version v1", false},
		{"the user may not list the objects", []any{"v1alpha1", "v1"}, []string{"ships.example.com"}, func(r apitest.Request) (any, error) {
			if r.Verb == "list" && r.Kind == "Ship" {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "ships"}, "", fmt.Errorf("no right"))
			}
			return nil, nil
		}, 1, "list objects of CustomResourceDefinition ships.example.com: ", false},
		{"objects would lose a field", []any{"v1alpha1", "v1"}, []string{"ships.example.com"}, nil, 1, "so that objects would lose fields", false},
		{"a rate that is none", nil, []string{"ships.example.com", "--rate", "-1"}, nil, 2, "--rate is -1", false},
		{"no name", nil, nil, nil, 2, "takes the name of a CustomResourceDefinition", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			server := apitest.Start(t)
			server.AddKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}, true)
			crd := definition(tc.stored...)
			if strings.Contains(tc.want, "lose fields") {
				schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"legacy": map[string]any{"type": "string"}}}}
				versions := crd.Object["spec"].(map[string]any)["versions"].([]any)
				versions[0].(map[string]any)["schema"] = schema
				versions[1].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
			}
			server.Put(crd)
			for n := range 3 {
				ship := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Ship"}}
				ship.SetNamespace("ns")
				ship.SetName(fmt.Sprintf("ship-%d", n))
				server.Put(ship)
			}
			server.Before(tc.before)
			args := append([]string{"crds", "migrate", "--server", server.Config().Host, "--validate-install=false"}, tc.args...)
			out, errs, code := commandtest.Run(t, New, "", args...)
			if code != tc.code || !strings.Contains(out+errs, tc.want) {
				t.Errorf("exit code %d, want %d: %s%s", code, tc.code, out, errs)
			}
			trimmed := slices.Contains(server.Requests(), "patch CustomResourceDefinition ships.example.com/status")
			if trimmed != tc.trims {
				t.Errorf("trimmed %t", trimmed)
			}
		})
	}
}
