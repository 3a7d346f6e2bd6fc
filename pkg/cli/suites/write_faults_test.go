package suites

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kudo.dev/kudo/pkg/apiproxy"
)

// fakeProcess counts its starts.
type fakeProcess struct {
	starts int
	err    error
}

func (p *fakeProcess) start() error { p.starts++; return nil }
func (p *fakeProcess) kill() error  { return p.err }

// TestWriteFaults checks after which requests the manager is killed.
func TestWriteFaults(t *testing.T) {
	requests := []struct {
		method, path string
		code         int
		answer       string
	}{
		{http.MethodGet, "/a", http.StatusOK, ""},
		{http.MethodPost, "/b", http.StatusCreated, ""},
		{http.MethodPatch, "/c", http.StatusConflict, ""},
		{http.MethodPatch, "/d", http.StatusOK, `{"metadata":{"resourceVersion":"7"}}`},
		{http.MethodPatch, "/d", http.StatusOK, `{"metadata":{"resourceVersion":"7"}}`}, // changes nothing
		{http.MethodPatch, "/d", http.StatusOK, `{"metadata":{"resourceVersion":"8"}}`},
		{http.MethodDelete, "/e", http.StatusOK, ""},
	}
	for _, tc := range []struct {
		reason string
		active bool
		only   int
		// killed are the paths after which the manager is killed.
		killed string
	}{
		{"no case runs", false, 0, ""},
		{"each write that the apiserver has committed", true, 0, "/b /d /d /e"},
		{"one of them", true, 2, "/d"},
		{"there is none of that number", true, 5, ""},
	} {
		manager := &fakeProcess{}
		f := &writeFaults{versions: map[string]string{}, active: tc.active, only: tc.only, manager: manager}
		var cut []string
		for _, q := range requests {
			forwarded := false
			answer, err := f.handle(httptest.NewRequest(q.method, q.path, nil), func(*http.Request) (*http.Response, error) {
				forwarded = true
				return &http.Response{StatusCode: q.code, Body: io.NopCloser(strings.NewReader(q.answer))}, nil
			})
			if !forwarded {
				t.Errorf("%s: %s has not reached the apiserver", tc.reason, q.path)
			}
			if errors.Is(err, apiproxy.ErrCut) {
				cut = append(cut, q.path)
			} else if err != nil || answer.StatusCode != q.code {
				t.Errorf("%s: %s is answered %v, %v", tc.reason, q.path, answer, err)
			}
		}
		if got := strings.Join(cut, " "); got != tc.killed || f.killed != len(cut) || manager.starts != len(cut) {
			t.Errorf("%s: killed after %q (%d), and started %d times", tc.reason, got, f.killed, manager.starts)
		}
	}
}

func TestWriteFaultsFail(t *testing.T) {
	f := &writeFaults{versions: map[string]string{}, active: true, manager: &fakeProcess{err: errors.New("no such process")}}
	forward := func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
	if _, err := f.handle(httptest.NewRequest(http.MethodPost, "/a", nil), forward); !errors.Is(err, apiproxy.ErrCut) || f.err == nil {
		t.Errorf("a kill that fails is lost: %v, %v", err, f.err)
	}
	f = &writeFaults{versions: map[string]string{}, active: true, only: -1, writes: make([]string, maxWrites)}
	if _, err := f.handle(httptest.NewRequest(http.MethodPost, "/a", nil), forward); err != nil || f.err == nil || !strings.Contains(f.err.Error(), "at last POST /a") {
		t.Errorf("a manager that writes without end is not told of: %v, %v", err, f.err)
	}
}

func TestManagerProcess(t *testing.T) {
	failed := make(chan error, 1)
	p := &managerProcess{program: "sleep", args: []string{"60"}, log: filepath.Join(t.TempDir(), "log"), failed: func(err error) { failed <- err }}
	for range 2 {
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
		pid := p.running.Process.Pid
		if err := p.kill(); err != nil || syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d lives: %v", pid, err)
		}
	}
	p.args = []string{"0"}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !strings.Contains(err.Error(), "has ended by itself") {
		t.Error(err)
	}
	if err := p.kill(); err != nil {
		t.Errorf("the kill of a manager that has ended: %v", err)
	}
}
