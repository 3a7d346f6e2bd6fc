package share

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/text"
)

// storedVersions is the error of a change of a definition that is safe once no object is stored in some versions.
type storedVersions interface {
	error
	StoredVersions() []string
}

// awaitMigration returns an *apply.WaitError if a change of a definition has to wait only until its objects are rewritten, and an
// Installation does that; it returns nil if not.
func (s *Session) awaitMigration(ctx context.Context, live *unstructured.Unstructured, cause error) (wait, err error) {
	var stored storedVersions
	if !errors.As(cause, &stored) {
		return nil, nil
	}
	message := fmt.Sprintf("CustomResourceDefinition %s waits for the migration of the stored versions (%s)", live.GetName(),
		strings.Join(stored.StoredVersions(), ", "))
	migrated := false
	for _, owner := range live.GetOwnerReferences() {
		if !v1beta1.OwnedBy(owner, "Installation") {
			continue
		}
		i, err := s.installation(ctx, owner)
		if err != nil {
			return nil, err
		}
		if i == nil || i.DeletionTimestamp != nil {
			continue
		}
		migrated = true
		if m := i.Status.Migration(live.GetName()); m != nil {
			message += progressOf(i.Name, m)
			break
		}
	}
	if !migrated {
		return nil, nil
	}
	return &apply.WaitError{Err: errors.New(message)}, nil
}

// progressOf returns the progress of the migration of an Installation. It leaves out why the migration does not continue, since that may
// name objects of namespaces which the reader may not read.
func progressOf(installation string, m *v1beta1.StoredVersionMigration) string {
	out := ""
	switch {
	case m.StorageVersionMigration != "":
		out = " by StorageVersionMigration " + m.StorageVersionMigration
	case m.Of > 0:
		out = fmt.Sprintf(", %s of %s", text.Grouped(m.Done), text.Grouped(m.Of))
	}
	if m.Message != "" {
		out += fmt.Sprintf(": status.migrations of Installation %s says what keeps it from continuing", installation)
	}
	return out
}
