package native

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/pods"
)

// replicas counts the pods that an object declares.
func replicas(kind schema.GroupKind, object *unstructured.Unstructured) (explore.Answer, bool, error) {
	var count int32
	var err error
	switch built(kind) {
	case "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController":
		count, err = countOr(object, 1, "spec", "replicas")
	case "Job":
		count, err = parallel(object, "spec")
	case "CronJob":
		count, err = parallel(object, "spec", "jobTemplate", "spec")
		if asleep, _, wrong := unstructured.NestedBool(object.Object, "spec", "suspend"); wrong != nil {
			err = wrong
		} else if asleep {
			count = 0
		}
	case "Pod":
		count = 1
	case "DaemonSet": // the nodes decide; its controller has counted them
		if _, counted, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "desiredNumberScheduled"); !counted {
			return explore.Answer{}, false, nil
		}
		count, err = countOr(object, 0, "status", "desiredNumberScheduled")
	default:
		return explore.Answer{}, false, nil
	}
	if err != nil {
		return explore.Answer{}, false, err
	}
	spec, err := podSpec(object, templatePath(kind))
	if err != nil {
		return explore.Answer{}, false, err
	}
	return explore.Answer{Replicas: count, Requirements: requirements(spec, object.GetNamespace())}, true, nil
}

// requirements are what one pod needs of a node, or nil if it needs nothing.
func requirements(spec *corev1.PodSpec, namespace string) *v1alpha1.ReplicaRequirements {
	needs := pods.Requirements(spec)
	if needs.NodeClaim == nil && len(needs.ResourceRequest) == 0 && spec.PriorityClassName == "" {
		return nil
	}
	needs.Namespace, needs.PriorityClassName = namespace, spec.PriorityClassName
	return needs
}

// parallel is the number of pods of a Job that run at a time. More than there are completions have no effect. Source:
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#controlling-parallelism
func parallel(object *unstructured.Unstructured, spec ...string) (int32, error) {
	count, err := countOr(object, 1, append(spec[:len(spec):len(spec)], "parallelism")...)
	if err != nil {
		return 0, err
	}
	completions, err := countOr(object, count, append(spec[:len(spec):len(spec)], "completions")...)
	return min(count, completions), err
}

// countOr reads a number that is 0 or more.
func countOr(object *unstructured.Unstructured, absent int32, path ...string) (int32, error) {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil {
		return 0, err
	}
	if !found || value == nil {
		return absent, nil
	}
	n, whole := number(value)
	if !whole || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%v is %v: want a whole number from 0 to %d", path, value, math.MaxInt32)
	}
	return int32(n), nil
}

// revise writes the number of pods. A CronJob of none is suspended.
func revise(kind schema.GroupKind, object *unstructured.Unstructured, count int32) (explore.Answer, bool, error) {
	var path []string
	var value any = int64(count)
	switch built(kind) {
	case "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController":
		path = []string{"spec", "replicas"}
	case "Job":
		path = []string{"spec", "parallelism"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "parallelism"}
		if count == 0 {
			path, value = []string{"spec", "suspend"}, true
		}
	default:
		return explore.Answer{}, false, nil
	}
	revised := object.DeepCopy()
	if err := unstructured.SetNestedField(revised.Object, value, path...); err != nil {
		return explore.Answer{}, false, err
	}
	return explore.Answer{Object: revised}, true, nil
}
