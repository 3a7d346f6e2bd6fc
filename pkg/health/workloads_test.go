package health

import "testing"

func TestDeployment(t *testing.T) {
	const header = "kind: Deployment\napiVersion: "
	rows := []row{
		{reason: "no status yet", object: "metadata: {generation: 1}", state: Progressing, want: notObserved},
		{reason: "observedGeneration is behind", object: "metadata: {generation: 3}\nspec: {replicas: 1}\nstatus: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1}",
			state: Progressing, want: notObserved},
		{reason: "not all updated", object: "spec: {replicas: 3}\nstatus: {replicas: 3, updatedReplicas: 1, availableReplicas: 3}",
			state: Progressing, want: "1 of 3 replicas updated"},
		{reason: "replicas default to 1", object: "spec: {}", state: Progressing, want: "0 of 1 replicas updated"},
		{reason: "old replicas are there", object: "spec: {replicas: 2}\nstatus: {replicas: 3, updatedReplicas: 2, availableReplicas: 2}",
			state: Progressing, want: "1 old replicas still running"},
		{reason: "updated, not available", object: "spec: {replicas: 2}\nstatus: {replicas: 2, updatedReplicas: 2, availableReplicas: 1}",
			state: Progressing, want: "1 of 2 replicas available"},
		{reason: "rolled out", object: "metadata: {generation: 2}\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}", state: Ready},
		{reason: "no replicas wanted", object: "spec: {replicas: 0}", state: Ready},
		{reason: "rule 16: fewer replicas wanted, and the others are there", object: "spec: {replicas: 1}\nstatus: {replicas: 3, updatedReplicas: 3, availableReplicas: 3}",
			state: Progressing, want: "2 old replicas still running", serving: true},
		{reason: "rule 16: no replicas wanted, and pods have not ended", object: "spec: {replicas: 0}\nstatus: {terminatingReplicas: 2}", state: Progressing, want: "2 old replicas still running", serving: true},
		{reason: "the Instance is suspended: no volume is waited for", object: "metadata: {annotations: {kudo.dev/suspended: 'true'}}\nspec: {replicas: 0}\nstatus: {terminatingReplicas: 2}", state: Ready},
		{reason: "replaced pods that have not ended are not awaited", object: "spec: {replicas: 1}\nstatus: {replicas: 1, updatedReplicas: 1, availableReplicas: 1, terminatingReplicas: 1}", state: Ready},
		{reason: "rule 15: past the deadline is final", object: "spec: {replicas: 1}\nstatus: {replicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: timed out}]}",
			state: Failed, want: "ProgressDeadlineExceeded: timed out (0 of 1 replicas available)"},
		{reason: "back at the replicas that it had before, only others are to end: the deadline was that of the rollout given up", object: "spec: {replicas: 1}\nstatus: {replicas: 2, updatedReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}",
			state: Progressing, want: "1 old replicas still running"},
		{reason: "a deadline of the spec before does not count", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}",
			state: Progressing, want: notObserved},
		{reason: "paused before its pods are updated", object: "spec: {replicas: 3, paused: true}\nstatus: {replicas: 3, updatedReplicas: 1, availableReplicas: 3}",
			state: Progressing, want: "is paused: 1 of 3 replicas updated"},
		{reason: "paused with all pods updated", object: "spec: {replicas: 1, paused: true}\nstatus: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}", state: Ready},
		{reason: "pods cannot be made: the reason, not the message", object: "status: {conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: 'pods \"x-abcde\" is forbidden'}]}",
			state: Progressing, want: "0 of 1 replicas updated (FailedCreate)"},
	}
	for _, version := range []string{"apps/v1", "apps/v1beta2", "apps/v1beta1", "extensions/v1beta1"} {
		t.Run(version, func(t *testing.T) { run(t, header+version, rows) })
	}
}

func TestStatefulSet(t *testing.T) {
	run(t, "apiVersion: apps/v1\nkind: StatefulSet", []row{
		{reason: "no status yet", object: "spec: {replicas: 0}", state: Progressing, want: notObserved},
		{reason: "observedGeneration is behind", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 1, readyReplicas: 1, updatedReplicas: 1}",
			state: Progressing, want: notObserved},
		{reason: "not all ready", object: "spec: {replicas: 3}\nstatus: {observedGeneration: 1, readyReplicas: 2, updatedReplicas: 3}",
			state: Progressing, want: "2 of 3 replicas ready"},
		{reason: "replicas default to 1", object: "status: {observedGeneration: 1}", state: Progressing, want: "0 of 1 replicas ready"},
		{reason: "ready, not all updated", object: "spec: {replicas: 3}\nstatus: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 1}",
			state: Progressing, want: "1 of 3 replicas updated"},
		{reason: "partition: only the pods above it are awaited", object: "spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}}\nstatus: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 1}", state: Ready},
		{reason: "partition: one above it is missing", object: "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}\nstatus: {observedGeneration: 1, readyReplicas: 3, updatedReplicas: 1}",
			state: Progressing, want: "1 of 2 replicas updated"},
		{reason: "partition above replicas", object: "spec: {replicas: 1, updateStrategy: {rollingUpdate: {partition: 5}}}\nstatus: {observedGeneration: 1, readyReplicas: 1}", state: Ready},
		{reason: "rule 16: OnDelete does not await updates", object: "spec: {replicas: 2, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, readyReplicas: 2, updatedReplicas: 0}", state: Ready},
		{reason: "rule 16: OnDelete awaits ready pods", object: "spec: {replicas: 2, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, readyReplicas: 1}",
			state: Progressing, want: "1 of 2 replicas ready"},
		{reason: "rule 16: fewer replicas wanted, and the others are there", object: "spec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 3}",
			state: Progressing, want: "2 old replicas still running", serving: true},
		{reason: "rule 16: no replicas wanted, and a pod has not ended", object: "spec: {replicas: 0, updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, replicas: 1}",
			state: Progressing, want: "1 old replicas still running", serving: true},
		{reason: "the Instance is suspended: no volume is waited for", object: "metadata: {annotations: {kudo.dev/suspended: 'true'}}\nspec: {replicas: 0}\nstatus: {observedGeneration: 1, replicas: 1}", state: Ready},
		{reason: "no replicas wanted, and no pod is left", object: "spec: {replicas: 0}\nstatus: {observedGeneration: 1}", state: Ready},
		{reason: "rolled out", object: "metadata: {generation: 4}\nspec: {replicas: 2}\nstatus: {observedGeneration: 4, replicas: 2, readyReplicas: 2, updatedReplicas: 2}", state: Ready},
	})
}

