// Package terminal runs commands on a pseudo terminal, for tests of what they draw there.
package terminal

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

// Terminal is a command on a terminal of its own, and what that terminal shows.
type Terminal struct {
	command *exec.Cmd
	file    *os.File
	screen  vt10x.Terminal
	read    chan struct{}
}

// Start runs a command on a terminal with a size.
func Start(tb testing.TB, columns, rows int, command *exec.Cmd) *Terminal {
	tb.Helper()
	s := &Terminal{command: command, screen: vt10x.New(vt10x.WithSize(columns, rows)), read: make(chan struct{})}
	var err error
	if s.file, err = pty.StartWithSize(command, winsize(columns, rows)); err != nil {
		tb.Fatalf("start the command on a pseudo terminal: %v", err)
	}
	go func() {
		defer close(s.read)
		for in := bufio.NewReader(s.file); s.screen.Parse(in) == nil; {
			continue
		}
	}()
	tb.Cleanup(func() { _ = s.file.Close() })
	return s
}

func winsize(columns, rows int) *pty.Winsize {
	return &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}
}

// Resize changes the size of the terminal. Lines that are longer than a narrower terminal lose their end.
func (s *Terminal) Resize(tb testing.TB, columns, rows int) {
	tb.Helper()
	s.screen.Resize(columns, rows)
	if err := pty.Setsize(s.file, winsize(columns, rows)); err != nil {
		tb.Fatalf("resize the terminal: %v", err)
	}
}

// Interrupt types Ctrl-C.
func (s *Terminal) Interrupt(tb testing.TB) {
	tb.Helper()
	if _, err := s.file.WriteString("\x03"); err != nil {
		tb.Fatalf("type Ctrl-C: %v", err)
	}
}

// Shown returns the rows of the terminal down to the last one that is not empty.
func (s *Terminal) Shown() string {
	rows := strings.Split(s.screen.String(), "\n")
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

// Await waits until the terminal shows a text.
func (s *Terminal) Await(tb testing.TB, what, text string) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.Shown(), text); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("%s: the terminal does not show %q:\n%s", what, text, s.Shown())
		}
	}
}

// End waits for the end of the command, and returns its exit code and what the terminal shows.
func (s *Terminal) End(tb testing.TB) (int, string) {
	tb.Helper()
	err := s.command.Wait()
	<-s.read
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		tb.Fatal(err)
	}
	return s.command.ProcessState.ExitCode(), s.Shown()
}
