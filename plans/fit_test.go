package plans

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// kudos is the status of a run as KUDO wrote it: no tasks, no times of steps.
func kudos(status v1beta1.ExecutionStatus, phases ...v1beta1.PhaseStatus) v1beta1.PlanStatus {
	return v1beta1.PlanStatus{Name: "deploy", UID: "kudo", Status: status, Phases: phases}
}

func kudosPhase(name string, status v1beta1.ExecutionStatus, steps ...v1beta1.StepStatus) v1beta1.PhaseStatus {
	return v1beta1.PhaseStatus{Name: name, Status: status, Steps: steps}
}

func kudosStep(name string, status v1beta1.ExecutionStatus, tasks ...v1beta1.TaskStatus) v1beta1.StepStatus {
	return v1beta1.StepStatus{Name: name, Status: status, Tasks: tasks}
}

// TestFit is rule 1: an unfinished run of KUDO continues where it was.
func TestFit(t *testing.T) {
	plan := serial(phase("p", v1beta1.Serial, step("s", "a", "d"), step("r", "a2")), phase("q", "", step("s", "a")))
	for name, tc := range map[string]struct {
		reason string
		status v1beta1.PlanStatus
		want   string
		ready  []Place
	}{
		"Nothing": {"a plan that KUDO had not looked at yet", kudos(v1beta1.Pending),
			"going p=pending p/s=pending(a=pending d=pending) p/r=pending(a2=pending) q=pending q/s=pending(a=pending)", []Place{{0, 0, 0}, {0, 0, 1}}},
		"FirstStep": {"a step in progress starts its tasks again: KUDO did not remember them", kudos(v1beta1.InProgress,
			kudosPhase("p", v1beta1.InProgress, kudosStep("s", v1beta1.InProgress), kudosStep("r", v1beta1.Pending)), kudosPhase("q", v1beta1.Pending, kudosStep("s", v1beta1.Pending))),
			"going p=going p/s=going(a=going d=going) p/r=pending(a2=pending) q=pending q/s=pending(a=pending)", []Place{{0, 0, 0}, {0, 0, 1}}},
		"Transient": {"a step in error is tried again", kudos(v1beta1.InProgress,
			kudosPhase("p", v1beta1.InProgress, kudosStep("s", v1beta1.TransientError), kudosStep("r", v1beta1.Pending)), kudosPhase("q", v1beta1.Pending, kudosStep("s", v1beta1.Pending))),
			"going p=going p/s=error(a=error d=error) p/r=pending(a2=pending) q=pending q/s=pending(a=pending)", []Place{{0, 0, 0}, {0, 0, 1}}},
		"SecondStep": {"what was complete stays", kudos(v1beta1.InProgress,
			kudosPhase("p", v1beta1.InProgress, kudosStep("s", v1beta1.Complete), kudosStep("r", v1beta1.InProgress)), kudosPhase("q", v1beta1.Pending, kudosStep("s", v1beta1.Pending))),
			"going p=going p/s=done(a=done d=done) p/r=going(a2=going) q=pending q/s=pending(a=pending)", []Place{{0, 1, 0}}},
		"NewStep": {"a step that came since takes back the COMPLETE of its phase", kudos(v1beta1.InProgress,
			kudosPhase("p", v1beta1.Complete, kudosStep("s", v1beta1.Complete)), kudosPhase("q", v1beta1.InProgress, kudosStep("s", v1beta1.InProgress))),
			"going p=going p/s=done(a=done d=done) p/r=pending(a2=pending) q=going q/s=going(a=going)", []Place{{0, 1, 0}}},
		"NeverRun": {"2.1: steps that came by an upgrade are NEVER_RUN in KUDO, and pending here", kudos(v1beta1.InProgress,
			kudosPhase("p", v1beta1.NeverRun, kudosStep("s", v1beta1.NeverRun), kudosStep("r", v1beta1.NeverRun)), kudosPhase("q", "", kudosStep("s", ""))),
			"going p=pending p/s=pending(a=pending d=pending) p/r=pending(a2=pending) q=pending q/s=pending(a=pending)", []Place{{0, 0, 0}, {0, 0, 1}}},
		"GoneParts": {"what is not in the plan goes", kudos(v1beta1.InProgress, kudosPhase("x", v1beta1.InProgress),
			kudosPhase("p", v1beta1.InProgress, kudosStep("gone", v1beta1.Complete), kudosStep("r", v1beta1.Pending))),
			"going p=going p/s=pending(a=pending d=pending) p/r=pending(a2=pending) q=pending q/s=pending(a=pending)", []Place{{0, 0, 0}, {0, 0, 1}}},
		"AllComplete": {"KUDO stopped between the last step and the end", kudos(v1beta1.InProgress,
			kudosPhase("p", v1beta1.Complete, kudosStep("s", v1beta1.Complete), kudosStep("r", v1beta1.Complete)), kudosPhase("q", v1beta1.InProgress, kudosStep("s", v1beta1.Complete))),
			"done p=done p/s=done(a=done d=done) p/r=done(a2=done) q=done q/s=done(a=done)", nil},
		"Remembered": {"rule 9: tasks that are known keep what was recorded: d is not run again", kudos(v1beta1.InProgress,
			kudosPhase("p", v1beta1.InProgress, kudosStep("s", v1beta1.InProgress, v1beta1.TaskStatus{Name: "a", Status: v1beta1.InProgress}, v1beta1.TaskStatus{Name: "d", Status: v1beta1.Complete}))),
			"going p=going p/s=going(a=going d=done) p/r=pending(a2=pending) q=pending q/s=pending(a=pending)", []Place{{0, 0, 0}}},
		"OtherTask": {"a task that came into a complete step has still to run", kudos(v1beta1.InProgress,
			kudosPhase("p", v1beta1.InProgress, kudosStep("s", v1beta1.Complete, v1beta1.TaskStatus{Name: "a", Status: v1beta1.Complete}, v1beta1.TaskStatus{Name: "t", Status: v1beta1.Complete}))),
			"going p=going p/s=going(a=done d=pending) p/r=pending(a2=pending) q=pending q/s=pending(a=pending)", []Place{{0, 0, 0}, {0, 0, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			st := tc.status
			if Matches(plan, st) {
				t.Fatalf("%s: a status without all places does not fit", tc.reason)
			}
			AlignStatus(plan, &st)
			if !Matches(plan, st) || st.UID != "kudo" {
				t.Fatalf("%s: the run continues, and fits: %+v", tc.reason, st)
			}
			Summarize(plan, &st, epoch)
			if diff := cmp.Diff(tc.want, format(st)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.ready, Ready(plan, kinds, st)); diff != "" {
				t.Errorf("%s: ready: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFitKeepsTimes(t *testing.T) {
	plan := serial(phase("p", "", step("s", "a", "d")))
	old := v1beta1.Plan{Phases: []v1beta1.Phase{phase("p", "", step("s", "a"))}}
	st := Start("deploy", old, "u", 1, epoch)
	Record(old, &st, Place{0, 0, 0}, waits, epoch)
	AlignStatus(plan, &st)
	got := st.Phases[0].Steps[0]
	if got.StartedTimestamp == nil || got.Tasks[0].Message != waits.Message || got.Tasks[1].Status != v1beta1.Pending {
		t.Errorf("what is known of a step stays: %+v", got)
	}
}

func TestFits(t *testing.T) {
	plan := serial(phase("p", "", step("s", "a", "d")), phase("q", ""))
	for name, tc := range map[string]struct {
		reason string
		plan   v1beta1.Plan
		want   bool
	}{
		"Same":     {"the plan that it was started with", plan, true},
		"Strategy": {"the strategy is no place", parallel(plan.Phases...), true},
		"Phase":    {"a phase of another name", serial(phase("x", "", step("s", "a", "d")), phase("q", "")), false},
		"Fewer":    {"a phase less", serial(plan.Phases[0]), false},
		"Step":     {"a step of another name", serial(phase("p", "", step("x", "a", "d")), phase("q", "")), false},
		"NewStep":  {"a step more", serial(plan.Phases[0], phase("q", "", step("s"))), false},
		"Tasks":    {"a task less", serial(phase("p", "", step("s", "a")), phase("q", "")), false},
		"Task":     {"another task at the same place: the status of the one says nothing of the other", serial(phase("p", "", step("s", "d", "a")), phase("q", "")), false},
		"Empty":    {"no phases", v1beta1.Plan{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Matches(tc.plan, Start("deploy", plan, "u", 1, epoch)); got != tc.want {
				t.Errorf("%s: fits %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// ended is a plan that was run.
func ended(status v1beta1.ExecutionStatus, revision int64, second int64) v1beta1.PlanStatus {
	at := metav1.Unix(second, 0)
	return v1beta1.PlanStatus{Status: status, Revision: revision, LastUpdatedTimestamp: &at, Message: "m"}
}

// TestQueued shows P20: what is queued says behind what, what that waits for, and what ends it.
func TestQueued(t *testing.T) {
	const behind = " queued behind plan upgrade (kubectl kudo plan cancel --instance i -n ns ends it)"
	runs := func(message string) map[string]v1beta1.PlanStatus {
		return map[string]v1beta1.PlanStatus{"deploy": ended(v1beta1.Complete, 1, 1), "upgrade": {Status: v1beta1.InProgress, Revision: 2, Message: message}}
	}
	for _, tc := range []struct {
		reason string
		all    map[string]v1beta1.PlanStatus
		queue  []string
		want   string
	}{
		{"nothing is known", nil, nil, ""},
		{"nothing is queued", runs("m"), nil, ""},
		{"nothing runs: the queue is next", map[string]v1beta1.PlanStatus{"deploy": ended(v1beta1.Complete, 1, 1)}, []string{"update"}, ""},
		{"one", runs("1 of 2 replicas"), []string{"update"}, "plan update is" + behind + ", which waits for: 1 of 2 replicas"},
		{"several", runs("m"), []string{"b", "a"}, "plans b, a are" + behind + ", which waits for: m"},
		{"it is not known what is awaited", runs(""), []string{"update"}, "plan update is" + behind},
	} {
		i := &v1beta1.Instance{}
		i.Namespace, i.Name, i.Status.PlanStatus = "ns", "i", tc.all
		for _, name := range tc.queue {
			i.Status.Queue = append(i.Status.Queue, v1beta1.QueuedPlan{PlanName: name})
		}
		if diff := cmp.Diff(tc.want, Queued(i)); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

func TestLast(t *testing.T) {
	type all = map[string]v1beta1.PlanStatus
	for name, tc := range map[string]struct {
		reason        string
		all           all
		last, running string
		aggregate     v1beta1.AggregatedStatus
	}{
		"None":    {"nothing is known", nil, "", "", v1beta1.AggregatedStatus{}},
		"Never":   {"nothing ever ran", all{"deploy": {Status: v1beta1.NeverRun}, "x": {}}, "", "", v1beta1.AggregatedStatus{}},
		"Running": {"rule 19: the plan that runs, though another ended later", all{"a": ended(v1beta1.Complete, 9, 9), "b": ended(v1beta1.InProgress, 8, 8)}, "b", "b", v1beta1.AggregatedStatus{Status: v1beta1.InProgress, ActivePlanName: "b", Message: "m"}},
		"Pending": {"1.3: pending is running", all{"b": ended(v1beta1.Pending, 1, 1)}, "b", "b", v1beta1.AggregatedStatus{Status: v1beta1.Pending, ActivePlanName: "b", Message: "m"}},
		"Error":   {"1.3: so is ERROR, which KUDO may have left", all{"b": ended(v1beta1.TransientError, 0, 1)}, "b", "b", v1beta1.AggregatedStatus{Status: v1beta1.TransientError, ActivePlanName: "b", Message: "m"}},
		"Number":  {"rule 19: while no plan runs, the last run by number, though clocks say otherwise", all{"a": ended(v1beta1.FatalError, 2, 1), "b": ended(v1beta1.Complete, 1, 5)}, "a", "", v1beta1.AggregatedStatus{Status: v1beta1.FatalError, Message: "m"}},
		"Times":   {"1.3: KUDO's runs by time", all{"a": ended(v1beta1.Complete, 0, 1), "b": ended(v1beta1.Complete, 0, 5)}, "b", "", v1beta1.AggregatedStatus{Status: v1beta1.Complete, Message: "m"}},
		"Mixed":   {"a numbered run came after all of KUDO's, in the same second too", all{"a": ended(v1beta1.Complete, 0, 5), "b": ended(v1beta1.Complete, 1, 5)}, "b", "", v1beta1.AggregatedStatus{Status: v1beta1.Complete, Message: "m"}},
		"NoTime":  {"1.3: the time is nullable", all{"a": {Status: v1beta1.Complete}, "b": ended(v1beta1.Complete, 0, 5), "c": {Status: v1beta1.Complete}}, "b", "", v1beta1.AggregatedStatus{Status: v1beta1.Complete, Message: "m"}},
	} {
		t.Run(name, func(t *testing.T) {
			last, _ := LatestRun(tc.all)
			if diff := cmp.Diff([]any{tc.last, tc.running, tc.aggregate}, []any{last, Running(tc.all), Aggregate(tc.all)}); diff != "" {
				t.Errorf("%s: last, running, aggregate: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestList(t *testing.T) {
	plan := serial(phase("p", "", step("s", "a")))
	all := WithNeverRun(nil, map[string]v1beta1.Plan{"deploy": plan, "empty": {}})
	if diff := cmp.Diff([]string{"never p=never p/s=never(a=never)", "never"}, []string{format(all["deploy"]), format(all["empty"])}); diff != "" {
		t.Errorf("2.1: every plan of the version is listed, NEVER_RUN: -want +got:\n%s", diff)
	}
	all["deploy"] = play(t, plan, []event{{Place{0, 0, 0}, done}})
	all["gone"] = ended(v1beta1.Complete, 1, 1)
	next := serial(phase("p", "", step("s", "a"), step("new", "a")))
	all = WithNeverRun(all, map[string]v1beta1.Plan{"deploy": next, "empty": next})
	if diff := cmp.Diff([]string{"deploy", "empty", "gone"}, Names(all)); diff != "" {
		t.Errorf("2.1: plans that vanished stay: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"done p=done p/s=done(a=done)", "never p=never p/s=never(a=never) p/new=never(a=never)"}, []string{format(all["deploy"]), format(all["empty"])}); diff != "" {
		t.Errorf("after an upgrade a plan that ran keeps its last run, one that did not shows its new phases: -want +got:\n%s", diff)
	}
}

func TestFirstOf(t *testing.T) {
	defined := map[string]v1beta1.Plan{"update": {}, "deploy": {}}
	if got := FirstDefined(defined, "upgrade", "update", "deploy"); got != "update" {
		t.Errorf("rule 2: the first that the version has, got %q", got)
	}
	if got := FirstDefined(nil, "upgrade"); got != "" {
		t.Errorf("none, got %q", got)
	}
}
