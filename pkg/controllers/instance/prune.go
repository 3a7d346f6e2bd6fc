package instance

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
)

// prune deletes, at the end of a successful upgrade, the objects that no task of the new version names any more (engine
// rule 12). If the names cannot be told, nothing is deleted.
func (p *pass) prune(ctx context.Context, inventory runner.Inventory) error {
	left, err := runner.Abandoned(p.run, inventory)
	if err != nil {
		p.warn(v1beta1.EventPruned, "objects of the old version are kept, since the objects of the new one cannot be told: %s", err)
		return nil
	}
	for _, id := range left {
		kept, err := p.Runner.Prune(ctx, p.run, inventory, id)
		if apply.IsFatal(err) { // trying again would not help, and would hold the upgrade for ever
			kept, err = err.Error(), nil
		}
		if err != nil {
			return err
		}
		if kept != "" {
			p.event(corev1.EventTypeNormal, v1beta1.EventPruned, "%s is no longer part of the operator and was kept: %s", id, kept)
		} else {
			p.event(corev1.EventTypeNormal, v1beta1.EventPruned, "%s is no longer part of the operator and was deleted", id)
		}
		delete(inventory, id)
	}
	p.store(inventory)
	return nil
}
