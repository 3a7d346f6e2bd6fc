package command

import (
	"strings"
	"testing"
	"time"

	"github.com/xlab/treeprint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/diagnostics"
	"kudo.dev/kudo/pkg/health/culprit"
)

// noon is the time of the tests.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ended is a container that has ended with exit code 7.
func ended(change func(*culprit.Finding)) culprit.Finding {
	f := culprit.Finding{Culprit: v1beta1.Culprit{Kind: "Job", Namespace: "lab", Name: "report", Pod: "report-x", Container: "report", ExitCode: ptr.To[int32](7)}}
	if change != nil {
		change(&f)
	}
	return f
}

// TestDescribe (P22): a culprit as a line, and the command that prints its log.
func TestDescribe(t *testing.T) {
	for _, tc := range []struct {
		reason        string
		f             culprit.Finding
		want, command string
	}{
		{"a container that has ended", ended(func(f *culprit.Finding) { f.Ran = time.Second }), "Pod report-x, container report: exit code 7 after 1s",
			"kubectl logs report-x -c report -n lab"},
		{"one that was started again, and an event", ended(func(f *culprit.Finding) {
			f.Restarted, f.Reason, f.Event, f.EventTime = true, "CrashLoopBackOff", "Unhealthy", noon.Add(-3*time.Second)
		}), "Pod report-x, container report: exit code 7 (CrashLoopBackOff)        event: Unhealthy, 3s ago", "kubectl logs report-x -c report -n lab --previous"},
		{"an image that cannot be pulled has no log", culprit.Finding{Culprit: v1beta1.Culprit{Kind: "Deployment", Pod: "p", Container: "c", Reason: "ImagePullBackOff", Message: "not found"}},
			"Pod p, container c: ImagePullBackOff: not found", ""},
		{"an object without pods", culprit.Finding{Culprit: v1beta1.Culprit{Kind: "StatefulSet", Namespace: "lab", Name: "pg", Reason: "FailedCreate", Message: "exceeded quota"}},
			"StatefulSet lab/pg: FailedCreate: exceeded quota", ""},
		{"a cluster-scoped object", culprit.Finding{Culprit: v1beta1.Culprit{Kind: "Namespace", Name: "x"}}, "Namespace x", ""},
		{"names that a user must not copy into a shell", ended(func(f *culprit.Finding) { f.Pod = "x; rm -rf ~" }), "Pod x; rm -rf ~, container report: exit code 7", ""},
		{"a container that is no name", ended(func(f *culprit.Finding) { f.Container = "$(id)" }), "Pod report-x, container $(id): exit code 7", ""},
		{"a namespace that is no name", ended(func(f *culprit.Finding) { f.Namespace = "a b" }), "Pod report-x, container report: exit code 7", ""},
	} {
		e := &explainer{now: noon}
		if got := e.describe(tc.f); got != "  "+tc.want+"\n" {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
		if got := tc.f.LogsCommand(); got != tc.command {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.command)
		}
	}
}

// TestNoLog (P22): no log is read while it is not known what is to be left out of it.
func TestNoLog(t *testing.T) {
	e := &explainer{set: &kubernetes.Clientset{}, noLog: "the log is not shown"}
	if got := e.log(t.Context(), ended(nil)); got != "  the log is not shown\n" {
		t.Errorf("%q", got)
	}
}

// TestBarred: the lines of a log stand apart from the text around them, and from what is said of them.
func TestBarred(t *testing.T) {
	for _, tc := range []struct {
		reason string
		end    diagnostics.LogEnd
		want   string
	}{
		{"nothing was written", diagnostics.LogEnd{Note: "nothing"}, "  nothing\n"},
		{"lines", diagnostics.LogEnd{Lines: []string{"one", "a\tb ü"}}, "  | one\n  | a\tb ü\n"},
		{"lines of a log that broke off", diagnostics.LogEnd{Lines: []string{"one"}, Note: "it broke off"}, "  | one\n  it broke off\n"},
	} {
		if got := barred(tc.end); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestCulpritTree (P23): the way from an object to the reason.
func TestCulpritTree(t *testing.T) {
	since := &metav1.Time{Time: noon.Add(-40 * time.Second)}
	for _, tc := range []struct {
		reason string
		c      v1beta1.Culprit
		want   string
	}{
		{"all of it", v1beta1.Culprit{Kind: "Deployment", Name: "hello", Owner: "ReplicaSet hello-85", Pod: "hello-85-x", Container: "page", Reason: "ImagePullBackOff", Message: "not found",
			Since: since}, ".\n└── Deployment hello\n    └── ReplicaSet hello-85\n        └── Pod hello-85-x\n            └── Container page: ImagePullBackOff: not found, since 40s\n"},
		{"a pod", v1beta1.Culprit{Kind: "StatefulSet", Name: "pg", Pod: "pg-0", Reason: "Unschedulable"}, ".\n└── StatefulSet pg\n    └── Pod pg-0: Unschedulable\n"},
		{"the object", v1beta1.Culprit{Kind: "Job", Name: "j", Reason: "FailedCreate", Message: "exceeded quota"}, ".\n└── Job j: FailedCreate: exceeded quota\n"},
		{"nothing but the object", v1beta1.Culprit{Kind: "Job", Name: "j", Since: since}, ".\n└── Job j: not ready for 40s\n"},
		{"nothing at all", v1beta1.Culprit{}, ".\n"},
	} {
		root := treeprint.New()
		addCulprit(root, tc.c, noon)
		if got := root.String(); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.reason, got, tc.want)
		}
	}
}

// TestInterrupted (P23): whoever ends a wait learns that the plan continues.
func TestInterrupted(t *testing.T) {
	i := &v1beta1.Instance{}
	w := &watcher{instance: i}
	w.key.Namespace, w.key.Name = "lab", "site"
	if got := explainError(w.interrupted()); strings.Contains(got, "continues") {
		t.Errorf("no plan runs: %s", got)
	}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.InProgress}}
	if got, want := explainError(w.interrupted()), "interrupted: the plan continues: kubectl kudo plan wait --instance site -n lab"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
