package instance

import (
	"context"
)

// checkObjects checks, while nothing runs, which objects are not ready, what others have changed, and which
// CustomResourceDefinitions were deleted.
func (a *action) checkObjects(ctx context.Context) error {
	a.Summarize = a.summarize
	if running, _ := a.activePlan(); running != "" {
		return nil
	}
	inventory := a.readInventory()
	a.objects.notReady, a.objects.failed = a.objects.findUnready(ctx, inventory)
	a.objects.checkDrift(ctx, inventory)
	a.objects.reflectStatus(ctx)
	return a.crds.restore(ctx)
}
