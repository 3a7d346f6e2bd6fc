package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
)

// addresses waits until as many addresses are printed.
func addresses(t *testing.T, out *commandtest.Output, n int) (found []string) {
	t.Helper()
	apitest.Eventually(t, "the addresses are printed", func() bool {
		found = out.Find(`http://\S+`)
		return len(found) >= n
	})
	return found
}

// start runs the command until stop is called, which returns its error.
func start(t *testing.T, in io.Reader, change func(*options)) (out *commandtest.Output, stop func() error) {
	t.Helper()
	api := apitest.Start(t)
	t.Setenv("KUBECONFIG", api.Kubeconfig(t, "lab"))
	out = &commandtest.Output{}
	o := &options{env: command.NewEnv(in, out, out), browse: func(string) error { return nil }}
	change(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.run(ctx) }()
	stopped := sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stopped() })
	return out, stopped
}

// post changes the token of an address into a session, and returns the cookies. The transport resolves the name as browsers do.
func post(t *testing.T, address string) *http.Response {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return ask(t, u, http.MethodPost, "/session", url.Values{"token": {u.Fragment}}.Encode(), nil)
}

func ask(t *testing.T, u *url.URL, method, path, body string, cookies []*http.Cookie) *http.Response {
	t.Helper()
	request, err := http.NewRequest(method, "http://127.0.0.1:"+u.Port()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = u.Host
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range cookies {
		request.AddCookie(c)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// TestServe shows U1 and U8: the address that is printed opens the page once, Enter gives another one, and the end of the command is the end of
// the sessions.
func TestServe(t *testing.T) {
	in, enter := io.Pipe()
	out, stop := start(t, in, func(*options) {})
	first := addresses(t, out, 1)[0]
	if !regexp.MustCompile(`^http://kudo-[0-9a-f]{16}\.localhost:[0-9]+/session#[0-9a-f]{64}$`).MatchString(first) {
		t.Errorf("U8: the address is %s", first)
	}
	session := post(t, first)
	if session.StatusCode != http.StatusSeeOther {
		t.Fatalf("the printed address opens no session: %d", session.StatusCode)
	}
	u, _ := url.Parse(first)
	page := ask(t, u, http.MethodGet, "/instances", "", session.Cookies())
	body, _ := io.ReadAll(page.Body)
	if page.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("context staging, namespace lab")) {
		t.Errorf("the page says %d %s", page.StatusCode, body)
	}
	if again := post(t, first); again.StatusCode != http.StatusForbidden {
		t.Errorf("the printed address opens a second session: %d", again.StatusCode)
	}
	if _, err := enter.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	second := addresses(t, out, 2)[1]
	if second == first || post(t, second).StatusCode != http.StatusSeeOther {
		t.Errorf("Enter prints an address that opens no session: %s", second)
	}
	if err := stop(); err != nil {
		t.Errorf("the command ends with %v", err)
	}
	if _, err := http.Get("http://127.0.0.1:" + u.Port()); err == nil {
		t.Error("the port is open after the command has ended")
	}
}

// TestOpen shows U8: the browser gets a file that only the user can read, and no argument has the token.
func TestOpen(t *testing.T) {
	opened := make(chan string, 1)
	out, stop := start(t, strings.NewReader(""), func(o *options) {
		o.open, o.allNamespaces, o.host = true, true, "127.0.0.1"
		o.browse = func(file string) error {
			opened <- file
			return errors.New("no display")
		}
	})
	file := <-opened
	for name, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v (%v), want %v", name, info.Mode(), err, mode)
		}
	}
	text, err := os.ReadFile(file)
	link := regexp.MustCompile(`url=(http://127\.0\.0\.1:[0-9]+/session#([0-9a-f]{64}))"`).FindSubmatch(text)
	if err != nil || link == nil {
		t.Fatalf("the file leads nowhere: %v %s", err, text)
	}
	if strings.Contains(file, string(link[2])) {
		t.Error("the name of the file has the token")
	}
	if got := post(t, string(link[1])).StatusCode; got != http.StatusSeeOther {
		t.Errorf("the file opens nothing: %d", got)
	}
	if own := addresses(t, out, 1)[0]; post(t, own).StatusCode != http.StatusSeeOther {
		t.Error("the address that is printed opens nothing")
	}
	apitest.Eventually(t, "the error is printed", func() bool { return len(out.Find(`no browser can be opened \(no display\)`)) > 0 })
	_ = stop()
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("the file stays: %v", err)
	}
}

