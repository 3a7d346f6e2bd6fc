package runner

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
	"kudo.dev/kudo/test/gen"
)

// TestShared checks what a task says of a shared Instance that it cannot use, and that nothing is written for it.
func TestShared(t *testing.T) {
	version := func(name, operator, app, is string) *v1beta1.OperatorVersion {
		ov := gen.Version("ns", name)
		ov.Spec.Operator.Name, ov.Spec.AppVersion, ov.Spec.Version = operator, app, is
		return ov
	}
	store := version("store-1", "store", "7.4", "1.2.0")
	// common returns the shared Instance, which runs what was found under a name.
	common := func(running string, status v1beta1.ExecutionStatus) *v1beta1.Instance {
		i := gen.Instance("common", store, nil)
		i.Status.AggregatedStatus.Status, i.Status.Baseline = status, &v1beta1.Baseline{OperatorVersion: running}
		return i
	}
	ready := common("ns/store-1", v1beta1.Complete)
	leaving := ready.DeepCopy()
	leaving.Finalizers = []string{"example.org/wait"}
	now := metav1.Now()
	leaving.DeletionTimestamp = &now
	wanted := task.KudoOperator{Package: "store", InstanceName: "common", Shared: true}
	with := func(change func(*task.KudoOperator)) task.KudoOperator {
		out := wanted
		change(&out)
		return out
	}
	ranged := func(app, operator string) task.KudoOperator {
		return with(func(t *task.KudoOperator) { t.AppVersion, t.OperatorVersion = app, operator })
	}
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		task    task.KudoOperator
		state   plans.State
		want    string
	}{
		{"it is ready", []client.Object{store, ready}, ranged("7.x", "^1.0"), plans.Done, ""},
		{"it does not exist", nil, ranged("7.x", "^1.0"), plans.Waiting, "needs Instance ns/common of operator store, appVersion 7.x, operatorVersion ^1.0"},
		{"it is being deleted", []client.Object{store, leaving}, wanted, plans.Waiting, "which is being deleted"},
		{"it is not ready", []client.Object{version("store-1", "cache", "", "1.2.0"), common("ns/store-1", v1beta1.FatalError)}, wanted, plans.Waiting, "its last plan failed"},
		{"what it runs does not exist", []client.Object{ready}, wanted, plans.Waiting, "what it runs is not known"},
		{"nothing is said of what it runs", []client.Object{common("", v1beta1.Complete)}, wanted, plans.Waiting, "what it runs is not known"},
		{"it is of another operator", []client.Object{version("store-1", "cache", "", "1.2.0"), ready}, wanted, plans.Fatal, "is of operator cache, and the package needs one of store"},
		{"its operatorVersion is another one", []client.Object{store, ready}, ranged("", "^2.0"), plans.Fatal, "has operatorVersion 1.2.0, and the package needs ^2.0"},
		{"its appVersion is another one", []client.Object{store, ready}, ranged("8.x", ""), plans.Fatal, "has appVersion 7.4, and the package needs 8.x"},
		{"it is switched off", nil, with(func(t *task.KudoOperator) { t.EnablingParameter = "OFF" }), plans.Done, ""},
		{"it is switched on", nil, with(func(t *task.KudoOperator) { t.EnablingParameter = "ON" }), plans.Waiting, "does not exist"},
		{"the switch is no parameter", nil, with(func(t *task.KudoOperator) { t.EnablingParameter = "NONE" }), plans.Fatal, `parameter "NONE" is not defined`},
		{"it is the Instance itself", nil, with(func(t *task.KudoOperator) { t.InstanceName = "i" }), plans.Fatal, "cannot wait for itself"},
	} {
		r, w := newOnceTask(t, tc.objects...)
		r.external, w.run.values = interpreter{}, map[string]any{"ON": "true", "OFF": "false"}
		out := r.prepareShared(t.Context(), w.run, w, tc.task)
		if out.outcome == nil || out.outcome.State != tc.state || !strings.Contains(out.outcome.Message, tc.want) || out.objects != nil {
			t.Errorf("%s: %+v", tc.reason, out.outcome)
		}
		if out.effects.Recheck != (tc.state == plans.Waiting) {
			t.Errorf("%s: checked again: %t", tc.reason, out.effects.Recheck)
		}
	}
	r, w := newOnceTask(t)
	w.run.Plan = v1beta1.CleanupPlan
	if out := r.prepareShared(t.Context(), w.run, w, wanted); out.outcome.State != plans.Done {
		t.Errorf("a cleanup waits: %+v", out.outcome)
	}
	w.run.Installation = &v1beta1.Installation{}
	if out := r.prepareShared(t.Context(), w.run, w, wanted); out.outcome.State != plans.Fatal || !strings.Contains(out.outcome.Message, "cannot be used in an install plan") {
		t.Errorf("in an install plan: %+v", out.outcome)
	}
	if err := checkShared(sharedVersion{"store", "", "1.0.0"}, apply.ID{}, ranged("", "not a range ^")); err == nil {
		t.Error("a range that cannot be read fits")
	}
}
