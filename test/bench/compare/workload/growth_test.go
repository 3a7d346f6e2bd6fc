package workload

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestGrowthExponent(t *testing.T) {
	for _, tc := range []struct {
		reason       string
		cost, higher float64
		want         float64
	}{
		{"in proportion", 2, 6, 1},
		{"the square", 2, 18, 2},
		{"the same", 2, 2, 0},
	} {
		if got := growthExponent(100, 300, tc.cost, tc.higher); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}

// TestExampleAs: an object of another Instance has its name wherever the first one's stood, and its uid.
func TestExampleAs(t *testing.T) {
	w := &example{name: "i1"}
	got := w.as(&unstructured.Unstructured{Object: map[string]any{
		"kind": "Deployment", "metadata": map[string]any{
			"name": "i1", "namespace": "first", "uid": "u", "resourceVersion": "7", "generation": int64(1), "labels": map[string]any{"app": "i1", "other": "i12", "i1": "key"},
			"ownerReferences": []any{map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": "i1", "uid": "old"}},
		},
		"spec": map[string]any{"list": []any{"i1-x", "ns/i1", "mi1", int64(3)}, "clusterIP": "10.0.0.1"},
	}}, "second", "b7", "new")
	want := map[string]any{
		"kind": "Deployment", "metadata": map[string]any{
			"name": "b7", "namespace": "second", "labels": map[string]any{"app": "b7", "other": "i12", "i1": "key"},
			"ownerReferences": []any{map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": "b7", "uid": "new"}},
		},
		"spec": map[string]any{"list": []any{"b7-x", "ns/b7", "mi1", int64(3)}},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Error(diff)
	}
}
