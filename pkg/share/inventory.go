package share

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Commit writes the status of an Installation if it has changed: one patch, which fails if it was changed in the meantime.
// next then has what the cluster answered.
func Commit(ctx context.Context, c client.Client, before, next *v1beta1.Installation) error {
	if equality.Semantic.DeepEqual(before.Status, next.Status) {
		return nil
	}
	if err := c.Status().Patch(ctx, next, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write status of Installation %s: %w", next.Name, err)
	}
	return nil
}
