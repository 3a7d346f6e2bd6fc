// Package ocitest is a registry of OCI artifacts for tests. It keeps to the distribution specification as far as the clients of kudo go, and
// a test can make it hostile.
package ocitest

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
)

// The user that a registry knows, and the token that it issues.
const (
	User, Password = "pusher", "hidden"
	Token          = "pass"
)

// Registry is a registry that wants a token, which its own host issues.
type Registry struct {
	*httptest.Server
	// Open is set if the registry wants no token.
	Open bool
	// Hostile answers a request in another way, if it returns true.
	Hostile func(w http.ResponseWriter, r *http.Request) bool

	mu sync.Mutex
	// blobs have repository/digest as keys, tags repository:tag.
	blobs    map[string][]byte
	tags     map[string]string
	requests []string
	uploads  int
}

// New starts a registry, which is stopped with the test.
func New(t testing.TB, tls bool) *Registry {
	t.Helper()
	r := &Registry{blobs: map[string][]byte{}, tags: map[string]string{}}
	if tls {
		r.Server = httptest.NewTLSServer(r)
	} else {
		r.Server = httptest.NewServer(r)
	}
	t.Cleanup(r.Close)
	return r
}

// Host returns the host and port.
func (r *Registry) Host() string { _, host, _ := strings.Cut(r.URL, "://"); return host }

// Tags returns the tags and their digests, as NAME:TAG.
func (r *Registry) Tags() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]string{}
	for tag, d := range r.tags {
		out[tag] = d
	}
	return out
}

// SetTag moves a tag, such as kudo/web:1.0.0, to a manifest, which is stored.
func (r *Registry) SetTag(name string, manifest []byte, blobs ...[]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	repository := name[:strings.LastIndex(name, ":")]
	for _, b := range append([][]byte{manifest}, blobs...) {
		r.blobs[repository+"/"+digest.FromBytes(b).String()] = b
	}
	r.tags[name] = digest.FromBytes(manifest).String()
}

// Blob returns a blob or manifest of a repository, by its digest.
func (r *Registry) Blob(repository, d string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.blobs[repository+"/"+d]
}

// Requests returns the requests since the last call, as METHOD PATH, and how many blobs and manifests they have uploaded.
func (r *Registry) Requests() (requests []string, uploads int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests, uploads = r.requests, r.uploads
	r.requests, r.uploads = nil, 0
	return requests, uploads
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, request.Method+" "+request.URL.Path)
	r.mu.Unlock()
	if r.Hostile != nil && r.Hostile(w, request) { // which may not end before the client does
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if request.URL.Path == "/token" {
		if user, password, _ := request.BasicAuth(); user != User || password != Password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"token":"` + Token + `"}`))
		return
	}
	if !r.Open && request.Header.Get("Authorization") != "Bearer "+Token {
		Challenge(w, r.URL)
		return
	}
	path := strings.TrimPrefix(request.URL.Path, "/v2/")
	for _, kind := range []string{"/manifests/", "/blobs/uploads/", "/blobs/", "/tags/"} {
		if repository, name, is := strings.Cut(path, kind); is {
			r.serve(w, request, repository, strings.Trim(kind, "/"), name)
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

// Challenge demands a token of a realm.
func Challenge(w http.ResponseWriter, realm string) {
	w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="lab",scope="repository:kudo:pull,push"`, realm))
	w.WriteHeader(http.StatusUnauthorized)
}

func (r *Registry) serve(w http.ResponseWriter, request *http.Request, repository, kind, name string) {
	switch request.Method {
	case http.MethodHead, http.MethodGet:
		if kind == "tags" {
			r.list(w, repository)
			return
		}
		if d, is := r.tags[repository+":"+name]; is && kind == "manifests" {
			name = d
		}
		Answer(w, r.blobs[repository+"/"+name])
	case http.MethodPost:
		w.Header().Set("Location", "/v2/"+repository+"/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPut:
		content, _ := io.ReadAll(request.Body)
		d := digest.FromBytes(content).String()
		if want := request.URL.Query().Get("digest"); kind != "manifests" && want != d {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if kind == "manifests" && !strings.HasPrefix(name, "sha256:") {
			r.tags[repository+":"+name] = d
		}
		r.blobs[repository+"/"+d] = content
		r.uploads++
		w.Header().Set("Docker-Content-Digest", d)
		w.WriteHeader(http.StatusCreated)
	}
}

func (r *Registry) list(w http.ResponseWriter, repository string) {
	tags := []string{}
	for name := range r.tags {
		if tag, is := strings.CutPrefix(name, repository+":"); is {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	if len(tags) == 0 {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"name": repository, "tags": tags})
}

// Answer sends a blob or manifest with its digest, or that there is none.
func Answer(w http.ResponseWriter, content []byte) {
	if content == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var m struct{ MediaType string }
	if json.Unmarshal(content, &m) != nil || m.MediaType == "" {
		m.MediaType = "application/octet-stream"
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(content)))
	w.Header().Set("Content-Type", m.MediaType)
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(content).String())
	_, _ = w.Write(content)
}

// Foreigner is a server of another host, which keeps what it is sent.
type Foreigner struct {
	*httptest.Server

	mu   sync.Mutex
	seen []string
}

// NewForeigner starts a server of another host, with TLS.
func NewForeigner(t testing.TB) *Foreigner {
	t.Helper()
	f := &Foreigner{}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen = append(f.seen, fmt.Sprint(r.Method, " ", r.URL, " ", r.Header["Authorization"], r.Header["Cookie"], string(body)))
		switch {
		case strings.HasPrefix(r.URL.Path, "/token"):
			_, _ = w.Write([]byte(`{"token":"` + Token + `","access_token":"` + Token + `"}`))
		case r.Header.Get("Authorization") == "":
			w.Header().Set("Www-Authenticate", `Basic realm="lab"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// Seen returns the requests that the server got.
func (f *Foreigner) Seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// Leaked returns what the server saw of the credentials of a registry.
func (f *Foreigner) Leaked() (out []string) {
	all := strings.Join(f.Seen(), "\n")
	for _, secret := range []string{Password, Token, base64.StdEncoding.EncodeToString([]byte(User + ":" + Password)), "Bearer", "Basic"} {
		if strings.Contains(all, secret) {
			out = append(out, secret)
		}
	}
	return out
}

// ConfigFile writes the credentials of hosts as docker does, and returns the file. If identity is not empty, they are an identity token.
func ConfigFile(t testing.TB, identity string, hosts ...string) string {
	t.Helper()
	auths := map[string]any{}
	for _, host := range hosts {
		auths[host] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(User + ":" + Password))}
		if identity != "" {
			auths[host] = map[string]string{"identitytoken": identity}
		}
	}
	text, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "config.json", text)
}

// CAFile writes the certificates of servers, and returns the file.
func CAFile(t testing.TB, servers ...*httptest.Server) string {
	t.Helper()
	var text []byte
	for _, s := range servers {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})...)
	}
	return writeFile(t, "ca.pem", text)
}

func writeFile(t testing.TB, name string, text []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
