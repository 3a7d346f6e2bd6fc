package instance

import (
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/plans"
)

// summarize derives the conditions and the aggregated status.
func (a *action) summarize() {
	conditions.Derive(a.Next, a.objects.notReady, a.objects.failed)
	a.Next.Status.AggregatedStatus = plans.Aggregate(a.Next.Status.PlanStatus)
	if a.runRefusal != "" {
		conditions.SetRefused(a.Next, v1beta1.ReasonPackageNotVerified, a.runRefusal)
	}
}
