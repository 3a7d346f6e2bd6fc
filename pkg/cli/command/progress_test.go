package command

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// planOf returns a plan with one phase, whose steps have these statuses.
func planOf(uid string, status v1beta1.ExecutionStatus, steps ...v1beta1.ExecutionStatus) v1beta1.PlanStatus {
	phase := v1beta1.PhaseStatus{Name: "main"}
	for i, s := range steps {
		phase.Steps = append(phase.Steps, v1beta1.StepStatus{Name: string(rune('a' + i)), Status: s})
	}
	return v1beta1.PlanStatus{UID: types.UID(uid), Status: status, Phases: []v1beta1.PhaseStatus{phase}}
}

func TestP29PlainProgress(t *testing.T) {
	const run, done, failed, never = v1beta1.InProgress, v1beta1.Complete, v1beta1.FatalError, v1beta1.NeverRun
	type report struct {
		plans   map[string]v1beta1.PlanStatus
		message string
		after   time.Duration
	}
	deploy := func(p v1beta1.PlanStatus) map[string]v1beta1.PlanStatus {
		return map[string]v1beta1.PlanStatus{"deploy": p, "backup": {Status: never}}
	}
	for _, tc := range []struct {
		reason  string
		reports []report
		want    []string
	}{
		{"a run from its start to its end", []report{
			{nil, "the manager to take it up", 0},
			{deploy(planOf("1", run, run, never)), "", 0},
			{deploy(planOf("1", run, done, run)), "Deployment web", 2 * time.Second},
			{deploy(planOf("1", run, done, run)), "Deployment web", 3 * time.Second},
			{deploy(planOf("1", done, done, done)), "", 4 * time.Second},
		}, []string{"plan deploy: IN_PROGRESS", "plan deploy, step main/a: IN_PROGRESS",
			"plan deploy, step main/a: COMPLETE", "plan deploy, step main/b: IN_PROGRESS", "waits for: Deployment web",
			"plan deploy, step main/b: COMPLETE", "plan deploy: COMPLETE"}},
		{"what has ended before is no news, and a second run of the plan is", []report{
			{deploy(planOf("1", failed, done, failed)), "", 0},
			{deploy(planOf("2", run, run, never)), "", 0},
		}, []string{"plan deploy: IN_PROGRESS", "plan deploy, step main/a: IN_PROGRESS"}},
		{"replicas become ready by the second", []report{
			{nil, "1 of 9", 0}, {nil, "2 of 9", time.Millisecond}, {nil, "3 of 9", 20 * time.Millisecond}, {nil, "4 of 9", 2 * time.Second},
		}, []string{"waits for: 4 of 9"}},
		{"a manager that does not take it up", []report{{nil, "the manager", 0}, {nil, "the manager", 2 * time.Second}}, []string{"waits for: the manager"}},
	} {
		var errs bytes.Buffer
		l, start := changeLines{writef: NewEnv(nil, nil, &errs).Notef}, time.Unix(1000, 0)
		for _, r := range tc.reports {
			l.report(r.plans, r.message, start.Add(r.after))
		}
		if diff := cmp.Diff(tc.want, strings.Split(strings.TrimSpace(errs.String()), "\n")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

func TestP29ProgressMode(t *testing.T) {
	for _, tc := range []struct{ reason, flag, environment, want string }{
		{"no terminal", "", "", "plain"},
		{"the flag", "none", "", "none"},
		{"the environment", "", "none", "none"},
		{"the flag wins", "plain", "none", "plain"},
		{"auto is plain without a terminal", "auto", "none", "plain"},
		{"an unknown word of the environment", "", "loud", "plain"},
	} {
		t.Setenv("KUDO_PROGRESS", tc.environment)
		var errs bytes.Buffer
		env := NewEnv(nil, nil, &errs)
		env.progress = progressFlag(tc.flag)
		if first, again := env.progressMode(), env.progressMode(); first != tc.want || again != tc.want {
			t.Errorf("%s: %s, then %s, want %s", tc.reason, first, again, tc.want)
		}
		if warned := errs.String(); tc.environment == "loud" && warned != "Warning: KUDO_PROGRESS: \"loud\": must be auto, plain or none\n" ||
			tc.environment != "loud" && warned != "" {
			t.Errorf("%s: %q", tc.reason, warned)
		}
	}
	var flag progressFlag
	if err := flag.Set("loud"); err == nil || err.Error() != `"loud": must be auto, plain or none` {
		t.Errorf("a wrong value: %v", err)
	}
}

// TestP29InterruptedWait is row 11 of what users met: Ctrl-C says that the plan continues.
func TestP29InterruptedWait(t *testing.T) {
	now := metav1.Now()
	for _, tc := range []struct {
		reason   string
		instance *v1beta1.Instance
		want     string
	}{
		{"a plan", &v1beta1.Instance{Status: v1beta1.InstanceStatus{PlanStatus: map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.InProgress}}}},
			"Error: interrupted: the plan continues: kubectl kudo plan wait --instance web -n lab\n"},
		{"nothing runs", &v1beta1.Instance{}, "Error: interrupted\n"},
		{"nothing was read", nil, "Error: interrupted\n"},
		{"a deletion", &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}},
			"Error: interrupted: the deletion continues: kubectl wait --for=delete instances.kudo.dev/web -n lab\n"},
	} {
		var errs bytes.Buffer
		w := &watcher{key: types.NamespacedName{Namespace: "lab", Name: "web"}, instance: tc.instance}
		err := w.interrupted()
		code := NewEnv(nil, nil, &errs).ReportError(err)
		if code != ExitError || errs.String() != tc.want || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: exit code %d, %q, want %q", tc.reason, code, errs.String(), tc.want)
		}
	}
}
