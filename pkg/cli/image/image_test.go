package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/test/ocitest"
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

// TestPush checks R8: the image is copied by its digest with all blobs of both platforms, and a second copy sends nothing.
func TestPush(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	file, image, blobs := imageFile(t)
	for _, tc := range []struct {
		reason, tag string
		tls         bool
	}{{"by the digest", "", true}, {"with a tag", "v0.2.0", true}, {"without TLS", "v0.2.0", false}} {
		t.Run(tc.reason, func(t *testing.T) {
			r := ocitest.New(t, tc.tls)
			reference := "oci://" + r.Host() + "/kudo/manager"
			if tc.tag != "" {
				reference += ":" + tc.tag
			}
			args := []string{"image", "push", file, reference}
			if tc.tls {
				args = append(args, "--registry-ca", ocitest.CAFile(t, r.Server), "--registry-config", ocitest.ConfigFile(t, "", r.Host()))
			} else {
				r.Open = true
				args = append(args, "--plain-http")
			}
			out, errs := commandtest.Expect(t, New, 0, "", args...)
			if want := "image " + r.Host() + "/kudo/manager@" + image + " copied for linux/amd64, linux/arm64\n"; out != want || errs != "" {
				t.Errorf("it prints %q and %q, want %q, and no progress without a terminal", out, errs, want)
			}
			for d, content := range blobs {
				if !bytes.Equal(r.Blob("kudo/manager", d), content) {
					t.Errorf("the blob %s is not there", d)
				}
			}
			tags := r.Tags()
			if _, n := r.Requests(); n != len(blobs)+len(tags) || len(tags) > 1 || tc.tag != "" && tags["kudo/manager:"+tc.tag] != image || tc.tag == "" && len(tags) > 0 {
				t.Errorf("the registry got %d blobs and manifests, and has the tags %v", n, tags)
			}
			commandtest.Expect(t, New, 0, "", args...)
			if _, n := r.Requests(); n > len(tags) {
				t.Errorf("a second copy sent %d blobs and manifests", n)
			}
		})
	}
}

// challenge demands a token of a realm, unless a request has one.
func challenge(w http.ResponseWriter, q *http.Request, realm string) bool {
	if q.URL.Path == "/token" || q.Header.Get("Authorization") == "Bearer "+ocitest.Token {
		return false
	}
	ocitest.Challenge(w, realm)
	return true
}

// TestForeignHosts checks S16: a registry cannot bring another host the credentials that are for it. The foreign host is a real server, on
// another port.
func TestForeignHosts(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	file, _, _ := imageFile(t)
	const authorized = "Bearer pass"
	redirect := func(method, part string, code int) func(*ocitest.Registry, *ocitest.Foreigner) func(http.ResponseWriter, *http.Request) bool {
		return func(_ *ocitest.Registry, f *ocitest.Foreigner) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, q *http.Request) bool {
				if q.Method != method || !strings.Contains(q.URL.Path, part) || part != "/token" && q.Header.Get("Authorization") != authorized {
					return false
				}
				http.Redirect(w, q, f.URL+"/x", code)
				return true
			}
		}
	}
	location := func(to func(*ocitest.Registry, *ocitest.Foreigner) string) func(*ocitest.Registry, *ocitest.Foreigner) func(http.ResponseWriter, *http.Request) bool {
		return func(r *ocitest.Registry, f *ocitest.Foreigner) func(http.ResponseWriter, *http.Request) bool {
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
	realm := func(to func(*ocitest.Registry, *ocitest.Foreigner) string) func(*ocitest.Registry, *ocitest.Foreigner) func(http.ResponseWriter, *http.Request) bool {
		return func(r *ocitest.Registry, f *ocitest.Foreigner) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, q *http.Request) bool {
				return challenge(w, q, to(r, f))
			}
		}
	}
	elsewhere := func(_ *ocitest.Registry, f *ocitest.Foreigner) string { return f.URL }
	withoutTLS := func(r *ocitest.Registry, _ *ocitest.Foreigner) string {
		return strings.Replace(r.URL, "https://", "http://", 1)
	}
	for _, tc := range []struct {
		reason  string
		token   string
		none    bool
		hostile func(*ocitest.Registry, *ocitest.Foreigner) func(http.ResponseWriter, *http.Request) bool
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
			f, r := ocitest.NewForeigner(t), ocitest.New(t, true)
			r.Hostile = tc.hostile(r, f)
			hosts := []string{r.Host(), f.Listener.Addr().String()}
			if tc.none {
				hosts = nil
			}
			_, errs, code := commandtest.Run(t, New, "", "image", "push", file, "oci://"+r.Host()+"/kudo/manager", "--registry-ca", ocitest.CAFile(t, r.Server, f.Server),
				"--registry-config", ocitest.ConfigFile(t, tc.token, hosts...))
			if leaked := f.Leaked(); len(leaked) > 0 {
				t.Errorf("the foreign host saw %q in %q", leaked, f.Seen())
			}
			if len(f.Seen()) > 0 != tc.asked {
				t.Errorf("the foreign host was asked %q, want that it is asked: %t", f.Seen(), tc.asked)
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
	f, r := ocitest.NewForeigner(t), ocitest.New(t, true)
	r.Hostile = func(w http.ResponseWriter, q *http.Request) bool {
		return challenge(w, q, f.URL)
	}
	args := []string{"image", "push", file, "oci://" + r.Host() + "/kudo/manager", "--registry-ca", ocitest.CAFile(t, r.Server, f.Server), "--registry-config", ocitest.ConfigFile(t, "", r.Host())}
	_, errs := commandtest.Expect(t, New, 1, "", args...)
	if want := "if it issues its tokens, give --token-host"; !strings.Contains(errs, want) || len(f.Seen()) > 0 {
		t.Errorf("%q is not in %s, and the host was asked %q", want, errs, f.Seen())
	}
	commandtest.Expect(t, New, 0, "", append(args, "--token-host", f.Listener.Addr().String())...)
	if len(f.Seen()) == 0 || !strings.Contains(f.Seen()[0], "Basic") {
		t.Errorf("the host was asked %q", f.Seen())
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
	r := ocitest.New(t, false)
	r.Open = true
	kudoinit.Image = "example.org/kudo/manager@" + other
	_, errs := commandtest.Expect(t, New, 0, "", "image", "push", file, "oci://"+r.Host()+"/kudo/manager", "--plain-http")
	if want := "Warning: " + file + " holds the image " + image + ", and this command was released with " + other; !strings.Contains(errs, want) {
		t.Errorf("another image is pushed with the messages %q", errs)
	}
	r.Requests()
	commandtest.Expect(t, New, 1, "", "image", "push", broken, "oci://"+r.Host()+"/kudo/manager", "--plain-http")
	if _, n := r.Requests(); n > 0 {
		t.Errorf("%d blobs and manifests of a changed image were sent", n)
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
		"image push " + file + " oci://example.org/a --plain-http --registry-ca " + file:     "--registry-ca cannot be used with --plain-http",
		"image push " + file + " oci://example.org/a --plain-http --registry-config " + file: "--registry-config cannot be used with --plain-http",
	} {
		if _, errs := commandtest.Expect(t, New, 2, "", strings.Fields(line)...); !strings.Contains(errs, want) {
			t.Errorf("%s: %q is not in %s", line, want, errs)
		}
	}
	if _, errs := commandtest.Expect(t, New, 1, "", "image", "push", file, "oci://example.org/a", "--registry-ca", "none"); !strings.Contains(errs, "--registry-ca: ") {
		t.Errorf("certificates that are not there: %s", errs)
	}
}
