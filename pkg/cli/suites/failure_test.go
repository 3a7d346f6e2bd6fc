package suites

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestDescribeFailure checks that a failed case shows the plans of its Instances, and the pod, the exit code and the log of what failed,
// of the cluster of the case (P21, P22).
func TestDescribeFailure(t *testing.T) {
	i := gen.Instance("site", gen.Version("lab", "web-1.0"), nil)
	culprit := &v1beta1.Culprit{APIVersion: "v1", Kind: "Pod", Namespace: "lab", Name: "job", Pod: "job", Container: "main", ExitCode: ptr.To[int32](7)}
	step := v1beta1.StepStatus{Name: "report", Status: v1beta1.FatalError, Tasks: []v1beta1.TaskStatus{{Name: "t", Status: v1beta1.FatalError, Culprit: culprit}}}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.FatalError, Message: "m",
		Phases: []v1beta1.PhaseStatus{{Name: "main", Steps: []v1beta1.StepStatus{step}}}}}
	i.Status.AggregatedStatus.Message = "step main/report: the pod failed"
	pod := &corev1.Pod{ObjectMeta: gen.Meta("lab", "job")}
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7}}}}}
	server := apitest.Start(t, i, pod)
	path := server.Kubeconfig(t, "")
	got := describeFailure(t.Context(), path, "lab")
	for _, want := range []string{"Plan deploy", "[FATAL_ERROR]", "blocked by: step main/report: the pod failed\n", "Pod job, container main: exit code 7",
		"kubectl logs job -c main -n lab"} {
		if !strings.Contains(got, want) {
			t.Errorf("the description does not say %q:\n%s", want, got)
		}
	}
	if got := describeFailure(t.Context(), path, "empty"); got != "" {
		t.Errorf("a namespace without Instances is described as %q", got)
	}
	if got := describeFailure(t.Context(), filepath.Join(t.TempDir(), "none"), "lab"); got != "" {
		t.Errorf("a cluster that cannot be reached is described as %q", got)
	}
}
