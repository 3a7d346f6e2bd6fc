// Package env gives tests a real control plane: the cluster of KUDO_TEST_KUBECONFIG, or one that kudo-local starts.
package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"kudo.dev/kudo/test/sourcetree"
)

// Env is a control plane with kudo installed.
type Env struct {
	// Kubeconfig of an administrator.
	Kubeconfig string
	// Bin is the folder of kudo's programs.
	Bin string

	name, state string
}

func bin() string { return filepath.Join(sourcetree.Root(), "bin") }

// Start brings a control plane with kudo up. The arguments go to kudo-local up.
func Start(args ...string) (*Env, error) { return start(append([]string{"--with-kudo"}, args...)) }

// StartBare brings a control plane without kudo up; always one of the test's own.
func StartBare(args ...string) (*Env, error) {
	if os.Getenv("KUDO_TEST_KUBECONFIG") != "" {
		return nil, fmt.Errorf("the cluster of KUDO_TEST_KUBECONFIG is no bare one")
	}
	return start(args)
}

func start(args []string) (*Env, error) {
	e := &Env{Bin: bin(), Kubeconfig: os.Getenv("KUDO_TEST_KUBECONFIG")}
	if e.Kubeconfig != "" {
		return e, nil
	}
	state, err := os.MkdirTemp("", "kudo-test-")
	if err != nil {
		return nil, err
	}
	e.name, e.state = "test", state
	if dir := os.Getenv("KUDO_TEST_KUBERNETES"); dir != "" && !slices.Contains(args, "--kubernetes-version") {
		args = append(args, "--kubernetes-dir", dir)
	}
	if out, err := e.Local(append([]string{"up"}, args...)...); err != nil {
		e.Stop()
		return nil, fmt.Errorf("start the control plane (make build builds it): %w\n%s", err, out)
	}
	out, err := e.Local("kubeconfig")
	if err != nil {
		e.Stop()
		return nil, err
	}
	e.Kubeconfig = strings.TrimSpace(out)
	return e, nil
}

// shared is what another process needs to use a control plane.
type shared struct{ Kubeconfig, Bin, Name, State string }

// Share returns the control plane as data for Join.
func (e *Env) Share() ([]byte, error) {
	return json.Marshal(shared{e.Kubeconfig, e.Bin, e.name, e.state})
}

// Join returns the control plane that another process has started. That process alone stops it.
func Join(data []byte) (*Env, error) {
	s := shared{}
	err := json.Unmarshal(data, &s)
	return &Env{Kubeconfig: s.Kubeconfig, Bin: s.Bin, name: s.Name, state: s.State}, err
}

// IsDisposable reports whether the control plane is the test's own, so that its parts may be killed.
func (e *Env) IsDisposable() bool { return e != nil && e.state != "" }

// Local runs kudo-local on the test's control plane.
func (e *Env) Local(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(e.Bin, "kudo-local"), append(args, "--name", e.name, "--state", e.state)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		return out.String() + errs.String(), err
	}
	return out.String(), nil
}

// Stop stops the control plane and deletes its data.
func (e *Env) Stop() {
	if !e.IsDisposable() {
		return
	}
	if out, err := e.Local("down", "--delete"); err != nil {
		fmt.Fprintf(os.Stderr, "the control plane in %s could not be stopped: %v\n%s", e.state, err, out)
		return
	}
	_ = os.RemoveAll(e.state)
}

// Path is a PATH with kudo's programs first.
func (e *Env) Path() string { return e.Bin + ":" + os.Getenv("PATH") }

// Kudo runs kubectl-kudo and returns what it printed, stdout and stderr together, and its exit code.
func (e *Env) Kudo(args ...string) (string, int) {
	cmd := exec.Command(filepath.Join(e.Bin, "kubectl-kudo"), args...)
	// Lines of progress would stand among what a test compares.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig, "KUDO_PROGRESS=none")
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		return err.Error(), -1
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// ManagerKubeconfig has the rights of the manager's ServiceAccount. Only for a control plane of the test's own.
func (e *Env) ManagerKubeconfig() string { return filepath.Join(e.state, e.name, "manager.kubeconfig") }

// ManagerMetrics is the address at which the manager serves its metrics. Only for a control plane of the test's own.
func (e *Env) ManagerMetrics() (string, error) {
	ports, err := e.ports()
	return fmt.Sprintf("127.0.0.1:%d", ports["manager-metrics"]), err
}

// ports are those that the parts of the control plane listen on.
func (e *Env) ports() (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join(e.state, e.name, "instance.json"))
	if err != nil {
		return nil, err
	}
	instance := struct{ Ports map[string]int }{}
	err = json.Unmarshal(text, &instance)
	return instance.Ports, err
}

// AuditLog is the log of all requests at the API server. Only for a control plane of the test's own that was started with
// --audit-log.
func (e *Env) AuditLog() string { return filepath.Join(e.state, e.name, "logs", "audit.log") }

// EtcdData is the folder of etcd's data. Only for a control plane of the test's own.
func (e *Env) EtcdData() string { return filepath.Join(e.state, e.name, "etcd") }

// Manager is the manager as a process of the test's own, under the rights of its ServiceAccount. Only for a control
// plane of the test's own, whose manager has been killed.
func (e *Env) Manager(args ...string) *exec.Cmd {
	args = append([]string{"--kubeconfig", e.ManagerKubeconfig(), "--cache-dir", filepath.Join(e.state, e.name, "manager-cache"),
		"--metrics-bind-address=0", "--health-probe-bind-address=0"}, args...)
	return exec.Command(filepath.Join(e.Bin, "manager"), args...)
}
