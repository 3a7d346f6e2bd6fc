package health

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

const (
	notObserved = "waits for its controller to see the new spec"
	oldReplicas = "%d old replicas still running"
)

// deadlineExceeded is the reason of a Deployment's condition Progressing once spec.progressDeadlineSeconds are over.
const deadlineExceeded = "ProgressDeadlineExceeded"

type deployment struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		Replicas *int32 `json:"replicas"`
		Paused   bool   `json:"paused"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Replicas           int32 `json:"replicas"`
		UpdatedReplicas    int32 `json:"updatedReplicas"`
		AvailableReplicas  int32 `json:"availableReplicas"`
		// TerminatingReplicas are pods that are being deleted. API servers below 1.35 do not give their number.
		TerminatingReplicas int32      `json:"terminatingReplicas"`
		Conditions          conditions `json:"conditions"`
	} `json:"status"`
}

// checkDeployment goes by `kubectl rollout status`, but awaits the end of pods that a smaller number of replicas takes away (endOfPods). A
// paused Deployment whose pods are all up to date is ready; one whose pods are not waits for whoever paused it.
func checkDeployment(d *deployment) Result {
	if d.Status.ObservedGeneration < d.Metadata.Generation {
		return progressing(notObserved)
	}
	waits := rolloutOf(d)
	if waits == "" {
		return endOfPods(d.Metadata, max(d.Status.Replicas-orOne(d.Spec.Replicas), d.terminatingOfNone()))
	}
	// Back at a ReplicaSet that it had before, the condition is that of the rollout that was given up, until there is progress.
	ended := d.Status.UpdatedReplicas >= orOne(d.Spec.Replicas) && d.Status.AvailableReplicas >= d.Status.UpdatedReplicas
	if c, found := d.Status.Conditions.with(string(appsv1.DeploymentProgressing), corev1.ConditionFalse); found &&
		c.Reason == deadlineExceeded && !ended {
		return failed("%s (%s)", c, waits)
	}
	if d.Spec.Paused {
		return progressing("is paused: %s", waits)
	}
	// The condition's message names pods at random; its reason does not.
	failure := string(appsv1.DeploymentReplicaFailure)
	if c, found := d.Status.Conditions.with(failure, corev1.ConditionTrue); found && c.Reason != "" {
		return progressing("%s (%s)", waits, c.Reason)
	}
	return progressing("%s", waits)
}

// rolloutOf says what a rollout waits for, or "".
func rolloutOf(d *deployment) string {
	status, want := d.Status, orOne(d.Spec.Replicas)
	switch {
	case status.UpdatedReplicas < want:
		return fmt.Sprintf("%d of %d replicas updated", status.UpdatedReplicas, want)
	case status.Replicas > status.UpdatedReplicas:
		return fmt.Sprintf(oldReplicas, status.Replicas-status.UpdatedReplicas)
	case status.AvailableReplicas < status.UpdatedReplicas:
		return fmt.Sprintf("%d of %d replicas available", status.AvailableReplicas, status.UpdatedReplicas)
	default:
		return ""
	}
}

// terminatingOfNone is the number of pods that have not ended though none is wanted.
func (d *deployment) terminatingOfNone() int32 {
	if orOne(d.Spec.Replicas) > 0 {
		return 0
	}
	return d.Status.TerminatingReplicas
}

// endOfPods awaits the end of pods that a smaller number of replicas takes away: a Job of the next step may use the volume that they write.
// It does not if the Instance is suspended, which no volume is waited for.
func endOfPods(metadata meta, old int32) Result {
	if old <= 0 || metadata.Annotations[v1beta1.SuspendedAnnotation] == "true" {
		return ready()
	}
	result := progressing(oldReplicas, old)
	result.Serving = true
	return result
}

type statefulSet struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		Replicas       *int32 `json:"replicas"`
		UpdateStrategy struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				Partition int32 `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Replicas           int32 `json:"replicas"`
		ReadyReplicas      int32 `json:"readyReplicas"`
		UpdatedReplicas    int32 `json:"updatedReplicas"`
	} `json:"status"`
}

// checkStatefulSet goes by `kubectl rollout status`, which awaits only the pods above the partition, and is mended
// for OnDelete: such pods are updated when a user deletes them, so that updates are not awaited. Pods that a smaller number of replicas
// takes away, which status.replicas counts until they have ended, are awaited (endOfPods).
func checkStatefulSet(s *statefulSet) Result {
	status, want := s.Status, orOne(s.Spec.Replicas)
	if status.ObservedGeneration == 0 || status.ObservedGeneration < s.Metadata.Generation {
		return progressing(notObserved)
	}
	if status.ReadyReplicas < want {
		return progressing("%d of %d replicas ready", status.ReadyReplicas, want)
	}
	if s.Spec.UpdateStrategy.Type == string(appsv1.OnDeleteStatefulSetStrategyType) {
		return endOfPods(s.Metadata, status.Replicas-want)
	}
	if toUpdate := want - s.Spec.UpdateStrategy.RollingUpdate.Partition; status.UpdatedReplicas < toUpdate {
		return progressing("%d of %d replicas updated", status.UpdatedReplicas, toUpdate)
	}
	return endOfPods(s.Metadata, status.Replicas-want)
}

type daemonSet struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		UpdateStrategy struct {
			Type string `json:"type"`
		} `json:"updateStrategy"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration     int64 `json:"observedGeneration"`
		DesiredNumberScheduled int32 `json:"desiredNumberScheduled"`
		UpdatedNumberScheduled int32 `json:"updatedNumberScheduled"`
		NumberAvailable        int32 `json:"numberAvailable"`
	} `json:"status"`
}

// checkDaemonSet goes by `kubectl rollout status`; for OnDelete updates are not awaited. One that no node wants is
// ready.
func checkDaemonSet(d *daemonSet) Result {
	status, want := d.Status, d.Status.DesiredNumberScheduled
	if status.ObservedGeneration == 0 || status.ObservedGeneration < d.Metadata.Generation {
		return progressing(notObserved)
	}
	onDelete := d.Spec.UpdateStrategy.Type == string(appsv1.OnDeleteDaemonSetStrategyType)
	if !onDelete && status.UpdatedNumberScheduled < want {
		return progressing("%d of %d pods updated", status.UpdatedNumberScheduled, want)
	}
	if status.NumberAvailable < want {
		return progressing("%d of %d pods available", status.NumberAvailable, want)
	}
	return ready()
}

type replicaSet struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Replicas           int32 `json:"replicas"`
		AvailableReplicas  int32 `json:"availableReplicas"`
	} `json:"status"`
}

// checkReplicaSet also serves ReplicationControllers. Neither replaces the pods it has, so there is no update to wait
// for.
func checkReplicaSet(r *replicaSet) Result {
	status, want := r.Status, orOne(r.Spec.Replicas)
	switch {
	case status.ObservedGeneration < r.Metadata.Generation:
		return progressing(notObserved)
	case status.AvailableReplicas < want:
		return progressing("%d of %d replicas available", status.AvailableReplicas, want)
	case status.Replicas > want:
		return progressing(oldReplicas, status.Replicas-want)
	default:
		return ready()
	}
}
