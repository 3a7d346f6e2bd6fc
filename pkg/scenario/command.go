package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/shlex"
)

// shell runs commands in a folder, with the environment of a case.
type shell struct {
	dir, namespace, kubeconfig, path string
	log                              func(format string, args ...any)
	// background are the commands that are still running.
	background []*exec.Cmd
}

// maxOutput bounds how much of a command's output is kept, in bytes.
const maxOutput = 64 << 10

// run runs a command, and fails if it does.
func (s *shell) run(ctx context.Context, c Command, timeout time.Duration) error {
	if c.Timeout != 0 {
		timeout = seconds(c.Timeout)
	}
	args, err := s.arguments(c)
	if err != nil {
		return err
	}
	shown := strings.Join(args, " ")
	if c.Script != "" {
		shown = strings.TrimSpace(c.Script)
	}
	s.log("$ %s", shown)
	if c.Background {
		cmd, err := s.command(context.WithoutCancel(ctx), args)
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("command %q: %w", shown, err)
		}
		s.background = append(s.background, cmd)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd, err := s.command(ctx, args)
	if err != nil {
		return err
	}
	output := &tail{}
	cmd.Stdout, cmd.Stderr = output, output
	err = cmd.Run()
	if text := output.String(); text != "" && !c.SkipLogOutput {
		s.log("%s", indent(text))
	}
	switch {
	case err == nil || c.IgnoreFailure && ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("command %q: has not ended after %s", shown, timeout)
	}
	if c.SkipLogOutput {
		return fmt.Errorf("command %q: %w", shown, err)
	}
	return fmt.Errorf("command %q: %w\n%s", shown, err, indent(output.String()))
}

// command prepares a process in a group of its own, so that all of it can be ended.
func (s *shell) command(ctx context.Context, args []string) (*exec.Cmd, error) {
	program, err := s.look(args[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args[1:]...)
	cmd.Args[0] = args[0]
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "NAMESPACE="+s.namespace, "KUBECONFIG="+s.kubeconfig, "PATH="+s.path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// look finds a program in the commands' PATH, or relative to the case's folder.
func (s *shell) look(name string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.dir, name)
		}
		return filepath.Abs(name)
	}
	for _, dir := range filepath.SplitList(s.path) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not in PATH", name)
}

func (s *shell) arguments(c Command) ([]string, error) {
	if c.Script != "" {
		if c.Command != "" || c.Namespaced {
			return nil, fmt.Errorf("script %q: goes neither with command nor with namespaced: use $NAMESPACE", c.Script)
		}
		return []string{"sh", "-c", c.Script}, nil
	}
	args, err := shlex.Split(os.Expand(c.Command, s.variable))
	if err != nil || len(args) == 0 {
		return nil, fmt.Errorf("command %q cannot be split into words: quotes do not match, or it is empty", c.Command)
	}
	if c.Namespaced {
		args = append(args, "--namespace", s.namespace)
	}
	return args, nil
}

func (s *shell) variable(name string) string {
	switch name {
	case "NAMESPACE":
		return s.namespace
	case "KUBECONFIG":
		return s.kubeconfig
	case "PATH":
		return s.path
	case "$":
		return "$"
	}
	return os.Getenv(name)
}

// end ends the commands in the background.
func (s *shell) end() {
	for _, cmd := range s.background {
		_ = cmd.Cancel()
		_ = cmd.Wait()
	}
	s.background = nil
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if over := t.Len() - maxOutput; over > 0 {
		t.Next(over)
	}
	return n, err
}
