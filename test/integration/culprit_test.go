package integration

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// culpritOf waits for a culprit in the last run of Instance i, for which a condition holds.
func culpritOf(t testing.TB, ns string, holds func(v1beta1.Culprit) bool) (v1beta1.Culprit, *v1beta1.Instance) {
	t.Helper()
	var found v1beta1.Culprit
	i := await(t, ns, "i", func(i *v1beta1.Instance) bool {
		if i == nil {
			return false
		}
		_, run := plans.LatestRun(i.Status.PlanStatus)
		for _, at := range plans.Culprits(run) {
			if found = *at.Task.Culprit; holds(found) {
				return true
			}
		}
		return false
	})
	return found, i
}

func hasPod(c v1beta1.Culprit) bool { return c.Pod != "" }

// reconciling is the message of the condition Reconciling.
func reconciling(i *v1beta1.Instance) string {
	if c := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReconcilingCondition); c != nil {
		return c.Message
	}
	return ""
}

var _ = It("A step that waits names the pod, the container and the reason, in the status and on the command line", Label("culprit", "P21", "P22", "P23"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	stuck(t, ns)
	found, i := culpritOf(t, ns, func(c v1beta1.Culprit) bool { return c.Reason == "ImagePullBackOff" })
	if found.Kind != "Deployment" || found.Name != "i" || found.Namespace != ns || !strings.HasPrefix(found.Owner, "ReplicaSet i-") || !strings.HasPrefix(found.Pod, "i-") ||
		found.Container != "app" || found.Reason != "ImagePullBackOff" || found.Since == nil {
		t.Errorf("the culprit is %+v", found)
	}
	words := "container app of pod " + found.Pod + ": ImagePullBackOff"
	contains(t, reconciling(i), "Deployment "+ns+"/i: ", words)
	contains(t, kudo(t, 0, "plan", "status", "--instance", "i", "-n", ns), "── Deployment i\n", "── "+found.Owner+"\n", "── Pod "+found.Pod+"\n", "── Container app: ImagePullBackOff",
		"Pod "+found.Pod+", container app: ImagePullBackOff", "What to do: correct image does-not-exist:1, or let the nodes pull it (registry, imagePullSecrets): kubectl kudo update --instance i -n "+ns+" -p IMAGE=…")
	contains(t, kudo(t, 4, "plan", "wait", "--instance", "i", "-n", ns, "--wait-time", "2s"), words, "\n  Pod "+found.Pod+", container app: ImagePullBackOff", "What to do: ")

	kudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "IMAGE=nginx:1.27", "--wait")
	i = await(t, ns, "i", env.PlanEnded("deploy", 2))
	if left := plans.Culprits(i.Status.PlanStatus["deploy"]); len(left) > 0 {
		t.Errorf("a step that is complete has the culprit %+v", left[0].Task.Culprit)
	}
	if out := kudo(t, 0, "plan", "status", "--instance", "i", "-n", ns); strings.Contains(out, "What to do") {
		t.Errorf("all is well:\n%s", out)
	}
	contains(t, kudo(t, 0, "plan", "status", "--instance", "i", "-n", ns, "--watch"), "plan deploy: COMPLETE\n")
})

var _ = It("A quota that holds pods back is named with its numbers", Label("culprit", "P21"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	quota := &corev1.ResourceQuota{ObjectMeta: gen.Meta(ns, "team")}
	quota.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("2")}
	env.Must(t, cluster.Create(t.Context(), quota))
	used(t, ns, "0")
	ov := web(ns)
	env.Must(t, cluster.Create(t.Context(), ov))
	env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, map[string]string{"REPLICAS": "5"})))
	await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(reconciling(i), "2 of 5 replicas updated")
	})
	found, i := culpritOf(t, ns, func(c v1beta1.Culprit) bool { return c.Reason == "FailedCreate" })
	if found.Pod != "" {
		t.Errorf("the culprit is %+v", found)
	}
	contains(t, found.Message, "exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2")
	contains(t, reconciling(i), "2 of 5 replicas updated", "exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2")
})

// failing is an OperatorVersion with a Job that exits with 7.
func failing(ns string) *v1beta1.OperatorVersion {
	return gen.Version(ns, "failing", gen.Template("job.yaml", `apiVersion: batch/v1
kind: Job
metadata: {name: '{{ .Name }}-report'}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: report, image: busybox:1.36, command: [sh, -c, exit 7]}]
`), gen.Apply("report", "job.yaml"), gen.Serial("deploy", "report"))
}

var _ = It("A Job that fails names its container and exit code, in the event, the status and the error of the command", Label("culprit", "P21", "P22"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := failing(ns)
	env.Must(t, cluster.Create(t.Context(), ov))
	env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, nil)))
	found, _ := culpritOf(t, ns, func(c v1beta1.Culprit) bool { return c.ExitCode != nil })
	if *found.ExitCode != 7 || found.Kind != "Job" || found.Container != "report" || !strings.HasPrefix(found.Pod, "i-report-") {
		t.Errorf("the culprit is %+v", found)
	}
	hasEvent(t, ns, "container report of pod "+found.Pod+" ended with exit code 7")
	for _, code := range []int{3, 0} {
		args := []string{"plan", "wait", "--instance", "i", "-n", ns}
		if code == 0 {
			args[1] = "status"
		}
		contains(t, kudo(t, code, args...), "Job "+ns+"/i-report: BackoffLimitExceeded: ", "\n  Pod "+found.Pod+", container report: exit code 7",
			"  What to do: correct what made container report end with exit code 7, then kubectl kudo plan retry --instance i -n "+ns+"   (all of the log: kubectl logs "+found.Pod+" -c report -n "+ns+")\n")
	}
})

