package kudoinit

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// TestCount checks what is said of the objects that are deleted with a definition of kudo's, and whether they count as data that is lost.
func TestCount(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "config.kudo.dev", Version: "v1alpha1", Kind: "HealthRule"}
	definition := func(name string, served bool) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{
			"group": kind.Group, "names": map[string]any{"kind": kind.Kind, "listKind": kind.Kind + "List"},
			"versions": []any{map[string]any{"name": "v1alpha0", "served": false}, map[string]any{"name": kind.Version, "served": served}},
		}}}
	}
	rules, instances := definition("healthrules.config.kudo.dev", true), definition(instancesCRD, true)
	for _, tc := range []struct {
		reason     string
		definition *unstructured.Unstructured
		objects    int
		hook       apitest.Hook
		want       string
		some       bool
	}{
		{"Instances are known", instances, 0, nil, "2 Instances", true},
		{"no object is lost", rules, 0, nil, "0 objects of kind HealthRule", false},
		{"objects are counted", rules, 3, nil, "3 objects of kind HealthRule", true},
		{"without a served version they cannot be counted", definition("healthrules.config.kudo.dev", false), 1, nil, "all objects of its kind", true},
		{"a definition that is malformed", &unstructured.Unstructured{Object: map[string]any{"spec": "x"}}, 1, nil, "all objects of its kind", true},
		{"they may not be listed", rules, 1, func(r apitest.Request) (any, error) {
			if r.Verb == "list" {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "healthrules"}, "", nil)
			}
			return nil, nil
		}, "all HealthRule, which cannot be listed: ", true},
	} {
		server := apitest.Start(t)
		server.AddKind(kind, false)
		for n := range tc.objects {
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(kind)
			obj.SetName("rule-" + string(rune('a'+n)))
			server.Put(obj)
		}
		if tc.hook != nil {
			server.Before(tc.hook)
		}
		r := &Remover{Client: server.Client(), held: holders{instances: make([]v1beta1.Instance, 2)}}
		if got, some := r.count(t.Context(), tc.definition); !strings.HasPrefix(got, tc.want) || some != tc.some {
			t.Errorf("%s: %q, %t, want %q, %t", tc.reason, got, some, tc.want, tc.some)
		}
	}
}
