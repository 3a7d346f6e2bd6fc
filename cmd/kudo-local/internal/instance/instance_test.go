package instance

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kudo.dev/kudo/cmd/kudo-local/internal/process"
)

func TestSaveAndLoad(t *testing.T) {
	root := t.TempDir()
	if _, err := Load(root, "default"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "kudo-local up") {
		t.Errorf("error for what was never made: %v", err)
	}
	i := New(root, "one", Settings{Profile: API, PodReadyDelay: time.Second, ManagerArgs: []string{"-v"}})
	i.Ports["etcd"] = 1234
	if err := i.Save(); err != nil {
		t.Fatal(err)
	}
	got, err := Load(root, "one")
	if err != nil {
		t.Fatal(err)
	}
	if got.Settings.Profile != API || got.Settings.PodReadyDelay != time.Second || got.Ports["etcd"] != 1234 || got.Dir() != filepath.Join(root, "one") {
		t.Errorf("loaded %+v", got)
	}
	if names, err := List(root); err != nil || !slices.Equal(names, []string{"one"}) {
		t.Errorf("List = %v, %v", names, err)
	}
	if err := got.Delete(); err != nil {
		t.Fatal(err)
	}
	if names, _ := List(root); len(names) != 0 {
		t.Errorf("List after Delete = %v", names)
	}
}

func TestCheckName(t *testing.T) {
	tests := []struct {
		name string
		ok   bool
	}{{"default", true}, {"a", true}, {"a-1", true}, {"", false}, {"../x", false}, {".locks", false}, {"A", false}, {"-a", false}, {"a/b", false}}
	for _, tc := range tests {
		if err := CheckName(tc.name); (err == nil) != tc.ok {
			t.Errorf("CheckName(%q) = %v", tc.name, err)
		}
	}
}

func TestRunRecords(t *testing.T) {
	i := New(t.TempDir(), "one", Settings{})
	if run, err := i.Run("etcd"); run != nil || err != nil {
		t.Errorf("Run before any = %v, %v", run, err)
	}
	want := Run{ID: process.ID{PID: 12, Born: "99"}, Spec: "abc"}
	if err := i.SetRun("etcd", want); err != nil {
		t.Fatal(err)
	}
	if run, err := i.Run("etcd"); err != nil || *run != want {
		t.Errorf("Run = %v, %v", run, err)
	}
	for range 2 {
		if err := i.ClearRun("etcd"); err != nil {
			t.Errorf("ClearRun: %v", err)
		}
	}
}

func TestEnsurePorts(t *testing.T) {
	root := t.TempDir()
	uses := []string{"etcd", "kube-apiserver"}
	unused := func(string) bool { return false }

	first := New(root, "first", Settings{})
	if _, err := first.EnsurePorts(uses, unused); err != nil {
		t.Fatal(err)
	}
	if err := first.Save(); err != nil {
		t.Fatal(err)
	}
	kept := first.Ports["etcd"]
	if moved, err := first.EnsurePorts(uses, unused); err != nil || len(moved) != 0 || first.Ports["etcd"] != kept {
		t.Errorf("a free port was not kept: moved %v, %v", moved, err)
	}

	l, err := net.Listen("tcp", Address(kept))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if moved, _ := first.EnsurePorts(uses, func(use string) bool { return use == "etcd" }); len(moved) != 0 {
		t.Errorf("a port that our own component listens on was moved: %v", moved)
	}
	moved, err := first.EnsurePorts(uses, unused)
	if err != nil || !slices.Equal(moved, []string{"etcd"}) || first.Ports["etcd"] == kept {
		t.Errorf("a port that a stranger has taken was not moved: %v, %v", moved, err)
	}
}

func TestLockExcludes(t *testing.T) {
	root := t.TempDir()
	unlock, err := Lock(context.Background(), root, "one", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, root, "one", io.Discard); err == nil {
		t.Error("two have the lock")
	}
	if second, err := Lock(context.Background(), root, "two", io.Discard); err != nil {
		t.Errorf("another instance is locked too: %v", err)
	} else {
		second()
	}
	unlock()
	if again, err := Lock(context.Background(), root, "one", io.Discard); err != nil {
		t.Errorf("not unlocked: %v", err)
	} else {
		again()
	}
}
