package kudoinit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestHideSecrets checks that a preview shows no value of a Secret, and which values would change.
func TestHideSecrets(t *testing.T) {
	object := func(data map[string]any) map[string]any {
		if data == nil {
			return map[string]any{}
		}
		return map[string]any{"data": data}
	}
	for name, tc := range map[string]struct {
		reason                        string
		before, after, shown, changed map[string]any
	}{
		"Same":    {"a value that stays", map[string]any{"k": "old"}, map[string]any{"k": "old"}, map[string]any{"k": "<hidden>"}, map[string]any{"k": "<hidden>"}},
		"Other":   {"a value that changes", map[string]any{"k": "old"}, map[string]any{"k": "new"}, map[string]any{"k": "<hidden>"}, map[string]any{"k": "<hidden: another value>"}},
		"Added":   {"a value that is added", nil, map[string]any{"k": "new"}, nil, map[string]any{"k": "<hidden>"}},
		"Removed": {"a value that goes", map[string]any{"k": "old"}, nil, map[string]any{"k": "<hidden>"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := object(tc.before), object(tc.after)
			hideSecrets(before, after)
			for _, pair := range [][2]map[string]any{{object(tc.shown), before}, {object(tc.changed), after}} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s: -want +got: %s", tc.reason, diff)
				}
			}
		})
	}
}

// TestPreviewContent checks that a preview shows nothing that the API server keeps.
func TestPreviewContent(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{
		"kind": "ConfigMap", "data": map[string]any{"values.yaml": "{}", "rules.json": "{}"}, "status": map[string]any{"a": "b"},
		"metadata": map[string]any{"name": "kudo-values", "uid": "u", "resourceVersion": "7", "generation": int64(1), "creationTimestamp": "now", "managedFields": []any{}},
	}}
	want := map[string]any{"kind": "ConfigMap", "data": map[string]any{"values.yaml": "{}"}, "metadata": map[string]any{"name": "kudo-values"}}
	if diff := cmp.Diff(want, previewContent(live)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if live.GetUID() != "u" {
		t.Error("the live object was changed")
	}
}
