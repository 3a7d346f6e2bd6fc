package image

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/kudoinit"
)

// imageFile writes an image for two platforms, and returns its file, its digest and its blobs.
func imageFile(t *testing.T) (string, string, map[string][]byte) {
	t.Helper()
	blobs := map[string][]byte{}
	add := func(mediaType string, content []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
		blobs[d.Digest.String()] = content
		return d
	}
	encode := func(object any) []byte {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for _, processor := range []string{"amd64", "arm64"} {
		d := add(ocispec.MediaTypeImageManifest, encode(ocispec.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
			Config: add(ocispec.MediaTypeImageConfig, []byte(`{"architecture":"`+processor+`"}`)),
			Layers: []ocispec.Descriptor{add(ocispec.MediaTypeImageLayerGzip, bytes.Repeat([]byte(processor), 1<<18))},
		}))
		d.Platform = &ocispec.Platform{OS: "linux", Architecture: processor}
		index.Manifests = append(index.Manifests, d)
	}
	root := add(ocispec.MediaTypeImageIndex, encode(index))
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`),
		"index.json": encode(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: []ocispec.Descriptor{root}})}
	for d, content := range blobs {
		files["blobs/"+strings.Replace(d, ":", "/", 1)] = content
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(content)
	}
	_ = w.Close()
	name := filepath.Join(t.TempDir(), "manager.oci.tar")
	if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name, root.Digest.String(), blobs
}

// fakeRegistry keeps to the distribution specification as far as pushes go. Its repository kudo/manager wants a token.
type fakeRegistry struct {
	*httptest.Server
	// open is set if it wants no token, and hostile answers a request in another way, if it returns true.
	open    bool
	hostile func(w http.ResponseWriter, r *http.Request) bool

	mu    sync.Mutex
	blobs map[string][]byte
	tags  map[string]string
	// uploads are the blobs and manifests that were sent.
	uploads int
}

func newFakeRegistry(t *testing.T, tls bool) *fakeRegistry {
	r := &fakeRegistry{blobs: map[string][]byte{}, tags: map[string]string{}}
	if tls {
		r.Server = httptest.NewTLSServer(r)
	} else {
		r.Server = httptest.NewServer(r)
	}
	t.Cleanup(r.Close)
	return r
}

func (r *fakeRegistry) host() string { _, host, _ := strings.Cut(r.URL, "://"); return host }

func (r *fakeRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hostile != nil && r.hostile(w, request) {
		return
	}
	if request.URL.Path == "/token" {
		if user, password, _ := request.BasicAuth(); user != "pusher" || password != "hidden" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"token":"pass"}`))
		return
	}
	if !r.open && request.Header.Get("Authorization") != "Bearer pass" {
		challenge(w, r.URL)
		return
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/v2/kudo/manager/"), "/")
	r.serve(w, request, kind, name)
}

