package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRenew checks C67 and C68: after a change of the address or of the certificate, no call goes over a connection that was busy at that
// moment.
func TestRenew(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	serve := func(name string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				close(arrived)
				<-release
			}
			_, _ = io.WriteString(w, name)
		}))
		t.Cleanup(s.Close)
		return s
	}
	var address atomic.Value
	before, after := serve("before"), serve("after")
	address.Store(strings.TrimPrefix(before.URL, "http://"))
	c := &caller{}
	c.client.Store(&http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address.Load().(string))
	}}})
	ask := func(path string) string {
		response, err := c.client.Load().Get("http://hook" + path)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(response.Body)
		return string(text)
	}
	slow := make(chan string)
	go func() { slow <- ask("/slow") }()
	<-arrived
	address.Store(strings.TrimPrefix(after.URL, "http://"))
	c.renew()
	if got := ask("/"); got != "after" {
		t.Errorf("the first call after the change: %s", got)
	}
	close(release)
	if got := <-slow; got != "before" {
		t.Errorf("the call that was under way: %s", got)
	}
	for range 5 {
		if got := ask("/"); got != "after" {
			t.Errorf("a call after the change: %s", got)
		}
	}
}

// TestLookupText checks that the text of a failed look-up of a name has nothing that differs from call to call.
func TestLookupText(t *testing.T) {
	failed := &net.DNSError{Err: "read udp 127.0.0.1:54425->127.0.0.53:53: read: connection refused", Name: "hook.example.org"}
	if got := stableText(failed).Error(); strings.Contains(got, "54425") || !strings.Contains(got, "hook.example.org") {
		t.Errorf("%q", got)
	}
	missing := &net.DNSError{Err: "no such host", Name: "hook.example.org", IsNotFound: true}
	if got := stableText(missing).Error(); !strings.Contains(got, "no such host") {
		t.Errorf("%q", got)
	}
}
