package native

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/explore"
)

// retainPod keeps what the scheduler and admission put into a pod; most of a pod's spec is immutable afterwards.
func retainPod(desired, live map[string]any) error {
	if err := keep(desired, live, "spec", "nodeName"); err != nil {
		return err
	}
	for _, field := range []string{"serviceAccountName", "serviceAccount", "priority", "preemptionPolicy"} {
		if err := fill(desired, live, "spec", field); err != nil {
			return err
		}
	}
	if err := mergeByKey(desired, live, "name", "spec", "volumes"); err != nil {
		return err
	}
	for _, list := range []string{"initContainers", "containers"} {
		if err := retainMounts(desired, live, list); err != nil {
			return err
		}
	}
	if err := retainTolerations(desired, live); err != nil {
		return err
	}
	return retainGates(desired, live)
}

// retainMounts keeps the mounts that admission added to containers of the same name, such as the account's token.
func retainMounts(desired, live map[string]any, list string) error {
	containers, err := entries(desired, "spec", list)
	if err != nil {
		return err
	}
	running, err := entries(live, "spec", list)
	if err != nil {
		return err
	}
	for _, container := range containers {
		for _, other := range running {
			if !explore.Equal(container["name"], other["name"]) {
				continue
			}
			if err := mergeByKey(container, other, "mountPath", "volumeMounts"); err != nil {
				return err
			}
		}
	}
	return nil
}

// retainTolerations keeps those that admission added: existing ones must not go, and the list is atomic.
func retainTolerations(desired, live map[string]any) error {
	want, err := entries(desired, "spec", "tolerations")
	if err != nil {
		return err
	}
	is, err := entries(live, "spec", "tolerations")
	if err != nil || len(is) == 0 {
		return err
	}
	all := make([]any, 0, len(want)+len(is))
	for _, one := range want {
		all = append(all, one)
	}
	for _, one := range is {
		if !slices.ContainsFunc(want, func(w map[string]any) bool { return explore.Equal(w, one) }) {
			all = append(all, (&unstructured.Unstructured{Object: one}).DeepCopy().Object)
		}
	}
	return setList(desired, all, "spec", "tolerations")
}

// retainGates leaves out the scheduling gates that were removed: gates are never added to a pod that exists.
func retainGates(desired, live map[string]any) error {
	gates, err := entries(desired, "spec", "schedulingGates")
	if err != nil || len(gates) == 0 {
		return err
	}
	closed, err := entries(live, "spec", "schedulingGates")
	if err != nil {
		return err
	}
	var left []any
	for _, gate := range gates {
		if slices.ContainsFunc(closed, func(c map[string]any) bool { return explore.Equal(c["name"], gate["name"]) }) {
			left = append(left, gate)
		}
	}
	if len(left) == 0 {
		unstructured.RemoveNestedField(desired, "spec", "schedulingGates")
		return nil
	}
	return setList(desired, left, "spec", "schedulingGates")
}
