package instance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// installPlan gives the version an install plan whose status is set.
func installPlan(status v1beta1.ExecutionStatus, message string) gen.VersionMod {
	return func(ov *v1beta1.OperatorVersion) {
		ov.Spec.InstallPlan, ov.Spec.Plans["install"] = "install", v1beta1.Plan{}
		ov.Status.ObservedGeneration = 1
		ov.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: status, Message: message}
	}
}

// putVersion replaces the OperatorVersion ns/web-1.0, without its status.
func (f *fixture) putVersion(mods ...gen.VersionMod) { f.Put(webVersion("web-1.0", mods...)) }

// TestStartAfterWait: a start that is refused at the end of a wait leaves the Instance as one that never ran, so that deploy is started
// when the refusal is over.
func TestStartAfterWait(t *testing.T) {
	f := newFixture(t, installPlan(v1beta1.InProgress, ""))
	f.settle(t)
	if diff := cmp.Diff(v1beta1.Pending, f.instance().Status.PlanStatus["deploy"].Status); diff != "" {
		t.Fatalf("the plan is shown while it waits: %s", diff)
	}
	f.putVersion()
	taken := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-1")}
	f.Put(taken)
	f.settle(t)
	if got := f.instance().Status; got.PlanStatus != nil || got.Baseline != nil {
		t.Errorf("an Instance that never ran has plans %v and the baseline %v", got.PlanStatus, got.Baseline)
	}
	f.Remove(taken)
	f.settle(t)
	if diff := cmp.Diff(v1beta1.Complete, f.instance().Status.PlanStatus["deploy"].Status); diff != "" {
		t.Errorf("plan deploy: -want +got: %s", diff)
	}
}

// TestWaitMessage: the message of a plan that waits follows what it waits for, and no other plan is shown as one that waits.
func TestWaitMessage(t *testing.T) {
	f := newFixture(t, installPlan(v1beta1.InProgress, "step one"))
	f.settle(t)
	f.putVersion(installPlan(v1beta1.InProgress, "step two"))
	f.settle(t)
	status := f.instance().Status
	want := `waits for the install plan "install" of OperatorVersion ns/web-1.0 (IN_PROGRESS: step two)`
	if diff := cmp.Diff([]string{want, want, "False WaitingForInstallPlan " + want}, []string{status.PlanStatus["deploy"].Message, status.AggregatedStatus.Message, f.ready()}); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestOneWaits: of two upgrades of which neither could start, only the plan of the second one is shown as one that waits.
func TestOneWaits(t *testing.T) {
	f := newFixture(t)
	f.settle(t)
	f.Put(webVersion("web-2.0", installPlan(v1beta1.InProgress, ""), gen.Serial("upgrade", "app")))
	f.Put(webVersion("web-3.0", installPlan(v1beta1.InProgress, ""), gen.Serial("update", "app")))
	for _, version := range []string{"web-2.0", "web-3.0"} {
		f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = version })
		f.settle(t)
	}
	got := map[string]v1beta1.ExecutionStatus{}
	for name, st := range f.instance().Status.PlanStatus {
		got[name] = st.Status
	}
	want := map[string]v1beta1.ExecutionStatus{"deploy": v1beta1.Complete, "update": v1beta1.Pending, "upgrade": v1beta1.NeverRun}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}
