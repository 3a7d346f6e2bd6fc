package culprit

import (
	"testing"

	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestLogsCommand (P22): a container that has run has a log, and no name of a status reaches a shell that is no name of Kubernetes.
func TestLogsCommand(t *testing.T) {
	const of = "kubectl logs report-x -c report -n lab"
	for _, tc := range []struct {
		reason string
		change func(*Finding)
		want   string
	}{
		{"it has ended", func(f *Finding) { f.ExitCode = ptr.To[int32](0) }, of},
		{"it was started again", func(f *Finding) { f.Restarted = true }, of + " --previous"},
		{"it waits to be started again", func(f *Finding) { f.Reason = "CrashLoopBackOff" }, of},
		{"it is not ready", func(f *Finding) { f.Reason = "NotReady" }, of},
		{"its probe fails", func(f *Finding) { f.Reason = "Unhealthy" }, of},
		{"it has not begun", func(f *Finding) { f.Reason = "ImagePullBackOff" }, ""},
		{"nothing is known", func(*Finding) {}, ""},
		{"the pod is a flag", func(f *Finding) { f.Pod, f.Restarted = "--all", true }, ""},
		{"the container is a command", func(f *Finding) { f.Container, f.Restarted = "$(id)", true }, ""},
		{"the namespace is two words", func(f *Finding) { f.Namespace, f.Restarted = "a b", true }, ""},
		{"there is no namespace", func(f *Finding) { f.Namespace, f.Restarted = "", true }, ""},
		{"there is no pod", func(f *Finding) { f.Pod, f.Restarted = "", true }, ""},
	} {
		f := &Finding{Culprit: v1beta1.Culprit{Namespace: "lab", Pod: "report-x", Container: "report"}}
		tc.change(f)
		if got := f.LogsCommand(); got != tc.want || f.HasLog() != (tc.want != "") {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
