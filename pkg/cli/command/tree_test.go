package command_test

import (
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// moment is so long after the runs of the tests began.
func moment(d time.Duration) *metav1.MicroTime {
	at := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(d))
	return &at
}

func step(name string, status v1beta1.ExecutionStatus, from, to *metav1.MicroTime, tasks ...v1beta1.TaskStatus) v1beta1.StepStatus {
	return v1beta1.StepStatus{Name: name, Status: status, StartedTimestamp: from, FinishedTimestamp: to, Tasks: tasks}
}

// ran is the status of a plan with one phase.
func ran(name string, status v1beta1.ExecutionStatus, from, to *metav1.MicroTime, steps ...v1beta1.StepStatus) v1beta1.PlanStatus {
	st := v1beta1.PlanStatus{Name: name, Status: status, StartedTimestamp: from, FinishedTimestamp: to}
	st.Phases = []v1beta1.PhaseStatus{{Name: "main", Status: status, Steps: steps}}
	return st
}

// TestTree draws plans in all states; -update writes the golden files.
func TestTree(t *testing.T) {
	ov := &v1beta1.OperatorVersion{}
	plan := v1beta1.Plan{Strategy: v1beta1.Serial, Phases: []v1beta1.Phase{{Name: "main", Strategy: v1beta1.Parallel, Steps: []v1beta1.Step{{Name: "one"}, {Name: "two"}}}}}
	ov.Spec.Plans = map[string]v1beta1.Plan{"deploy": plan, "backup": plan}
	task := v1beta1.TaskStatus{Name: "app", Status: v1beta1.InProgress, Ready: 1, Total: 3, Message: "Deployment ns/x: 1 of 3 replicas"}
	complete := ran("deploy", v1beta1.Complete, moment(0), moment(90*time.Second), step("one", v1beta1.Complete, moment(0), moment(1234*time.Millisecond), task))
	failed := ran("deploy", v1beta1.FatalError, moment(0), moment(2*time.Second),
		step("one", v1beta1.FatalError, moment(0), nil, v1beta1.TaskStatus{Name: "app", Status: v1beta1.FatalError, Message: "it failed"}), step("two", v1beta1.Pending, nil, nil))
	failed.Message, failed.LastUpdatedTimestamp = "it failed", &metav1.Time{Time: moment(2 * time.Second).Time}
	running := ran("backup", v1beta1.InProgress, moment(time.Minute), nil, step("one", v1beta1.Complete, moment(time.Minute), moment(time.Minute+40*time.Millisecond)), step("two", v1beta1.InProgress, moment(time.Minute), nil, task))
	cancelled := ran("deploy", v1beta1.FatalError, moment(0), moment(2*time.Second), step("one", v1beta1.InProgress, moment(0), nil, task), step("two", v1beta1.Pending, nil, nil))
	cancelled.Message, cancelled.Phases[0].Status = "cancelled", v1beta1.InProgress
	waiting := v1beta1.StepStatus{Name: "one", Status: v1beta1.TransientError, Message: "no rights yet"}
	late := *running.DeepCopy()
	late.Late, late.Phases[0].Steps[1].Late = "past the deadline of 1h", "past the deadline of 15m"
	for name, tc := range map[string]struct {
		reason string
		ov     *v1beta1.OperatorVersion
		active string
		status []v1beta1.PlanStatus
		queue  []v1beta1.QueuedPlan
	}{
		"never":     {"nothing has run: all plans are there, and not active", ov, "", nil, nil},
		"complete":  {"the last run is open, others are closed", ov, "", []v1beta1.PlanStatus{complete}, nil},
		"running":   {"the running plan shows its tasks, the complete one is closed, and others wait", ov, "backup", []v1beta1.PlanStatus{complete, running}, []v1beta1.QueuedPlan{{PlanName: "update", Cause: "parameter A"}, {PlanName: "deploy", Cause: "requested"}}},
		"failed":    {"what failed is open, and its steps end with it", ov, "", []v1beta1.PlanStatus{failed}, nil},
		"cancelled": {"P28: what was open when a user ended the run is stopped", ov, "", []v1beta1.PlanStatus{cancelled}, nil},
		"late":      {"P19: what has passed its deadline says so", ov, "backup", []v1beta1.PlanStatus{late}, nil},
		"alone":     {"without the OperatorVersion nothing is known of strategies and other plans", nil, "deploy", []v1beta1.PlanStatus{ran("deploy", v1beta1.InProgress, moment(0), nil, waiting)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "i"}}
			i.Spec.OperatorVersion.Name = "op-1.0"
			i.Status.AggregatedStatus.ActivePlanName, i.Status.Queue = tc.active, tc.queue
			i.Status.PlanStatus = map[string]v1beta1.PlanStatus{}
			for _, st := range tc.status {
				i.Status.PlanStatus[st.Name] = st
			}
			got := command.FormatPlans(i, tc.ov, moment(time.Hour).Time)
			commandtest.Golden(t, filepath.Join("testdata", "tree-"+name+".txt"), got, tc.reason)
		})
	}
}

// TestElapsed: times are as exact as people want them.
func TestElapsed(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		from, to *metav1.MicroTime
		want     string
	}{
		"Never":   {"it has not begun", nil, moment(0), ""},
		"Short":   {"milliseconds below a second", moment(0), moment(12345 * time.Microsecond), " 12ms"},
		"Seconds": {"tenths below a minute", moment(0), moment(12345 * time.Millisecond), " 12.3s"},
		"Minutes": {"seconds above", moment(0), moment(90*time.Second + 400*time.Millisecond), " 1m30s"},
		"Running": {"until now", moment(0), nil, " 1h0m0s"},
		"Skewed":  {"clocks differ", moment(time.Second), moment(0), " 0s"},
	} {
		if got := command.Elapsed(tc.from, tc.to, moment(time.Hour).Time); got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// TestTreeOfSchedules: G1, the tree has the next time of each schedule and its last run, and says what has failed.
func TestTreeOfSchedules(t *testing.T) {
	next, past := metav1.NewTime(moment(24*time.Hour).Time), metav1.NewTime(moment(0).Time)
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "i"}}
	i.Spec.Schedules = []v1beta1.Schedule{{Name: "nightly", Plan: "backup"}, {Name: "weekly", Plan: "full", Suspend: true}, {Name: "new", Plan: "check"},
		{Name: "late", Plan: "check"}}
	i.Status.Schedules = []v1beta1.ScheduleStatus{{Name: "nightly", LastRun: 41, LastResult: v1beta1.FatalError, Next: &next}, {Name: "weekly", LastRun: 7, LastResult: v1beta1.Complete},
		{Name: "late", Next: &past}}
	i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ScheduleFailedCondition, Message: "schedule nightly: it failed"}}
	commandtest.Golden(t, filepath.Join("testdata", "tree-schedules.txt"), command.FormatPlans(i, nil, moment(time.Hour).Time), "schedules stand behind plans")
}
