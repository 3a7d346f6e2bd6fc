package command

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// verdict is how a condition of a wait is to end: done, or not, with the exit code of an error, or 0 for none.
type verdict struct {
	done bool
	code int
	text string
}

// check compares the verdict of a condition.
func (v verdict) check(t *testing.T, reason string, done bool, err error) {
	t.Helper()
	code := 0
	var coded *CodeError
	switch {
	case errors.As(err, &coded):
		code = coded.Code
	case err != nil:
		code = ExitError
	}
	if done != v.done || code != v.code || err != nil && !strings.Contains(err.Error(), v.text) {
		t.Errorf("%s: done %t, exit code %d, error %v; want %+v", reason, done, code, err, v)
	}
}

// planStatus is the status of one plan.
func planStatus(name string, status v1beta1.ExecutionStatus, message string, at int64) v1beta1.PlanStatus {
	started := metav1.NewMicroTime(metav1.Unix(at, 0).Time)
	return v1beta1.PlanStatus{Name: name, Status: status, Message: message, UID: types.UID("run-" + name), Revision: at, StartedTimestamp: &started}
}

// TestUntilArrived checks when a wait for an Instance ends.
func TestUntilArrived(t *testing.T) {
	refused := metav1.Condition{Type: v1beta1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1beta1.ReasonInvalidSpec, Message: "parameter A is wrong", ObservedGeneration: 2}
	stale := refused
	stale.ObservedGeneration = 1
	taken := refused
	taken.Reason, taken.Message = v1beta1.ReasonRecordNameTaken, "web-1 exists"
	other := refused
	other.Reason = "Other"
	for name, tc := range map[string]struct {
		reason     string
		absent     bool
		uid        types.UID
		observed   int64
		plans      []v1beta1.PlanStatus
		queued     bool
		aggregated v1beta1.ExecutionStatus
		conditions []metav1.Condition
		retried    string
		want       verdict
	}{
		"Complete":      {reason: "the newest run is complete", observed: 2, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.Complete, "", 1)}, want: verdict{done: true}},
		"Later":         {reason: "the controller has observed a later generation", observed: 3, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.Complete, "", 1)}, want: verdict{done: true}},
		"NotObserved":   {reason: "the controller has not observed the generation", observed: 1, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.Complete, "", 1)}},
		"Running":       {reason: "a plan is running", observed: 2, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.InProgress, "", 1)}},
		"Queued":        {reason: "a plan is in the queue", observed: 2, queued: true, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.Complete, "", 1)}},
		"Blocked":       {reason: "the Instance waits for a cause", observed: 2, aggregated: v1beta1.Pending, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.Complete, "", 1)}},
		"NeverRun":      {reason: "no plan has run", observed: 2},
		"Failed":        {reason: "the newest run failed", observed: 2, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.FatalError, "no image", 1)}, want: verdict{true, ExitFailed, "plan deploy failed: no image"}},
		"FailedBefore":  {reason: "an older run failed", observed: 2, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.FatalError, "no image", 1), planStatus("update", v1beta1.Complete, "", 2)}, want: verdict{done: true}},
		"Retried":       {reason: "a retry of the failed run is requested", observed: 2, retried: "run-deploy", plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.FatalError, "no image", 1)}},
		"RetriedBefore": {reason: "a retry of an earlier run was requested", observed: 2, retried: "run-0", plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.FatalError, "no image", 1)}, want: verdict{true, ExitFailed, "plan deploy failed: no image"}},
		"RetryDone":     {reason: "the run that the annotation names was mended by a later one", observed: 2, retried: "run-deploy", plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.FatalError, "no image", 1), planStatus("update", v1beta1.Complete, "", 2)}, want: verdict{done: true}},
		"RetryRefused":  {reason: "the controller has refused the spec, so that no retry begins", observed: 2, retried: "run-deploy", plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.FatalError, "no image", 1)}, conditions: []metav1.Condition{refused}, want: verdict{true, ExitFailed, "parameter A is wrong"}},
		"Refused":       {reason: "the controller has refused the spec", observed: 2, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.Complete, "", 1)}, conditions: []metav1.Condition{refused}, want: verdict{true, ExitFailed, "parameter A is wrong"}},
		"NameTaken":     {reason: "the run cannot be recorded", observed: 2, conditions: []metav1.Condition{taken}, want: verdict{true, ExitFailed, "web-1 exists"}},
		"RefusedFirst":  {reason: "a spec may be refused before it is observed", observed: 1, conditions: []metav1.Condition{refused}, want: verdict{true, ExitFailed, "parameter A is wrong"}},
		"RefusedBefore": {reason: "a refusal of the spec of before counts for nothing", observed: 2, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.Complete, "", 1)}, conditions: []metav1.Condition{stale}, want: verdict{done: true}},
		"OtherReason":   {reason: "an Instance may be not ready for another reason", observed: 2, plans: []v1beta1.PlanStatus{planStatus("deploy", v1beta1.Complete, "", 1)}, conditions: []metav1.Condition{other}, want: verdict{done: true}},
		"Absent":        {reason: "the Instance does not exist", absent: true, want: verdict{true, ExitError, "the Instance was deleted"}},
		"Another":       {reason: "the name is that of another Instance now", uid: "u-2", observed: 2, want: verdict{true, ExitError, "the Instance was deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "site", UID: "u-1", Annotations: map[string]string{v1beta1.RetryAnnotation: tc.retried}}}
			if tc.uid != "" {
				i.UID = tc.uid
			}
			i.Status.ObservedGeneration, i.Status.Conditions = tc.observed, tc.conditions
			i.Status.AggregatedStatus.Status = tc.aggregated
			i.Status.PlanStatus = map[string]v1beta1.PlanStatus{}
			for _, st := range tc.plans {
				i.Status.PlanStatus[st.Name] = st
			}
			if tc.queued {
				i.Status.Queue = []v1beta1.QueuedPlan{{PlanName: "update"}}
			}
			if tc.absent {
				i = nil
			}
			done, err := UntilArrived(2, "u-1")(i)
			tc.want.check(t, tc.reason, done, err)
		})
	}
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{UID: "any"}}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": planStatus("deploy", v1beta1.Complete, "", 1)}
	done, err := UntilArrived(0, "")(i)
	verdict{done: true}.check(t, "without a UID, any Instance of the name counts", done, err)
}

