package instance

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans/trigger"
)

func TestState(t *testing.T) {
	start := &trigger.Request{Plan: "deploy"}
	by := func(s state) *blocked { return &blocked{state: s} }
	for _, tc := range []struct {
		reason string
		o      observation
		want   state
	}{
		{"there is nothing to do", observation{}, idle},
		{"a plan is running", observation{running: true}, running},
		{"a run is to be started", observation{start: start}, startDue},
		{"a run is to be started in place of the running one", observation{running: true, start: start}, startDue},

		{"a hub has not released it", observation{held: true}, held},
		{"a run wins over a hub that has not released what follows", observation{held: true, running: true}, running},
		{"a run that a hub has not released may be ended", observation{held: true, running: true, canceled: true}, cancelRequested},
		{"a hub that has not released it does not keep it from being deleted", observation{held: true, deleted: true, finalizer: true, deletion: trigger.CleanUp}, cleanupDue},

		{"the OperatorVersion does not exist", observation{blocked: by(versionMissing)}, versionMissing},
		{"the sources cannot be read", observation{blocked: by(parametersMissing)}, parametersMissing},
		{"the spec is refused", observation{blocked: by(specRefused)}, specRefused},
		{"the start is refused", observation{blocked: by(specRefused), start: start}, specRefused},
		{"the account of the start does not exist", observation{blocked: by(accountMissing), start: start}, accountMissing},
		{"the start waits for the install plan", observation{blocked: by(installPending), start: start}, installPending},
		{"policies refuse the package of the start", observation{blocked: by(packageRefused), start: start}, packageRefused},
		{"policies refuse the package of a restored Instance", observation{blocked: by(packageRefused), start: start, restored: true}, packageRefused},
		{"a run is held by its own content, not by that of spec", observation{running: true, blocked: by(packageRefused)}, running},
		{"a run wins over sources that cannot be read", observation{running: true, blocked: by(parametersMissing)}, running},
		{"a run wins over a spec that is refused", observation{running: true, blocked: by(specRefused)}, running},
		{"a run wins over a restart that is refused", observation{running: true, blocked: by(specRefused), start: start}, running},
		{"a run wins over an account that does not exist", observation{running: true, blocked: by(accountMissing), start: start}, running},

		{"the key is missing", observation{blocked: by(keyMissing)}, keyMissing},
		{"the key is missing for a cleanup", observation{blocked: by(keyMissing), deleted: true, finalizer: true}, keyMissing},
		{"no key is needed in a namespace that terminates", observation{blocked: by(keyMissing), deleted: true, finalizer: true, namespaceTerminating: true}, releasable},
		{"no key is needed after the release", observation{blocked: by(keyMissing), deleted: true}, released},

		{"the status is of another Instance", observation{foreign: true, unclean: true, deleted: true}, statusRestored},
		{"no key, and the status is of another Instance", observation{blocked: by(keyMissing), foreign: true}, keyMissing},
		{"a restore has made the objects of the first run", observation{start: start, restored: true}, restoreDue},
		{"what holds up the first run holds up the restore", observation{blocked: by(installPending), start: start, restored: true}, installPending},
		{"the status is unclean", observation{unclean: true}, statusUnclean},
		{"the status is unclean during a deletion", observation{unclean: true, deleted: true, finalizer: true}, statusUnclean},
		{"the finalizer is outdated", observation{outdated: true}, finalizerOutdated},
		{"the finalizer is outdated while a plan is running", observation{outdated: true, running: true}, finalizerOutdated},
		{"the finalizer comes before the end of the run", observation{outdated: true, running: true, canceled: true}, finalizerOutdated},
		{"the run is to be ended", observation{running: true, canceled: true}, cancelRequested},

		{"it was released", observation{deleted: true}, released},
		{"it was released, though a cleanup has failed", observation{deleted: true, deletion: trigger.Hold}, released},
		{"there is nothing to clean up", observation{deleted: true, finalizer: true, deletion: trigger.Release}, releasable},
		{"the cleanup plan is to be started", observation{deleted: true, finalizer: true, deletion: trigger.CleanUp}, cleanupDue},
		{"the cleanup plan is to be started, whatever runs", observation{deleted: true, finalizer: true, deletion: trigger.CleanUp, running: true}, cleanupDue},
		{"the cleanup plan runs", observation{deleted: true, finalizer: true, deletion: trigger.Continue, running: true}, cleanupRunning},
		{"the cleanup plan has failed", observation{deleted: true, finalizer: true, deletion: trigger.Hold}, cleanupFailed},
		{"a retry of the cleanup plan is asked for", observation{deleted: true, finalizer: true, deletion: trigger.Hold, cleanupRetry: true}, cleanupDue},
		{"the cleanup is given up", observation{deleted: true, finalizer: true, deletion: trigger.Hold, cleanupCanceled: true}, releasable},
		{"the cleanup is given up rather than tried again", observation{deleted: true, finalizer: true, deletion: trigger.Hold, cleanupCanceled: true, cleanupRetry: true}, releasable},
		{"a cleanup that has failed does not outlast the namespace", observation{deleted: true, finalizer: true, deletion: trigger.Hold, namespaceTerminating: true}, releasable},
		{"a deletion that is not known has no state", observation{deleted: true, finalizer: true, deletion: -1}, ""},
	} {
		if got := tc.o.state(); got != tc.want {
			t.Errorf("%s: state %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestUnknownState: a state without an action is an error, and prepares nothing.
func TestUnknownState(t *testing.T) {
	for _, s := range []state{"", "odd"} {
		a := newAction(&Reconciler{}, loop.NewObject(nil, nil, nil, &v1beta1.Instance{}))
		if prepared, err := a.prepare(t.Context(), s); prepared || err != nil {
			t.Errorf("state %q is prepared: %v (%v)", s, prepared, err)
		}
		if err := a.act(t.Context(), s); err == nil {
			t.Errorf("the unknown state %q is no error", s)
		}
	}
}

// TestIsFinalizerOutdated: the finalizer is there while the OperatorVersion has a cleanup plan.
func TestIsFinalizerOutdated(t *testing.T) {
	content := func(names ...string) *runner.ParsedVersion {
		spec := &v1beta1.OperatorVersionSpec{Plans: map[string]v1beta1.Plan{}}
		for _, name := range names {
			spec.Plans[name] = v1beta1.Plan{}
		}
		return &runner.ParsedVersion{Spec: spec}
	}
	for _, tc := range []struct {
		reason   string
		content  *runner.ParsedVersion
		baseline string
		has      bool
		want     bool
	}{
		{"the version is not known", nil, "", true, false},
		{"there is nothing to clean up", content("deploy"), "", false, false},
		{"the first version has a cleanup plan", content("deploy", "cleanup"), "", false, true},
		{"it is there", content("deploy", "cleanup"), "ns/v", true, false},
		{"the plan was taken out of the version", content("deploy"), "ns/v", true, true},
		{"the version before still runs, and has one", content("deploy"), "ns/before", true, false},
		{"the version before has none, and the next one has", content("deploy", "cleanup"), "ns/before", false, true},
		{"neither version has one", content("deploy"), "ns/before", false, false},
	} {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
		i.Spec.OperatorVersion.Name = "v"
		if tc.baseline != "" {
			i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: tc.baseline}
		}
		a := newAction(nil, loop.NewObject(nil, nil, nil, i))
		a.content, a.finalizer = tc.content, tc.has
		if got := a.isFinalizerOutdated(); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}

func TestIsStatusUnclean(t *testing.T) {
	for _, tc := range []struct {
		reason string
		status v1beta1.InstanceStatus
		want   bool
	}{
		{"it is empty", v1beta1.InstanceStatus{}, false},
		{"objects of the namespace and of none", v1beta1.InstanceStatus{Resources: []v1beta1.ResourceStatus{{Namespace: "ns"}, {}}}, false},
		{"an object of another namespace", v1beta1.InstanceStatus{Resources: []v1beta1.ResourceStatus{{Namespace: "ns"}, {Namespace: "other"}}}, true},
		{"a run that kept sensitive values in a Secret", v1beta1.InstanceStatus{Baseline: &v1beta1.Baseline{Sensitive: true}}, true},
	} {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Status: tc.status}
		if got := isStatusUnclean(i); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}

// TestReportBlocked: a condition says what blocks an Instance, and an event only when that is new.
func TestReportBlocked(t *testing.T) {
	for _, tc := range []struct {
		b         blocked
		observed  int64
		transient bool
		requeued  bool
	}{
		{blocked{state: versionMissing, reason: v1beta1.ReasonOperatorVersionNotFound}, 1, false, false},
		{blocked{state: specRefused, reason: v1beta1.ReasonInvalidSpec}, 2, false, false},
		{blocked{state: parametersMissing, reason: v1beta1.ReasonWaitingForParameters}, 2, true, false},
		{blocked{state: accountMissing, reason: v1beta1.ReasonServiceAccountNotFound}, 2, true, false},
		{blocked{state: keyMissing, reason: v1beta1.ReasonHistoryKeyMissing}, 1, false, true},
	} {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1beta1.InstanceStatus{ObservedGeneration: 1}}
		a := newAction(nil, loop.NewObject(nil, nil, nil, i))
		a.Summarize = a.summarize
		tc.b.message = "message"
		a.blocked = &tc.b
		a.reportBlocked()
		ready := a.Next.Status.Conditions
		if len(ready) != 1 || ready[0].Reason != tc.b.reason || ready[0].Message != "message" || a.Summarize != nil {
			t.Errorf("%s: conditions %+v, summarized: %v", tc.b.state, ready, a.Summarize != nil)
		}
		if got := a.Next.Status.ObservedGeneration; got != tc.observed {
			t.Errorf("%s: observed generation %d, want %d", tc.b.state, got, tc.observed)
		}
		if a.result.Transient != tc.transient || (a.result.RequeueAfter > 0) != tc.requeued {
			t.Errorf("%s: result %+v", tc.b.state, a.result)
		}
	}
}
