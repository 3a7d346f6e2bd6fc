package docs

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kudo.dev/kudo/test/env"
)

// patience is how long a command of a page may take.
const patience = 4 * time.Minute

// session is one shell, in which the commands of a page run: variables, the folder and background jobs last.
type session struct {
	cmd       *exec.Cmd
	in        *os.File
	codes     *bufio.Reader
	dir, work string
	n         int
}

// open starts a shell in a folder.
func open(t *testing.T, dir string, environment ...string) *session {
	t.Helper()
	s := &session{dir: dir, work: t.TempDir()}
	stdin, in, err := os.Pipe()
	env.Must(t, err)
	out, codes, err := os.Pipe()
	env.Must(t, err)
	s.in, s.codes = in, bufio.NewReader(out)
	s.cmd = exec.Command("bash", "--norc", "--noprofile")
	s.cmd.Dir = dir
	s.cmd.Env = append(os.Environ(), environment...)
	s.cmd.Stdin, s.cmd.ExtraFiles = stdin, []*os.File{codes}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that background jobs go with the shell
	env.Must(t, s.cmd.Start())
	_ = stdin.Close()
	_ = codes.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.cmd.Wait()
		_ = in.Close()
		_ = out.Close()
	})
	return s
}

// run runs commands and returns what they print, and the exit code: that of the last one, or with all set, of the last
// one that failed.
func (s *session) run(text string, all bool) (string, int, error) {
	s.n++ // each has files of its own: background jobs go on writing into theirs
	commands, printed := filepath.Join(s.work, fmt.Sprintf("commands-%d", s.n)), filepath.Join(s.work, fmt.Sprintf("printed-%d", s.n))
	if err := os.WriteFile(commands, []byte(text), 0o600); err != nil {
		return "", 0, err
	}
	trap, choose := "", ""
	if all {
		trap, choose = "trap '__failed=$?' ERR; ", "trap - ERR; [ $__code != 0 ] || __code=$__failed; "
	}
	line := fmt.Sprintf("__text=$(<%s); __failed=0; %s(exit ${__last:-0}); eval \"$__text\" >%s 2>&1 3>&- </dev/null; __code=$?; __last=$__code; %secho $__code >&3\n", commands, trap, printed, choose)
	if all { // a failure of what came before is none of this
		line = strings.Replace(line, "(exit ${__last:-0}); ", "", 1)
	}
	if _, err := s.in.WriteString(line); err != nil {
		return "", 0, err
	}
	timer := time.AfterFunc(patience, func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	code, err := s.codes.ReadString('\n')
	out, _ := os.ReadFile(printed)
	if err != nil {
		return string(out), 0, fmt.Errorf("the shell has ended, or did not within %s: %w", patience, err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(code))
	return string(out), n, err
}
