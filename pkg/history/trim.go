package history

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/apierror"
)

// Trim deletes the run that a new one, which has been recorded, puts beyond the limit, and the OperatorVersion to which
// it refers: unless a run that is kept refers to that too, or the status. What the status refers to, that of the run before,
// is named, since the new run may yet be given up. All is read by name: a LIST takes the longer the more Instances the
// namespace has. Records of an unknown format stay, and what they may refer to.
func (s *Store) Trim(ctx context.Context, owner client.Object, revision int64, snapshot string) error {
	if revision <= Limit {
		return nil
	}
	past, err := s.find(ctx, owner, NameFor(owner, revision-Limit))
	if past == nil || err != nil || CheckFormat(past) != nil {
		return err
	}
	used := map[string]bool{snapshot: true}
	held := snapshotOf(past)
	if !used[held] {
		// A run refers to what the one before it refers to, or holds its own: so the oldest one tells for all that are kept.
		var oldest *appsv1.ControllerRevision
		for kept := revision - Limit + 1; oldest == nil && kept <= revision; kept++ {
			if oldest, err = s.find(ctx, owner, NameFor(owner, kept)); err != nil {
				return err
			}
		}
		if oldest != nil && CheckFormat(oldest) != nil {
			return nil
		}
		used[snapshotOf(oldest)] = true
	}
	if held != past.Name && held != "" && !used[held] {
		holder, err := s.find(ctx, owner, held)
		if err != nil {
			return err
		}
		if err := s.drop(ctx, holder); err != nil {
			return err
		}
	}
	if used[past.Name] {
		return nil
	}
	return s.drop(ctx, past) // last: it is how a try that comes after this one finds what else is to go
}

// find reads a ControllerRevision of the owner's; it returns nil if there is none of the name.
func (s *Store) find(ctx context.Context, owner client.Object, name string) (*appsv1.ControllerRevision, error) {
	found := &appsv1.ControllerRevision{}
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: owner.GetNamespace(), Name: name}, found)
	if apierror.IsObjectNotFound(err) || err == nil && !metav1.IsControlledBy(found, owner) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ControllerRevision %s/%s: %w", owner.GetNamespace(), name, err)
	}
	return found, nil
}

// drop deletes a ControllerRevision that was found.
func (s *Store) drop(ctx context.Context, found *appsv1.ControllerRevision) error {
	if found == nil {
		return nil
	}
	err := s.client.Delete(ctx, found, client.Preconditions{UID: &found.UID})
	if apierror.IgnoreObjectNotFound(err) != nil {
		return fmt.Errorf("delete ControllerRevision %s/%s, which is beyond the last %d runs: %w", found.Namespace, found.Name, Limit, err)
	}
	return nil
}

// snapshotOf names the ControllerRevision that holds the OperatorVersion of a run.
func snapshotOf(found *appsv1.ControllerRevision) string {
	run := Run{}
	if found == nil || json.Unmarshal(found.Data.Raw, &run) != nil {
		return ""
	}
	return run.Snapshot
}
