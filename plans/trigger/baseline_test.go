package trigger

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// follow applies decisions to the status, as the controller does.
func follow(t *testing.T, in Input) Decision {
	t.Helper()
	d, err := Decide(in)
	if err != nil {
		t.Fatal(err)
	}
	status := &in.Instance.Status
	if d.Baseline != nil {
		status.Baseline = d.Baseline
	}
	status.Queue = d.Queue
	if d.Start != nil {
		if status.PlanStatus == nil {
			status.PlanStatus = map[string]v1beta1.PlanStatus{}
		}
		status.PlanStatus[d.Start.Plan] = v1beta1.PlanStatus{Status: v1beta1.InProgress}
	}
	return d
}

// finish ends the running plan.
func finish(in Input) {
	for name, st := range in.Instance.Status.PlanStatus {
		if st.Status.IsRunning() {
			in.Instance.Status.PlanStatus[name] = v1beta1.PlanStatus{Status: v1beta1.Complete}
		}
	}
}

// TestScenarios are sequences of edits and ends of runs; each step says what is decided.
func TestScenarios(t *testing.T) {
	type act func(Input)
	edit := func(mods ...modifier) act {
		return func(in Input) {
			s := &state{Instance: in.Instance}
			for _, m := range mods {
				m(s)
			}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		acts   []act
		want   []string
	}{
		"NothingLost": {"starting a run: what waits is derived anew each time, until each plan has run",
			[]act{edit(set("A", "2"), set("B", "2"), set("C", "2")), func(Input) {}, finish, finish, finish},
			[]string{"start update[A], queue backup, restore", "queue backup, restore", "start backup[B], queue restore", "start restore[C]", ""}},
		"Reverted": {"starting a run: an edit that is taken back while it waits is none",
			[]act{edit(set("A", "2"), set("B", "2")), edit(set("B", "1")), finish},
			[]string{"start update[A], queue backup", "", ""}},
		"RevertedRunning": {"taking back what runs restarts it",
			[]act{edit(set("B", "2")), edit(set("B", "1"))}, []string{"start backup[B]", "restart backup[B]"}},
		"NamesByTurns": {"rule 4: each change of the name is a request, a uid in between too",
			[]act{edit(ask("backup", "")), finish, edit(ask("restore", "u")), finish, edit(ask("backup", "")), finish, edit(ask("", "")), edit(ask("backup", ""))},
			[]string{"start backup", "", "start restore", "", "start backup", "", "", "start backup"}},
		"UIDRemoved": {"rule 4: taking the uid away is no change of the name",
			[]act{edit(ask("backup", "u")), finish, edit(ask("backup", ""))}, []string{"start backup", "", ""}},
		"RequestsSurvive": {"rule 4: each uid is a request, though planExecution changes while it waits",
			[]act{edit(set("A", "2")), edit(ask("backup", "u1")), edit(ask("restore", "u2")), edit(ask("", "")), finish, finish, finish},
			[]string{"start update[A]", "queue backup*", "queue backup*, restore*", "queue backup*, restore*", "start backup, queue restore*", "start restore", ""}},
		"Unknown": {"rule 5: unknown parameters come and go without a run", []act{edit(set("Z", "1")), edit(set("Z", "2")), edit(unset("Z"))},
			[]string{"ignored [Z]", "ignored [Z]", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(v1)
			var got []string
			for _, a := range tc.acts {
				a(in)
				got = append(got, text(follow(t, in), nil))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPendingUpgradeTakenBack keeps a request for a plan that the version in between does not have.
func TestPendingUpgradeTakenBack(t *testing.T) {
	in := given(v1, running("update"), ask("restore", "u"))
	follow(t, in)
	in.Instance.Spec.OperatorVersion.Name, in.Version, in.Old = "v2", withoutUpdate, ptr(v1)
	in.Instance.Spec.PlanExecution = v1beta1.PlanExecution{}
	follow(t, in)
	in.Instance.Spec.OperatorVersion.Name, in.Version, in.Old = "v1", v1, nil
	if got := text(follow(t, in), nil); got != "queue restore*" {
		t.Errorf("nothing is lost: got %q", got)
	}
}

func copied(b *v1beta1.Baseline, change func(*v1beta1.Baseline)) *v1beta1.Baseline {
	out := b.DeepCopy()
	change(out)
	return out
}

// TestBaseline is what is recorded with a decision (rule 1: when a run is started or queued).
func TestBaseline(t *testing.T) {
	before := given(v1).Instance.Status.Baseline
	frozen := version(all, "A", "B>backup", "C", "I!", "F!=f")
	var uids []types.UID
	for i := range UIDs {
		uids = append(uids, types.UID(fmt.Sprint(i)))
	}
	for name, tc := range map[string]struct {
		reason string
		in     Input
		want   *v1beta1.Baseline
	}{
		"Rest":   {"nothing to write", given(v1), nil},
		"Create": {"rule 6: all values, and the defaults of immutable parameters that are left out", given(frozen, created), copied(before, func(b *v1beta1.Baseline) { b.ImmutableDefaults = values{"F": "f"} })},
		"KUDO": {"rule 1: spec becomes the snapshot; the uids of its runs are answered", given(frozen, fromKUDO, ask("backup", "a")), copied(before, func(b *v1beta1.Baseline) {
			b.ImmutableDefaults, b.PlanName, b.RequestUIDs = values{"F": "f"}, "backup", []types.UID{"run-1", "a"}
		})},
		"Part":    {"starting a run: only the parameters of the plan that starts", given(v1, set("A", "2"), set("B", "2")), copied(before, func(b *v1beta1.Baseline) { b.Parameters["A"] = "2" })},
		"Removed": {"what was removed from spec is removed", given(v1, unset("A")), copied(before, func(b *v1beta1.Baseline) { delete(b.Parameters, "A") })},
		"Upgrade": {"rule 2: an upgrade answers all but what is queued", given(v1, upgraded(v1), set("A", "2"), set("B", "2"), set("Z", "1")), copied(before, func(b *v1beta1.Baseline) { b.OperatorVersion, b.Parameters["A"], b.Parameters["Z"] = "ns/v2", "2", "1" })},
		"Queued":  {"rule 1: a request is recorded when it is queued", given(v1, running("update"), ask("backup", "u")), copied(before, func(b *v1beta1.Baseline) { b.PlanName, b.RequestUIDs = "backup", []types.UID{"u"} })},
		"Derived": {"what is derived is not", given(v1, running("update"), set("B", "2")), nil},
		"Ignored": {"rule 5: unknown parameters are taken over, so that defining them later starts nothing", given(v1, set("Z", "1")), copied(before, func(b *v1beta1.Baseline) { b.Parameters["Z"] = "1" })},
		"Pending": {"nothing of a version that waits", given(v1, upgraded(v1), running("backup"), set("A", "2")), nil},
		"Freed":   {"rule 6: a value takes the place of a fixed default once it may", given(version(all, "A", "B", "C", "I", "F"), base(func(b *v1beta1.Baseline) { b.ImmutableDefaults = values{"F": "f"} }), set("F", "2")), copied(before, func(b *v1beta1.Baseline) { b.Parameters["F"], b.ImmutableDefaults = "2", values{} })},
		"Ring": {"starting a run: the last 32 uids, newest last", given(v1, base(func(b *v1beta1.Baseline) { b.RequestUIDs = uids }), ask("backup", "new")), copied(before, func(b *v1beta1.Baseline) {
			b.PlanName, b.RequestUIDs = "backup", append(uids[1:len(uids):len(uids)], "new")
		})},
		"RingKUDO": {"of an Instance with more plans than that, its planExecution is remembered", given(v1, fromKUDO, ask("backup", "0"), func(s *state) {
			delete(s.Status.PlanStatus, "deploy")
			for i := range 40 {
				s.Status.PlanStatus[fmt.Sprint(i)] = v1beta1.PlanStatus{UID: types.UID(fmt.Sprintf("u%02d", i))}
			}
		}), copied(before, func(b *v1beta1.Baseline) {
			b.PlanName = "backup"
			for i := 9; i < 40; i++ {
				b.RequestUIDs = append(b.RequestUIDs, types.UID(fmt.Sprintf("u%02d", i)))
			}
			b.RequestUIDs = append(b.RequestUIDs, "0")
		})},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Decide(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want != nil && tc.want.ImmutableDefaults == nil {
				tc.want.ImmutableDefaults = map[string]string{}
			}
			if d.Baseline != nil && d.Baseline.ImmutableDefaults == nil {
				d.Baseline.ImmutableDefaults = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, d.Baseline); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
