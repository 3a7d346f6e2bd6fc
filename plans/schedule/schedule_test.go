package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// noon is when the decisions of the tests are made.
const noon = "2026-01-02T12:00:00Z"

// deployed is an Instance that is backed up each night, was deployed, and has been looked at before.
func deployed(t testing.TB, mods ...func(*v1beta1.Instance)) *v1beta1.Instance {
	i := &v1beta1.Instance{}
	i.Namespace, i.Name = "ns", "db"
	i.Spec.OperatorVersion.Name = "db-1"
	i.Spec.Schedules = []v1beta1.Schedule{{Name: "nightly", Plan: "backup", Cron: "0 3 * * *"}}
	i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: "ns/db-1"}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.Complete}}
	i.Status.Schedules = []v1beta1.ScheduleStatus{{Name: "nightly", Last: stamp(t, "2026-01-02T03:00:00Z"), Next: stamp(t, "2026-01-03T03:00:00Z")}}
	for _, mod := range mods {
		mod(i)
	}
	return i
}

func stamp(t testing.TB, text string) *metav1.Time {
	if text == "" {
		return nil
	}
	out := metav1.NewTime(at(t, text))
	return &out
}

var version = &v1beta1.OperatorVersionSpec{InstallPlan: "install", Plans: map[string]v1beta1.Plan{"deploy": {}, "backup": {}, "check": {}, "install": {}}}

