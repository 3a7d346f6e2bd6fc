// Package podexec runs a command in a container and takes what it prints.
package podexec

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
)

// Executor runs commands through the apiserver, with the rights of ServiceAccounts.
type Executor struct {
	config *rest.Config
	host   *url.URL
}

// New returns an executor for the cluster of a config, whose user may impersonate ServiceAccounts.
func New(config *rest.Config) (*Executor, error) {
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &Executor{config: config, host: host}, nil
}

// CommandError is a command that ran and failed.
type CommandError struct {
	Code   int
	Stderr string
}

// Error implements error.
func (e *CommandError) Error() string {
	return fmt.Sprintf("ended with exit code %d: %s", e.Code, strings.TrimSpace(e.Stderr))
}

// TooLargeError is output beyond the limit.
type TooLargeError struct{ Limit int }

// Error implements error.
func (e *TooLargeError) Error() string { return fmt.Sprintf("is larger than %d bytes", e.Limit) }

// Container names a container of a pod.
type Container struct{ Namespace, Pod, Name string }

// Output runs a command in a container as a user, and returns its standard output. A command that fails is a
// *CommandError, output beyond the limit (in bytes) a *TooLargeError; any other error is transient.
func (e *Executor) Output(ctx context.Context, user string, in Container, command []string, limit int) ([]byte, error) {
	if user == "" {
		return nil, errors.New("a command needs a user to run as")
	}
	config := rest.CopyConfig(e.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	at := e.address(in, command)
	websocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, at.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, at)
	if err != nil {
		return nil, err
	}
	either, err := remotecommand.NewFallbackExecutor(websocket, spdy, httpstream.IsUpgradeFailure)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stdout, stderr := &limitedBuffer{limit: limit, full: cancel}, &limitedBuffer{limit: maxStderr, cut: true}
	err = either.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
	printed, over := stdout.result()
	if over {
		return nil, &TooLargeError{limit}
	}
	var failed exec.CodeExitError
	if errors.As(err, &failed) {
		message, _ := stderr.result()
		return nil, &CommandError{failed.Code, string(message)}
	}
	return printed, err
}

// maxStderr is how much of the error output is kept, in bytes.
const maxStderr = 4 << 10

func (e *Executor) address(in Container, command []string) *url.URL {
	u := *e.host
	u.Path = e.host.Path + fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/exec", in.Namespace, in.Pod)
	query := url.Values{"container": {in.Name}, "stdout": {"true"}, "stderr": {"true"}, "command": command}
	u.RawQuery = query.Encode()
	return &u
}

// limitedBuffer takes output up to a limit. Beyond it, it cuts, or says that it is full. The buffer is not embedded: its
// ReadFrom would go past the limit. A stream that was ended may still be writing.
type limitedBuffer struct {
	limit int
	cut   bool
	full  func()

	mu       sync.Mutex
	taken    []byte
	exceeded bool
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := min(b.limit-len(b.taken), len(p))
	b.taken = append(b.taken, p[:room]...)
	if room < len(p) && !b.cut {
		b.exceeded = true
		b.full()
	}
	return len(p), nil
}

func (b *limitedBuffer) result() (taken []byte, over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.taken), b.exceeded
}
