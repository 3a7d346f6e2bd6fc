package native

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/explore/pods"
)

// templatePath is where a built-in kind holds the spec of pods, or nil if it holds none.
func templatePath(kind schema.GroupKind) []string {
	switch built(kind) {
	case "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "ReplicationController", "Job":
		return []string{"spec", "template", "spec"}
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case "PodTemplate":
		return []string{"template", "spec"}
	case "Pod":
		return []string{"spec"}
	}
	return nil
}

// podSpec reads the spec of pods. It is empty if the object has none.
func podSpec(object *unstructured.Unstructured, path []string) (*corev1.PodSpec, error) {
	spec := &corev1.PodSpec{}
	fields, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || !found || fields == nil {
		return spec, err
	}
	held, ok := fields.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%v is a %T, not a map", path, fields)
	}
	if err := pods.CheckQuantities(held); err != nil {
		return nil, malformed(fmt.Sprint(path), err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(held, spec); err != nil {
		return nil, malformed(fmt.Sprint(path), err)
	}
	return spec, nil
}
