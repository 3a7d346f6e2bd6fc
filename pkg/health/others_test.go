package health

import "testing"

func TestService(t *testing.T) {
	run(t, "apiVersion: v1\nkind: Service", []row{
		{reason: "ExternalName needs nothing", object: "spec: {type: ExternalName}", state: Ready},
		{reason: "no cluster IP yet", object: "spec: {type: ClusterIP}", state: Progressing, want: "waits for a cluster IP"},
		{reason: "cluster IP", object: "spec: {clusterIP: 10.0.0.1}", state: Ready},
		{reason: "headless", object: "spec: {clusterIP: None}", state: Ready},
		{reason: "LoadBalancer without address", object: "spec: {type: LoadBalancer, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: {}}",
			state: Progressing, want: "waits for the LoadBalancer's address"},
		{reason: "LoadBalancer with address", object: "spec: {type: LoadBalancer, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}", state: Ready},
		{reason: "LoadBalancer with external IPs", object: "spec: {type: LoadBalancer, clusterIP: 10.0.0.1, externalIPs: [1.2.3.4]}", state: Ready},
	})
}

// wants2 is a claim of two GiB.
const wants2 = "spec: {resources: {requests: {storage: 2Gi}}}\n"

func TestNamespaceAndClaim(t *testing.T) {
	run(t, "apiVersion: v1\nkind: Namespace", []row{
		{reason: "no phase yet", object: "", state: Progressing, want: "waits to be Active"},
		{reason: "active", object: "status: {phase: Active}", state: Ready},
		{reason: "terminating", object: "status: {phase: Terminating}", state: Progressing, want: "is being deleted"},
	})
	run(t, "apiVersion: v1\nkind: PersistentVolumeClaim", []row{
		{reason: "rule 16: its consumer is to come", object: "status: {phase: Pending, conditions: [{type: Ready, status: 'False'}]}", state: Ready},
		{reason: "bound", object: "status: {phase: Bound}", state: Ready},
		{reason: "unbound: its consumer is to come", object: wants2 + "status: {phase: Pending, capacity: {storage: 1Gi}}", state: Ready},
		{reason: "as large as it asks for", object: wants2 + "status: {phase: Bound, capacity: {storage: 2048Mi}}", state: Ready},
		{reason: "larger", object: wants2 + "status: {phase: Bound, capacity: {storage: 3Gi}}", state: Ready},
		{reason: "its provisioner gives no size", object: wants2 + "status: {phase: Bound}", state: Ready},
		{reason: "it grows", object: wants2 + "status: {phase: Bound, capacity: {storage: 1Gi}}", state: Progressing, want: "its volume grows from 1Gi to 2Gi"},
		{reason: "the controller grows it", object: wants2 + "status: {phase: Bound, capacity: {storage: 1Gi}, allocatedResources: {storage: 2Gi}, allocatedResourceStatuses: {storage: ControllerResizeInProgress}, conditions: [{type: Resizing, status: 'True'}]}",
			state: Progressing, want: "its volume grows from 1Gi to 2Gi"},
		{reason: "a pod is needed for the rest", object: wants2 + "status: {phase: Bound, capacity: {storage: 1Gi}, conditions: [{type: FileSystemResizePending, status: 'True'}]}", state: Ready},
		{reason: "a pod is needed for the rest, in the newer field", object: wants2 + "status: {phase: Bound, capacity: {storage: 1Gi}, allocatedResources: {storage: 2Gi}, allocatedResourceStatuses: {storage: NodeResizePending}}", state: Ready},
		{reason: "the class refuses", object: wants2 + "status: {phase: Bound, capacity: {storage: 1Gi}, allocatedResources: {storage: 2Gi}, allocatedResourceStatuses: {storage: ControllerResizeInfeasible}}",
			state: Failed, want: "its volume cannot grow from 1Gi to 2Gi: ControllerResizeInfeasible"},
		{reason: "the node refuses", object: wants2 + "status: {phase: Bound, capacity: {storage: 1Gi}, allocatedResources: {storage: 2Gi}, allocatedResourceStatuses: {storage: NodeResizeInfeasible}}",
			state: Failed, want: "its volume cannot grow from 1Gi to 2Gi: NodeResizeInfeasible"},
		{reason: "another size was refused before", object: wants2 + "status: {phase: Bound, capacity: {storage: 1Gi}, allocatedResources: {storage: 9Gi}, allocatedResourceStatuses: {storage: ControllerResizeInfeasible}}",
			state: Progressing, want: "its volume grows from 1Gi to 2Gi"},
		{reason: "the controller tries again", object: wants2 + "status: {phase: Bound, capacity: {storage: 1Gi}, conditions: [{type: ControllerResizeError, status: 'True', message: 'the pool is full'}]}",
			state: Progressing, want: "its volume grows from 1Gi to 2Gi: ControllerResizeError: the pool is full"},
		{reason: "a size that is none", object: "spec: {resources: {requests: {storage: much}}}\nstatus: {phase: Bound}", state: Unknown, want: "has a malformed field: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
		{reason: "rule 16: Lost is a failure", object: "status: {phase: Lost}", state: Failed, want: "has lost its volume"},
	})
}

func TestCustomResourceDefinition(t *testing.T) {
	rows := []row{
		{reason: "just made", object: "", state: Progressing, want: "waits to be Established"},
		{reason: "names accepted, not served yet", object: "status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'False', reason: Installing}]}",
			state: Progressing, want: "waits to be Established"},
		{reason: "established", object: "status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]}", state: Ready},
		{reason: "its names are another's", object: "status: {conditions: [{type: NamesAccepted, status: 'False', reason: PluralConflict, message: '\"foos\" is already in use'}, {type: Established, status: 'False'}]}",
			state: Failed, want: `names are not accepted: PluralConflict: "foos" is already in use`},
		{reason: "established, and a new short name is refused: the kind is served", object: "status: {conditions: [{type: NamesAccepted, status: 'False'}, {type: Established, status: 'True'}]}", state: Ready},
	}
	run(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition", rows)
	run(t, "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition", rows)
}

func TestInstance(t *testing.T) {
	run(t, "apiVersion: kudo.dev/v1beta1\nkind: Instance", []row{
		{reason: "rule 18: no status is not done", object: "metadata: {generation: 1}", state: Progressing, want: "has no status yet"},
		{reason: "rule 18: a condition alone is no status of plans", object: "status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}", state: Progressing, want: "has no status yet"},
		{reason: "rule 18: the spec is not seen", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 1, aggregatedStatus: {status: COMPLETE}}", state: Progressing, want: notObserved},
		{reason: "rule 18: a failure of the spec before is not one of this", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 1, aggregatedStatus: {status: FATAL_ERROR}}", state: Progressing, want: notObserved},
		{reason: "rule 18: a plan runs", object: "status: {aggregatedStatus: {status: IN_PROGRESS, activePlanName: deploy, message: waits for Job x}}",
			state: Progressing, want: "plan deploy is IN_PROGRESS: waits for Job x"},
		{reason: "rule 18: a plan is queued", object: "status: {aggregatedStatus: {status: COMPLETE}, queue: [{planName: backup}]}", state: Progressing, want: "plan backup is queued"},
		{reason: "rule 18: done", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 2, aggregatedStatus: {status: COMPLETE}}", state: Ready},
		{reason: "rule 18: FATAL_ERROR is fatal for the parent, with its message", object: "status: {aggregatedStatus: {status: FATAL_ERROR, message: Job x failed}}",
			state: Failed, want: "its last plan failed: Job x failed"},
		{reason: "rule 18: an Instance that waits for parameters has not run its spec", object: "status: {aggregatedStatus: {status: COMPLETE}, conditions: [{type: Ready, status: 'False', reason: WaitingForParameters, message: waits for Secret a/b}]}",
			state: Progressing, want: "waits for Secret a/b"},
		{reason: "one whose next run cannot be recorded", object: "status: {aggregatedStatus: {status: COMPLETE}, conditions: [{type: Ready, status: 'False', reason: RecordNameTaken, message: a/b-1 exists}]}",
			state: Progressing, want: "a/b-1 exists"},
		{reason: "a new one that waits for parameters", object: "status: {conditions: [{type: Ready, status: 'False', reason: WaitingForParameters, message: waits for Secret a/b}]}",
			state: Progressing, want: "waits for Secret a/b"},
		{reason: "rule 18: a refused spec has not been run, though the one before has", object: "status: {aggregatedStatus: {status: COMPLETE}, conditions: [{type: Ready, status: 'False', reason: InvalidSpec, message: A is wrong}]}",
			state: Progressing, want: "its spec is refused: A is wrong"},
		{reason: "not run yet", object: "status: {aggregatedStatus: {status: NEVER_RUN}}", state: Progressing, want: "its last plan is NEVER_RUN"},
	})
}

// TestInstanceOrder checks which of several causes an Instance names: the spec that is not observed, then the run, then the
// queue, then the refusal.
func TestInstanceOrder(t *testing.T) {
	const refused = "conditions: [{type: Ready, status: 'False', reason: InvalidSpec, message: A is wrong}]"
	run(t, "apiVersion: kudo.dev/v1beta1\nkind: Instance", []row{
		{reason: "a refusal of the spec before does not count", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 1, aggregatedStatus: {status: COMPLETE}, " + refused + "}",
			state: Progressing, want: notObserved},
		{reason: "a run continues though the spec is refused", object: "status: {aggregatedStatus: {status: IN_PROGRESS, activePlanName: deploy}, " + refused + "}",
			state: Progressing, want: "plan deploy is IN_PROGRESS"},
		{reason: "a run comes before the queue", object: "status: {aggregatedStatus: {status: PENDING, activePlanName: deploy}, queue: [{planName: backup}]}",
			state: Progressing, want: "plan deploy is PENDING"},
		{reason: "the first plan of the queue is named", object: "status: {aggregatedStatus: {status: COMPLETE}, queue: [{planName: backup}, {planName: restore}], " + refused + "}",
			state: Progressing, want: "plan backup is queued"},
		{reason: "a refused spec is no failure of the run before", object: "status: {aggregatedStatus: {status: FATAL_ERROR, message: Job x failed}, " + refused + "}",
			state: Progressing, want: "its spec is refused: A is wrong"},
		{reason: "a new Instance whose spec is refused", object: "status: {" + refused + "}", state: Progressing, want: "its spec is refused: A is wrong"},
		{reason: "PENDING without a run: the message alone", object: "status: {aggregatedStatus: {status: PENDING, message: waits for Secret a/b}}",
			state: Progressing, want: "waits for Secret a/b"},
		{reason: "FATAL_ERROR without a message", object: "status: {aggregatedStatus: {status: FATAL_ERROR}}", state: Failed, want: "its last plan failed"},
		{reason: "ERROR is tried again", object: "status: {aggregatedStatus: {status: ERROR, message: the API server is busy}}",
			state: Progressing, want: "its last plan is ERROR: the API server is busy"},
		{reason: "a condition with another reason refuses nothing", object: "status: {aggregatedStatus: {status: COMPLETE}, conditions: [{type: Ready, status: 'False', reason: Suspended, message: waits}]}", state: Ready},
	})
}

// TestCheckOtherOrder checks which of several statements about an object counts.
func TestCheckOtherOrder(t *testing.T) {
	run(t, "apiVersion: example.com/v1\nkind: Widget", []row{
		{reason: "conditions of the spec before do not count", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}",
			state: Progressing, want: "Widget generation is 2, but latest observed generation is 1"},
		{reason: "Stalled outweighs Ready", object: "status: {conditions: [{type: Ready, status: 'True'}, {type: Stalled, status: 'True', message: no quota}]}", state: Failed, want: "no quota"},
		{reason: "Reconciling outweighs Ready", object: "status: {conditions: [{type: Ready, status: 'True'}, {type: Reconciling, status: 'True', message: rolls out}]}",
			state: Progressing, want: "rolls out"},
		{reason: "Reconciling without a message", object: "status: {conditions: [{type: Reconciling, status: 'True'}]}", state: Progressing, want: "is in progress"},
		{reason: "Stalled false is not failed", object: "status: {conditions: [{type: Stalled, status: 'False', message: no quota}]}", state: Ready},
		{reason: "a status that is no map is not judged", object: "status: done", state: Ready},
	})
}
