package deadline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	plan  = v1beta1.Plan{Strategy: v1beta1.Serial, Phases: []v1beta1.Phase{{Name: "server", Strategy: v1beta1.Serial, Steps: []v1beta1.Step{
		{Name: "config", Tasks: []string{"a"}}, {Name: "server", Tasks: []string{"b"}}, {Name: "last", Tasks: []string{"c"}}}}}}
	version = &v1beta1.OperatorVersionSpec{Plans: map[string]v1beta1.Plan{"deploy": plan, "upgrade": plan, "cleanup": plan}}
)

// of is a deadline of the plan upgrade.
func of(step, after string, then v1beta1.DeadlineAction) v1beta1.Deadline {
	return v1beta1.Deadline{Plan: "upgrade", Step: step, After: after, Then: then}
}

// TestCheck: P19, which deadlines have no effect, and what is said of them.
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		all     []v1beta1.Deadline
		version *v1beta1.OperatorVersionSpec
		want    string
	}{
		{"none", nil, version, ""},
		{"a plan", []v1beta1.Deadline{of("", "15m", "Fail")}, version, ""},
		{"a step", []v1beta1.Deadline{of("server/server", "1h30m", "Warn")}, version, ""},
		{"several of one step", []v1beta1.Deadline{of("server/server", "1m", "Warn"), of("server/server", "2m", "Fail")}, version, ""},
		{"no such plan", []v1beta1.Deadline{{Plan: "gone", After: "1m", Then: "Warn"}}, version, `spec.deadlines[0].plan: plan "gone" does not exist`},
		{"no such plan, without the version", []v1beta1.Deadline{{Plan: "gone", After: "1m", Then: "Warn"}}, nil, ""},
		{"no such step", []v1beta1.Deadline{of("server", "1m", "Warn")}, version, `spec.deadlines[0].step: step "server" does not exist in plan upgrade (steps: server/config`},
		{"no duration", []v1beta1.Deadline{of("", "15", "Warn")}, nil, `spec.deadlines[0].after: "15" is no duration`},
		{"too long for a duration", []v1beta1.Deadline{of("", "99999999999h", "Warn")}, nil, "is no duration"},
		{"zero", []v1beta1.Deadline{of("", "0s", "Warn")}, nil, `spec.deadlines[0].after: "0s" is not positive`},
		{"negative", []v1beta1.Deadline{of("", "-1m", "Warn")}, nil, "is not positive"},
		{"no such action", []v1beta1.Deadline{of("", "1m", "Stop")}, nil, `spec.deadlines[0].then: "Stop" is unknown`},
		{"cancel of cleanup", []v1beta1.Deadline{{Plan: "cleanup", After: "1m", Then: "Cancel"}}, nil, "spec.deadlines[0].then: plan cleanup cannot be ended"},
		{"fail of cleanup", []v1beta1.Deadline{{Plan: "cleanup", After: "1m", Then: "Fail"}}, version, ""},
		{"twice", []v1beta1.Deadline{of("", "1m", "Warn"), of("", "2m", "Warn")}, version, "spec.deadlines[1]: plan, step and then are those of spec.deadlines[0]"},
		{"an invalid one does not count as the first", []v1beta1.Deadline{of("", "0s", "Warn"), of("", "2m", "Warn"), of("", "3m", "Warn")}, nil,
			`spec.deadlines[2]: plan, step and then are those of spec.deadlines[1]`},
		{"too many", make([]v1beta1.Deadline, Max+1), nil, "spec.deadlines: there are 33, and 32 are allowed"},
	} {
		var got []string
		problems := Check(tc.all, tc.version)
		for n := range tc.all {
			if p, wrong := problems[n]; wrong {
				got = append(got, p.String())
			}
		}
		if text := strings.Join(got, "; "); !strings.Contains(text, tc.want) || (tc.want == "") != (text == "") {
			t.Errorf("%s: %q, want %q", tc.reason, text, tc.want)
		}
	}
}

// started returns a run whose first step is complete, and whose second one waits since one minute after the start.
func started() v1beta1.PlanStatus {
	st := plans.Start("upgrade", plan, "run", 1, epoch)
	plans.Record(plan, &st, plans.Place{}, plans.Outcome{State: plans.Done}, epoch)
	plans.Record(plan, &st, plans.Place{Step: 1}, plans.Outcome{State: plans.Waiting, Message: "StatefulSet db"}, epoch.Add(time.Minute))
	return st
}

