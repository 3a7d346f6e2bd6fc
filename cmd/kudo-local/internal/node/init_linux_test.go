package node

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestStartAndReap checks that a server that has ended is started again, and no other one.
func TestStartAndReap(t *testing.T) {
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{Dir: t.TempDir(), Logs: t.TempDir()}
	if err := os.Mkdir(filepath.Join(c.Logs, "node"), 0o700); err != nil {
		t.Fatal(err)
	}
	ended := make(chan os.Signal, 8)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	const other = 1 << 30 // no process has this id
	short, running := &server{name: "short", args: []string{program}}, &server{name: "running", pid: other}
	servers := []*server{running, short}
	for range 2 {
		if err := startEnded(c, servers); err != nil {
			t.Fatal(err)
		}
		if short.pid == 0 || running.pid != other {
			t.Fatalf("the processes are %d and %d, want a new one and %d", short.pid, running.pid, other)
		}
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("the program does not end")
		}
		reap(servers)
		if short.pid != 0 || running.pid != other {
			t.Fatalf("after the end, the processes are %d and %d, want 0 and %d", short.pid, running.pid, other)
		}
	}
	if err := startEnded(c, []*server{{name: "none", args: []string{"/none"}}}); err == nil {
		t.Error("a server without a program is started")
	}
}
