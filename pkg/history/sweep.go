package history

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Sweep deletes the kept OperatorVersions that no kept run uses any more, but the one that is named. It is for upgrades,
// which bring new ones.
func (s *Store) Sweep(ctx context.Context, instance *v1beta1.Instance, snapshot string) error {
	list := &appsv1.ControllerRevisionList{}
	if err := s.reader.List(ctx, list, client.InNamespace(instance.Namespace), client.MatchingLabels{v1beta1.InstanceLabel: instance.Name}); err != nil {
		return err
	}
	used := map[string]bool{snapshot: true}
	for _, object := range list.Items {
		run := Run{}
		if object.Revision != 0 && json.Unmarshal(object.Data.Raw, &run) == nil {
			used[run.Snapshot] = true
		}
	}
	for i := range list.Items {
		object := &list.Items[i]
		if object.Revision != 0 || used[object.Name] || !metav1.IsControlledBy(object, instance) {
			continue
		}
		if err := client.IgnoreNotFound(s.client.Delete(ctx, object, client.Preconditions{UID: &object.UID})); err != nil {
			return err
		}
	}
	return nil
}
