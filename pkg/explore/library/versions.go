package library

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// alsoServed are further versions of a kind in which its rules find the fields that they read.
func alsoServed(kind schema.GroupVersionKind) []string {
	switch kind.Group {
	case "apps.kruise.io":
		if kind.Kind == "StatefulSet" {
			return []string{"v1alpha1"}
		}
		return []string{"v1beta1"}
	case "source.toolkit.fluxcd.io":
		if kind.Kind == "OCIRepository" {
			return []string{"v1beta2"}
		}
		return []string{"v1beta2", "v1beta1"}
	case "kustomize.toolkit.fluxcd.io":
		return []string{"v1beta2"}
	case "helm.toolkit.fluxcd.io":
		return []string{"v2beta2", "v2beta1"}
	case "gateway.networking.k8s.io":
		if kind.Kind == "GRPCRoute" {
			return []string{"v1alpha2"}
		}
		return []string{"v1beta1"}
	case "kafka.strimzi.io":
		return []string{"v1beta2"}
	}
	return nil
}

func cmpKind(a, b schema.GroupVersionKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
}