// TestUntilDeleted checks when a wait for a deletion ends.
func TestUntilDeleted(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		absent  bool
		uid     types.UID
		plan    string
		cleanup v1beta1.ExecutionStatus
		retried string
		want    verdict
	}{
		{"the Instance does not exist", true, "", "", "", "", verdict{done: true}},
		{"the name is that of another Instance now", false, "u-2", v1beta1.CleanupPlan, v1beta1.FatalError, "", verdict{done: true}},
		{"the Instance exists", false, "u-1", v1beta1.CleanupPlan, "", "", verdict{}},
		{"its cleanup plan runs", false, "u-1", v1beta1.CleanupPlan, v1beta1.InProgress, "", verdict{}},
		{"its cleanup plan meets a transient error", false, "u-1", v1beta1.CleanupPlan, v1beta1.TransientError, "", verdict{}},
		{"a retry of its failed cleanup plan is requested", false, "u-1", v1beta1.CleanupPlan, v1beta1.FatalError, "run", verdict{}},
		{"its cleanup plan failed", false, "u-1", v1beta1.CleanupPlan, v1beta1.FatalError, "before", verdict{true, ExitFailed, "the Instance stays: no rights. Correct the cause and run kubectl kudo plan retry, or give the cleanup up with kubectl kudo plan cancel"}},
		{"another plan failed", false, "u-1", "deploy", v1beta1.FatalError, "", verdict{}},
	} {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{UID: tc.uid, Annotations: map[string]string{v1beta1.RetryAnnotation: tc.retried}}}
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{tc.plan: {Name: tc.plan, UID: "run", Status: tc.cleanup, Message: "no rights"}}
		if tc.absent {
			i = nil
		}
		done, err := UntilDeleted("u-1")(i)
		tc.want.check(t, tc.reason, done, err)
	}
}

// TestUntilInstalled checks when a wait for an install plan ends.
func TestUntilInstalled(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		absent     bool
		uid        types.UID
		plan       string
		observed   int64
		run        types.UID
		aggregated v1beta1.ExecutionStatus
		retried    string
		want       verdict
	}{
		"Complete":    {reason: "the install plan is complete", plan: "setup", observed: 2, run: "r-1", aggregated: v1beta1.Complete, want: verdict{done: true}},
		"NoPlan":      {reason: "there is nothing to install", observed: 0, want: verdict{done: true}},
		"Running":     {reason: "the install plan is running", plan: "setup", observed: 2, run: "r-1", aggregated: v1beta1.InProgress},
		"Never":       {reason: "the install plan has not begun", plan: "setup", observed: 2},
		"NotObserved": {reason: "the status is that of a spec of before", plan: "setup", observed: 1, run: "r-1", aggregated: v1beta1.Complete},
		"Failed":      {reason: "the install plan failed", plan: "setup", observed: 2, run: "r-1", aggregated: v1beta1.FatalError, want: verdict{true, ExitFailed, "install plan setup of operatorversion lab/web failed: no rights"}},
		"Same":        {reason: "the run that is retried has failed before", plan: "setup", observed: 2, run: "r-1", retried: "r-1", aggregated: v1beta1.FatalError},
		"Next":        {reason: "the next run is complete", plan: "setup", observed: 2, run: "r-2", retried: "r-1", aggregated: v1beta1.Complete, want: verdict{done: true}},
		"FailedAgain": {reason: "the next run failed, too", plan: "setup", observed: 2, run: "r-2", retried: "r-1", aggregated: v1beta1.FatalError, want: verdict{true, ExitFailed, "install plan setup of operatorversion lab/web failed: no rights"}},
		"Absent":      {reason: "the OperatorVersion does not exist", absent: true, want: verdict{true, ExitError, "the OperatorVersion was deleted"}},
		"Another":     {reason: "the name is that of another one now", uid: "u-2", plan: "setup", observed: 2, aggregated: v1beta1.Complete, want: verdict{true, ExitError, "the OperatorVersion was deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "web", UID: "u-1", Generation: 2,
				Annotations: map[string]string{v1beta1.RetryAnnotation: tc.retried}}}
			if tc.uid != "" {
				ov.UID = tc.uid
			}
			ov.Spec.InstallPlan = tc.plan
			ov.Status.ObservedGeneration = tc.observed
			ov.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: tc.aggregated, Message: "no rights"}
			ov.Status.PlanStatus = map[string]v1beta1.PlanStatus{"setup": {Name: "setup", UID: tc.run, Status: tc.aggregated}}
			if tc.absent {
				ov = nil
			}
			done, err := UntilInstalled("u-1")(ov)
			tc.want.check(t, tc.reason, done, err)
		})
	}
}

