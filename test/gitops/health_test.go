// Package gitops tests what kudo ships for the GitOps tools: their health checks.
package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/lua"
	"kudo.dev/kudo/test/sourcetree"
)

// healthCheck returns the health check of a kind.
func healthCheck(t *testing.T, kind string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sourcetree.Root(), "docs", "examples", "gitops", strings.ToLower(kind)+"-health.lua"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// health runs a health check in kudo's own host, which has less than Argo CD's: obj is the object, and the result has status and message.
func health(t *testing.T, script string, obj *unstructured.Unstructured) (state, message string) {
	t.Helper()
	compiled, err := lua.Compile(explore.Status, "function ReflectStatus(observedObj)\nlocal obj = observedObj\n"+script+"\nend\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range compiled.Warnings() {
		t.Errorf("warning: %s", warning)
	}
	answer, err := lua.New(func() time.Time { return time.Unix(0, 0) }, lua.DefaultLimits()).Run(t.Context(), compiled,
		explore.Request{Operation: explore.Status, Object: obj})
	if err != nil {
		t.Fatal(err)
	}
	result, ok := answer.Status.(map[string]any)
	if !ok || len(result) != 2 {
		t.Fatalf("the health check returned %v: status and message are wanted", answer.Status)
	}
	state, _ = result["status"].(string)
	message, _ = result["message"].(string)
	return state, message
}

func toUnstructured(t *testing.T, object any, kind string) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: fields}
	obj.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
	return obj
}

// instance is an Instance whose conditions are derived from the status of its plan deploy.
func instance(deploy v1beta1.ExecutionStatus, unready []string, failed bool, edits ...func(*v1beta1.Instance)) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 3}}
	i.Status.ObservedGeneration = 3
	if deploy != "" {
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: deploy, Message: "no such image"}}
	}
	conditions.Derive(i, unready, failed)
	for _, edit := range edits {
		edit(i)
	}
	return i
}

// TestP30InstanceHealth: Argo CD's health check and kstatus agree, but where Argo CD has words of its own.
func TestP30InstanceHealth(t *testing.T) {
	const complete, running, fatal = v1beta1.Complete, v1beta1.InProgress, v1beta1.FatalError
	script := healthCheck(t, "Instance")
	for _, tc := range []struct {
		reason         string
		instance       *v1beta1.Instance
		state, message string
		kstatus        status.Status
	}{
		{"no status: kstatus knows no better", instance("", nil, false, func(i *v1beta1.Instance) { i.Status = v1beta1.InstanceStatus{} }),
			"Progressing", "no plan has run yet: is the manager of kudo running?", status.CurrentStatus},
		{"it is well", instance(complete, nil, false), "Healthy", "", status.CurrentStatus},
		{"a plan runs", instance(running, nil, false), "Progressing", "plan deploy is running", status.InProgressStatus},
		{"a plan is queued", instance(complete, nil, false, func(i *v1beta1.Instance) {
			i.Status.Queue = []v1beta1.QueuedPlan{{PlanName: "backup"}}
			conditions.Derive(i, nil, false)
		}), "Progressing", "queued: backup", status.InProgressStatus},
		{"a plan has failed", instance(fatal, nil, false), "Degraded", "plan deploy failed: no such image", status.FailedStatus},
		{"the spec was corrected after a failure", instance(fatal, nil, false, func(i *v1beta1.Instance) { i.Generation = 4 }),
			"Progressing", "the manager of kudo has not taken up the new spec yet", status.InProgressStatus},
		{"an object is not ready", instance(complete, []string{"Deployment web: 0 of 1"}, false), "Progressing", "Deployment web: 0 of 1", status.InProgressStatus},
		{"an object has failed, which does not end by waiting", instance(complete, []string{"Job x: failed"}, true), "Degraded", "Job x: failed", status.InProgressStatus},
		{"the spec is refused", instance(complete, nil, false, func(i *v1beta1.Instance) {
			conditions.SetRefused(i, v1beta1.ReasonInvalidSpec, "parameter X is not defined")
		}), "Degraded", "parameter X is not defined", status.InProgressStatus},
		{"it waits for its OperatorVersion, and has never run", instance("", nil, false, func(i *v1beta1.Instance) {
			conditions.SetRefused(i, v1beta1.ReasonOperatorVersionNotFound, "OperatorVersion x does not exist")
			i.Status.ObservedGeneration = 0 // as the manager leaves it: the spec is not taken up yet
		}), "Progressing", "OperatorVersion x does not exist", status.InProgressStatus},
		{"it is suspended", instance(complete, nil, false, func(i *v1beta1.Instance) { i.Spec.Suspend = true }), "Suspended", "spec.suspend is set", status.CurrentStatus},
		{"it is being suspended", instance(running, nil, false, func(i *v1beta1.Instance) { i.Spec.Suspend = true }), "Progressing", "plan deploy is running", status.InProgressStatus},
		{"others have changed its objects", instance(complete, nil, false, func(i *v1beta1.Instance) {
			i.Status.Drift = []v1beta1.ObjectDrift{{Kind: "ConfigMap", Name: "web-config"}, {Kind: "Service", Name: "web"}}
		}), "Healthy", "2 of its objects were changed by others, such as ConfigMap web-config", status.CurrentStatus},
		{"a schedule has failed", instance(complete, nil, false, func(i *v1beta1.Instance) {
			conditions.SetScheduleFailed(i, v1beta1.ReasonScheduledRunFailed, []string{"schedule nightly has failed"})
		}), "Healthy", "schedule nightly has failed", status.CurrentStatus},
	} {
		obj := toUnstructured(t, tc.instance, "Instance")
		state, message := health(t, script, obj)
		if state != tc.state || message != tc.message {
			t.Errorf("%s: %s %q, want %s %q", tc.reason, state, message, tc.state, tc.message)
		}
		if got, err := status.Compute(obj); err != nil || got.Status != tc.kstatus {
			t.Errorf("%s: kstatus says %v (%v), want %s", tc.reason, got, err, tc.kstatus)
		}
	}
}