// TestDecide: P19, what passed deadlines do to a run.
func TestDecide(t *testing.T) {
	ended := started()
	plans.Fail(&ended, "x", epoch)
	late := started()
	plans.MarkLate(plan, &late, plans.Late{Steps: map[string]string{"server/server": "past the deadline of 1s"}}, epoch)
	for _, tc := range []struct {
		reason  string
		all     []v1beta1.Deadline
		run     v1beta1.PlanStatus
		waiting string
		at      time.Duration
		want    string
	}{
		{"none", nil, started(), "", time.Hour, ""},
		{"not passed", []v1beta1.Deadline{of("", "10m", "Fail"), of("server/server", "5m", "Fail")}, started(), "x", 5 * time.Minute, "next 6m0s"},
		{"another plan", []v1beta1.Deadline{{Plan: "deploy", After: "1m", Then: "Fail"}}, started(), "", time.Hour, ""},
		{"the step is complete", []v1beta1.Deadline{of("server/config", "1m", "Fail")}, started(), "", time.Hour, ""},
		{"the step is not started", []v1beta1.Deadline{of("server/last", "1m", "Fail")}, started(), "", time.Hour, ""},
		{"the step does not exist", []v1beta1.Deadline{of("server/gone", "1m", "Fail"), of("gone", "1m", "Fail")}, started(), "", time.Hour, ""},
		{"invalid", []v1beta1.Deadline{of("", "soon", "Fail"), of("", "-1m", "Warn")}, started(), "", time.Hour, ""},
		{"the run has ended", []v1beta1.Deadline{of("", "1m", "Fail")}, ended, "", time.Hour, ""},
		{"warn", []v1beta1.Deadline{of("server/server", "4m", "Warn")}, started(), "", 5 * time.Minute, "late server/server past the deadline of 4m"},
		{"the longest is named", []v1beta1.Deadline{of("", "4m", "Warn"), of("", "1m", "Cancel")}, started(), "", time.Hour, "late past the deadline of 4m"},
		{"cancel, and nothing waits", []v1beta1.Deadline{of("", "5m", "Cancel")}, started(), "", 5 * time.Minute, "late past the deadline of 5m"},
		{"cancel, and a plan waits", []v1beta1.Deadline{of("", "5m", "Cancel")}, started(), "backup", 5 * time.Minute,
			"late past the deadline of 5m, cancel the run was past its deadline of 5m and plan backup waited for it"},
		{"fail a step", []v1beta1.Deadline{of("server/server", "4m", "Fail")}, late, "", 5 * time.Minute, "late server/server past the deadline of 4m, " +
			"fail step server/server of plan upgrade was not complete by its deadline of 4m (spec.deadlines); it waited for: StatefulSet db at {0 1 0}"},
		{"fail the plan", []v1beta1.Deadline{of("", "5m", "Fail")}, started(), "", 5 * time.Minute, "late past the deadline of 5m, " +
			"fail the run of plan upgrade was not complete by its deadline of 5m (spec.deadlines); it waited for: step server/server: StatefulSet db"},
		{"beyond the bound", append(make([]v1beta1.Deadline, Max), of("", "1m", "Fail")), started(), "", time.Hour, ""},
	} {
		d := Decide(Input{Deadlines: tc.all, Name: "upgrade", Plan: plan, Run: tc.run, Waiting: tc.waiting, Usual: map[string]time.Duration{},
			Now: epoch.Add(tc.at)})
		if got := describe(d); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.reason, got, tc.want)
		}
	}
}

// describe returns a decision in words.
func describe(d Decision) string {
	var out []string
	if d.Late.Plan != "" {
		out = append(out, "late "+d.Late.Plan)
	}
	for key, text := range d.Late.Steps {
		out = append(out, "late "+key+" "+text)
	}
	for key, text := range d.Late.Slow {
		out = append(out, "slow "+key+" "+text)
	}
	if d.NeedsUsual {
		out = append(out, "needs usual")
	}
	if d.Fail != nil {
		text := "fail " + d.Fail.Message
		if d.Fail.Step != nil {
			text += fmt.Sprintf(" at %v", *d.Fail.Step)
		}
		out = append(out, text)
	}
	if d.Cancel != "" {
		out = append(out, "cancel "+d.Cancel)
	}
	if !d.Next.IsZero() {
		out = append(out, "next "+d.Next.Sub(epoch).String())
	}
	return strings.Join(out, ", ")
}

