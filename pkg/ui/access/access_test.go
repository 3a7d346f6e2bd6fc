package access

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

const host = "kudo-0123456789abcdef.localhost:8001"

// gate returns a Gate before pages that say which of them has answered.
func gate(t *testing.T) (*Gate, *clocktesting.FakePassiveClock) {
	t.Helper()
	say := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				http.Error(w, "too large", http.StatusRequestEntityTooLarge)
				return
			}
			_, _ = io.WriteString(w, text)
		})
	}
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	return New(host, Pages{Private: say("private"), Public: say("public"), Deny: func(w http.ResponseWriter, status int, message string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, message)
	}}, now), now
}

// ask sends a request; headers are pairs.
func ask(g *Gate, method, path, body string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, "http://"+host+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Result()
}

// enter changes a token into the value of a cookie.
func enter(t *testing.T, g *Gate, token string, headers ...string) (cookie string, status int) {
	t.Helper()
	response := ask(g, "POST", "/session", url.Values{"token": {token}}.Encode(), headers...)
	for _, c := range response.Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge != 0 || c.Domain != "" {
			t.Errorf("U8: the cookie is %s", c)
		}
		cookie = c.Name + "=" + c.Value
	}
	return cookie, response.StatusCode
}

// TestRequests shows U7 and U8: who may ask for what. An attacker is another web page, or another program or user of the machine.
func TestRequests(t *testing.T) {
	g, _ := gate(t)
	cookie, status := enter(t, g, g.NewToken(), "Origin", "http://"+host, "Sec-Fetch-Site", "same-origin")
	if status != http.StatusSeeOther || cookie == "" {
		t.Fatalf("a token gives no session: %d", status)
	}
	other, _ := gate(t)
	foreign, _ := enter(t, other, other.NewToken())
	big := strings.Repeat("x", MaxBody+1)
	for _, tc := range []struct {
		reason, method, path, body string
		headers                    []string
		status                     int
	}{
		{"a browser with a session", "GET", "/instances", "", []string{"Cookie", cookie}, 200},
		{"its form", "POST", "/x", "a=b", []string{"Cookie", cookie, "Origin", "http://" + host, "Sec-Fetch-Site", "same-origin"}, 200},
		{"no session", "GET", "/instances", "", nil, 401},
		{"no session on a path that does not exist", "GET", "/nothing", "", nil, 401},
		{"a POST without Origin passes the protection, and needs the cookie", "POST", "/x", "a=b", nil, 401},
		{"a cookie that was made up", "GET", "/instances", "", []string{"Cookie", Cookie + "=1"}, 401},
		{"an empty cookie", "GET", "/instances", "", []string{"Cookie", Cookie + "="}, 401},
		{"the cookie of another process", "GET", "/instances", "", []string{"Cookie", foreign}, 401},
		{"the token is no cookie", "GET", "/instances", "", []string{"Cookie", Cookie + "=" + g.NewToken()}, 401},
		{"a path that only begins like the public one", "GET", "/sessions", "", nil, 401},
		{"a name that was made to point here", "GET", "/instances", "", []string{"Cookie", cookie, "Host", "evil.example:8001"}, 421},
		{"also for what is public", "GET", "/session", "", []string{"Host", "evil.example:8001"}, 421},
		{"the address instead of the name", "GET", "/session", "", []string{"Host", "127.0.0.1:8001"}, 421},
		{"another port", "GET", "/session", "", []string{"Host", "kudo-0123456789abcdef.localhost:8002"}, 421},
		{"no port", "GET", "/session", "", []string{"Host", "kudo-0123456789abcdef.localhost"}, 421},
		{"a form of another site", "POST", "/x", "a=b", []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site"}, 403},
		{"a form of another origin, from a browser without Sec-Fetch-Site", "POST", "/x", "a=b", []string{"Cookie", cookie, "Origin", "http://evil.example"}, 403},
		{"a form in a sandbox", "POST", "/x", "a=b", []string{"Cookie", cookie, "Origin", "null"}, 403},
		{"a form of another port of the machine", "POST", "/x", "a=b", []string{"Cookie", cookie, "Origin", "http://127.0.0.1:9000", "Sec-Fetch-Site", "same-site"}, 403},
		{"an image of another site", "GET", "/instances", "", []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"a frame of another port", "GET", "/instances", "", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate"}, 403},
		{"the file of --open", "GET", "/session", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"a script of another site reads the public page", "GET", "/session", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"what the public page needs", "GET", "/session/style.css", "", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"another method", "DELETE", "/session", "", []string{"Cookie", cookie}, 405},
		{"a large body", "POST", "/x", big, []string{"Cookie", cookie}, 413},
		{"a large body for a token", "POST", "/session", "token=" + big, nil, 400},
		{"no token", "POST", "/session", "token=", nil, 403},
		{"a token in the address is none", "POST", "/session?token=" + g.NewToken(), "a=b", nil, 403},
		{"a token by another site", "POST", "/session", "token=" + g.NewToken(), []string{"Origin", "http://evil.example"}, 403},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			response := ask(g, tc.method, tc.path, tc.body, tc.headers...)
			if response.StatusCode != tc.status {
				t.Errorf("%s %s: %d, want %d", tc.method, tc.path, response.StatusCode, tc.status)
			}
			checkHeaders(t, response)
			if tc.status > 400 && len(response.Cookies()) > 0 {
				t.Error("a refused request gets a cookie")
			}
		})
	}
}

