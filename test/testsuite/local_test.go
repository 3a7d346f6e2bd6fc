package testsuite

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kudo.dev/kudo/pkg/processgroup"
)

// leftovers are what a run has left in the folder of temporary files, and processes that work there.
func leftovers(t *testing.T, tmp string) []string {
	t.Helper()
	out, err := filepath.Glob(filepath.Join(tmp, "*"))
	if err != nil {
		t.Fatal(err)
	}
	processes, err := exec.Command("ps", "-eo", "args").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(processes), "\n") {
		if strings.Contains(line, tmp) {
			out = append(out, line)
		}
	}
	return out
}

// local runs kubectl-kudo test without a kubeconfig, and wants nothing left.
func local(t *testing.T, code int, args ...string) string {
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

func TestLocal(t *testing.T) {
	t.Parallel()
	out := local(t, 0, testdata(t, "pass", "instance"))
	contains(t, out, "no cluster is configured: a local one is started (--local)", "starting a control plane with kudo", "1 passed, 0 failed")
}

// T6: a suite made for KUDO knows of no accounts.
func TestPrivileged(t *testing.T) {
	suite := testdata(t, "no-account")
	contains(t, local(t, 0, suite, "--local", "--privileged"), "1 passed, 0 failed")
	contains(t, local(t, 3, suite, "--local"), "has no ServiceAccount kudo: add --create-service-account", "0 passed, 1 failed")
}

func TestFaults(t *testing.T) {
	for fault, component := range map[string]string{"manager": "manager", "apiserver": "kube-apiserver"} {
		t.Run(fault, func(t *testing.T) {
			out := local(t, 0, testdata(t, "fault", "a"), "--local", "--fault", fault)
			contains(t, out, "killing "+component, "1 passed, 0 failed")
		})
	}
}

// TestEachWrite: a suite passes with a manager that is killed after each of its writes.
func TestEachWrite(t *testing.T) {
	out := local(t, 0, testdata(t, "fault", "a"), "--local", "--fault", "each-write")
	contains(t, out, "the manager was killed after each of its ", "For the README: Its plans survive the death of kudo's manager after each of its ", "1 passed, 0 failed")
}

func TestInterrupt(t *testing.T) {
	for _, tc := range []struct {
		name, kubeconfig string
		flags            []string
	}{
		{"given", plane.Kubeconfig, nil},
		{"local", "", nil},
		{"each-write", "", []string{"--local", "--fault", "each-write"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tmp := t.TempDir()
			cmd, out := command(t, t.TempDir(), tc.kubeconfig, append(tc.flags, testdata(t, "interrupt"))...)
			processgroup.Set(cmd)
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			file, err := os.Create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			cmd.Stdout = file
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill() }()
			read := func() string { text, _ := os.ReadFile(file.Name()); return string(text) }
			for deadline := time.Now().Add(time.Minute); !strings.Contains(read(), "$ sleep 300"); time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("after a minute, the command has not begun:\n%s", read())
				}
			}
			// A terminal signals the whole group.
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
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
		})
	}
}
