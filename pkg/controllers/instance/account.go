package instance

import (
	"context"
	"fmt"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/requeue"
)

// unaccounted refuses an Instance whose plans would write with the manager's own rights, if those are for nobody. A run
// that was started before this was so goes on.
func (p *pass) unaccounted() error {
	if !p.RequireAccount || p.account() != "" {
		return nil
	}
	return fmt.Errorf("spec.serviceAccountName is empty, and this manager runs no plan with its own rights (--require-service-account): name a ServiceAccount of namespace %s that may write what the plans write", p.instance.Namespace)
}

// uncleaned keeps an Instance that is being deleted and names no account, until it does: its cleanup plan is started with
// the manager's rights as little as any other. One that never ran anything has nothing to clean up.
func (p *pass) uncleaned(ctx context.Context, cause error) (bool, error) {
	base := p.instance.Status.Baseline
	if base == nil || base.Revision == 0 {
		return true, p.release(ctx)
	}
	going, err := p.namespaceGoes(ctx)
	switch {
	case err != nil:
		return true, err
	case going:
		return true, p.release(ctx)
	}
	p.result.RequeueAfter = requeue.Look // nothing tells that the namespace goes
	message := fmt.Sprintf("plan %s cannot be started: %s, or remove the finalizer %s to leave what it would clean up", v1beta1.CleanupPlan, cause, v1beta1.CleanupFinalizer)
	return p.halted(ctx, v1beta1.ReasonInvalidSpec, v1beta1.EventInvalidSpec, message)
}
