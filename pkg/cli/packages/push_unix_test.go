//go:build unix

package packages

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestPushReadsOnce checks S8: the archive that is checked is the one that is pushed. A pipe gives another one to a second reader.
func TestPushReadsOnce(t *testing.T) {
	home(t)
	t.Chdir(t.TempDir())
	run(t, 0, nil, "create", packageDir(t, "web", "1.0.0"))
	run(t, 0, nil, "create", packageDir(t, "bank", "1.0.0"))
	if err := syscall.Mkfifo("pipe.tgz", 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		packed, err := os.ReadFile("web-1.0.0.tgz")
		err = errors.Join(err, os.WriteFile("pipe.tgz", packed, 0o600))
		for err == nil { // until there is no reader
			var file *os.File
			if file, err = os.OpenFile("pipe.tgz", os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
				err = file.Close()
			}
			runtime.Gosched()
		}
		if errors.Is(err, syscall.ENXIO) {
			packed, err = os.ReadFile("bank-1.0.0.tgz")
			err = errors.Join(err, os.WriteFile("pipe.tgz", packed, 0o600))
		}
		written <- err
	}()
	out, _ := run(t, 0, nil, "push", "pipe.tgz", "layout:offline")
	if !strings.HasPrefix(out, "layout:offline/web:1.0.0@") {
		t.Errorf("pushed: %s", out)
	}
	want, err := os.ReadFile("bank-1.0.0.tgz")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("pipe.tgz"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("a second archive of %d bytes is left, want %d (%v)", len(got), len(want), err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