func challenge(w http.ResponseWriter, realm string) bool {
	w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="lab",scope="repository:kudo/manager:pull,push"`, realm))
	w.WriteHeader(http.StatusUnauthorized)
	return true
}

func (r *fakeRegistry) serve(w http.ResponseWriter, request *http.Request, kind, name string) {
	switch request.Method {
	case http.MethodHead, http.MethodGet:
		content, is := r.blobs[name]
		if !is {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Header().Set("Content-Type", mediaType(content))
		w.Header().Set("Docker-Content-Digest", name)
		_, _ = w.Write(content)
	case http.MethodPost:
		w.Header().Set("Location", "/v2/kudo/manager/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPut:
		content, _ := io.ReadAll(request.Body)
		d := digest.FromBytes(content).String()
		if want := request.URL.Query().Get("digest"); kind == "blobs" && want != d {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if kind == "manifests" && !strings.HasPrefix(name, "sha256:") {
			r.tags[name] = d
		}
		r.blobs[d] = content
		r.uploads++
		w.Header().Set("Docker-Content-Digest", d)
		w.WriteHeader(http.StatusCreated)
	}
}

func mediaType(content []byte) string {
	var m struct{ MediaType string }
	if json.Unmarshal(content, &m) != nil || m.MediaType == "" {
		return "application/octet-stream"
	}
	return m.MediaType
}

// configFile writes the credentials of hosts as docker does.
func configFile(t *testing.T, extra string, hosts ...string) string {
	t.Helper()
	auths := map[string]any{}
	for _, host := range hosts {
		auths[host] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("pusher:hidden"))}
		if extra != "" {
			auths[host] = map[string]string{"identitytoken": extra}
		}
	}
	text, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// caFile writes the certificates of servers.
func caFile(t *testing.T, servers ...*httptest.Server) string {
	t.Helper()
	var text []byte
	for _, s := range servers {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})...)
	}
	name := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPush checks R8: the image is copied by its digest with all blobs of both platforms, and a second copy sends nothing.
func TestPush(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	file, image, blobs := imageFile(t)
	for _, tc := range []struct {
		reason, tag string
		tls         bool
	}{{"by the digest", "", true}, {"with a tag", "v0.2.0", true}, {"without TLS", "v0.2.0", false}} {
		t.Run(tc.reason, func(t *testing.T) {
			r := newFakeRegistry(t, tc.tls)
			reference := "oci://" + r.host() + "/kudo/manager"
			if tc.tag != "" {
				reference += ":" + tc.tag
			}
			args := []string{"image", "push", file, reference}
			if tc.tls {
				args = append(args, "--registry-ca", caFile(t, r.Server), "--registry-config", configFile(t, "", r.host()))
			} else {
				r.open = true
				args = append(args, "--plain-http")
			}
			out, errs := commandtest.Expect(t, New, 0, "", args...)
			if want := "image " + r.host() + "/kudo/manager@" + image + " copied for linux/amd64, linux/arm64\n"; out != want || errs != "" {
				t.Errorf("it prints %q and %q, want %q, and no progress without a terminal", out, errs, want)
			}
			for d, content := range blobs {
				if !bytes.Equal(r.blobs[d], content) {
					t.Errorf("the blob %s is not there", d)
				}
			}
			if len(r.blobs) != len(blobs) || len(r.tags) > 1 || tc.tag != "" && r.tags[tc.tag] != image || tc.tag == "" && len(r.tags) > 0 {
				t.Errorf("the registry has %d blobs and the tags %v", len(r.blobs), r.tags)
			}
			r.uploads = 0
			commandtest.Expect(t, New, 0, "", args...)
			if r.uploads > len(r.tags) {
				t.Errorf("a second copy sent %d blobs and manifests", r.uploads)
			}
		})
	}
}

// foreigner is a server of another host, which keeps what it is sent.
type foreigner struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newForeigner(t *testing.T) *foreigner {
	f := &foreigner{}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen = append(f.seen, fmt.Sprint(r.Method, " ", r.URL, " ", r.Header["Authorization"], r.Header["Cookie"], string(body)))
		switch {
		case strings.HasPrefix(r.URL.Path, "/token"):
			_, _ = w.Write([]byte(`{"token":"pass","access_token":"pass"}`))
		case r.Header.Get("Authorization") == "":
			w.Header().Set("Www-Authenticate", `Basic realm="lab"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

// TestForeignHosts checks S16: a registry cannot bring another host the credentials that are for it. The foreign host is a real server, on
// another port.
func TestForeignHosts(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	file, _, _ := imageFile(t)
	const authorized = "Bearer pass"
	redirect := func(method, part string, code int) func(*fakeRegistry, *foreigner) func(http.ResponseWriter, *http.Request) bool {
		return func(_ *fakeRegistry, f *foreigner) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, q *http.Request) bool {
				if q.Method != method || !strings.Contains(q.URL.Path, part) || part != "/token" && q.Header.Get("Authorization") != authorized {
					return false
				}
				http.Redirect(w, q, f.URL+"/x", code)
				return true
			}
		}
	}
	location := func(to func(*fakeRegistry, *foreigner) string) func(*fakeRegistry, *foreigner) func(http.ResponseWriter, *http.Request) bool {
		return func(r *fakeRegistry, f *foreigner) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, q *http.Request) bool {
				if q.Method != http.MethodPost || q.Header.Get("Authorization") != authorized {
					return false
				}
				w.Header().Set("Location", to(r, f))
				w.WriteHeader(http.StatusAccepted)
				return true
			}
		}
	}
	realm := func(to func(*fakeRegistry, *foreigner) string) func(*fakeRegistry, *foreigner) func(http.ResponseWriter, *http.Request) bool {
		return func(r *fakeRegistry, f *foreigner) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, q *http.Request) bool {
				return q.URL.Path != "/token" && q.Header.Get("Authorization") != authorized && challenge(w, to(r, f))
			}
		}
	}
	elsewhere := func(_ *fakeRegistry, f *foreigner) string { return f.URL }
	withoutTLS := func(r *fakeRegistry, _ *foreigner) string { return strings.Replace(r.URL, "https://", "http://", 1) }
	for _, tc := range []struct {
		reason  string
		token   string
		none    bool
		hostile func(*fakeRegistry, *foreigner) func(http.ResponseWriter, *http.Request) bool
		want    string
		asked   bool
	}{
		{"a realm of another host", "", false, realm(elsewhere), "is not a host of", false},
		{"a realm of another host, asked by POST", "hidden", false, realm(elsewhere), "is not a host of", false},
		{"a realm of another host, without credentials", "", true, realm(elsewhere), "", true},
		{"a realm without TLS", "", false, realm(withoutTLS), "uses http", false},
		{"the token service redirects", "", false, redirect(http.MethodGet, "/token", http.StatusTemporaryRedirect), "", true},
		{"the token service redirects a POST with its body", "hidden", false, redirect(http.MethodPost, "/token", http.StatusTemporaryRedirect), "another", false},
		{"the question for a blob is redirected", "", false, redirect(http.MethodHead, "/blobs/", http.StatusTemporaryRedirect), "", true},
		{"the question for a manifest is redirected", "", false, redirect(http.MethodHead, "/manifests/", http.StatusTemporaryRedirect), "", true},
		{"the begin of an upload is redirected", "", false, redirect(http.MethodPost, "/blobs/uploads/", http.StatusTemporaryRedirect), "another host", false},
		{"a blob is redirected", "", false, redirect(http.MethodPut, "/blobs/", http.StatusPermanentRedirect), "", false},
		{"a manifest is redirected", "", false, redirect(http.MethodPut, "/manifests/", http.StatusTemporaryRedirect), "another host", false},
		{"an upload continues elsewhere", "", false, location(elsewhere), "is on a different host", false},
		{"an upload continues without TLS", "", false, location(withoutTLS), "downgrades scheme", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f, r := newForeigner(t), newFakeRegistry(t, true)
			r.hostile = tc.hostile(r, f)
			hosts := []string{r.host(), f.Listener.Addr().String()}
			if tc.none {
				hosts = nil
			}
			_, errs, code := commandtest.Run(t, New, "", "image", "push", file, "oci://"+r.host()+"/kudo/manager", "--registry-ca", caFile(t, r.Server, f.Server),
				"--registry-config", configFile(t, tc.token, hosts...))
			all := strings.Join(f.seen, "\n")
			for _, secret := range []string{"hidden", "pass", base64.StdEncoding.EncodeToString([]byte("pusher:hidden")), "Bearer", "Basic"} {
				if strings.Contains(all, secret) {
					t.Errorf("the foreign host saw %q", f.seen)
				}
			}
			if len(f.seen) > 0 != tc.asked {
				t.Errorf("the foreign host was asked %q, want that it is asked: %t", f.seen, tc.asked)
			}
			if !strings.Contains(errs, tc.want) || tc.want != "" && code != 1 || strings.Contains(errs, "hidden") {
				t.Errorf("exit code %d, %s", code, errs)
			}
		})
	}
}

