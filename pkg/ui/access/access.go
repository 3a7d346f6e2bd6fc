// Package access lets only the browsers of one user reach a page on a loopback port. It keeps other web pages, other programs on the
// machine and other users of the machine away.
//
//	Host is another          421: a foreign name was made to point to the port (DNS rebinding)
//	another site asks        403: by Sec-Fetch-Site, or by Origin
//	no session               401: but for /session, by which a one-time token becomes the cookie of a session
package access

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// SessionPath is the one path that needs no session, with the paths below it.
	SessionPath = "/session"
	// TokenTime is how long a token can be used.
	TokenTime = time.Minute
	// Cookie is the name of the cookie of a session.
	Cookie = "kudo-session"
	// MaxBody bounds the body of a request, in bytes.
	MaxBody = 1 << 20
	// bodyTime is how long a body may take. A timeout of the server would end streams, too.
	bodyTime = 10 * time.Second
	// maxTokens bounds how many tokens are valid at a time.
	maxTokens = 16
	// secretBytes is the size of tokens and of the values of cookies.
	secretBytes = 32
)

// policy is the Content-Security-Policy of each response.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// Pages are the handlers behind a Gate.
type Pages struct {
	// Private serves requests of a session.
	Private http.Handler
	// Public serves GET requests of SessionPath, and of what is below it.
	Public http.Handler
	// Deny writes the body of a response that refuses a request. The message is fixed, and has no text of the request.
	Deny func(w http.ResponseWriter, status int, message string)
}

// Gate is an http.Handler that serves the requests of one host, and of browsers that have a session. Sessions end with the process.
type Gate struct {
	host        string
	pages       Pages
	clock       clock.PassiveClock
	crossOrigin *http.CrossOriginProtection

	mu sync.Mutex
	// The keys are digests of secrets, so that no comparison takes a time that depends on a secret.
	tokens   map[[sha256.Size]byte]time.Time
	sessions map[[sha256.Size]byte]bool
}

// New returns a Gate for a host, such as `kudo-0123456789abcdef.localhost:8001`.
func New(host string, pages Pages, now clock.PassiveClock) *Gate {
	return &Gate{host: host, pages: pages, clock: now, crossOrigin: http.NewCrossOriginProtection(),
		tokens: map[[sha256.Size]byte]time.Time{}, sessions: map[[sha256.Size]byte]bool{}}
}

// NewName returns a host name that cannot be guessed, and that browsers resolve to the loopback address without DNS. A browser sends a
// cookie of an IP address to all its ports, and a cookie of this name to no other listener.
func NewName() string {
	return "kudo-" + newSecret()[:16] + ".localhost"
}

// NewToken returns a token that one request can change into a session, within TokenTime.
func (g *Gate) NewToken() string {
	token, now := newSecret(), g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	var oldest [sha256.Size]byte
	for sum, until := range g.tokens {
		switch {
		case now.After(until):
			delete(g.tokens, sum)
		case g.tokens[oldest].IsZero() || until.Before(g.tokens[oldest]):
			oldest = sum
		}
	}
	if len(g.tokens) >= maxTokens {
		delete(g.tokens, oldest)
	}
	g.tokens[sha256.Sum256([]byte(token))] = now.Add(TokenTime)
	return token
}

// newSecret returns random hexadecimal digits.
func newSecret() string {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // it never returns an error
	return hex.EncodeToString(secret)
}

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(g.clock.Now().Add(bodyTime))
	}
	public := r.URL.Path == SessionPath || strings.HasPrefix(r.URL.Path, SessionPath+"/")
	switch {
	case r.Host != g.host:
		g.pages.Deny(w, http.StatusMisdirectedRequest, "This address is not the one that kubectl kudo ui has printed.")
	case g.crossOrigin.Check(r) != nil, g.isForeign(r):
		g.pages.Deny(w, http.StatusForbidden, "Another web page has asked for this. Open the address in a window of its own.")
	case r.URL.Path == SessionPath && r.Method == http.MethodPost:
		g.enter(w, r)
	case public && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		g.pages.Public.ServeHTTP(w, r)
	case public:
		w.Header().Set("Allow", "GET, HEAD, POST")
		g.pages.Deny(w, http.StatusMethodNotAllowed, "This method is not allowed here.")
	case !g.hasSession(r):
		g.pages.Deny(w, http.StatusUnauthorized, "This browser has no session. Press Enter where kubectl kudo ui runs, and open the address "+
			"that it prints.")
	default:
		g.pages.Private.ServeHTTP(w, r)
	}
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// isForeign reports whether a browser says that another site has caused the request: CrossOriginProtection lets each GET pass. Only the
// address with the token may be opened from elsewhere, such as from the file of --open. Browsers send the header to a loopback address.
func (g *Gate) isForeign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return r.URL.Path != SessionPath || r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// enter changes a token into a session.
func (g *Gate) enter(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		g.pages.Deny(w, http.StatusBadRequest, "The request cannot be read.")
		return
	}
	if !g.useToken(r.PostForm.Get("token")) {
		g.pages.Deny(w, http.StatusForbidden, "This address was opened before, or is older than a minute. Press Enter where kubectl kudo ui "+
			"runs, and open the address that it prints.")
		return
	}
	session := newSecret()
	g.mu.Lock()
	g.sessions[sha256.Sum256([]byte(session))] = true
	g.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: Cookie, Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Location", "/")
	w.WriteHeader(http.StatusSeeOther)
}

// useToken reports whether a token is valid. It is not valid again.
func (g *Gate) useToken(token string) bool {
	sum := sha256.Sum256([]byte(token))
	g.mu.Lock()
	defer g.mu.Unlock()
	until, known := g.tokens[sum]
	delete(g.tokens, sum)
	return known && !g.clock.Now().After(until)
}

func (g *Gate) hasSession(r *http.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range r.CookiesNamed(Cookie) {
		if g.sessions[sha256.Sum256([]byte(c.Value))] {
			return true
		}
	}
	return false
}