// TestDecide: K31, what is due, with a made-up clock.
func TestDecide(t *testing.T) {
	type instance = *v1beta1.Instance
	next := func(text string) func(instance) {
		return func(i instance) { i.Status.Schedules[0].Next = stamp(t, text) }
	}
	last := func(text string) func(instance) {
		return func(i instance) { i.Status.Schedules[0].Last = stamp(t, text) }
	}
	cron := func(text, zone string) func(instance) {
		return func(i instance) { i.Spec.Schedules[0].Cron, i.Spec.Schedules[0].TimeZone = text, zone }
	}
	fresh := func(i instance) { i.Status.Schedules = nil }
	plan := func(name string, status v1beta1.ExecutionStatus) func(instance) {
		return func(i instance) { i.Status.PlanStatus[name] = v1beta1.PlanStatus{Name: name, Status: status} }
	}
	mods := func(all ...func(instance)) []func(instance) { return all }
	for _, tc := range []struct {
		reason  string
		mods    []func(instance)
		started string
		now     string
		due     string
		next    string
	}{
		{"the time has not come", nil, "", noon, "", "2026-01-03T03:00:00Z"},
		{"it has come", nil, "", "2026-01-03T03:00:00Z", "2026-01-03T03:00:00Z", "2026-01-03T03:00:00Z"},
		{"one that was missed", nil, "", "2026-01-03T15:00:00Z", "2026-01-03T03:00:00Z", "2026-01-03T03:00:00Z"},
		{"several that were missed are one run, for the latest", nil, "", "2026-01-09T15:00:00Z", "2026-01-09T03:00:00Z", "2026-01-03T03:00:00Z"},
		{"a new schedule: what passed before is not due", mods(fresh), "", noon, "", "2026-01-03T03:00:00Z"},
		{"a new schedule, at the very time", mods(fresh), "", "2026-01-02T03:00:00Z", "", "2026-01-03T03:00:00Z"},
		{"another cron: what passed before is not due", mods(cron("0 11 * * *", "")), "", noon, "", "2026-01-03T11:00:00Z"},
		{"another cron, sooner", mods(cron("0 * * * *", "")), "", noon, "", "2026-01-02T13:00:00Z"},
		{"another cron, while the time of the old one waits", mods(cron("0 5 * * *", "")), "", "2026-01-03T06:00:00Z", "", "2026-01-04T05:00:00Z"},
		{"another zone", mods(cron("0 3 * * *", "America/New_York")), "", noon, "", "2026-01-03T08:00:00Z"},
		{"another zone, in which it has passed", mods(cron("0 3 * * *", "Asia/Tokyo")), "", noon, "", "2026-01-02T18:00:00Z"},
		{"a restored Instance has no status", mods(fresh, func(i instance) { i.Status.PlanStatus = nil; i.Status.Baseline = nil }), "", noon, "", ""},
		{"the first deploy is not complete", mods(fresh, plan("deploy", v1beta1.InProgress)), "", noon, "", ""},
		{"the first deploy has failed", mods(fresh, plan("deploy", v1beta1.FatalError)), "", noon, "", ""},
		{"a later deploy runs: it is due", mods(plan("deploy", v1beta1.InProgress)), "", "2026-01-03T03:00:00Z", "2026-01-03T03:00:00Z",
			"2026-01-03T03:00:00Z"},
		{"the schedule is suspended", mods(func(i instance) { i.Spec.Schedules[0].Suspend = true }), "", "2026-01-03T03:00:00Z", "", ""},
		{"the schedule was suspended: what passed is not due", mods(next("")), "", "2026-01-03T04:00:00Z", "", "2026-01-04T03:00:00Z"},
		{"the Instance is suspended", mods(func(i instance) { i.Spec.Suspend = true }), "", "2026-01-03T03:00:00Z", "", ""},
		{"the Instance is still suspended", mods(func(i instance) { i.Status.Baseline.Suspended = true }), "", "2026-01-03T03:00:00Z", "", ""},
		{"the Instance is being deleted", mods(func(i instance) { i.DeletionTimestamp = stamp(t, noon) }), "", "2026-01-03T03:00:00Z", "", ""},
		{"an upgrade is asked for", mods(func(i instance) { i.Spec.OperatorVersion.Name = "db-2" }), "", "2026-01-03T03:00:00Z", "",
			"2026-01-03T03:00:00Z"},
		{"deploy has failed, and update has mended it", mods(plan("deploy", v1beta1.FatalError), func(i instance) {
			i.Status.PlanStatus["update"] = v1beta1.PlanStatus{Name: "update", Status: v1beta1.Complete, Revision: 2}
		}, next("")), "", noon, "", "2026-01-03T03:00:00Z"},
		{"an upgrade has failed: it stays due", mods(func(i instance) { i.Status.Baseline.UpgradeIncomplete = true }), "", "2026-01-04T03:00:00Z", "",
			"2026-01-03T03:00:00Z"},
		{"the clock was set back a little: not twice", mods(last("2026-01-03T03:00:00Z"), next("2026-01-04T03:00:00Z")), "", "2026-01-03T02:59:58Z",
			"", "2026-01-04T03:00:00Z"},
		{"the clock was set back far: times count anew", mods(last("2031-01-03T03:00:00Z"), next("2031-01-04T03:00:00Z")), "", noon, "",
			"2026-01-03T03:00:00Z"},
		{"the clock was set forward: one run", nil, "", "2031-01-03T03:00:01Z", "2031-01-03T03:00:00Z", "2026-01-03T03:00:00Z"},
		{"a forged time that was never due", mods(next("2026-01-02T11:59:00Z")), "", noon, "", "2026-01-03T03:00:00Z"},
		{"a forged time that has been due", mods(next("2026-01-01T03:00:00Z")), "", noon, "", "2026-01-03T03:00:00Z"},
		{"a forged status, of which this process knows more", mods(last(""), next("2026-01-01T03:00:00Z")), "2026-01-02T03:00:00Z", noon, "",
			"2026-01-03T03:00:00Z"},
		{"a forged time far ahead, to keep it from being due", mods(next("2036-01-02T03:00:00Z")), "", noon, "", "2026-01-03T03:00:00Z"},
		{"a forged last time far ahead, to have it due again", mods(last("2036-01-02T03:00:00Z"), next("2026-01-02T03:00:00Z")),
			"2026-01-02T03:00:00Z", noon, "", "2026-01-03T03:00:00Z"},
	} {
		in := Input{Instance: deployed(t, tc.mods...), Version: version, Now: at(t, tc.now)}
		if tc.started != "" {
			in.Started = map[string]time.Time{"nightly": at(t, tc.started)}
		}
		before := in.Instance.DeepCopy()
		d := Decide(in)
		if diff := cmp.Diff(before, in.Instance); diff != "" {
			t.Errorf("%s: the Instance was changed: %s", tc.reason, diff)
		}
		due := ""
		if len(d.Due) > 0 {
			due = d.Due[0].Time.UTC().Format(time.RFC3339)
			if d.Due[0].Name != "nightly" || d.Due[0].Plan != "backup" || !d.Due[0].Next.After(in.Now) {
				t.Errorf("%s: due is %+v", tc.reason, d.Due[0])
			}
		}
		if due != tc.due || len(d.Problems) > 0 {
			t.Errorf("%s: due is %q, want %q (%v)", tc.reason, due, tc.due, d.Problems)
		}
		if diff := cmp.Diff(stamp(t, tc.next), d.Status[0].Next); diff != "" {
			t.Errorf("%s: next: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestDecideProblems: a schedule that cannot be right is named, and does not stop the others.
func TestDecideProblems(t *testing.T) {
	for _, tc := range []struct {
		reason string
		wrong  v1beta1.Schedule
		want   string
	}{
		{"no such plan", v1beta1.Schedule{Name: "x", Plan: "gone", Cron: "0 3 * * *"}, `plan "gone" does not exist in the OperatorVersion (plans: [backup check deploy])`},
		{"the install plan", v1beta1.Schedule{Name: "x", Plan: "install", Cron: "0 3 * * *"}, `plan "install" does not exist`},
		{"cleanup", v1beta1.Schedule{Name: "x", Plan: "cleanup", Cron: "0 3 * * *"}, `plan "cleanup" cannot be scheduled`},
		{"deploy", v1beta1.Schedule{Name: "x", Plan: "deploy", Cron: "0 3 * * *"}, `plan "deploy" cannot be scheduled`},
		{"upgrade", v1beta1.Schedule{Name: "x", Plan: "upgrade", Cron: "0 3 * * *"}, `plan "upgrade" cannot be scheduled`},
		{"no cron", v1beta1.Schedule{Name: "x", Plan: "check", Cron: "soon"}, `cron "soon"`},
		{"no zone", v1beta1.Schedule{Name: "x", Plan: "check", Cron: "0 3 * * *", TimeZone: "Moon"}, `timeZone "Moon"`},
		{"a name that is there", v1beta1.Schedule{Name: "nightly", Plan: "check", Cron: "0 3 * * *"}, "it is there twice"},
	} {
		i := deployed(t)
		i.Spec.Schedules = append(i.Spec.Schedules, tc.wrong)
		d := Decide(Input{Instance: i, Version: version, Now: at(t, "2026-01-03T03:00:00Z")})
		if len(d.Problems) != 1 || d.Problems[0].Name != tc.wrong.Name || !strings.Contains(d.Problems[0].Message, tc.want) {
			t.Errorf("%s: problems %v, want %q", tc.reason, d.Problems, tc.want)
		}
		if len(d.Due) != 1 || d.Due[0].Name != "nightly" {
			t.Errorf("%s: due is %v", tc.reason, d.Due)
		}
	}
}

// TestDecideHeld: what waits for the end of an upgrade is known, with the time that it serves.
func TestDecideHeld(t *testing.T) {
	i := deployed(t, func(i *v1beta1.Instance) { i.Status.Baseline.UpgradeIncomplete = true })
	d := Decide(Input{Instance: i, Version: version, Now: at(t, "2026-01-04T04:00:00Z")})
	want := []Due{{"nightly", "backup", at(t, "2026-01-04T03:00:00Z"), at(t, "2026-01-05T03:00:00Z")}}
	if diff := cmp.Diff(want, d.Held); diff != "" || d.Due != nil {
		t.Errorf("-want +got: %s; due: %v", diff, d.Due)
	}
	if d = Decide(Input{Instance: i, Version: version, Now: at(t, "2026-01-02T12:00:00Z")}); d.Held != nil {
		t.Errorf("before its time, %v is held", d.Held)
	}
}

// TestDecideOrder: status and what is due are in the order of spec, and a schedule that was removed has no status.
func TestDecideOrder(t *testing.T) {
	i := deployed(t, func(i *v1beta1.Instance) {
		i.Spec.Schedules = []v1beta1.Schedule{{Name: "z", Plan: "check", Cron: "0 3 * * *"}, {Name: "a", Plan: "backup", Cron: "0 * * * *"}}
		i.Status.Schedules = append(i.Status.Schedules, v1beta1.ScheduleStatus{Name: "a", Next: stamp(t, "2026-01-02T11:00:00Z")},
			v1beta1.ScheduleStatus{Name: "z", Next: stamp(t, "2026-01-02T03:00:00Z")})
	})
	d := Decide(Input{Instance: i, Now: at(t, noon)})
	var got []string
	for n := range d.Status {
		got = append(got, d.Status[n].Name, d.Due[n].Name)
	}
	if diff := cmp.Diff([]string{"z", "z", "a", "a"}, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestRuns: what the status of a schedule says of its runs.
func TestRuns(t *testing.T) {
	i := deployed(t)
	st := &i.Status.Schedules[0]
	now := at(t, "2026-01-05T03:00:30Z")
	run := func(plan string, revision int64, status v1beta1.ExecutionStatus) []string {
		return End(i, plan, v1beta1.PlanStatus{Revision: revision, Status: status, Message: "no space left"}, now)
	}
	due := Due{"nightly", "backup", at(t, "2026-01-05T03:00:00Z"), at(t, "2026-01-06T03:00:00Z")}
	Start(i.Status.Schedules, due, 7)
	want := v1beta1.ScheduleStatus{Name: "nightly", Last: stamp(t, "2026-01-05T03:00:00Z"), Next: stamp(t, "2026-01-06T03:00:00Z"), LastRun: 7,
		LastResult: v1beta1.InProgress}
	check := func(reason string) {
		t.Helper()
		if diff := cmp.Diff(want, *st); diff != "" {
			t.Errorf("%s: -want +got: %s", reason, diff)
		}
	}
	check("started")
	Replace(i.Status.Schedules, 7, 8)
	want.LastRun = 8
	check("started again by hand")
	run("check", 9, v1beta1.FatalError)
	check("another run has ended")
	if failed := run("backup", 8, v1beta1.FatalError); len(failed) != 1 {
		t.Errorf("failed is %v", failed)
	}
	want.LastResult, want.Message = v1beta1.FatalError, "run 8 of plan backup failed: no space left"
	check("it has failed")
	Start(i.Status.Schedules, due, 10)
	want.LastRun, want.LastResult = 10, v1beta1.InProgress
	check("the failure stays while the next run is not over")
	run("backup", 10, v1beta1.Complete)
	want.LastResult, want.Message, want.LastSuccess = v1beta1.Complete, "", stamp(t, "2026-01-05T03:00:30Z")
	check("it is complete")
	Start(i.Status.Schedules, due, 11)
	run("backup", 11, v1beta1.FatalError)
	now = now.Add(time.Hour)
	run("backup", 12, v1beta1.Complete)
	want.LastRun, want.LastResult, want.LastSuccess = 11, v1beta1.FatalError, stamp(t, "2026-01-05T04:00:30Z")
	check("the plan was complete by hand: the failure is over")
	Start(i.Status.Schedules, due, 13)
	End(i, "backup", v1beta1.PlanStatus{Revision: 13, Status: v1beta1.FatalError, Message: "a\x1b[2J\nb"}, now)
	want.LastRun, want.Message = 13, "run 13 of plan backup failed: a[2J b"
	check("a message has one line and no control characters")
	Start(i.Status.Schedules, Due{Name: "unknown"}, 14)
	check("a schedule without a status")
}