// timed is a response of a server that can end the reading of a request.
type timed struct {
	*httptest.ResponseRecorder
	until time.Time
}

// SetReadDeadline is called by http.ResponseController.
func (w *timed) SetReadDeadline(until time.Time) error {
	w.until = until
	return nil
}

// TestSlowBody shows U7: a body has to arrive within some seconds, whoever sends it. A request without a body may be a stream, which has no end.
func TestSlowBody(t *testing.T) {
	g, now := gate(t)
	for _, tc := range []struct {
		reason, host string
		body         io.Reader
		want         time.Time
	}{
		{"a stream", host, nil, time.Time{}},
		{"a body", host, strings.NewReader("token=x"), now.Now().Add(10 * time.Second)},
		{"a body of unknown length", host, io.MultiReader(strings.NewReader("token=x")), now.Now().Add(10 * time.Second)},
		{"the body of a refused request", "evil.example", strings.NewReader("token=x"), now.Now().Add(10 * time.Second)},
	} {
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		g.ServeHTTP(w, httptest.NewRequest("POST", "http://"+tc.host+"/session", tc.body))
		if w.until != tc.want {
			t.Errorf("%s may arrive until %s, want %s", tc.reason, w.until, tc.want)
		}
	}
	// The deadline ends what a real server reads: here it is long past.
	server := httptest.NewServer(g)
	defer server.Close()
	defer server.CloseClientConnections()
	body, sender := io.Pipe()
	defer func() { _ = sender.Close() }()
	request, err := http.NewRequest("POST", server.URL+"/session", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that does not arrive is answered with %d", response.StatusCode)
	}
}

// checkHeaders shows U7 for a response, whatever its status.
func checkHeaders(t *testing.T, response *http.Response) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("U7: %s is %q, want %q", name, got, want)
		}
	}
}

// TestTokens shows U8: a token is good once, for a minute, and others stay good.
func TestTokens(t *testing.T) {
	g, now := gate(t)
	first, second := g.NewToken(), g.NewToken()
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(first) || first == second {
		t.Errorf("tokens are %q and %q", first, second)
	}
	one, status := enter(t, g, first)
	if status != 303 {
		t.Fatalf("the token is refused: %d", status)
	}
	if cookie, status := enter(t, g, first); status != 403 || cookie != "" {
		t.Errorf("a token is good twice: %d", status)
	}
	now.SetTime(now.Now().Add(TokenTime))
	two, status := enter(t, g, second)
	if status != 303 || one == two {
		t.Errorf("the token of another window is refused, or gives the same session: %d", status)
	}
	late := g.NewToken()
	now.SetTime(now.Now().Add(TokenTime + time.Nanosecond))
	if cookie, status := enter(t, g, late); status != 403 || cookie != "" {
		t.Errorf("a token is good after a minute: %d", status)
	}
	for _, cookie := range []string{one, two} {
		if got := ask(g, "GET", "/", "", "Cookie", cookie).StatusCode; got != 200 {
			t.Errorf("a session has ended: %d", got)
		}
	}
}

// TestTokensAreBounded: whoever presses Enter for hours fills no memory, and the newest tokens are good.
func TestTokensAreBounded(t *testing.T) {
	g, now := gate(t)
	first, last := g.NewToken(), ""
	for range 10 * maxTokens {
		now.SetTime(now.Now().Add(time.Millisecond))
		last = g.NewToken()
	}
	if len(g.tokens) > maxTokens {
		t.Errorf("%d tokens are kept", len(g.tokens))
	}
	if _, status := enter(t, g, first); status != 403 {
		t.Errorf("the oldest token is good: %d", status)
	}
	if _, status := enter(t, g, last); status != 303 {
		t.Errorf("the newest token is refused: %d", status)
	}
}

// TestNewName shows U8: the host is a name that no one can guess.
func TestNewName(t *testing.T) {
	one, two := NewName(), NewName()
	if !regexp.MustCompile(`^kudo-[0-9a-f]{16}\.localhost$`).MatchString(one) || one == two {
		t.Errorf("names are %s and %s", one, two)
	}
}
