// Package process starts programs that outlive the one that started them, and
// finds, signals and stops them later without ever touching a stranger that
// has been given the same process id.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ID names one run of a program: a process id alone is used again by the
// system, together with the time of its start it is not.
type ID struct {
	PID int `json:"pid"`
	// Born is an opaque token for the time of start. Empty when the system
	// does not tell it.
	Born string `json:"born,omitempty"`
}

// Command is what to run in the background.
type Command struct {
	Path string
	Args []string
	Dir  string
	// Log receives stdout and stderr. What an earlier run left there is kept
	// as Log + ".1".
	Log string
}

// Start runs c detached: in a session of its own, so that neither Ctrl-C nor
// the end of the terminal reaches it. The channel is closed when the process
// has ended while this one was still there.
func Start(c Command) (ID, <-chan struct{}, error) {
	log, err := freshLog(c.Log)
	if err != nil {
		return ID{}, nil, err
	}
	defer log.Close()

	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return ID{}, nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	id := ID{PID: cmd.Process.Pid}
	if info, ok := inspect(id.PID); ok {
		id.Born = info.born
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // reaps it; how it ended is in its log
	}()
	return id, ended, nil
}

func freshLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for logs: %w", err)
	}
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("putting the old log aside: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return f, nil
}

// Alive reports whether exactly this process still runs. One that has ended but
// was not reaped by its parent counts as ended.
func (id ID) Alive() bool {
	if id.PID <= 0 {
		return false
	}
	info, ok := inspect(id.PID)
	if !ok || info.zombie {
		return false
	}
	return id.Born == "" || info.born == "" || id.Born == info.born
}

// Kill ends the process at once and waits until it has ended.
func (id ID) Kill(ctx context.Context) error {
	if err := id.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !id.waitGone(ctx, 10*time.Second) {
		return fmt.Errorf("process %d is still there after SIGKILL", id.PID)
	}
	return nil
}

// Stop asks the process to end, and ends it when it has not after grace.
func (id ID) Stop(ctx context.Context, grace time.Duration) error {
	if err := id.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if id.waitGone(ctx, grace) {
		return nil
	}
	return id.Kill(context.WithoutCancel(ctx))
}

func (id ID) signal(s syscall.Signal) error {
	if !id.Alive() {
		return nil
	}
	if err := syscall.Kill(id.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to process %d: %w", s, id.PID, err)
	}
	return nil
}

func (id ID) waitGone(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for id.Alive() {
		select {
		case <-ctx.Done():
			return !id.Alive()
		case <-tick.C:
		}
	}
	return true
}
