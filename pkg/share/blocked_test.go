package share

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestCounts: what Kubernetes puts into a namespace by itself is no content of it; a kind of another group that has the
// same name is.
func TestCounts(t *testing.T) {
	for _, tc := range []struct {
		kind, name string
		want       bool
	}{
		{"ConfigMap", "kube-root-ca.crt", false},
		{"ConfigMap", "mine", true},
		{"ConfigMap.example.com", "kube-root-ca.crt", true},
		{"ServiceAccount", "default", false},
		{"ServiceAccount", "mine", true},
		{"Event", "x", false},
		{"Event.events.k8s.io", "x", false},
		{"Event.calendar.example.com", "x", true},
		{"Endpoints", "x", false},
		{"EndpointSlice.discovery.k8s.io", "x", false},
		{"Endpoints.example.com", "x", true},
		{"PersistentVolumeClaim", "x", true},
	} {
		item := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: tc.name}}
		got, err := (&Session{holder: &v1beta1.Installation{}}).isContent(schema.ParseGroupKind(tc.kind), item)
		if err != nil || got != tc.want {
			t.Errorf("%s %s counts: %v, %v", tc.kind, tc.name, got, err)
		}
	}
}
