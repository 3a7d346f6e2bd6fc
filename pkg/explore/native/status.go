package native

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/explore"
)

// statusRule says what of a kind's status is reflected, and how the statuses of several copies become one.
type statusRule struct {
	// sums are whole numbers; those of copies are added.
	sums []string
	// latest and earliest are times in RFC 3339; one of the copies' is taken.
	latest, earliest []string
	// lists are put one after the other, without what is there already.
	lists []string
	// conditions are merged: see mergeConditions.
	conditions bool
	// anyTrue are the types of conditions that are true if one copy's is; others are true if all copies' are.
	anyTrue []string
	// worst is the order of values of `phase`: the first that a copy has is taken.
	worst []string
	// reflected are further fields, which say nothing about several copies.
	reflected []string
	// observed reflects the generation that the status is about, for those that read only the status.
	observed bool
}

// statusOf goes by the fields of the kinds' status in Kubernetes' API reference.
func statusOf(kind schema.GroupKind) (statusRule, bool) {
	switch built(kind) {
	case "Deployment":
		return statusRule{observed: true, conditions: true, anyTrue: []string{"ReplicaFailure"},
			sums: []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "terminatingReplicas"}}, true
	case "StatefulSet":
		return statusRule{observed: true, conditions: true, reflected: []string{"currentRevision", "updateRevision"},
			sums: []string{"replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"}}, true
	case "ReplicaSet", "ReplicationController":
		return statusRule{observed: true, conditions: true, anyTrue: []string{"ReplicaFailure"},
			sums: []string{"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas"}}, true
	case "DaemonSet":
		return statusRule{observed: true, conditions: true, sums: []string{"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable",
			"numberMisscheduled", "numberReady", "numberUnavailable", "updatedNumberScheduled"}}, true
	case "Job":
		return statusRule{conditions: true, anyTrue: []string{"Failed", "FailureTarget", "Suspended"},
			sums: []string{"active", "ready", "succeeded", "failed", "terminating"}, earliest: []string{"startTime"},
			latest: []string{"completionTime"}}, true
	case "CronJob":
		return statusRule{lists: []string{"active"}, latest: []string{"lastScheduleTime", "lastSuccessfulTime"}}, true
	case "Pod":
		return statusRule{conditions: true, anyTrue: []string{"DisruptionTarget", "PodResizePending", "PodResizeInProgress"},
			worst: []string{"Failed", "Unknown", "Pending", "Running", "Succeeded"}, earliest: []string{"startTime"},
			reflected: []string{"reason", "message", "podIP", "hostIP"}}, true
	case "Service":
		return statusRule{lists: []string{"loadBalancer.ingress"}, conditions: true}, true
	case "Ingress":
		return statusRule{lists: []string{"loadBalancer.ingress"}}, true
	case "PersistentVolumeClaim":
		return statusRule{worst: []string{"Lost", "Pending", "Bound"}, lists: []string{"accessModes"}, conditions: true,
			anyTrue: []string{"Resizing", "FileSystemResizePending", "ControllerResizeError", "NodeResizeError", "ModifyVolumeError",
				"ModifyingVolume"},
			reflected: []string{"capacity"}}, true
	case "PodDisruptionBudget":
		return statusRule{observed: true, conditions: true,
			sums: []string{"currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"}}, true
	case "HorizontalPodAutoscaler":
		return statusRule{observed: true, conditions: true, anyTrue: []string{"ScalingLimited"},
			sums:   []string{"currentReplicas", "desiredReplicas"},
			latest: []string{"lastScaleTime"}}, true
	}
	return statusRule{}, false
}

// reflectStatus picks the fields of the kind's rule, as the object has them. Without any, the status is nil.
func reflectStatus(kind schema.GroupKind, object *unstructured.Unstructured) (explore.Answer, bool, error) {
	rule, known := statusOf(kind)
	if !known {
		return explore.Answer{}, false, nil
	}
	picked := map[string]any{}
	for _, path := range rule.fields() {
		value, found, err := unstructured.NestedFieldCopy(object.Object, append([]string{"status"}, path...)...)
		if err != nil {
			return explore.Answer{}, false, err
		}
		if !found || value == nil {
			continue
		}
		if err := unstructured.SetNestedField(picked, value, path...); err != nil {
			return explore.Answer{}, false, err
		}
	}
	if len(picked) == 0 {
		return explore.Answer{}, true, nil
	}
	if rule.observed && object.GetGeneration() != 0 {
		picked["generation"] = object.GetGeneration()
	}
	return explore.Answer{Status: picked}, true, nil
}