func TestDaemonSet(t *testing.T) {
	run(t, "apiVersion: apps/v1\nkind: DaemonSet", []row{
		{reason: "no status yet", object: "", state: Progressing, want: notObserved},
		{reason: "observedGeneration is behind", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 1}", state: Progressing, want: notObserved},
		{reason: "no node wants it", object: "status: {observedGeneration: 1}", state: Ready},
		{reason: "not all updated", object: "status: {observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}",
			state: Progressing, want: "2 of 3 pods updated"},
		{reason: "not all available", object: "status: {observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 1}",
			state: Progressing, want: "1 of 3 pods available"},
		{reason: "OnDelete does not await updates", object: "spec: {updateStrategy: {type: OnDelete}}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 3, numberAvailable: 3}", state: Ready},
		{reason: "rolled out", object: "status: {observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}", state: Ready},
	})
}

func TestReplicaSet(t *testing.T) {
	rows := []row{
		{reason: "observedGeneration is behind", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 1}", state: Progressing, want: notObserved},
		{reason: "not all available", object: "spec: {replicas: 2}\nstatus: {replicas: 2, availableReplicas: 1}", state: Progressing, want: "1 of 2 replicas available"},
		{reason: "too many", object: "spec: {replicas: 1}\nstatus: {replicas: 3, availableReplicas: 3}", state: Progressing, want: "2 old replicas still running"},
		{reason: "as many as wanted", object: "spec: {replicas: 2}\nstatus: {replicas: 2, availableReplicas: 2}", state: Ready},
	}
	run(t, "apiVersion: apps/v1\nkind: ReplicaSet", rows)
	run(t, "apiVersion: v1\nkind: ReplicationController", rows)
}

// TestDeploymentOrder checks which cause a Deployment names if there are several.
func TestDeploymentOrder(t *testing.T) {
	run(t, "apiVersion: apps/v1\nkind: Deployment", []row{
		{reason: "a deadline that passed while it is paused is final", object: "spec: {replicas: 2, paused: true}\nstatus: {replicas: 2, updatedReplicas: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}",
			state: Failed, want: "ProgressDeadlineExceeded (1 of 2 replicas updated)"},
		{reason: "pods cannot be made, and it is paused: the pause is named", object: "spec: {paused: true}\nstatus: {conditions: [{type: ReplicaFailure, status: 'True', reason: FailedCreate}]}",
			state: Progressing, want: "is paused: 0 of 1 replicas updated"},
		{reason: "the condition is false for another reason", object: "status: {conditions: [{type: Progressing, status: 'False', reason: DeploymentPaused}]}",
			state: Progressing, want: "0 of 1 replicas updated"},
		{reason: "a deadline that is not exceeded any more", object: "status: {conditions: [{type: Progressing, status: 'True', reason: ProgressDeadlineExceeded}]}",
			state: Progressing, want: "0 of 1 replicas updated"},
		{reason: "a failure to make pods without a reason", object: "status: {conditions: [{type: ReplicaFailure, status: 'True', message: 'pods \"x-abcde\" is forbidden'}]}",
			state: Progressing, want: "0 of 1 replicas updated"},
		{reason: "a failure to make pods that has ended", object: "status: {conditions: [{type: ReplicaFailure, status: 'False', reason: FailedCreate}]}",
			state: Progressing, want: "0 of 1 replicas updated"},
		{reason: "scaled to zero, with pods left", object: "spec: {replicas: 0}\nstatus: {replicas: 2}", state: Progressing, want: "2 old replicas still running"},
		{reason: "a surge of updated pods is awaited as a whole", object: "spec: {replicas: 2}\nstatus: {replicas: 3, updatedReplicas: 3, availableReplicas: 2}",
			state: Progressing, want: "2 of 3 replicas available"},
		{reason: "an observed generation that is ahead counts as observed", object: "metadata: {generation: 1}\nspec: {replicas: 1}\nstatus: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1}", state: Ready},
	})
}
