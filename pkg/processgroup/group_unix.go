//go:build unix

package processgroup

import (
	"os/exec"
	"syscall"
)

// Set makes a command that is not started yet run in a group of its own, whose id is that of its process.
func Set(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Kill kills all processes of a group.
func Kill(id int) error { return syscall.Kill(-id, syscall.SIGKILL) }

// IsAlive reports whether a group has a process.
func IsAlive(id int) bool { return syscall.Kill(-id, 0) == nil }
