package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("A wait without a terminal writes a line for each change, and Ctrl-C says that the plan goes on", Label("P29"), func() {
	t := GinkgoTB()
	ns := namespace(t)
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
