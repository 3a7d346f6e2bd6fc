package native

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/pkg/explore/pods"
)

// PodSpec reads the spec of the pods that an object of a built-in kind declares; it returns nil if it has none.
func PodSpec(object *unstructured.Unstructured) (*corev1.PodSpec, error) {
	path := templatePath(object.GroupVersionKind().GroupKind())
	if path == nil {
		return nil, nil
	}
	if _, found, err := unstructured.NestedFieldNoCopy(object.Object, path...); err != nil || !found {
		return nil, err
	}
	return podSpec(object, path)
}

// Claims reads the specs of the PersistentVolumeClaims that an object of a built-in kind declares for each of its pods, whose spec is given
// or nil. Of a PersistentVolumeClaim, it is its own.
func Claims(object *unstructured.Unstructured, spec *corev1.PodSpec) ([]corev1.PersistentVolumeClaimSpec, error) {
	var held []any
	switch built(object.GroupVersionKind().GroupKind()) {
	case "PersistentVolumeClaim":
		held = []any{object.Object}
	case "StatefulSet":
		templates, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "volumeClaimTemplates")
		if err != nil {
			return nil, err
		}
		held, _ = templates.([]any)
	}
	var out []corev1.PersistentVolumeClaimSpec
	for i, claim := range held {
		one, err := claimSpec(claim)
		if err != nil {
			return nil, malformed(fmt.Sprintf("claim %d", i), err)
		}
		out = append(out, one)
	}
	if spec != nil {
		for _, v := range spec.Volumes {
			if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
				out = append(out, v.Ephemeral.VolumeClaimTemplate.Spec)
			}
		}
	}
	return out, nil
}

// claimSpec reads the spec of one claim.
func claimSpec(claim any) (corev1.PersistentVolumeClaimSpec, error) {
	var out corev1.PersistentVolumeClaimSpec
	fields, _ := claim.(map[string]any)
	held, ok := fields["spec"].(map[string]any)
	if !ok {
		return out, fmt.Errorf("spec is missing, or no map")
	}
	if err := pods.CheckQuantities(held); err != nil {
		return out, err
	}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(held, &out)
}
