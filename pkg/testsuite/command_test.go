package testsuite

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What a command leaves running ends with the case, whether it holds the command's output or not.
func TestLeftBehind(t *testing.T) {
	for reason, redirect := range map[string]string{"holds the output": "", "holds nothing": " >/dev/null 2>&1"} {
		t.Run(reason, func(t *testing.T) {
			dir := t.TempDir()
			alive := filepath.Join(dir, "alive") // a pipe, which ends when the last process that has it open for writing does
			if out, err := exec.Command("mkfifo", alive).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			pipe, err := os.OpenFile(alive, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = pipe.Close() }()
			s := &shell{dir: dir, path: os.Getenv("PATH"), log: t.Logf}
			script := "(exec 3>alive; while echo >>beat; do sleep 0.02; done)" + redirect + " & while ! test -s beat; do sleep 0.02; done"
			if err := s.run(context.Background(), Command{Script: script}, time.Minute); err != nil {
				t.Fatal(err)
			}
			s.end()
			if err := pipe.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := pipe.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("it runs on: %v", err)
			}
		})
	}
}