// TestSlow: P19, what takes longer than is usual for the step is said.
func TestSlow(t *testing.T) {
	usual := func(d time.Duration) map[string]time.Duration { return map[string]time.Duration{"server/server": d} }
	for _, tc := range []struct {
		reason string
		all    []v1beta1.Deadline
		usual  map[string]time.Duration
		at     time.Duration
		want   string
	}{
		{"less than a minute: the usual time does not matter", nil, nil, 119 * time.Second, "next 2m0s"},
		{"a minute: it has to be read", nil, nil, 2 * time.Minute, "needs usual"},
		{"there was no run before", nil, map[string]time.Duration{}, time.Hour, ""},
		{"another step was there", nil, map[string]time.Duration{"server/gone": time.Second}, time.Hour, ""},
		{"within twice the time", nil, usual(3 * time.Minute), 6 * time.Minute, "next 7m0s"},
		{"twice the time", nil, usual(3*time.Minute + 300*time.Millisecond), 7*time.Minute + 600*time.Millisecond, "slow server/server longer than usual: at most 3m0s before"},
		{"a step of a moment may take a minute", nil, usual(time.Second), 2*time.Minute - 1, "next 2m0s"},
		{"and no more", nil, usual(time.Second), 2 * time.Minute, "slow server/server longer than usual: at most 1s before"},
		{"beside a deadline", []v1beta1.Deadline{of("server/server", "4m", "Warn")}, usual(time.Minute), 5 * time.Minute,
			"late server/server past the deadline of 4m, slow server/server longer than usual: at most 1m0s before"},
	} {
		d := Decide(Input{Deadlines: tc.all, Name: "upgrade", Plan: plan, Run: started(), Usual: tc.usual, Now: epoch.Add(tc.at)})
		if got := describe(d); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.reason, got, tc.want)
		}
	}
}

// TestDecideProperty: P19, whenever deadlines are looked at: nothing happens early, what is due at Next happens then, and nothing is canceled
// that no plan waits for.
func TestDecideProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []v1beta1.Deadline
		first, taken := time.Duration(-1), map[string]bool{}
		for range rapid.IntRange(0, 4).Draw(t, "deadlines") {
			seconds := rapid.IntRange(-1, 300).Draw(t, "after")
			d := of(rapid.SampledFrom([]string{"", "server/server", "server/config", "x"}).Draw(t, "step"), fmt.Sprintf("%ds", seconds),
				rapid.SampledFrom([]v1beta1.DeadlineAction{"Warn", "Fail", "Cancel"}).Draw(t, "then"))
			all = append(all, d)
			end := time.Duration(seconds) * time.Second
			if d.Step == "server/server" {
				end += time.Minute
			}
			if seconds <= 0 || taken[d.Step+string(d.Then)] {
				continue
			}
			taken[d.Step+string(d.Then)] = true
			if (d.Step == "" || d.Step == "server/server") && (first < 0 || end < first) {
				first = end
			}
		}
		in := Input{Deadlines: all, Name: "upgrade", Plan: plan, Run: started(), Waiting: rapid.SampledFrom([]string{"", "backup"}).Draw(t, "waiting"),
			Usual: map[string]time.Duration{}, Now: epoch.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "now")) * time.Second)}
		d := Decide(in)
		passed := d.Late.Plan != "" || len(d.Late.Steps) > 0
		if passed != (first >= 0 && !epoch.Add(first).After(in.Now)) {
			t.Fatalf("passed is %v, and the first deadline is at %s", passed, first)
		}
		if (d.Fail != nil || d.Cancel != "") && !passed || d.Cancel != "" && in.Waiting == "" {
			t.Fatalf("%+v", d)
		}
		if !d.Next.IsZero() {
			if !d.Next.After(in.Now) {
				t.Fatalf("the next deadline is at %s, which has passed", d.Next)
			}
			in.Now = d.Next
			if then := Decide(in); describe(then) == describe(d) {
				t.Fatalf("nothing happens at %s", d.Next)
			}
		}
	})
}
