//go:build unix

package processgroup

import (
	"io"
	"os/exec"
	"testing"
)

// TestGroup: what a command has started ends with its group.
func TestGroup(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 300 & echo; wait")
	Set(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	id := cmd.Process.Pid
	if !IsAlive(id) {
		t.Error("the group has no process")
	}
	if err := Kill(id); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out); err != nil { // ends when the last process is dead
		t.Error(err)
	}
	_ = cmd.Wait()
}