// talking is an OperatorVersion with a Job that fails, or with a Deployment whose container does, after 30 lines of log. The last of them
// has control characters, and the value of a sensitive parameter. Another container writes a line, too.
func talking(ns, kind string) *v1beta1.OperatorVersion {
	head, policy := "apiVersion: batch/v1\nkind: Job\nspec:\n  backoffLimit: 0\n", "      restartPolicy: Never\n"
	if kind == "Deployment" {
		head, policy = "apiVersion: apps/v1\nkind: Deployment\nspec:\n  selector: {matchLabels: {app: report}}\n", ""
	}
	lines := ""
	for n := range 29 {
		lines += fmt.Sprintf(`line %d.\n`, n+1)
	}
	ov := gen.Version(ns, "talking", gen.Param("PASSWORD", "", ""), gen.Template("report.yaml", head+`  template:
    metadata:
      labels: {app: report}
      annotations:
        log.local.kudo.dev/report: "`+lines+`\e[31mno\e]0;t\a entry\u202e for {{ .Params.PASSWORD }}\n"
        log.local.kudo.dev/other: of another container
    spec:
`+policy+`      containers: [{name: report, image: busybox:1.36, command: [sh, -c, exit 7]}, {name: other, image: busybox:1.36}]
metadata: {name: '{{ .Name }}-report'}
`), gen.Apply("report", "report.yaml"), gen.Serial("deploy", "report"))
	ov.Spec.Parameters[0].Sensitive = true
	return ov
}

var _ = DescribeTable("The last lines of the container that failed are shown, without secrets and control characters", Label("culprit", "P22"), func(
	kind, options, todo string, code int,
) {
	t := GinkgoTB()
	if !plane.IsDisposable() {
		t.Skip("needs simulated pods, and KUDO_TEST_KUBECONFIG names a cluster")
	}
	ns := cluster.NewNamespace(t)
	ov := talking(ns, kind)
	env.Must(t, cluster.Create(t.Context(), ov))
	env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, map[string]string{"PASSWORD": hidden})))
	found, _ := culpritOf(t, ns, func(c v1beta1.Culprit) bool { return c.ExitCode != nil })
	lines := ""
	for n := range 19 {
		lines += fmt.Sprintf("  | line %d.\n", n+11)
	}
	lines += `  | \x1b[31mno\x1b]0;t\a entry\u202e for REDACTED` + "\n"
	for _, args := range [][]string{{"plan", "status"}, {"plan", "wait", "--wait-time", "2s"}} {
		want := code
		if args[1] == "status" {
			want = 0
		}
		out := kudo(t, want, append(args, "--instance", "i", "-n", ns)...)
		contains(t, out, "\n  Pod "+found.Pod+", container report: exit code 7", "\n"+lines+"  What to do: correct what made container report end with exit code 7"+todo,
			"   (all of the log: kubectl logs "+found.Pod+" -c report -n "+ns+options+")\n")
		for _, not := range []string{hidden, "\x1b", "\a", "\u202e", "line 10.", "another container"} {
			if strings.Contains(out, not) {
				t.Errorf("%v shows %q:\n%s", args, not, out)
			}
		}
	}
	log, err := exec.Command(filepath.Join(plane.Bin, "kubectl"), "--kubeconfig", plane.Kubeconfig,
		"logs", found.Pod, "-c", "report", "-n", ns, "--tail", "2").CombinedOutput()
	if want := "line 29.\n\x1b[31mno\x1b]0;t\a entry\u202e for " + hidden + "\n"; err != nil || string(log) != want {
		t.Errorf("kubectl logs prints %q: %v, want %q", log, err, want)
	}
},
	Entry("of a Job", "Job", "", ", then kubectl kudo plan retry ", 3),
	Entry("of a container that is restarted", "Deployment", " --previous", "; the plan continues: ", 4),
)

var _ = It("The manager shows no pod that the account of the run may not list, and says so", Label("culprit", "P21", "tenancy"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	env.Must(t, cluster.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, "worker")}))
	env.Must(t, cluster.Create(t.Context(), &rbacv1.Role{ObjectMeta: gen.Meta(ns, "worker"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "create", "patch", "delete"}}}}))
	env.Must(t, cluster.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "worker"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "worker"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "worker"}}}))
	ov := web(ns)
	env.Must(t, cluster.Create(t.Context(), ov))
	i := gen.Instance("i", ov, map[string]string{"IMAGE": "does-not-exist:1"})
	i.Spec.ServiceAccountName = "worker"
	env.Must(t, cluster.Create(t.Context(), i))
	found, now := culpritOf(t, ns, func(c v1beta1.Culprit) bool { return c.Name == "i" })
	if found.Pod != "" || found.Reason != v1beta1.CulpritUnread || found.Message != "the cause is not known, since ServiceAccount "+ns+"/worker may not list pods" {
		t.Errorf("the culprit is %+v", found)
	}
	if strings.Contains(reconciling(now), "ImagePull") {
		t.Errorf("the condition says %q", reconciling(now))
	}
	// The user of the command may list them.
	contains(t, kudo(t, 0, "plan", "status", "--instance", "i", "-n", ns), ", container app: ImagePullBackOff")
})
