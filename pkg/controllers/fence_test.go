package controllers

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// trackingBody is the body of a request. It notes that it was closed.
type trackingBody struct {
	io.Reader
	closed bool
}

// Close implements io.Closer.
func (b *trackingBody) Close() error {
	b.closed = true
	return nil
}

// TestFence checks that a manager which has held the lease sends no write once leaseDuration has passed since it sent the last renewal that
// succeeded.
func TestFence(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	leases := "/apis/coordination.k8s.io/v1/namespaces/kudo-system/leases"
	code, took, sent := http.StatusOK, time.Duration(0), 0
	next := roundTripper(func(*http.Request) (*http.Response, error) {
		clock.SetTime(clock.Now().Add(took))
		sent++
		answer := httptest.NewRecorder()
		answer.WriteHeader(code)
		return answer.Result(), nil
	})
	f := &fence{clock: clock, namespace: "kudo-system"}
	c := http.Client{Transport: f.wrap(next)}
	send := func(method, path string) error {
		t.Helper()
		body := &trackingBody{Reader: strings.NewReader("{}")}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:1/prefix"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		before := sent
		answer, err := c.Do(r)
		if err != nil {
			if sent != before || !body.closed {
				t.Errorf("%s %s is refused, and was sent %d times; its body is closed: %t", method, path, sent-before, body.closed)
			}
			return err
		}
		return answer.Body.Close()
	}
	const writePath = "/api/v1/namespaces/ns/configmaps/a"
	for _, step := range []struct {
		reason       string
		method, path string
		code         int
		passes, took time.Duration
		refused      bool
	}{
		{"it has not led yet", http.MethodPatch, writePath, 200, 0, 0, false},
		{"another manager has the lease", http.MethodPut, leases + "/kudo-manager", 409, 0, 0, false},
		{"so it has not led", http.MethodPatch, writePath, 200, time.Hour, 0, false},
		{"it leads", http.MethodPost, leases, 201, 0, 0, false},
		{"the lease lasts", http.MethodPatch, writePath, 200, 14 * time.Second, 0, false},
		{"the renewal takes four seconds", http.MethodPut, leases + "/kudo-manager", 200, 0, 4 * time.Second, false},
		{"it lasts from the begin of the renewal", http.MethodDelete, writePath, 200, 10 * time.Second, 0, false},
		{"it has expired", http.MethodPatch, writePath, 200, time.Second, 0, true},
		{"a creation is a write", http.MethodPost, "/api/v1/namespaces/ns/configmaps", 200, 0, 0, true},
		{"what only reads is sent", http.MethodGet, writePath, 200, 0, 0, false},
		{"the lease of another component is no renewal", http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/kudo-system/leases/other", 200, 0, 0, true},
		{"a renewal that fails changes nothing", http.MethodPut, leases + "/kudo-manager", 409, 0, 0, false},
		{"so it has expired still", http.MethodPatch, writePath, 200, 0, 0, true},
	} {
		clock.SetTime(clock.Now().Add(step.passes))
		code, took = step.code, step.took
		if err := send(step.method, step.path); errors.Is(err, errLeaseExpired) != step.refused || err != nil && !step.refused {
			t.Errorf("%s: %s %s: %v", step.reason, step.method, step.path, err)
		}
	}
}