// TestTokenHost checks S16: a token host that the user lists gets the credentials.
func TestTokenHost(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	file, _, _ := imageFile(t)
	f, r := newForeigner(t), newFakeRegistry(t, true)
	r.hostile = func(w http.ResponseWriter, q *http.Request) bool {
		return q.Header.Get("Authorization") != "Bearer pass" && challenge(w, f.URL)
	}
	args := []string{"image", "push", file, "oci://" + r.host() + "/kudo/manager", "--registry-ca", caFile(t, r.Server, f.Server), "--registry-config", configFile(t, "", r.host())}
	_, errs := commandtest.Expect(t, New, 1, "", args...)
	if want := "if it issues its tokens, give --token-host"; !strings.Contains(errs, want) || len(f.seen) > 0 {
		t.Errorf("%q is not in %s, and the host was asked %q", want, errs, f.seen)
	}
	commandtest.Expect(t, New, 0, "", append(args, "--token-host", f.Listener.Addr().String())...)
	if len(f.seen) == 0 || !strings.Contains(f.seen[0], "Basic") {
		t.Errorf("the host was asked %q", f.seen)
	}
}

// TestVerify checks R8: an image in a file is compared with the one that was released with the command.
func TestVerify(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	file, image, _ := imageFile(t)
	broken := filepath.Join(t.TempDir(), "broken.tar")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, bytes.Replace(text, []byte("amd64amd64"), []byte("amd64amd65"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	other := "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	defer func(own string) { kudoinit.Image = own }(kudoinit.Image)
	for _, tc := range []struct {
		reason, own, file string
		code              int
		want              string
	}{
		{"a development build", "", file, 1, "this build of kubectl kudo knows no image to compare with, and the image is " + image},
		{"the image of the release", "example.org/kudo/manager@" + image, file, 0, file + " is the image of this release for linux/amd64, linux/arm64: " + image},
		{"another image", "example.org/kudo/manager@" + other, file, 1, "holds the image " + image + ", and this command was released with " + other},
		{"a changed image", "example.org/kudo/manager@" + image, broken, 1, "has the digest"},
		{"no file", "example.org/kudo/manager@" + image, file + ".none", 1, "no such file"},
	} {
		kudoinit.Image = tc.own
		out, errs, code := commandtest.Run(t, New, "", "image", "verify", tc.file)
		if code != tc.code || !strings.Contains(out+errs, tc.want) {
			t.Errorf("%s: exit code %d, %s%s", tc.reason, code, out, errs)
		}
	}
	r := newFakeRegistry(t, false)
	r.open = true
	kudoinit.Image = "example.org/kudo/manager@" + other
	_, errs := commandtest.Expect(t, New, 0, "", "image", "push", file, "oci://"+r.host()+"/kudo/manager", "--plain-http")
	if want := "Warning: " + file + " holds the image " + image + ", and this command was released with " + other; !strings.Contains(errs, want) {
		t.Errorf("another image is pushed with the messages %q", errs)
	}
	if commandtest.Expect(t, New, 1, "", "image", "push", broken, "oci://"+r.host()+"/kudo/manager", "--plain-http"); r.uploads != len(r.blobs) {
		t.Errorf("%d blobs and manifests of a changed image were sent", r.uploads-len(r.blobs))
	}
}

// TestUsage checks that a wrong command line is refused before a registry is asked.
func TestUsage(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	file, image, _ := imageFile(t)
	for line, want := range map[string]string{
		"image push " + file: "a file and a reference",
		"image verify":       "a file: verify FILE",
		"image push " + file + " oci://example.org/a@" + image:                               "name a tag, or none",
		"image push " + file + " oci://example.org/a --plain-http --registry-ca " + file:     "[plain-http registry-ca]",
		"image push " + file + " oci://example.org/a --plain-http --registry-config " + file: "[plain-http registry-config]",
	} {
		if _, errs := commandtest.Expect(t, New, 2, "", strings.Fields(line)...); !strings.Contains(errs, want) {
			t.Errorf("%s: %q is not in %s", line, want, errs)
		}
	}
	if _, errs := commandtest.Expect(t, New, 1, "", "image", "push", file, "oci://example.org/a", "--registry-ca", "none"); !strings.Contains(errs, "--registry-ca: ") {
		t.Errorf("certificates that are not there: %s", errs)
	}
}
