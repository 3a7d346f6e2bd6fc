package v1beta1

import "k8s.io/apimachinery/pkg/runtime/schema"

// IsKept reports whether annotations say that an object is to be kept, see KeepAnnotation.
func IsKept(annotations map[string]string) bool {
	value, set := annotations[KeepAnnotation]
	return set && value != "false" || annotations[HelmResourcePolicyAnnotation] == "keep"
}

// CanBeKept reports whether objects of a kind can be kept. Instances cannot: their owners are counted, so that a package cannot make
// Instances without end.
func CanBeKept(kind schema.GroupKind) bool {
	return kind != GroupVersion.WithKind("Instance").GroupKind()
}
