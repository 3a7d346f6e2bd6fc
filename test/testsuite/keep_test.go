package testsuite

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
)

// printedCommands returns the indented lines below a line of the output.
func printedCommands(t testing.TB, out, above string) []string {
	t.Helper()
	_, below, found := strings.Cut(out, above+"\n")
	if !found {
		t.Fatalf("no %q in the output:\n%s", above, out)
	}
	var lines []string
	for line := range strings.Lines(below) {
		command, indented := strings.CutPrefix(line, "  ")
		if !indented {
			break
		}
		lines = append(lines, strings.TrimSpace(command))
	}
	return lines
}

// paste runs a command that was printed, as a user does.
func paste(t testing.TB, command string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + suite.Path(), "KUBECONFIG=" + suite.Kubeconfig}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// priorityClasses returns the names of those that cases and their plans have made.
func priorityClasses(t testing.TB) string {
	t.Helper()
	list := &schedulingv1.PriorityClassList{}
	env.Must(t, suite.List(context.Background(), list))
	var names []string
	for _, class := range list.Items {
		if !strings.HasPrefix(class.Name, "system-") {
			names = append(names, class.Name)
		}
	}
	return strings.Join(names, " ")
}

// deleteKept deletes what a spec that fails leaves to the others.
func deleteKept(ctx context.Context) {
	t := GinkgoTB()
	for _, name := range namespaces(t) {
		env.Must(t, suite.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for name := range strings.FieldsSeq(priorityClasses(t)) {
		env.Must(t, suite.Delete(ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
}

var _ = It("--keep-failed keeps what a case that fails has made, and prints what shows and deletes it", Serial, Label("keep-failed"), func() {
	t := GinkgoTB()
	DeferCleanup(deleteKept)
	out := kudoTest(t, 3, t.TempDir(), suite.Kubeconfig, testdata(t, "keep"), "--keep-failed", "--timeout", "10")
	contains(t, out, "1 passed, 1 failed in ", "!passes has failed")
	kept := namespaces(t)
	if len(kept) != 1 || !strings.Contains(out, "fails | namespace "+kept[0]+"\n") {
		t.Fatalf("the namespace of the case that fails must stay, and no other; there are %v:\n%s", kept, out)
	}
	env.Read(t, suite, &v1beta1.Instance{}, kept[0], "web")
	if got := priorityClasses(t); got != "case-fails" {
		t.Errorf("the PriorityClass of the case that fails must stay alone, and there are: %s", got)
	}

	commands := printedCommands(t, out, "fails has failed, and what it has made is kept. To look at it, and to delete it:")
	if len(commands) != 3 {
		t.Fatalf("commands were printed: %q", commands)
	}
	contains(t, paste(t, commands[0]), "instance.kudo.dev/web", "deployment.apps/web", "PlanStarted")
	for _, command := range commands[1:] {
		paste(t, command)
	}
	if left, classes := namespaces(t), priorityClasses(t); len(left) > 0 || classes != "" {
		t.Errorf("what was printed leaves namespaces %v and PriorityClasses %s", left, classes)
	}
})

var _ = It("Cluster-scoped objects that plans of the cases have left are listed, with what deletes them", Serial, Label("leftovers"), func() {
	t := GinkgoTB()
	DeferCleanup(deleteKept)
	out := kudoTest(t, 0, t.TempDir(), suite.Kubeconfig, testdata(t, "leftovers"))
	left := priorityClasses(t)
	commands := printedCommands(t, out, "Plans of the cases have left these objects in the cluster, which uninstalling keeps, since others may use them:")
	if len(commands) != 1 || commands[0] != "kubectl delete priorityclasses.scheduling.k8s.io/"+left {
		t.Fatalf("left is PriorityClass %s, and listed are %q", left, commands)
	}
	paste(t, commands[0])
	if left := priorityClasses(t); left != "" {
		t.Errorf("what was listed leaves PriorityClass %s", left)
	}
})