// TestAwaited checks what the error of a wait that takes too long says.
func TestAwaited(t *testing.T) {
	ready := metav1.Condition{Type: v1beta1.ReadyCondition, Status: metav1.ConditionTrue, Message: "all is well"}
	notReady := metav1.Condition{Type: v1beta1.ReadyCondition, Status: metav1.ConditionFalse, Message: "1 of 3 replicas"}
	other := metav1.Condition{Type: v1beta1.ReconcilingCondition, Status: metav1.ConditionTrue, Message: "it runs"}
	for _, tc := range []struct {
		reason, message string
		conditions      []metav1.Condition
		want            string
	}{
		{"the message of the status", "Secret db does not exist", []metav1.Condition{notReady}, "Secret db does not exist"},
		{"or that of the condition", "", []metav1.Condition{other, notReady}, "1 of 3 replicas"},
		{"a condition that is met is not awaited", "", []metav1.Condition{ready}, ""},
		{"nor is another condition", "", []metav1.Condition{other}, ""},
		{"without conditions, no manager has observed the Instance", "", nil, "the manager to take it up (is it running? kubectl get pods -n kudo-system)"},
	} {
		i := &v1beta1.Instance{}
		i.Status.AggregatedStatus.Message, i.Status.Conditions = tc.message, tc.conditions
		if got := (&watcher{instance: i}).awaited(); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
	i := &v1beta1.Instance{}
	i.Namespace, i.Name = "ns", "i"
	i.Status.AggregatedStatus.Message = "1 of 3 replicas"
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"upgrade": {Status: v1beta1.InProgress, Revision: 2, Message: "1 of 3 replicas"}}
	for _, tc := range []struct {
		reason, want string
		queue        []v1beta1.QueuedPlan
	}{
		{"nothing is queued", "1 of 3 replicas", nil},
		{"P20: a plan is queued: behind what, and what ends that", "plan update is queued behind plan upgrade (kubectl kudo plan cancel --instance i -n ns ends it), " +
			"which waits for: 1 of 3 replicas", []v1beta1.QueuedPlan{{PlanName: "update"}}},
	} {
		i.Status.Queue = tc.queue
		if got := (&watcher{instance: i}).reason(); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
	if got := (&watcher{}).reason(); got != "" {
		t.Errorf("the reason why an Instance that was not read is not ready: %q", got)
	}
	if got := (&watcher{}).awaited(); got != "" {
		t.Errorf("an Instance that was not read awaits nothing: %q", got)
	}
}

// TestEnded checks whether an Instance still has plans to run.
func TestEnded(t *testing.T) {
	for _, tc := range []struct {
		reason string
		plans  []v1beta1.PlanStatus
		queue  int
		want   bool
	}{
		{"no plan has run", nil, 0, false},
		{"a plan is complete", []v1beta1.PlanStatus{planStatus("deploy", v1beta1.Complete, "", 1)}, 0, true},
		{"a plan failed", []v1beta1.PlanStatus{planStatus("deploy", v1beta1.FatalError, "", 1)}, 0, true},
		{"a plan is running", []v1beta1.PlanStatus{planStatus("deploy", v1beta1.InProgress, "", 1)}, 0, false},
		{"a plan is in the queue", []v1beta1.PlanStatus{planStatus("deploy", v1beta1.Complete, "", 1)}, 1, false},
	} {
		i := &v1beta1.Instance{}
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{}
		for _, st := range tc.plans {
			i.Status.PlanStatus[st.Name] = st
		}
		i.Status.Queue = make([]v1beta1.QueuedPlan, tc.queue)
		if got := (&watcher{instance: i}).ended(); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}
