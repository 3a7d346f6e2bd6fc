package act

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
)

// TestRollbackChange shows P20: a rollback asks for the end of the current run, with the same patch, unless it is to wait behind it.
// What an Instance's annotations and status hold before was written by others, and must not end another run.
func TestRollbackChange(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(1, 0))
	status := func(status v1beta1.ExecutionStatus) map[string]v1beta1.PlanStatus {
		return map[string]v1beta1.PlanStatus{
			"deploy": {Name: "deploy", Status: v1beta1.Complete, UID: "run-1", Revision: 1}, "upgrade": {Name: "upgrade", Status: status, UID: "run-2", Revision: 2},
			"stale": {Name: "stale", Status: v1beta1.NeverRun},
		}
	}
	for _, tc := range []struct {
		reason     string
		after      bool
		change     func(*v1beta1.Instance)
		verb, uid  string
		annotation string
	}{
		{reason: "nothing runs", change: func(i *v1beta1.Instance) { i.Status.PlanStatus = status(v1beta1.Complete) }, verb: "set back to run 1"},
		{reason: "a plan runs", verb: "set back to run 1; plan upgrade, which was running, is being cancelled", uid: "run-2"},
		{reason: "the annotation names another run", annotation: "run-1", verb: "set back to run 1; plan upgrade, which was running, is being cancelled", uid: "run-2"},
		{reason: "it is to wait", after: true, verb: "set back to run 1, after plan upgrade has ended"},
		{reason: "it is to wait, and an older request stays", after: true, annotation: "run-1", verb: "set back to run 1, after plan upgrade has ended", uid: "run-1"},
		{reason: "a run without a uid, as KUDO has started it", change: func(i *v1beta1.Instance) {
			i.Status.PlanStatus["upgrade"] = v1beta1.PlanStatus{Name: "upgrade", Status: v1beta1.InProgress}
		}, verb: "set back to run 1"},
		{reason: "the Instance is being deleted: its cleanup is not given up", change: func(i *v1beta1.Instance) {
			i.DeletionTimestamp = &deleted
			i.Status.PlanStatus[v1beta1.CleanupPlan] = v1beta1.PlanStatus{Name: v1beta1.CleanupPlan, Status: v1beta1.InProgress, UID: "run-3", Revision: 3}
		}, verb: "set back to run 1"},
	} {
		i := &v1beta1.Instance{}
		i.Status.PlanStatus = status(v1beta1.InProgress)
		if tc.annotation != "" {
			i.Annotations = map[string]string{v1beta1.CancelAnnotation: tc.annotation}
		}
		if tc.change != nil {
			tc.change(i)
		}
		change := Rollback{Instance: i, AfterRunning: tc.after}.changeTo(1, func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "back" })
		change.Apply(i)
		if change.Verb != tc.verb || i.Spec.OperatorVersion.Name != "back" {
			t.Errorf("%s: it says %q, and spec names %q", tc.reason, change.Verb, i.Spec.OperatorVersion.Name)
		}
		if got := i.Annotations[v1beta1.CancelAnnotation]; got != tc.uid {
			t.Errorf("%s: the run %q is cancelled, want %q", tc.reason, got, tc.uid)
		}
	}
}

// TestAccepts checks which runs a rollback may go back to.
func TestAccepts(t *testing.T) {
	unread := errors.New("a newer version of kudo has written it")
	for _, tc := range []struct {
		reason   string
		revision int64
		run      history.Entry
		want     bool
	}{
		{"it is complete", 0, history.Entry{Revision: 2, Status: v1beta1.Complete}, true},
		{"it has failed", 0, history.Entry{Revision: 2, Status: v1beta1.FatalError}, false},
		{"it cannot be read, so that an older one is taken", 0, history.Entry{Revision: 2, Status: v1beta1.Complete, Unread: unread}, false},
		{"it is from before a restore", 0, history.Entry{Revision: 2, Status: v1beta1.Complete, Former: true}, false},
		{"another one is named", 1, history.Entry{Revision: 2, Status: v1beta1.Complete}, false},
		{"it is named, and has failed", 2, history.Entry{Revision: 2, Status: v1beta1.FatalError}, true},
		{"it is named, and the error says that it cannot be read", 2, history.Entry{Revision: 2, Unread: unread}, true},
		{"it is named, and is from before a restore", 2, history.Entry{Revision: 2, Status: v1beta1.Complete, Former: true}, false},
	} {
		if got := (Rollback{Revision: tc.revision}).accepts(tc.run); got != tc.want {
			t.Errorf("%s: accepted %t, want %t", tc.reason, got, tc.want)
		}
	}
}

// TestParametersOf checks which values of a run a rollback writes into spec.parameters.
func TestParametersOf(t *testing.T) {
	instance := &v1beta1.Instance{}
	instance.Spec.Parameters = map[string]string{"CHANGED": "new", "TOKEN": "present", "ADDED": "x", "WRITTEN": "own"}
	instance.Status.Baseline = &v1beta1.Baseline{ImmutableDefaults: map[string]string{"FIXED": "one", "OTHER": "one"}}
	run := history.Entry{Sensitive: []string{"TOKEN", "SECRET"}, Parameters: map[string]string{
		"CHANGED": "old", "TOKEN": "", "SECRET": "", "SOURCED": "there", "WRITTEN": "there", "FIXED": "one", "OTHER": "two", "LEFT": "out",
	}}
	sourced := map[string]string{"SOURCED": "elsewhere", "WRITTEN": "elsewhere"}
	want := map[string]string{"CHANGED": "old", "TOKEN": "present", "WRITTEN": "there", "OTHER": "two", "LEFT": "out"}
	if diff := cmp.Diff(want, parametersOf(run, instance, sourced)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	instance.Status.Baseline = nil
	want["FIXED"] = "one"
	if diff := cmp.Diff(want, parametersOf(run, instance, sourced)); diff != "" {
		t.Errorf("without a baseline (-want +got):\n%s", diff)
	}
}
