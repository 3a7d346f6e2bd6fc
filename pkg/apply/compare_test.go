package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestChangedFields: R32: an object is equal if a run would change nothing of it but its owners, and what every run writes anew.
func TestChangedFields(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		kind   string
		change func(*unstructured.Unstructured)
		want   []string
	}{
		"Equal": {"nothing changes", "ConfigMap", func(*unstructured.Unstructured) {}, nil},
		"Server": {"what the server keeps does not count", "ConfigMap", func(o *unstructured.Unstructured) {
			o.SetResourceVersion("9")
			o.SetUID("x")
			o.SetGeneration(4)
			o.Object["status"] = map[string]any{"a": "b"}
		}, nil},
		"Run": {"the annotations of the run do not count", "ConfigMap", func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{v1beta1.PlanUIDAnnotation: "other", "note": "kept"})
		}, nil},
		"Data":  {"a value", "ConfigMap", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"key": "b"} }, []string{".data.key"}},
		"Label": {"a label", "ConfigMap", func(o *unstructured.Unstructured) { o.SetLabels(nil) }, []string{".metadata.labels.app"}},
		"Note": {"an annotation", "ConfigMap", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) },
			[]string{".metadata.annotations.note"}},
		"Secret": {"keys of a Secret are not named", "Secret", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"other": "b"} },
			[]string{"its content"}},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": tc.kind, "data": map[string]any{"key": "a"}}}
			live.SetLabels(map[string]string{"app": "web"})
			live.SetAnnotations(map[string]string{v1beta1.PlanUIDAnnotation: "one", "note": "kept"})
			written := live.DeepCopy()
			tc.change(written)
			got, err := changedFields(live, written)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got: %s", tc.reason, diff)
			}
		})
	}
}
