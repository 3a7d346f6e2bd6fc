package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// class orders objects by kind: what others live in or are checked against comes first.
//
//	0  Namespace, CustomResourceDefinition      awaited before the next class
//	1  ServiceAccount, Role, ClusterRole, ConfigMap, Secret, PersistentVolume(Claim), …
//	2  RoleBinding, ClusterRoleBinding          need the roles
//	3  workloads and everything else
//	4  webhook configurations, admission policies and APIServices: they change how the others are written
func class(gk schema.GroupKind) int {
	switch gk.Group + "/" + gk.Kind {
	case "/Namespace", "apiextensions.k8s.io/CustomResourceDefinition":
		return 0
	case "/ServiceAccount", "/ConfigMap", "/Secret", "/PersistentVolume", "/PersistentVolumeClaim", "/LimitRange", "/ResourceQuota",
		"rbac.authorization.k8s.io/Role", "rbac.authorization.k8s.io/ClusterRole", "scheduling.k8s.io/PriorityClass",
		"storage.k8s.io/StorageClass", "networking.k8s.io/NetworkPolicy", "policy/PodDisruptionBudget", "networking.k8s.io/IngressClass":
		return 1
	case "rbac.authorization.k8s.io/RoleBinding", "rbac.authorization.k8s.io/ClusterRoleBinding":
		return 2
	}
	switch gk.Group {
	case "admissionregistration.k8s.io", "apiregistration.k8s.io":
		return 4
	}
	return 3
}

// classes returns the indices of the objects, by class; within a class in listed order.
func classes(objs []*unstructured.Unstructured) [][]int {
	var out [5][]int
	for i, obj := range objs {
		c := class(obj.GroupVersionKind().GroupKind())
		out[c] = append(out[c], i)
	}
	var filled [][]int
	for _, indices := range out {
		if len(indices) > 0 {
			filled = append(filled, indices)
		}
	}
	return filled
}

// checkUsable holds back the next class until a namespace or CRD can be used.
func checkUsable(live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	switch live.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("%s is not established yet", IDOf(live))
	case schema.GroupKind{Kind: "Namespace"}:
		if phase, _, _ := unstructured.NestedString(live.Object, "status", "phase"); phase != "" && phase != "Active" {
			return fmt.Errorf("%s is %s", IDOf(live), phase)
		}
	}
	return nil
}
