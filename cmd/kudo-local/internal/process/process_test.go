package process

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

func TestParseStat(t *testing.T) {
	tests := []struct {
		reason string
		stat   string
		want   procInfo
		ok     bool
	}{
		{"a plain line gives the 22nd field", "7 (etcd) S 1 7 7 0 -1 4 1 0 0 0 1 1 0 0 20 0 9 0 4242 1 1", procInfo{born: "4242"}, true},
		{"a name with spaces and parentheses does not shift fields", "7 (a b) c) Z 1 7 7 0 -1 4 1 0 0 0 1 1 0 0 20 0 1 0 99 1 1", procInfo{born: "99", zombie: true}, true},
		{"a zombie whose threads still end holds its ports", "7 (etcd) Z 1 7 7 0 -1 4 1 0 0 0 1 1 0 0 20 0 9 0 99 1 1", procInfo{born: "99"}, true},
		{"a cut line is no process", "7 (etcd) S 1", procInfo{}, false},
	}
	for _, tc := range tests {
		got, ok := parseStat(tc.stat)
		if got != tc.want || ok != tc.ok {
			t.Errorf("%s: parseStat = %+v, %v; want %+v, %v", tc.reason, got, ok, tc.want, tc.ok)
		}
	}
}

// waitForLog waits until a process has said what it was told to say.
func waitForLog(t *testing.T, path, want string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
		got, _ := os.ReadFile(path)
		return string(got) == want, nil
	})
	if err != nil {
		t.Fatalf("%s does not become %q: %v", path, want, err)
	}
}

func TestStartAndStop(t *testing.T) {
	log := filepath.Join(t.TempDir(), "logs", "x.log")
	id, ended, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", "echo hello; exec sleep 100"}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	waitForLog(t, log, "hello\n")
	if !id.Alive() {
		t.Error("a process that was just started is not alive")
	}
	if (ID{PID: id.PID, Born: "1"}).Alive() {
		t.Error("another process with the same id counts as alive")
	}
	if err := id.Stop(context.Background(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("the end was not reported")
	}
	if id.Alive() {
		t.Error("alive after Stop")
	}
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	log := filepath.Join(t.TempDir(), "x.log")
	id, _, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", `trap "" TERM; echo deaf; while :; do sleep 0.05; done`}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	waitForLog(t, log, "deaf\n")
	if err := id.Stop(context.Background(), 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if id.Alive() {
		t.Error("alive after Stop")
	}
}
