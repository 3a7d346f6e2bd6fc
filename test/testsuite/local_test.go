package testsuite

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/pkg/processgroup"
	"kudo.dev/kudo/test/env"
)

// leftovers are what a run has left in the folder of temporary files, and processes that work there.
func leftovers(t testing.TB, tmp string) []string {
	t.Helper()
	out, err := filepath.Glob(filepath.Join(tmp, "*"))
	env.Must(t, err)
	processes, err := exec.Command("ps", "-eo", "args").Output()
	env.Must(t, err)
	for _, line := range strings.Split(string(processes), "\n") {
		if strings.Contains(line, tmp) {
			out = append(out, line)
		}
	}
	return out
}

// local runs kubectl-kudo test without a kubeconfig, and wants nothing left.
func local(t testing.TB, code int, args ...string) string {
	t.Helper()
	tmp := t.TempDir()
	cmd, out := command(t, t.TempDir(), "", args...)
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("kubectl kudo test %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	if left := leftovers(t, tmp); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	return out.String()
}

// One process at a time starts control planes.
var _ = Describe("A control plane of its own", Ordered, ContinueOnFailure, Label("local"), func() {
	It("is started where no cluster is configured", func() {
		t := GinkgoTB()
		out := local(t, 0, testdata(t, "pass", "instance"))
		contains(t, out, "no cluster is configured: a local one is started (--local)", "starting a control plane with kudo", "1 passed, 0 failed")
	})

	It("lets a suite made for KUDO, which knows of no accounts, pass with --privileged only", Label("T6"), func() {
		t := GinkgoTB()
		suite := testdata(t, "no-account")
		contains(t, local(t, 0, suite, "--local", "--privileged"), "1 passed, 0 failed")
		contains(t, local(t, 3, suite, "--local"), "has no ServiceAccount kudo: add --create-service-account", "0 passed, 1 failed")
	})

	DescribeTable("lets a suite pass amid the fault", func(fault, component string) {
		t := GinkgoTB()
		out := local(t, 0, testdata(t, "fault", "a"), "--local", "--fault", fault)
		contains(t, out, "killing "+component, "1 passed, 0 failed")
	},
		Entry("manager", "manager", "manager"),
		Entry("apiserver", "apiserver", "kube-apiserver"),
	)

	It("lets a suite pass with a manager that is killed after each of its writes", Label("each-write"), func() {
		t := GinkgoTB()
		out := local(t, 0, testdata(t, "fault", "a"), "--local", "--fault", "each-write")
		contains(t, out, "the manager was killed after each of its ", "For the README: Its plans survive the death of kudo's manager after each of its ", "1 passed, 0 failed")
	})
})

var _ = DescribeTable("An interrupt ends the command, and leaves nothing behind", Serial, Label("interrupt"), func(configured bool, flags ...string) {
	t := GinkgoTB()
	kubeconfig := ""
	if configured {
		kubeconfig = suite.Kubeconfig
	}
	tmp := t.TempDir()
	cmd, out := command(t, t.TempDir(), kubeconfig, append(flags, testdata(t, "interrupt"))...)
	processgroup.Set(cmd)
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	env.Must(t, err)
	defer func() { _ = file.Close() }()
	cmd.Stdout = file
	env.Must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	env.Within(t, 5*time.Minute, "the command of the case", func() string {
		if text, _ := os.ReadFile(file.Name()); !strings.Contains(string(text), "$ sleep 300") {
			return "the output is " + string(text)
		}
		return ""
	})
	// A terminal signals the whole group.
	env.Must(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT))
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("exit code %d, want 1", got)
	}
	contains(t, out.String(), "Error: interrupted")
	if left := leftovers(t, tmp); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if left := namespaces(t); len(left) > 0 {
		t.Errorf("namespaces are left: %v", left)
	}
},
	Entry("on a cluster that is given", true),
	Entry("on a control plane of its own", false),
	Entry("amid each-write", false, "--local", "--fault", "each-write"),
)