// TestP30OperatorVersionHealth has the conditions that TestDeriveConditions and TestReportBlocked of the controller show.
func TestP30OperatorVersionHealth(t *testing.T) {
	script := healthCheck(t, "OperatorVersion")
	condition := func(kind string, truth metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: truth, Reason: reason, Message: message}
	}
	installed := condition(v1beta1.InstalledCondition, metav1.ConditionTrue, v1beta1.ReasonInstallPlanComplete, "")
	absent := func(reason, message string) metav1.Condition {
		return condition(v1beta1.InstalledCondition, metav1.ConditionFalse, reason, message)
	}
	ofGeneration := func(generation int64, c metav1.Condition) metav1.Condition {
		c.ObservedGeneration = generation
		return c
	}
	failed := condition(v1beta1.StalledCondition, metav1.ConditionTrue, v1beta1.ReasonPlanInFatalError, "plan install failed: no rights")
	for _, tc := range []struct {
		reason         string
		plan           string
		observed       int64
		conditions     []metav1.Condition
		drift          int
		state, message string
		kstatus        status.Status
	}{
		{"no install plan, and so no status", "", 0, nil, 0, "Healthy", "it has no install plan", status.CurrentStatus},
		{"no status: kstatus knows no better", "install", 0, nil, 0, "Progressing", "the manager of kudo has not taken up the spec yet", status.CurrentStatus},
		{"it is installed", "install", 2, []metav1.Condition{installed}, 0, "Healthy", "", status.CurrentStatus},
		{"it is being installed", "install", 2, []metav1.Condition{absent(v1beta1.ReasonInstallPlanInProgress, "plan install is running")}, 0, "Progressing", "plan install is running", status.CurrentStatus},
		{"it waits", "install", 2, []metav1.Condition{absent(v1beta1.ReasonHistoryKeyMissing, "no key")}, 0, "Progressing", "no key", status.CurrentStatus},
		{"its spec is refused", "install", 2, []metav1.Condition{absent(v1beta1.ReasonInvalidSpec, "no such task")}, 0, "Degraded", "no such task", status.CurrentStatus},
		{"it has failed", "install", 2, []metav1.Condition{absent(v1beta1.ReasonInstallPlanFailed, "no rights"), failed}, 0, "Degraded", "plan install failed: no rights", status.FailedStatus},
		{"it is installed, and a later run has failed", "install", 2, []metav1.Condition{installed, failed}, 0, "Degraded", "plan install failed: no rights", status.FailedStatus},
		{"it waits before it takes up its spec", "install", 1, []metav1.Condition{ofGeneration(2, absent(v1beta1.ReasonRecordNameTaken, "ConfigMap x is another's"))},
			0, "Progressing", "ConfigMap x is another's", status.InProgressStatus},
		{"its spec is new", "install", 1, []metav1.Condition{installed}, 0, "Progressing", "the manager of kudo has not taken up the spec yet", status.InProgressStatus},
		{"others have changed what it installed", "install", 2, []metav1.Condition{installed}, 1, "Healthy", "1 of its objects were changed by others, such as ConfigMap shared", status.CurrentStatus},
		{"Instances keep it from being deleted", "install", 2, []metav1.Condition{installed, condition(v1beta1.ReleasedCondition, metav1.ConditionFalse, v1beta1.ReasonInUse, "Instance a/b uses it")},
			0, "Progressing", "Instance a/b uses it", status.CurrentStatus},
	} {
		ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1.0.0", Generation: 2}}
		ov.Spec.InstallPlan, ov.Status.ObservedGeneration, ov.Status.Conditions = tc.plan, tc.observed, tc.conditions
		for range tc.drift {
			ov.Status.Drift = append(ov.Status.Drift, v1beta1.ObjectDrift{Kind: "ConfigMap", Name: "shared"})
		}
		obj := toUnstructured(t, ov, "OperatorVersion")
		if state, message := health(t, script, obj); state != tc.state || message != tc.message {
			t.Errorf("%s: %s %q, want %s %q", tc.reason, state, message, tc.state, tc.message)
		}
		if got, err := status.Compute(obj); err != nil || got.Status != tc.kstatus {
			t.Errorf("%s: kstatus says %v (%v), want %s", tc.reason, got, err, tc.kstatus)
		}
	}
}

// TestP30HealthInPage: the page shows the files.
func TestP30HealthInPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(sourcetree.Root(), "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```lua\n")
	shown, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("docs/gitops.md shows no health check")
	}
	if diff := cmp.Diff(healthCheck(t, "Instance"), shown); diff != "" {
		t.Errorf("docs/gitops.md differs from docs/examples/gitops/instance-health.lua: -file +page:\n%s", diff)
	}
}
