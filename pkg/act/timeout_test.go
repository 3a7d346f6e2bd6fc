package act

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"kudo.dev/kudo/pkg/preview"
)

// TestLimitTransport checks that a request before the end is answered, that the end reaches a request whose answer is being read and one
// that waits for its answer, and that none is sent after it (P4).
func TestLimitTransport(t *testing.T) {
	requests, ended := make(chan string, 10), make(chan struct{})
	t.Cleanup(func() { close(ended) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path
		switch r.URL.Path {
		case "/waits":
			<-ended
		case "/begins":
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
			<-ended
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	limit, end := context.WithCancel(t.Context())
	c := http.Client{Transport: LimitTransport(limit, preview.ErrLate)(http.DefaultTransport)}
	get := func(path string) error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			return err
		}
		response, err := c.Do(request)
		if err != nil {
			return err
		}
		_, err = io.ReadAll(response.Body)
		return errors.Join(err, response.Body.Close())
	}
	if err := get("/answers"); err != nil {
		t.Error(err)
	}
	errs := make(chan error, 2)
	for _, path := range []string{"/waits", "/begins"} {
		go func() { errs <- get(path) }()
	}
	for range 3 { // both have come, along with the first
		<-requests
	}
	end()
	for range 2 {
		if err := <-errs; !errors.Is(err, preview.ErrLate) {
			t.Errorf("a request amid the end: %v, want preview.ErrLate", err)
		}
	}
	if err := get("/later"); !errors.Is(err, preview.ErrLate) || len(requests) > 0 {
		t.Errorf("a request after the end: %v, %d sent, want preview.ErrLate", err, len(requests))
	}
}
