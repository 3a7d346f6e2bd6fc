package instances

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestRollbackEdit shows P20: a rollback asks for the end of the run that goes on, with the same patch, unless it is to wait behind it.
// What an Instance's annotations and status hold before was written by others, and must not end another run.
func TestRollbackEdit(t *testing.T) {
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
		edit := rollbackOptions{afterRunning: tc.after}.editOf(i, 1, func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "back" })
		edit.apply(i)
		if edit.verb != tc.verb || i.Spec.OperatorVersion.Name != "back" {
			t.Errorf("%s: it says %q, and spec names %q", tc.reason, edit.verb, i.Spec.OperatorVersion.Name)
		}
		if got := i.Annotations[v1beta1.CancelAnnotation]; got != tc.uid {
			t.Errorf("%s: the run %q is cancelled, want %q", tc.reason, got, tc.uid)
		}
	}
}
