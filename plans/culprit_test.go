package plans

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestDescribeCulprit: a culprit in one line.
func TestDescribeCulprit(t *testing.T) {
	for _, tc := range []struct {
		reason string
		c      v1beta1.Culprit
		want   string
	}{
		{"nothing but the object", v1beta1.Culprit{Kind: "Job", Name: "j"}, ""},
		{"the object says why", v1beta1.Culprit{Reason: "FailedCreate", Message: "exceeded quota"}, "FailedCreate: exceeded quota"},
		{"a pod", v1beta1.Culprit{Pod: "p", Reason: "Unschedulable", Message: "0/3 nodes"}, "pod p: Unschedulable: 0/3 nodes"},
		{"a container", v1beta1.Culprit{Pod: "p", Container: "c", Reason: "ImagePullBackOff"}, "container c of pod p: ImagePullBackOff"},
		{"an exit code", v1beta1.Culprit{Pod: "p", Container: "c", ExitCode: ptr.To[int32](7)}, "container c of pod p ended with exit code 7"},
		{"an exit code with a reason and a message", v1beta1.Culprit{Pod: "p", Container: "c", ExitCode: ptr.To[int32](137), Reason: "OOMKilled", Message: "m"},
			"container c of pod p ended with exit code 137 (OOMKilled): m"},
		{"an exit code alone, as the tree draws it", v1beta1.Culprit{ExitCode: ptr.To[int32](7)}, "ended with exit code 7"},
	} {
		if got := DescribeCulprit(tc.c); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestExplain: a message gets the words of the culprit once.
func TestExplain(t *testing.T) {
	long := strings.Repeat("m", 2*maxCulprit)
	for _, tc := range []struct {
		reason, message string
		c               *v1beta1.Culprit
		want            string
	}{
		{"no culprit", "Job j: failed", nil, "Job j: failed"},
		{"a culprit", "Job j: failed", &v1beta1.Culprit{Pod: "p", Reason: "Evicted"}, "Job j: failed: pod p: Evicted"},
		{"a culprit alone", "", &v1beta1.Culprit{Pod: "p", Reason: "Evicted"}, "pod p: Evicted"},
		{"the message has the words", "Job j: pod p: Evicted", &v1beta1.Culprit{Pod: "p", Reason: "Evicted"}, "Job j: pod p: Evicted"},
		{"the message has the cause that the object gives", "Job j: denied by x", &v1beta1.Culprit{Reason: "Forbidden", Message: "denied by x"}, "Job j: denied by x"},
		{"the same, of which the culprit has the beginning", "Job j: denied\nby x since y", &v1beta1.Culprit{Message: "denied by x…"}, "Job j: denied\nby x since y"},
		{"what could not be read is not said in each message", "Job j: 0 of 1", &v1beta1.Culprit{Reason: v1beta1.CulpritUnread, Message: "may not list pods"}, "Job j: 0 of 1"},
		{"a long one is cut", "Job j", &v1beta1.Culprit{Pod: "p", Message: long}, "Job j: pod p: " + strings.Repeat("m", maxCulprit-len("pod p: ")-len("…")) + "…"},
	} {
		if got := Explain(v1beta1.TaskStatus{Message: tc.message, Culprit: tc.c}); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestCulpritOfRun (P21): the message of the run, from which the conditions and the events are made, names the culprit; a task that is done has
// none.
func TestCulpritOfRun(t *testing.T) {
	plan := v1beta1.Plan{Strategy: v1beta1.Serial, Phases: []v1beta1.Phase{{Name: "p", Steps: []v1beta1.Step{{Name: "s", Tasks: []string{"a", "b"}}}}}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	st := Start("deploy", plan, "u", 1, now)
	a, b := Place{}, Place{Task: 1}
	pulls := &v1beta1.Culprit{Pod: "x", Container: "c", Reason: "ImagePullBackOff"}
	Record(plan, &st, a, Outcome{State: Waiting, Message: "Deployment d: 0 of 1", Culprit: pulls}, now)
	if want := "step p/s: Deployment d: 0 of 1: container c of pod x: ImagePullBackOff"; st.Message != want || st.Phases[0].Steps[0].Tasks[0].Message != "Deployment d: 0 of 1" {
		t.Errorf("%q, want %q", st.Message, want)
	}
	Record(plan, &st, a, Outcome{State: Done, Culprit: pulls}, now)
	if got := Culprits(st); len(got) != 0 {
		t.Errorf("a task that is done has %+v", got)
	}
	Record(plan, &st, a, Outcome{State: Waiting, Culprit: pulls}, now)
	ended := &v1beta1.Culprit{Pod: "y", Container: "c", ExitCode: ptr.To[int32](7)}
	Record(plan, &st, b, Outcome{State: Fatal, Message: "Job j: BackoffLimitExceeded", Culprit: ended}, now)
	if want := "task deploy.p.s.b failed: Job j: BackoffLimitExceeded: container c of pod y ended with exit code 7"; st.Message != want {
		t.Errorf("%q, want %q", st.Message, want)
	}
	var pods []string
	for _, at := range Culprits(st) {
		pods = append(pods, at.Task.Culprit.Pod)
	}
	if diff := cmp.Diff([]string{"x", "y"}, pods); diff != "" { // the step has failed, and with it both
		t.Error(diff)
	}
}

// TestCulpritsOfRun: those of tasks that have failed come first, with their places.
func TestCulpritsOfRun(t *testing.T) {
	task := func(status v1beta1.ExecutionStatus, pod string) v1beta1.TaskStatus {
		out := v1beta1.TaskStatus{Name: pod, Status: status}
		if pod != "" {
			out.Culprit = &v1beta1.Culprit{Pod: pod}
		}
		return out
	}
	st := v1beta1.PlanStatus{Phases: []v1beta1.PhaseStatus{
		{Name: "one", Steps: []v1beta1.StepStatus{{Name: "a", Status: v1beta1.InProgress, Tasks: []v1beta1.TaskStatus{
			task(v1beta1.InProgress, "waits"), task(v1beta1.InProgress, ""), task(v1beta1.Complete, "")}}}},
		{Name: "two", Steps: []v1beta1.StepStatus{
			{Name: "b", Status: v1beta1.FatalError, Tasks: []v1beta1.TaskStatus{task(v1beta1.FatalError, "failed")}},
			{Name: "c", Status: v1beta1.FatalError, Tasks: []v1beta1.TaskStatus{task(v1beta1.InProgress, "late")}},
		}},
	}}
	var got []string
	for _, at := range Culprits(st) {
		got = append(got, StepKey(at.Phase, at.Step)+" "+at.Task.Culprit.Pod)
		if want := at.Task.Culprit.Pod != "waits"; at.Failed != want {
			t.Errorf("%s: failed is %t", at.Task.Culprit.Pod, at.Failed)
		}
	}
	if diff := cmp.Diff([]string{"two/b failed", "two/c late", "one/a waits"}, got); diff != "" {
		t.Error(diff)
	}
	if got := Culprits(v1beta1.PlanStatus{}); len(got) != 0 {
		t.Errorf("a run without phases has %+v", got)
	}
}

// TestIsRepetition: a pod, or a cause that the message lacks, says more than the message.
func TestIsRepetition(t *testing.T) {
	for _, tc := range []struct {
		reason string
		c      *v1beta1.Culprit
		want   bool
	}{
		{"no culprit", nil, false},
		{"the object alone", &v1beta1.Culprit{Kind: "Job", Name: "j"}, false},
		{"the cause of the message", &v1beta1.Culprit{Message: "denied by x"}, true},
		{"its beginning", &v1beta1.Culprit{Message: "denied by…"}, true},
		{"another cause", &v1beta1.Culprit{Message: "denied by y"}, false},
		{"a pod", &v1beta1.Culprit{Pod: "p", Message: "denied by x"}, false},
	} {
		if got := IsRepetition(v1beta1.TaskStatus{Message: "Job j: denied by x", Culprit: tc.c}); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

// TestCulpritPath: the names on the way to a culprit, as far as they are known.
func TestCulpritPath(t *testing.T) {
	for _, tc := range []struct {
		reason string
		c      v1beta1.Culprit
		want   []string
	}{
		{"all of the way", v1beta1.Culprit{Kind: "Deployment", Name: "web", Owner: "ReplicaSet web-1", Pod: "web-1-x", Container: "main"},
			[]string{"Deployment web", "ReplicaSet web-1", "Pod web-1-x", "Container main"}},
		{"the object alone", v1beta1.Culprit{Kind: "Job", Name: "j"}, []string{"Job j"}},
		{"a pod of its own", v1beta1.Culprit{Kind: "Job", Name: "j", Pod: "p"}, []string{"Job j", "Pod p"}},
		{"an object without a name", v1beta1.Culprit{Kind: "Job"}, []string{"Job"}},
		{"nothing", v1beta1.Culprit{Message: "m"}, []string{}},
	} {
		if diff := cmp.Diff(tc.want, CulpritPath(tc.c)); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestDescribeCause: a cause names its user, if the user is known.
func TestDescribeCause(t *testing.T) {
	if got := DescribeCause("parameters changed: N", ""); got != "parameters changed: N" {
		t.Errorf("without a user: %q", got)
	}
	if got := DescribeCause("parameters changed: N", "ann"); got != "parameters changed: N; by ann" {
		t.Errorf("with a user: %q", got)
	}
}
