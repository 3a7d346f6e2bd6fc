package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestOutage: an API that every Kubernetes serves is away for a while; others may be unknown permanently.
func TestOutage(t *testing.T) {
	lists := []*metav1.APIResourceList{{GroupVersion: "v1"}, {GroupVersion: "batch/v1"}}
	for gv, want := range map[string]bool{"v1": false, "batch/v1": false, "apps/v1": true, "policy/v1beta1": false, "example.com/v1": false} {
		parsed, err := schema.ParseGroupVersion(gv)
		if err != nil {
			t.Fatal(err)
		}
		if got := isDiscoveryOutage(lists, parsed); got != want {
			t.Errorf("%s: %v, want %v", gv, got, want)
		}
	}
}
