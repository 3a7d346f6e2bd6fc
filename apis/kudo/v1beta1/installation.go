package v1beta1

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// InstallationSpec names the object for which an Installation holds its objects.
type InstallationSpec struct {
	// Subject is the object that needs what is installed. It is set by the controller and never changes.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.subject cannot be changed: an Installation belongs to one object"
	Subject InstallationSubject `json:"subject"`
}

// InstallationSubject is an OperatorVersion, or an Instance with CRDs of its own.
type InstallationSubject struct {
	// Kind of the object: OperatorVersion or Instance.
	// +kubebuilder:validation:Enum=OperatorVersion;Instance
	Kind string `json:"kind"`
	// Namespace of the object.
	Namespace string `json:"namespace"`
	// Name of the object.
	Name string `json:"name"`
	// UID of the object: an object of the same name with another UID is not this one.
	UID types.UID `json:"uid"`
}

// HoldState is how an Installation holds an object.
// +kubebuilder:validation:Enum=Pending;Created;Shared;Existing;Missing;Mismatch;Releasing
type HoldState string

const (
	// HoldPending is about to be written for the first time.
	HoldPending HoldState = "Pending"
	// HoldCreated was not there, and was created for this Installation.
	HoldCreated HoldState = "Created"
	// HoldShared was created for another Installation, and is owned by this one too.
	HoldShared HoldState = "Shared"
	// HoldExisting was not made by kudo. It is as it should be, and is never written or deleted.
	HoldExisting HoldState = "Existing"
	// HoldMissing was deleted by another client, and is about to be restored.
	HoldMissing HoldState = "Missing"
	// HoldMismatch is not as it should be. It is not overwritten, since others may need it as it is.
	HoldMismatch HoldState = "Mismatch"
	// HoldReleasing is no longer named by the install plan, and is about to go.
	HoldReleasing HoldState = "Releasing"
)

// HeldResource is an object that an Installation holds.
type HeldResource struct {
	// APIVersion of the object.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Namespace of the object, empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// UID of the object; empty while it is not written yet. An object of another uid is not held.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// State says how the object is held.
	// +optional
	State HoldState `json:"state,omitempty"`
	// Message says what is wrong with the object, or what it waits for.
	// +optional
	Message string `json:"message,omitempty"`
	// Hash of the object as it was rendered.
	// +optional
	Hash string `json:"hash,omitempty"`
	// ContentHash is a hash of the live object, without status and metadata, when it was last found to be as it should be.
	// +optional
	ContentHash string `json:"contentHash,omitempty"`
}

// TarballDigest is what a tarball had in it when an Instance used it first.
type TarballDigest struct {
	// SpecHash is the SHA-256, in 64 hexadecimal digits, of the crdTarball and of the version that it is for: of the Instance's
	// own crdTarball with its templates and the name of the OperatorVersion, of another as it was resolved. With another
	// SpecHash, the tarball is used for the first time again.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SpecHash string `json:"specHash"`
	// Digest of the tarball, `sha256:` and 64 hexadecimal digits. Other content is refused.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Digest string `json:"digest"`
}

// InstallationStatus is the inventory of an Installation.
type InstallationStatus struct {
	// Resources in the order in which they were installed; they are released in reverse.
	// +optional
	// +listType=atomic
	Resources []HeldResource `json:"resources,omitempty"`
	// Created is how many objects were created for this Installation.
	// +optional
	Created int32 `json:"created"`
	// Shared is how many objects are shared with those for whom they were created.
	// +optional
	Shared int32 `json:"shared"`
	// Existing is how many objects were there, and are not kudo's.
	// +optional
	Existing int32 `json:"existing"`
	// Mismatched is how many objects are missing or not as they should be.
	// +optional
	Mismatched int32 `json:"mismatched"`
	// CRDTarball is the digest of the Instance's tarball when it was used first.
	// +optional
	CRDTarball *TarballDigest `json:"crdTarball,omitempty"`
	// Migrations are the CustomResourceDefinitions whose objects are being rewritten in another storage version.
	// +optional
	// +listType=map
	// +listMapKey=definition
	// +kubebuilder:validation:MaxItems=16
	Migrations []StoredVersionMigration `json:"migrations,omitempty"`
	// Conditions: Released, false with the reason while a deletion waits for something.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SetInventory puts an inventory into the status, and counts it.
func (s *InstallationStatus) SetInventory(held []HeldResource) {
	s.Resources = held
	s.Created, s.Shared, s.Existing, s.Mismatched = 0, 0, 0, 0
	for _, r := range held {
		switch r.State {
		case HoldCreated:
			s.Created++
		case HoldShared:
			s.Shared++
		case HoldExisting:
			s.Existing++
		case HoldMissing, HoldMismatch:
			s.Mismatched++
		}
	}
}

// Installation is what one OperatorVersion, or the CRDs of one Instance, holds in the cluster: the owner of the objects
// and their inventory. It is made and removed by the controller. To remove one, delete the object that it is for.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=kin,categories=kudo
// +kubebuilder:printcolumn:name="Subject",type=string,JSONPath=`.spec.subject.kind`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.subject.namespace`
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.subject.name`,priority=1
// +kubebuilder:printcolumn:name="Created",type=integer,JSONPath=`.status.created`
// +kubebuilder:printcolumn:name="Shared",type=integer,JSONPath=`.status.shared`
// +kubebuilder:printcolumn:name="Existing",type=integer,JSONPath=`.status.existing`
// +kubebuilder:printcolumn:name="Mismatched",type=integer,JSONPath=`.status.mismatched`
// +kubebuilder:printcolumn:name="Released",type=string,JSONPath=`.status.conditions[?(@.type=="Released")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Installation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says for whom the objects are held.
	Spec InstallationSpec `json:"spec"`
	// Status lists the objects.
	// +optional
	Status InstallationStatus `json:"status,omitempty"`
}

// InstallationList is a list of Installations.
// +kubebuilder:object:root=true
type InstallationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Installation `json:"items"`
}

// maxName is the longest name of an object, in bytes (RFC 1123 subdomain).
const maxName = 253

// OwnedBy reports whether an owner is of a kind of kudo's; other groups have kinds of the same name, too.
func OwnedBy(owner metav1.OwnerReference, kind string) bool {
	return owner.Kind == kind && strings.HasPrefix(owner.APIVersion, GroupVersion.Group+"/")
}

// HasOwner reports whether an object has an owner with a uid.
func HasOwner(obj metav1.Object, owner types.UID) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner })
}

// OtherOwners returns the owners of an object but for the one with a uid, or nil if there are none.
func OtherOwners(obj metav1.Object, owner types.UID) (others []metav1.OwnerReference) {
	for _, o := range obj.GetOwnerReferences() {
		if o.UID != owner {
			others = append(others, o)
		}
	}
	return others
}

// OwningInstallations returns the names of the Installations among an object's owners.
func OwningInstallations(obj metav1.Object) []string {
	var out []string
	for _, owner := range obj.GetOwnerReferences() {
		if OwnedBy(owner, "Installation") {
			out = append(out, owner.Name)
		}
	}
	return out
}

// InstallationName is `<namespace>-<name>-<8 hex digits of the uid's hash>`, cut where it would be too long.
func InstallationName(namespace, name string, uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	suffix := "-" + hex.EncodeToString(sum[:4])
	out := namespace + "-" + name
	if len(out)+len(suffix) > maxName {
		out = out[:maxName-len(suffix)]
	}
	return out + suffix
}
