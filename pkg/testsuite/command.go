package testsuite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/shlex"

	"kudo.dev/kudo/pkg/processgroup"
)

// shell runs commands in a folder, with the environment of a case.
type shell struct {
	dir, namespace, kubeconfig, path string
	// timeFactor multiplies all timeouts; 0 is 1.
	timeFactor int
	log        func(format string, args ...any)
	// background are the commands that are still running.
	background []*exec.Cmd
	// leftBehind are groups of processes that commands left behind.
	leftBehind []int
}

// maxOutput bounds how much of a command's output is kept, in bytes.
const maxOutput = 64 << 10

// unlimited is the time of a command whose timeout is negative.
const unlimited = 24 * time.Hour

// run runs a command, and fails if it does.
func (s *shell) run(ctx context.Context, c Command, timeout time.Duration) error {
	timeout = s.limit(c, timeout)
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
		return s.start(ctx, args, shown)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd, err := s.command(ctx, args)
	if err != nil {
		return err
	}
	output := &tail{}
	cmd.Stdout, cmd.Stderr = output, output
	err = s.await(cmd)
	if text := output.String(); text != "" && !c.SkipLogOutput {
		s.log("%s", indent(text))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("command %q: %w", shown, ctx.Err())
	case c.IgnoreFailure && cmd.ProcessState != nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("command %q: has not ended after %s", shown, timeout)
	}
	if c.SkipLogOutput {
		return fmt.Errorf("command %q: %w", shown, err)
	}
	return fmt.Errorf("command %q: %w\n%s", shown, err, indent(output.String()))
}

// limit returns how long a command may take: its own timeout, or else that of its step, times the factor of the shell.
func (s *shell) limit(c Command, ofStep time.Duration) time.Duration {
	limit := ofStep
	switch {
	case c.Timeout > 0:
		limit = seconds(c.Timeout)
	case c.Timeout < 0:
		limit = unlimited
	}
	return limit * time.Duration(max(1, s.timeFactor))
}

// start starts a command in the background, where it runs until the shell ends. shown names it in an error.
func (s *shell) start(ctx context.Context, args []string, shown string) error {
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

// await runs a process to its end, and records its group if other processes of the group still run then.
func (s *shell) await(cmd *exec.Cmd) error {
	err := cmd.Run()
	if cmd.Process != nil && processgroup.IsAlive(cmd.Process.Pid) {
		s.leftBehind = append(s.leftBehind, cmd.Process.Pid)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // the command has succeeded; what it started holds its output
	}
	return err
}

// command prepares a process in a group of its own, so that all of it can be ended.
func (s *shell) command(ctx context.Context, args []string) (*exec.Cmd, error) {
	program, err := s.findProgram(args[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args[1:]...)
	cmd.Args[0] = args[0]
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "NAMESPACE="+s.namespace, "KUBECONFIG="+s.kubeconfig, "PATH="+s.path)
	processgroup.Set(cmd)
	cmd.Cancel = func() error { return processgroup.Kill(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// findProgram finds a program in the commands' PATH, or relative to the case's folder.
func (s *shell) findProgram(name string) (string, error) {
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
			return nil, fmt.Errorf("script %q: cannot be used with command or namespaced: use $NAMESPACE", strings.TrimSpace(c.Script))
		}
		return []string{"sh", "-c", c.Script}, nil
	}
	args, err := shlex.Split(os.Expand(c.Command, s.variable))
	if err != nil || len(args) == 0 {
		return nil, fmt.Errorf("command %q cannot be split into words: quotes do not match, or it is empty", c.Command)
	}
	if c.Namespaced {
		args = namespaced(args, s.namespace)
	}
	return args, nil
}

// namespaced adds the flag --namespace, unless there is one, before what is for a command of the command.
func namespaced(args []string, namespace string) []string {
	own := args
	if i := slices.Index(args, "--"); i > 0 {
		own = args[:i]
	}
	for _, arg := range own[1:] {
		if strings.HasPrefix(arg, "-n") || arg == "--namespace" || strings.HasPrefix(arg, "--namespace=") { // -n ns, -n=ns and -nns
			return args
		}
	}
	return slices.Concat(own, []string{"--namespace", namespace}, args[len(own):])
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
	for _, group := range s.leftBehind {
		_ = processgroup.Kill(group)
	}
	s.background, s.leftBehind = nil, nil
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
