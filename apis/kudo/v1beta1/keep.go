package v1beta1

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ClaimsWarning begins the warning of the webhook about PersistentVolumeClaims that are deleted with their Instance.
const ClaimsWarning = "PersistentVolumeClaims of the Instance are deleted with their data: "

// IsOwnKey reports whether a label or an annotation of an object is one of kudo's own.
func IsOwnKey(key string) bool {
	return key == HeritageLabel || strings.HasPrefix(key, GroupVersion.Group+"/")
}

// IsKept reports whether annotations ask to keep an object, see KeepAnnotation.
func IsKept(annotations map[string]string) bool {
	value, set := annotations[KeepAnnotation]
	return set && value != "false" || annotations[HelmResourcePolicyAnnotation] == "keep"
}

// CanBeKept reports whether objects of a kind can be kept. Instances cannot: kudo counts the ancestors of an Instance by its owners, so
// that a package cannot create Instances without end.
func CanBeKept(kind schema.GroupKind) bool {
	return kind != GroupVersion.WithKind("Instance").GroupKind()
}

// KeepPatch returns the merge patch that keeps a live object when an owner is deleted: it annotates the object and removes the owner. The
// patch is bound to the uid and the resourceVersion of the object. It is nil if the object is kept already.
func KeepPatch(live metav1.Object, owner types.UID) []byte {
	metadata := map[string]any{}
	if !IsKept(live.GetAnnotations()) {
		metadata["annotations"] = map[string]string{KeepAnnotation: "true"}
	}
	if HasOwner(live, owner) {
		metadata["ownerReferences"] = OtherOwners(live, owner)
	}
	if len(metadata) == 0 {
		return nil
	}
	metadata["uid"], metadata["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
	patch, _ := json.Marshal(map[string]any{"metadata": metadata}) // texts only: this does not fail
	return patch
}
