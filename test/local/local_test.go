package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kudo.dev/kudo/test/sourcetree"
)

// program returns the path of kudo-local, which make build builds.
func program() string { return filepath.Join(sourcetree.Root(), "bin", "kudo-local") }

// instance is one instance of kudo-local, and the state folder it is in.
type instance struct {
	t           testing.TB
	state, name string
}

// newInstance returns an instance that is not up yet. When the test ends, nothing of it is left.
func newInstance(t testing.TB, state, name string) *instance {
	t.Helper()
	l := &instance{t: t, state: state, name: name}
	t.Cleanup(func() { _, _, _ = l.try("down", "--delete") })
	return l
}

// try runs a command and returns what it prints to stdout and to stderr.
func (l *instance) try(args ...string) (stdout, stderr string, err error) {
	var o, e bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(), append(args, "--name", l.name, "--state", l.state)...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err = cmd.Run()
	return o.String(), e.String(), err
}

// run runs a command that must succeed.
func (l *instance) run(args ...string) string {
	l.t.Helper()
	stdout, stderr, err := l.try(args...)
	if err != nil {
		l.t.Fatalf("kudo-local %s: %v\n%s%s", strings.Join(args, " "), err, stdout, stderr)
	}
	return stdout
}

func (l *instance) client() kubernetes.Interface {
	l.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimSpace(l.run("kubeconfig")))
	if err != nil {
		l.t.Fatal(err)
	}
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		l.t.Fatal(err)
	}
	return client
}

// pids are the processes of the instance, by component.
func (l *instance) pids() map[string]int {
	l.t.Helper()
	files, err := filepath.Glob(filepath.Join(l.state, l.name, "run", "*.json"))
	if err != nil {
		l.t.Fatal(err)
	}
	pids := map[string]int{}
	for _, f := range files {
		var run struct{ PID int }
		readJSON(l.t, f, &run)
		pids[strings.TrimSuffix(filepath.Base(f), ".json")] = run.PID
	}
	return pids
}

func (l *instance) ports() map[string]int {
	l.t.Helper()
	var state struct{ Ports map[string]int }
	readJSON(l.t, filepath.Join(l.state, l.name, "instance.json"), &state)
	return state.Ports
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// running reports whether a process is there and is no zombie: in a container, zombies whose parent has ended may stay.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && len(state) > 0 && state[0] != 'Z'
}

func listening(port int) bool {
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
