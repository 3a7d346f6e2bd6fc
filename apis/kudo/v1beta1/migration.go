package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// StoredVersionMigration is the progress of rewriting the objects of a CustomResourceDefinition in its storage version. It ends with
// the older versions leaving status.storedVersions of the definition.
type StoredVersionMigration struct {
	// Definition is the name of the CustomResourceDefinition.
	Definition string `json:"definition"`
	// UID of the definition: another definition of the name begins another migration.
	UID types.UID `json:"uid"`
	// Generation of the definition at the beginning: with another one, its storage version may have changed in between, and the
	// migration begins again.
	Generation int64 `json:"generation"`
	// From are the versions in which objects may be stored, besides the storage version.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	From []string `json:"from"`
	// To is the storage version.
	To string `json:"to"`
	// StartTime is when the migration began. The first object is rewritten some seconds later, when each API server writes To.
	StartTime metav1.Time `json:"startTime"`
	// Continue is where the next page of objects begins; empty for the first page.
	// +optional
	Continue string `json:"continue,omitempty"`
	// PageSize is how many objects the next page has at most; 0 for 500. It is smaller after a page that was large or slow.
	// +optional
	PageSize int64 `json:"pageSize,omitempty"`
	// Done is how many objects were rewritten.
	// +optional
	Done int64 `json:"done"`
	// Of is how many objects there were when the first page was read; 0 before that.
	// +optional
	Of int64 `json:"of"`
	// Refused is how many of them could not be rewritten, since admission refuses them.
	// +optional
	Refused int64 `json:"refused,omitempty"`
	// Blocked is the first object that was refused.
	// +optional
	Blocked *RefusedObject `json:"blocked,omitempty"`
	// Attempts is how many times the migration has ended with objects refused.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// RetryTime is when the next attempt begins.
	// +optional
	RetryTime *metav1.Time `json:"retryTime,omitempty"`
	// StorageVersionMigration is the name of the cluster's own migration that rewrites the objects; empty if kudo rewrites them.
	// +optional
	StorageVersionMigration string `json:"storageVersionMigration,omitempty"`
	// StorageVersionMigrationUID is the UID of the one that kudo has created; empty before that. No other one of the name counts.
	// +optional
	StorageVersionMigrationUID types.UID `json:"storageVersionMigrationUID,omitempty"`
	// Message says what keeps the migration from continuing; empty if nothing does.
	// +optional
	Message string `json:"message,omitempty"`
}

// RefusedObject is an object that could not be rewritten.
type RefusedObject struct {
	// Namespace of the object, empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
	// Message says who refuses the object, and why.
	// +optional
	Message string `json:"message,omitempty"`
}

// MaxMigrations is how many migrations of one Installation are running at a time; others wait.
const MaxMigrations = 16

// Migration returns the migration of a definition, or nil if there is none.
func (s *InstallationStatus) Migration(definition string) *StoredVersionMigration {
	for i := range s.Migrations {
		if s.Migrations[i].Definition == definition {
			return &s.Migrations[i]
		}
	}
	return nil
}
