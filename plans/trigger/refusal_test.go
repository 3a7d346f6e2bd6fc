package trigger

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestValidate is what is denied before an edit is stored (rules 4, 5, 8).
func TestValidate(t *testing.T) {
	deleting := func(s *state) { s.DeletionTimestamp = &metav1.Time{} }
	for name, tc := range map[string]struct {
		reason string
		old    []modifier // nil: a new Instance
		now    []modifier
		v      v1beta1.OperatorVersionSpec
		want   string
	}{
		"Create":        {"a new Instance", nil, []modifier{created}, v1, ""},
		"CreateNoPlan":  {"rule 8: deploy is needed at creation", nil, []modifier{created}, version("update"), "spec.operatorVersion"},
		"CreateCleanup": {"rule 4: cleanup cannot be asked for at creation", nil, []modifier{created, ask("cleanup", "u")}, v1, "spec.planExecution.planName"},
		"CreateAsk":     {"a planExecution of a former life is harmless", nil, []modifier{created, ask("nothing", "u")}, v1, ""},
		"Edit":          {"an edit", []modifier{}, []modifier{set("A", "2")}, v1, ""},
		"Immutable":     {"rule 5: a changed immutable one", []modifier{}, []modifier{set("I", "2")}, v1, "spec.parameters[I]"},
		"Cleanup":       {"rule 4: cleanup", []modifier{}, []modifier{ask("cleanup", "u")}, v1, "spec.planExecution.planName"},
		"CleanupAgain":  {"rule 4: with another uid", []modifier{ask("cleanup", "u")}, []modifier{ask("cleanup", "w")}, v1, "spec.planExecution.planName"},
		"CleanupKUDO": {"one that KUDO left is no request: other edits are free", []modifier{ask("cleanup", "run-1")},
			[]modifier{ask("cleanup", "run-1"), set("A", "2"), func(s *state) { s.Spec.PlanExecution.Status = v1beta1.Complete }}, v1, ""},
		"NoPlan":              {"rule 4: a plan that does not exist", []modifier{}, []modifier{ask("nothing", "")}, v1, "spec.planExecution.planName"},
		"Trigger":             {"1.5 update 5: a trigger that does not exist", []modifier{}, []modifier{set("G", "2")}, v1, "spec.parameters[G]"},
		"DeletingValue":       {"rule 4: edits of spec while deleting", []modifier{}, []modifier{deleting, set("A", "2")}, v1, "spec"},
		"DeletingVersion":     {"rule 4: edits of spec while deleting", []modifier{}, []modifier{deleting, upgraded(v1)}, v1, "spec"},
		"DeletingAsk":         {"rule 4: edits of spec while deleting", []modifier{}, []modifier{deleting, ask("backup", "u")}, v1, "spec"},
		"DeletingCleanup":     {"rule 4: cleanup is not asked for, then neither", []modifier{}, []modifier{deleting, ask("cleanup", "u")}, v1, "spec"},
		"DeletingClear":       {"rule 4: clearing is an edit", []modifier{ask("backup", "u")}, []modifier{deleting}, v1, "spec"},
		"DeletingStatus":      {"rule 4: planExecution.status is ignored", []modifier{}, []modifier{deleting, func(s *state) { s.Spec.PlanExecution.Status = v1beta1.Complete }}, v1, ""},
		"DeletingMetadata":    {"what is not spec can be edited: finalizers", []modifier{}, []modifier{deleting, func(s *state) { s.Finalizers = []string{"x"} }}, v1, ""},
		"DeletingVersionless": {"nothing of the OperatorVersion is asked for then", []modifier{}, []modifier{deleting}, v1beta1.OperatorVersionSpec{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var old *v1beta1.Instance
			if tc.old != nil {
				old = given(v1, tc.old...).Instance
			}
			err := Validate(old, given(tc.v, tc.now...))
			var refusal *Refusal
			field := ""
			if errors.As(err, &refusal) {
				field = refusal.Field
			}
			if field != tc.want || (err == nil) != (tc.want == "") {
				t.Errorf("%s: want a refusal of %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestDelete is the end of an Instance: 1.5, gaps, and 2.1.
func TestDelete(t *testing.T) {
	without := version("deploy")
	run := func(status v1beta1.ExecutionStatus) map[string]v1beta1.PlanStatus {
		return map[string]v1beta1.PlanStatus{"cleanup": {Status: status}, "deploy": {Status: v1beta1.InProgress}}
	}
	for name, tc := range map[string]struct {
		reason string
		plans  map[string]v1beta1.PlanStatus
		v      *v1beta1.OperatorVersionSpec
		want   Deletion
	}{
		"Start":       {"2.1: cleanup is started, whatever runs", map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.InProgress}}, &v1, CleanUp},
		"Never":       {"2.1: NEVER_RUN is not run", run(v1beta1.NeverRun), &v1, CleanUp},
		"NoStatus":    {"an Instance that was never run is cleaned up too", nil, &v1, CleanUp},
		"Running":     {"a cleanup that runs continues", run(v1beta1.InProgress), &v1, Continue},
		"Pending":     {"a cleanup that has begun continues", run(v1beta1.Pending), &v1, Continue},
		"RunningGone": {"with what it was started with, though the version has no such plan any more", run(v1beta1.InProgress), &without, Continue},
		"Complete":    {"2.1: the finalizer goes when cleanup is COMPLETE", run(v1beta1.Complete), &v1, Release},
		"Fatal":       {"1.5: a failed cleanup holds the Instance, for a retry", run(v1beta1.FatalError), &v1, Hold},
		"FatalGone":   {"also without a version", run(v1beta1.FatalError), nil, Hold},
		"NoPlan":      {"without a cleanup plan there is nothing to do", nil, &without, Release},
		"NoVersion":   {"1.5: an OperatorVersion that does not exist holds nothing up", nil, nil, Release},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(v1)
			in.Instance.Status.PlanStatus = tc.plans
			if got := Delete(in.Instance, tc.v); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestImmutableParameters is immutable parameters: rules 5 and 6, and the table of KUDO 1.5 update 3.
func TestImmutableParameters(t *testing.T) {
	fixed := base(func(b *v1beta1.Baseline) { b.ImmutableDefaults = values{"F": "f"} })
	free := version(all, "A", "B>backup", "C", "I", "F=f")
	frozen := version(all, "A!", "B!>backup", "C", "I!", "F!=g")
	check(t, map[string]row{
		"Changed":           {"not an upgrade: changed", given(v1, set("I", "2")), "refused spec.parameters[I]"},
		"Removed":           {"not an upgrade: removed", given(v1, unset("I")), "refused spec.parameters[I]"},
		"Added":             {"not an upgrade: added", given(frozen, set("F", "f")), "refused spec.parameters[F]"},
		"MadeImmutable":     {"rule 2: an OperatorVersion edited in place starts and refuses nothing", given(frozen), ""},
		"Upgrade":           {"upgrade: immutable before and now, changed", given(v1, upgraded(v1), set("I", "2")), "refused spec.parameters[I]"},
		"UpgradeSame":       {"upgrade: immutable before and now, the same", given(v1, upgraded(v1)), "start upgrade by upgrade"},
		"Freed":             {"upgrade: immutable before, mutable now", given(free, upgraded(v1), set("I", "2")), "start upgrade by upgrade"},
		"Frozen":            {"upgrade: mutable before, immutable now, has a value", given(version(all, "A!", "B", "C", "I"), upgraded(free)), "start upgrade by upgrade"},
		"FrozenChanged":     {"upgrade: and the value may be a new one", given(version(all, "A!", "B", "C", "I"), upgraded(free), set("A", "2")), "start upgrade by upgrade"},
		"FrozenUnset":       {"upgrade: mutable before, immutable now, no value", given(version(all, "A!", "B", "C", "I"), upgraded(free), unset("A")), "refused spec.parameters[A]"},
		"New":               {"upgrade: not there before, immutable, no value though there is a default", given(frozen, upgraded(v1)), "refused spec.parameters[F]"},
		"NewSet":            {"upgrade: not there before, immutable, has a value", given(frozen, upgraded(v1), set("F", "x")), "start upgrade by upgrade"},
		"FrozenOwnPlan":     {"rules 2, 5: its own plan is queued, and kept like a request by hand, since the value cannot be taken back", given(frozen, upgraded(free), set("F", "x"), set("B", "2")), "start upgrade by upgrade, queue backup*"},
		"FrozenOwnWaits":    {"while the version change waits, it can", given(frozen, upgraded(free), set("F", "x"), set("B", "2"), running("restore")), "queue upgrade, backup"},
		"Fixed":             {"rule 6: a default that was fixed needs no value", given(frozen, fixed), ""},
		"FixedWritten":      {"rule 6: writing it down is allowed, and a change like any other", given(frozen, fixed, set("F", "f")), "start update[F]"},
		"FixedChanged":      {"rule 6: changing it is not", given(frozen, fixed, set("F", "g")), "refused spec.parameters[F]"},
		"FixedUpgrade":      {"rule 6: nor with an upgrade", given(frozen, fixed, upgraded(frozen), set("F", "g")), "refused spec.parameters[F]"},
		"FixedUnknownOld":   {"rule 6: nor when the old version is not known any more", given(frozen, fixed, forgotten, set("F", "g")), "refused spec.parameters[F]"},
		"FixedUpgradeSame":  {"rule 6: a fixed default counts as a value", given(frozen, fixed, upgraded(frozen)), "start upgrade by upgrade"},
		"FixedFreed":        {"rule 6: until the parameter becomes mutable", given(free, fixed, upgraded(frozen), set("F", "g")), "start upgrade by upgrade"},
		"UnknownOldChanged": {"of a version that is not known any more nothing is known to be immutable", given(v1, forgotten, set("I", "2")), "start upgrade by upgrade"},
	})
}

// TestFrozenOwnPlanGoesOn shows that a value which a version made immutable is not refused once the version runs.
func TestFrozenOwnPlanGoesOn(t *testing.T) {
	frozen := version(all, "A", "B!>backup", "C", "I")
	in := given(frozen, upgraded(v1), set("B", "2"))
	d, err := Decide(in)
	if got := text(d, err); got != "start upgrade by upgrade, queue backup*" {
		t.Fatal(got)
	}
	in.Old, in.Instance.Status.Baseline, in.Instance.Status.Queue = nil, d.Baseline, d.Queue
	in.Instance.Status.PlanStatus["upgrade"] = v1beta1.PlanStatus{Status: v1beta1.InProgress}
	if got := text(Decide(in)); got != "queue backup*" {
		t.Errorf("rule 2: while the upgrade runs the other plan waits, got %q", got)
	}
	in.Instance.Status.PlanStatus["upgrade"] = v1beta1.PlanStatus{Status: v1beta1.Complete}
	if got := text(Decide(in)); got != "start backup" {
		t.Errorf("rule 2: then it runs, got %q", got)
	}
	in.Instance.Spec.Parameters["B"] = "3"
	if got := text(Decide(in)); got != "refused spec.parameters[B]" {
		t.Errorf("rule 5: and the value is fixed, got %q", got)
	}
}

// TestRefusals says what users read.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		in     Input
		want   string
	}{
		"Plan":    {"the plans are named", given(withoutUpdate, ask("x", "u")), `spec.planExecution.planName: plan "x" does not exist in OperatorVersion ns/v1 (plans: [backup deploy])`},
		"Trigger": {"so is the trigger", given(v1, set("G", "2")), `spec.parameters[G]: its change triggers plan "gone", which OperatorVersion ns/v1 does not have (plans: [backup cleanup deploy restore update upgrade])`},
		"Neither": {"no trigger and no fallback", given(version("backup", "A"), set("A", "2")), `spec.parameters[A]: it names no trigger, and OperatorVersion ns/v1 has neither plan update nor deploy, so its change starts nothing (plans: [backup])`},
		"Cleanup": {"what to do instead", given(v1, ask("cleanup", "u")), "spec.planExecution.planName: plan cleanup runs only when the Instance is deleted: use kubectl kudo uninstall"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decide(tc.in)
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

// TestPartial: where values may come from sources that cannot be read, that one is missing is no removal; what is there
// counts as ever.
func TestPartial(t *testing.T) {
	v := version("deploy update", "A", "I!")
	partial := func(mods ...modifier) Input {
		in := given(v, mods...)
		in.ParametersFromUnread = true
		return in
	}
	for name, tc := range map[string]struct {
		reason string
		in     Input
		want   string
	}{
		"Removed":  {"a source may give it", partial(unset("A"), unset("I"), unset("B"), unset("C")), "rest"},
		"Changed":  {"a value of spec counts", partial(set("A", "2")), "start update"},
		"Fixed":    {"what is immutable too", partial(set("I", "2")), "refused spec.parameters[I]"},
		"Complete": {"of all values, one that is missing was removed", given(v, unset("I")), "refused spec.parameters[I]"},
	} {
		d, err := Decide(tc.in)
		got := text(d, err)
		if got == "" {
			got = "rest"
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}
