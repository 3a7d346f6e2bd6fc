// Package karmada places the Instances of a hub on clusters by Karmada: it compiles a placement into policies, and reads from the objects
// of Karmada how far the clusters are. Karmada's kinds are read and written without its Go types.
package karmada

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Kinds of the hub that the backend reads or writes.
var (
	PolicyKind   = schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy"}
	OverrideKind = schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "OverridePolicy"}
	BindingKind  = schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ResourceBinding"}
	LeaseKind    = schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}
)

// Names by which Karmada marks the objects that a policy has claimed.
const (
	// permanentIDLabel holds the id of the PropagationPolicy.
	permanentIDLabel = "propagationpolicy.karmada.io/permanent-id"
	// claimNameAnnotation holds the name of the PropagationPolicy.
	claimNameAnnotation = "propagationpolicy.karmada.io/name"
	// claimNamespaceAnnotation holds the namespace of the PropagationPolicy.
	claimNamespaceAnnotation = "propagationpolicy.karmada.io/namespace"
	// clusterClaimAnnotation holds the name of the ClusterPropagationPolicy.
	clusterClaimAnnotation = "clusterpropagationpolicy.karmada.io/name"
	// clusterPermanentIDLabel holds the id of the ClusterPropagationPolicy.
	clusterPermanentIDLabel = "clusterpropagationpolicy.karmada.io/permanent-id"
)

const (
	instanceKind = "Instance"
	policyPrefix = "kudo-"
	// longestName is how many bytes the name of a policy has at most, and digitsOfHash how many of them are those of a hash.
	longestName, digitsOfHash = 63, 10
)

// PolicyName returns the name of the policies of an Instance.
func PolicyName(instance string) string { return bounded(policyPrefix + instance) }

// BindingName returns the name that Karmada gives to the ResourceBinding of an Instance.
func BindingName(instance string) string { return instance + "-instance" }

// bounded returns a name of at most 63 bytes: that of a longer one ends with a hash of the whole.
func bounded(name string) string {
	if len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	head := strings.TrimRight(name[:longestName-digitsOfHash-1], "-.")
	return head + "-" + hex.EncodeToString(sum[:])[:digitsOfHash]
}

// keyOf returns the name of an Instance.
func keyOf(instance *v1beta1.Instance) types.NamespacedName {
	return types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}
}

// ofKind returns an object of a kind with no content.
func ofKind(kind schema.GroupVersionKind) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(kind)
	return out
}
