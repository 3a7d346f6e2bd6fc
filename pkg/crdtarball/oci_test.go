package crdtarball

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// fakeRegistry is a registry of one repository, `lab/crds`, that wants a token from its own token service, which wants a
// password. It keeps to the distribution specification as far as pulls go.
type fakeRegistry struct {
	*httptest.Server
	blobs    map[string][]byte
	manifest []byte
	open     bool
	// elsewhere is where blobs are redirected to; empty for nowhere.
	elsewhere string
	requests  atomic.Int64
}

func newRegistry(t *testing.T, layers ...[]byte) *fakeRegistry {
	t.Helper()
	r := &fakeRegistry{blobs: map[string][]byte{}}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: ocispec.DescriptorEmptyJSON}
	m.SchemaVersion = 2
	for _, layer := range layers {
		d := ocispec.Descriptor{MediaType: "application/vnd.example.crds.v1.tar+gzip", Digest: digest.FromBytes(layer), Size: int64(len(layer))}
		r.blobs[d.Digest.String()] = layer
		m.Layers = append(m.Layers, d)
	}
	var err error
	if r.manifest, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *fakeRegistry) ref() string {
	return strings.TrimPrefix(r.URL, "https://") + "/lab/crds:v1@" + digest.FromBytes(r.manifest).String()
}

func (r *fakeRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.requests.Add(1)
	if request.URL.Path == "/token" {
		if user, password, _ := request.BasicAuth(); user != "puller" || password != "hidden" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"token":"pass"}`))
		return
	}
	if !r.open && request.Header.Get("Authorization") != "Bearer pass" {
		w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm="%s/token",service="lab",scope="repository:lab/crds:pull"`, r.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/v2/lab/crds/"), "/")
	data, ok := r.blobs[name], true
	switch kind {
	case "manifests":
		data = r.manifest
		w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		w.Header().Set("Docker-Content-Digest", name)
	case "blobs":
		if r.elsewhere != "" {
			http.Redirect(w, request, r.elsewhere+"/x?signature=hidden", http.StatusTemporaryRedirect)
			return
		}
		ok = data != nil
	}
	if !ok {
		http.NotFound(w, request)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	_, _ = w.Write(data)
}

func (r *fakeRegistry) source(t *testing.T, ref string, secret map[string]string, hosts Hosts, ca ...byte) Source {
	t.Helper()
	spec := v1beta1.OCISource{Ref: ref, CABundle: append(caOf(r.Server), ca...)}
	if secret != nil {
		spec.SecretRef = &v1beta1.SecretReference{Name: "s"}
	}
	access := Access{Hosts: hosts, InsideHosts: []string{"127.0.0.1"}, Secrets: objects{secrets: map[string]map[string]string{"ns/s": secret}}, Timeout: 5 * time.Second}
	source, err := NewSource(v1beta1.CRDTarball{OCISource: &spec}, "ns", access)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestOCI(t *testing.T) {
	data := tarball(t, "a.example.org")
	r := newRegistry(t, data)
	host := strings.TrimPrefix(r.URL, "https://")
	docker := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte("puller:hidden")))
	for name, secret := range map[string]map[string]string{
		"PullSecret": {".dockerconfigjson": docker}, "Password": {"username": "puller", "password": "hidden"},
	} {
		t.Run(name, func(t *testing.T) {
			c := openCache(t, t.TempDir())
			source := r.source(t, r.ref(), secret, Hosts{Names: []string{host}})
			if got := resolve(t, c, source, ""); got.Digest != "sha256:"+sum(data) || got.URL != "oci://"+r.ref() {
				t.Errorf("the layer is the tarball: %+v", got)
			}
			before := r.requests.Load()
			if got := resolve(t, c, source, v1beta1.DownloadAlways); got.Fetched || got.Stale != nil || r.requests.Load() != before {
				t.Errorf("what has a digest is not asked for again: %+v", got)
			}
		})
	}
	c := openCache(t, t.TempDir())
	refuse(t, c, r.source(t, r.ref(), map[string]string{"username": "puller", "password": "wrong"}, Hosts{Any: true}), "", ReasonStatus, "answers 401")
	refuse(t, c, r.source(t, r.ref(), nil, Hosts{Any: true}), "", ReasonStatus, "answers 401")
	refuse(t, c, r.source(t, r.ref(), map[string]string{".dockerconfigjson": "{"}, Hosts{Any: true}), "", ReasonCredentials, ".dockerconfigjson")
	refuse(t, c, r.source(t, r.ref(), nil, Hosts{Names: []string{"other.org"}}), "", ReasonRefused, "not among the allowed hosts")
}

func TestOCIDigests(t *testing.T) {
	data := tarball(t, "a.example.org")
	r := newRegistry(t, data)
	r.open = true
	ref, manifest := r.ref(), r.manifest
	c := openCache(t, t.TempDir())
	r.manifest = append([]byte(" "), manifest...)
	if _, err := c.Resolve(context.Background(), Request{Source: r.source(t, ref, nil, Hosts{Any: true})}); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("another manifest than the one of the digest: %v", err)
	}
	r.manifest = manifest
	other := []byte(strings.Repeat("x", len(data)))
	r.blobs[digest.FromBytes(data).String()] = other
	if _, err := c.Resolve(context.Background(), Request{Source: r.source(t, ref, nil, Hosts{Any: true})}); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("another layer than the one of the manifest: %v", err)
	}
	if entries, _ := c.List(); len(entries) != 0 {
		t.Errorf("nothing of it is kept: %v", entries)
	}
	r.blobs[digest.FromBytes(data).String()] = data
	resolve(t, c, r.source(t, ref, nil, Hosts{Any: true}), "")
	two := newRegistry(t, data, other)
	two.open = true
	refuse(t, c, two.source(t, two.ref(), nil, Hosts{Any: true}), "", ReasonArchive, "has 2 layers")
}

// TestOCIRedirect lets another server serve the blobs, as registries do: it sees no token, and its signed URL is not
// shown.
func TestOCIRedirect(t *testing.T) {
	data := tarball(t, "a.example.org")
	r := newRegistry(t, data)
	store, seen := redirecting(t, true, data, nil)
	r.elsewhere = store.URL
	secret := map[string]string{"username": "puller", "password": "hidden"}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: store.Certificate().Raw})
	resolve(t, openCache(t, t.TempDir()), r.source(t, r.ref(), secret, Hosts{Any: true}, ca...), "")
	if len(seen.seen) != 1 || seen.seen[0].authorization != "" {
		t.Errorf("the store sees no token: %+v", seen.seen)
	}
	store.Close()
	e := refuse(t, openCache(t, t.TempDir()), r.source(t, r.ref(), secret, Hosts{Any: true}, ca...), "", ReasonConnection, "refused")
	if strings.Contains(e.Error(), "hidden") {
		t.Errorf("secrets are shown: %v", e)
	}
}
