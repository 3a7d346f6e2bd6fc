package trigger

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func equal(a, b *v1beta1.InstanceSpec) bool { return equality.Semantic.DeepEqual(a, b) }

// Deletion is what a deleted Instance needs next.
type Deletion int

const (
	// Release removes the finalizer: there is nothing to clean up, or it has been done.
	Release Deletion = iota
	// CleanUp starts the cleanup plan, whatever else runs.
	CleanUp
	// Continue continues with the cleanup plan that runs.
	Continue
	// Hold keeps the Instance: its cleanup plan has failed, and waits for a retry or for being given up.
	Hold
)

// Delete decides what a deleted Instance needs. Version is nil if neither the OperatorVersion nor a snapshot of it is
// there any more: then there is no cleanup plan to run.
func Delete(instance *v1beta1.Instance, version *v1beta1.OperatorVersionSpec) Deletion {
	st, known := instance.Status.PlanStatus[v1beta1.CleanupPlan]
	switch {
	case known && st.Status == v1beta1.Complete:
		return Release
	case known && st.Status == v1beta1.FatalError:
		return Hold
	case version == nil:
		return Release
	case known && st.Status.IsRunning():
		return Continue
	}
	if _, has := version.Plans[v1beta1.CleanupPlan]; !has {
		return Release
	}
	return CleanUp
}
