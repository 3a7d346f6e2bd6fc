package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/terminal"
)

var _ = It("A wait without a terminal writes a line for each change, and Ctrl-C says that the plan continues", Label("P29"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := gen.Version(ns, "waits", gen.ConfigMaps("cm", 1), gen.Param("VALUE", "a", ""),
		gen.Task("never", v1beta1.DummyTask, v1beta1.TaskSpec{}), gen.Serial("deploy", "cm", "never"))
	env.Must(t, cluster.Create(t.Context(), ov))
	env.Must(t, cluster.Create(t.Context(), gen.Instance("i", ov, nil)))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(plane.Bin, "kubectl-kudo"), "plan", "wait", "i", "-n", ns)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig, "KUDO_PROGRESS=")
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	env.Must(t, err)
	defer func() { _ = file.Close() }()
	cmd.Stderr = file
	printed := func() string {
		text, err := os.ReadFile(file.Name())
		env.Must(t, err)
		return string(text)
	}
	env.Must(t, cmd.Start())
	env.Eventually(t, "the line of the plan that runs", env.Condition(func() bool { return strings.Contains(printed(), "plan deploy: IN_PROGRESS\n") }))
	env.Must(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	contains(t, printed(), "Error: interrupted: the plan continues: kubectl kudo plan wait --instance i -n "+ns)
})

// watchOnTerminal runs plan status --watch for Instance i on a terminal with a size.
func watchOnTerminal(t testing.TB, ns string, columns, rows int) *terminal.Terminal {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(plane.Bin, "kubectl-kudo"), "plan", "status", "--instance", "i", "-n", ns, "--watch")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig, "KUDO_PROGRESS=")
	return terminal.Start(t, columns, rows, cmd)
}

// differsFromTree returns what a terminal shows, unless that is one drawing of the tree, with a text.
func differsFromTree(shown, text string) string {
	if strings.Count(shown, `Plan(s) for "i"`) != 1 || !strings.Contains(shown, text) {
		return fmt.Sprintf("one tree must be shown, with %q:\n%s", text, shown)
	}
	return ""
}

var _ = It("On a terminal, plan status --watch draws the tree of a running plan anew in its place, also once the terminal is narrower; Ctrl-C says that the plan continues",
	Label("P23"), func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		stuck(t, ns)
		const running, complete = "Plan deploy (serial strategy) [IN_PROGRESS]", "Plan deploy (serial strategy) [COMPLETE]"
		interrupted := watchOnTerminal(t, ns, 160, 30)
		waits := " elapsed, waits for: step main/step-0: Deployment " + ns + "/i: "
		interrupted.Await(t, "drawn", waits)
		env.Eventually(t, "a tree that is drawn anew as time passes", env.Condition(func() bool { return !strings.Contains(interrupted.Shown(), "\n0s elapsed") }))
		interrupted.Interrupt(t)
		code, left := interrupted.End(t)
		if problem := differsFromTree(left, running); problem != "" {
			t.Error(problem)
		}
		if end := "Error: interrupted: the plan continues: kubectl kudo plan wait --instance i -n " + ns; code != 1 || !strings.HasSuffix(left, end) {
			t.Errorf("exit code %d, the terminal must end with %q:\n%s", code, end, left)
		}
		if plan := get(t, &v1beta1.Instance{}, ns, "i").Status.AggregatedStatus.ActivePlanName; plan != v1beta1.DeployPlan {
			t.Errorf("the plan must continue, and the one that runs is %q", plan)
		}

		const narrow = 60
		watched := watchOnTerminal(t, ns, 160, 30)
		watched.Await(t, "drawn", waits)
		watched.Resize(t, narrow, 25)
		env.Eventually(t, "a tree whose last line fits the narrower terminal", func() string {
			rows := strings.Split(watched.Shown(), "\n")
			if last := rows[len(rows)-1]; !strings.Contains(last, " elapsed, waits for: ") || !strings.HasSuffix(last, "…") || utf8.RuneCountInString(last) != narrow-1 {
				return "the terminal shows\n" + strings.Join(rows, "\n")
			}
			return differsFromTree(strings.Join(rows, "\n"), running)
		})
		kudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "IMAGE=nginx:1.27")
		code, left = watched.End(t)
		if problem := differsFromTree(left, complete); problem != "" {
			t.Error(problem)
		}
		if code != 0 || strings.Contains(left, string(v1beta1.InProgress)) {
			t.Errorf("exit code %d; the tree that is left must be that of the end:\n%s", code, left)
		}
	})
