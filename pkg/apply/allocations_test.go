package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestAllocations: the hash of an object, which each reconcile makes, takes no more allocations than this.
func TestAllocations(t *testing.T) {
	object := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ns, labels: {app: web, heritage: kudo}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.27.4", ports: [{containerPort: 80}]}]}
`), &object.Object)
	if err != nil {
		t.Fatal(err)
	}
	const most = 22
	if got := testing.AllocsPerRun(100, func() { Hash(object, nil) }); got > most {
		t.Errorf("%g allocations, and not %d", got, most)
	}
}
