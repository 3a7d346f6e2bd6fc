package history

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Trim deletes what is beyond the limit once a run has been written down, but the OperatorVersions that a run which is kept
// refers to, or the status: that one, of the run before, is named, since the new run may yet be given up.
func (s *Store) Trim(ctx context.Context, owner client.Object, revision int64, snapshot string) error {
	if revision <= Limit {
		return nil
	}
	list := &appsv1.ControllerRevisionList{}
	if err := s.reader.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingLabels{v1beta1.HistoryLabel: string(owner.GetUID())}); err != nil {
		return err
	}
	used := map[string]bool{snapshot: true}
	for _, object := range list.Items {
		run := Run{}
		if object.Revision > revision-Limit && json.Unmarshal(object.Data.Raw, &run) == nil {
			used[run.Snapshot] = true
		}
	}
	for i := range list.Items {
		object := &list.Items[i]
		if object.Revision > revision-Limit || used[object.Name] || !metav1.IsControlledBy(object, owner) {
			continue
		}
		if err := client.IgnoreNotFound(s.client.Delete(ctx, object, client.Preconditions{UID: &object.UID})); err != nil {
			return err
		}
	}
	return nil
}
