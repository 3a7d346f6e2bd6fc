package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bounds of a list of drifted objects in a status.
const (
	// MaxDrift is how many objects are listed.
	MaxDrift = 32
	// MaxDriftFields is how many fields of an object are listed.
	MaxDriftFields = 8
	// MaxDriftName bounds a field and a writer, in bytes.
	MaxDriftName = 128
	// MaxDriftMessage bounds a message, in bytes.
	MaxDriftMessage = 1024
)

// ObjectDrift is an object that another client has changed since kudo has written it.
type ObjectDrift struct {
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
	// Fields that were changed, such as `.data.key`, at most 8; empty if they cannot be determined, as when they were removed.
	// +optional
	// +listType=atomic
	Fields []string `json:"fields,omitempty"`
	// Writer is the field manager that has changed the fields, or that has written the object last; empty if it is not known.
	// +optional
	Writer string `json:"writer,omitempty"`
	// Message describes the change for people: object, fields and client.
	// +optional
	Message string `json:"message,omitempty"`
	// Since is when kudo has found that these fields were changed by this writer.
	// +optional
	// +nullable
	Since *metav1.Time `json:"since,omitempty"`
}

// IsSameObject reports whether two entries are of the same object.
func (d ObjectDrift) IsSameObject(other ObjectDrift) bool {
	return d.APIVersion == other.APIVersion && d.Kind == other.Kind && d.Namespace == other.Namespace && d.Name == other.Name
}
