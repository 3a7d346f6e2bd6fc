package health

import (
	"testing"
)

func TestJob(t *testing.T) {
	run(t, "apiVersion: batch/v1\nkind: Job", []row{
		{reason: "just made", object: "", state: Progressing, want: "0 of 1 completions"},
		{reason: "running, with a failed pod", object: "spec: {completions: 1, parallelism: 1}\nstatus: {active: 1, failed: 1}", state: Progressing, want: "0 of 1 completions, 1 failed"},
		{reason: "2.4: succeeded", object: "spec: {completions: 1}\nstatus: {succeeded: 1}", state: Ready},
		{reason: "rule 16: completions > 1, some to come", object: "spec: {completions: 3}\nstatus: {succeeded: 2}", state: Progressing, want: "2 of 3 completions"},
		{reason: "rule 16: completions > 1, all there", object: "spec: {completions: 3}\nstatus: {succeeded: 3}", state: Ready},
		{reason: "no pods, since its Instance is suspended", object: "metadata: {annotations: {kudo.dev/suspended: 'true'}}\nspec: {completions: 1, parallelism: 0}", state: Ready},
		{reason: "no pods, for another reason", object: "spec: {completions: 1, parallelism: 0}", state: Progressing, want: "0 of 1 completions"},
		{reason: "complete by condition, as a success policy makes it", object: "spec: {completions: 3}\nstatus: {succeeded: 1, conditions: [{type: Complete, status: 'True'}]}", state: Ready},
		{reason: "work queue: a success is not the end", object: "spec: {parallelism: 2}\nstatus: {succeeded: 1, failed: 2}", state: Progressing,
			want: "waits for the Job to be complete: 1 succeeded, 2 failed"},
		{reason: "work queue: complete", object: "spec: {parallelism: 2}\nstatus: {succeeded: 2, conditions: [{type: Complete, status: 'True'}]}", state: Ready},
		{reason: "failed, with no pods left to start", object: "status: {failed: 7, conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]}",
			state: Failed, want: "BackoffLimitExceeded: Job has reached the specified backoff limit"},
		{reason: "Failed without words", object: "status: {conditions: [{type: Failed, status: 'True'}]}", state: Failed, want: "Failed"},
		{reason: "Failed false is not failed", object: "status: {conditions: [{type: Failed, status: 'False'}]}", state: Progressing, want: "0 of 1 completions"},
		{reason: "FailureTarget is not the end", object: "status: {failed: 1, conditions: [{type: FailureTarget, status: 'True'}]}", state: Progressing, want: "0 of 1 completions, 1 failed"},
		{reason: "suspended", object: "spec: {suspend: true}\nstatus: {conditions: [{type: Suspended, status: 'True'}]}", state: Progressing, want: "is suspended"},
		{reason: "suspended after its end", object: "spec: {suspend: true}\nstatus: {conditions: [{type: Complete, status: 'True'}]}", state: Ready},
	})
}

func TestPod(t *testing.T) {
	const two = "spec: {containers: [{name: a}, {name: b}]}\n"
	run(t, "apiVersion: v1\nkind: Pod", []row{
		{reason: "no status yet", object: two, state: Progressing, want: "0 of 2 containers ready"},
		{reason: "running, not ready", object: two + "status: {phase: Running, containerStatuses: [{name: a, ready: true}, {name: b}], conditions: [{type: Ready, status: 'False'}]}",
			state: Progressing, want: "1 of 2 containers ready"},
		{reason: "running and ready", object: two + "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", state: Ready},
		{reason: "mended: a pod that succeeded is done", object: "status: {phase: Succeeded, conditions: [{type: Ready, status: 'False'}]}", state: Ready},
		{reason: "no node", object: two + "status: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes}]}",
			state: Progressing, want: "waits for a node that it fits on"},
		{reason: "no image", object: two + "status: {phase: Pending, containerStatuses: [{name: a}, {name: b, state: {waiting: {reason: ErrImagePull}}}]}",
			state: Progressing, want: "waits for the image of container b"},
		{reason: "no image, between two tries: the same words", object: two + "status: {phase: Pending, containerStatuses: [{name: a}, {name: b, state: {waiting: {reason: ImagePullBackOff}}}]}",
			state: Progressing, want: "waits for the image of container b"},
		{reason: "no image of an init container", object: two + "status: {phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: InvalidImageName}}}]}",
			state: Progressing, want: "waits for the image of container i"},
		{reason: "a bare pod that failed", object: "spec: {restartPolicy: Never}\nstatus: {phase: Failed}", state: Failed, want: "has failed: a container ended with an error"},
		{reason: "a bare pod that was evicted", object: "spec: {restartPolicy: Always}\nstatus: {phase: Failed, reason: Evicted, message: no memory}", state: Failed, want: "has failed: Evicted: no memory"},
		{reason: "a pod of an Instance is bare: kudo does not replace it", object: "metadata: {ownerReferences: [{apiVersion: kudo.dev/v1beta1, kind: Instance, name: x, controller: true}]}\nstatus: {phase: Failed}",
			state: Failed, want: "has failed: a container ended with an error"},
		{reason: "a pod of a ReplicaSet is replaced", object: "metadata: {ownerReferences: [{apiVersion: v1, kind: Node, name: n}, {apiVersion: apps/v1, kind: ReplicaSet, name: x, controller: true}]}\nstatus: {phase: Failed}",
			state: Progressing, want: "has failed and waits to be replaced: a container ended with an error"},
	})
}
