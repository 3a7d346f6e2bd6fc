package health

import "testing"

// TestAllocations: a check of the health of an object takes no more allocations than this.
func TestAllocations(t *testing.T) {
	const most = 26
	object := parse(t, `
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
`)
	if got := Check(object); got.State != Ready {
		t.Fatalf("the Deployment is %v: %s", got.State, got.Message)
	}
	if got := testing.AllocsPerRun(100, func() { Check(object) }); got > most {
		t.Errorf("%g allocations, and not %d", got, most)
	}
}
