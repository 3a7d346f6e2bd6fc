package instance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// twoPlans gives the version plan other, which parameter OTHER triggers, and plan update, which runs for all others.
func twoPlans(ov *v1beta1.OperatorVersion) {
	for _, mod := range []gen.VersionMod{gen.Param("OTHER", "1", "other"), gen.Serial("update", "app"), gen.Serial("other", "app")} {
		mod(ov)
	}
}

// TestRefusedStartQueuesNothing: a run that cannot be recorded queues no plan, so that no event says so.
func TestRefusedStartQueuesNothing(t *testing.T) {
	f := newFixture(t, twoPlans)
	f.settle(t)
	f.recorded()
	taken := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-2")}
	f.Put(taken)
	f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "2", "OTHER": "2"} })
	refused := "ControllerRevision ns/web-2 exists and is no record of kudo, so that the run cannot be recorded under that name: it was not changed. Delete it, or give the Instance another name"
	for range 2 {
		if result := f.settle(t); result.RequeueAfter == 0 {
			t.Error("no watch shows that the name is free, and the start is not tried again")
		}
	}
	if diff := cmp.Diff([]string{"Warning InvalidSpec " + refused}, f.recorded()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
	if diff := cmp.Diff("False InvalidSpec "+refused, f.ready()); diff != "" {
		t.Error(diff)
	}
	f.Remove(taken)
	f.settle(t)
	want := []string{
		"Normal PlanStarted Execution of plan update started", "Normal PlanQueued Plan other is queued: parameters changed: OTHER",
		"Normal PlanFinished Execution of plan update finished with status COMPLETE",
		"Normal PlanStarted Execution of plan other started", "Normal PlanFinished Execution of plan other finished with status COMPLETE",
	}
	if diff := cmp.Diff(want, f.recorded()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
}