// TestOpenWaits: while the browser runs, which ends only with its last window, the page is served, and the command can end.
func TestOpenWaits(t *testing.T) {
	opened, closed := make(chan string, 1), make(chan struct{})
	defer close(closed)
	_, stop := start(t, strings.NewReader(""), func(o *options) {
		o.open = true
		o.browse = func(file string) error {
			opened <- file
			<-closed
			return nil
		}
	})
	text, err := os.ReadFile(<-opened)
	link := regexp.MustCompile(`url=(http://[^"]+)"`).FindSubmatch(text)
	if err != nil || link == nil {
		t.Fatalf("the file leads nowhere: %v %s", err, text)
	}
	if got := post(t, string(link[1])).StatusCode; got != http.StatusSeeOther {
		t.Errorf("the file opens nothing while the browser runs: %d", got)
	}
	if err := stop(); err != nil {
		t.Errorf("the command ends with %v", err)
	}
}

// TestWhere: each page names the context and the namespaces that the flags have chosen.
func TestWhere(t *testing.T) {
	for want, change := range map[string]func(*options){
		"context staging, namespace lab":     func(*options) {},
		"context staging, all namespaces":    func(o *options) { o.allNamespaces = true },
		"context staging, namespace team-a,": func(o *options) { o.env.Flags.Namespace = new("team-a") },
		"context staging, namespace lab, ":   func(o *options) { o.env.Flags.Context = new("staging") },
	} {
		out, stop := start(t, strings.NewReader(""), change)
		address := addresses(t, out, 1)[0]
		u, _ := url.Parse(address)
		page := ask(t, u, http.MethodGet, "/settings", "", post(t, address).Cookies())
		if body, err := io.ReadAll(page.Body); err != nil || !bytes.Contains(body, []byte(want)) {
			t.Errorf("a page does not say %q (%v), but %s", want, err, body)
		}
		if err := stop(); err != nil {
			t.Errorf("%s: the command ends with %v", want, err)
		}
	}
	// The kubeconfig is that of the last command.
	if _, errs := commandtest.Expect(t, New, command.ExitError, "", "ui", "--context", "other"); !strings.Contains(errs, `"other"`) {
		t.Errorf("of a context that does not exist, the error is %s", errs)
	}
}

// TestUsage: the page is never served to other machines.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"ui --host 0.0.0.0":      "this machine only",
		"ui --host evil.example": "this machine only",
		"ui --port 70000":        "invalid argument",
		"ui somewhere":           "no arguments",
	} {
		_, errs := commandtest.Expect(t, New, command.ExitUsage, "", strings.Fields(args)...)
		if !strings.Contains(errs, want) {
			t.Errorf("%s: %s", args, errs)
		}
	}
}

// TestPortTaken: the error names the port and the remedy.
func TestPortTaken(t *testing.T) {
	out, _ := start(t, strings.NewReader(""), func(*options) {})
	u, _ := url.Parse(addresses(t, out, 1)[0])
	_, errs := commandtest.Expect(t, New, command.ExitError, "", "ui", "--port", u.Port())
	if !strings.Contains(errs, "use another --port") {
		t.Errorf("the error is %s", errs)
	}
}

// TestAllowActions shows U5: the page says whether it may act, and only with --allow-actions is there a route that does.
func TestAllowActions(t *testing.T) {
	for _, tc := range []struct {
		allowed bool
		says    string
		answers []int
	}{
		{false, "read-only", []int{http.StatusNotFound, http.StatusMethodNotAllowed}},
		{true, "actions allowed", []int{http.StatusUnprocessableEntity}},
	} {
		in, _ := io.Pipe()
		out, stop := start(t, in, func(o *options) { o.allowActions = tc.allowed })
		address := addresses(t, out, 1)[0]
		session := post(t, address)
		u, _ := url.Parse(address)
		body, _ := io.ReadAll(ask(t, u, http.MethodGet, "/instances", "", session.Cookies()).Body)
		if !bytes.Contains(body, []byte(tc.says)) {
			t.Errorf("U5: with --allow-actions=%t, the page does not say %q", tc.allowed, tc.says)
		}
		answer := ask(t, u, http.MethodPost, "/instances/lab/site/act", "action=retry", session.Cookies())
		if !slices.Contains(tc.answers, answer.StatusCode) {
			t.Errorf("U5: with --allow-actions=%t, an action is answered with %d", tc.allowed, answer.StatusCode)
		}
		stop()
	}
}
