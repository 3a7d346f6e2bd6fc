package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/health"
)

// TestAllocations: what each look at an object costs, its hash and its health, takes no more allocations than this.
func TestAllocations(t *testing.T) {
	object := &unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ns, generation: 2, labels: {app: web, heritage: kudo}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.27.4", ports: [{containerPort: 80}]}]}
status:
  observedGeneration: 2
  replicas: 2
  updatedReplicas: 2
  readyReplicas: 2
  availableReplicas: 2
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]
`), &object.Object)
	if err != nil {
		t.Fatal(err)
	}
	if got := health.Check(object); got.State != health.Ready {
		t.Fatalf("the Deployment is %v: %s", got.State, got.Message)
	}
	for _, tc := range []struct {
		what string
		most float64
		do   func()
	}{
		{"the hash", 22, func() { Hash(object, nil) }},
		{"the health", 26, func() { health.Check(object) }},
	} {
		if got := testing.AllocsPerRun(100, tc.do); got > tc.most {
			t.Errorf("%s: %g allocations, and not %g", tc.what, got, tc.most)
		}
	}
}
