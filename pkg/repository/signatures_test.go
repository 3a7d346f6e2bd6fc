package repository

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/registry"
	"kudo.dev/kudo/test/ocitest"
)

const predicateType = "https://example.org/signature"

// signedPackage pushes a package with signatures to a place.
func signedPackage(t *testing.T, s *Remote, base string, bundles ...string) *Pulled {
	t.Helper()
	pulled, err := s.Pull(t.Context(), pushFiles(t, s, base, files("web")), Versions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bundles {
		if err := s.Attach(t.Context(), pulled.Reference, pulled.Descriptor(), [][]byte{[]byte(b)}, predicateType); err != nil {
			t.Fatal(err)
		}
	}
	return pulled
}

func signaturesText(t *testing.T, s *Remote, p *Pulled) string {
	t.Helper()
	found, err := s.Signatures(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, b := range found.Bundles {
		out = append(out, string(b))
	}
	return strings.Join(out, " ")
}

// TestSignatures checks S13: signatures are added to registries and folders once, and are found again, in the order in which they were added.
func TestSignatures(t *testing.T) {
	r := ocitest.New(t, true)
	for _, base := range []string{"oci://" + r.Host() + "/kudo", "layout:" + filepath.ToSlash(t.TempDir())} {
		s := source(t, Home{Dir: t.TempDir()}, registry.Options{Roots: rootsOf(t, r), ConfigFile: ocitest.ConfigFile(t, "", r.Host())})
		pulled := signedPackage(t, s, base)
		if got := signaturesText(t, s, pulled); got != "" {
			t.Errorf("%s: a package without signatures has %s", base, got)
		}
		for _, b := range []string{`{"a":1}`, `{"b":2}`, `{"a":1}`} {
			if err := s.Attach(t.Context(), pulled.Reference, pulled.Descriptor(), [][]byte{[]byte(b)}, predicateType); err != nil {
				t.Fatal(err)
			}
		}
		if got := signaturesText(t, s, pulled); got != `{"a":1} {"b":2}` {
			t.Errorf("%s: %s", base, got)
		}
		found, err := Chain{s}.Resolve(t.Context(), Request{Name: pulled.Reference.String()})
		if err != nil {
			t.Fatal(err)
		}
		packages, err := Chain{s}.WithDependencies(t.Context(), found)
		if err != nil {
			t.Fatal(err)
		}
		p := packages[0].Provenance
		if p == nil || p.Manifest != string(pulled.Descriptor().Digest) || len(p.Signatures) != 2 || (p.Source == "") == strings.HasPrefix(base, "oci:") {
			t.Errorf("%s: provenance %v (S17)", base, p)
		}
	}
}

// TestHostileReferrers checks S13 and S5: what a registry lists is trusted for nothing, and hides no signature that is there.
func TestHostileReferrers(t *testing.T) {
	r := ocitest.New(t, true)
	base := "oci://" + r.Host() + "/kudo"
	s := source(t, Home{Dir: t.TempDir()}, registry.Options{Roots: rootsOf(t, r), ConfigFile: ocitest.ConfigFile(t, "", r.Host())})
	pulled := signedPackage(t, s, base, `{"good":1}`)
	good, err := artifact.NewSignature(pulled.Descriptor(), []byte(`{"good":1}`), predicateType)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := artifact.NewSignature(ocispec.Descriptor{Digest: digest.FromString("x"), Size: 1}, []byte(`{"foreign":1}`), predicateType)
	if err != nil {
		t.Fatal(err)
	}
	junk, err := artifact.NewSignature(pulled.Descriptor(), []byte(`no JSON`), predicateType)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range []*artifact.Signature{foreign, junk} {
		r.SetTag(fmt.Sprintf("kudo/web:x%d", i), a.Manifest, a.Config, a.Bundle)
	}
	const sbomType = "application/spdx+json"
	list := func(all ...ocispec.Descriptor) string {
		out := `{"schemaVersion":2,"mediaType":"` + ocispec.MediaTypeImageIndex + `","manifests":[`
		for i, d := range all {
			if i > 0 {
				out += ","
			}
			if d.ArtifactType != sbomType {
				d.ArtifactType = "application/vnd.oci.empty.v1+json"
			}
			out += fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d,"artifactType":%q}`, d.MediaType, d.Digest, d.Size, d.ArtifactType)
		}
		return out + "]}"
	}
	lost := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("lost"), Size: 4}
	many, others := make([]ocispec.Descriptor, registry.MaxReferrers+1), make([]ocispec.Descriptor, registry.MaxReferrers+1)
	for i := range many {
		many[i], others[i] = foreign.Descriptor(), foreign.Descriptor()
		others[i].ArtifactType = sbomType
	}
	answer := func(status int, mediaType, text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", mediaType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		}
	}
	const index = ocispec.MediaTypeImageIndex
	for _, tc := range []struct {
		reason, want, warning string
		answer                func(http.ResponseWriter)
		fails                 bool
	}{
		{reason: "the list, with types that are wrong", answer: answer(200, index, list(good.Descriptor())), want: `{"good":1}`},
		{reason: "a signature of another package", answer: answer(200, index, list(foreign.Descriptor(), good.Descriptor())), want: `{"good":1}`},
		{reason: "one that is lost", answer: answer(200, index, list(lost, good.Descriptor())), want: `{"good":1}`, warning: "is left out"},
		{reason: "one that is no JSON", answer: answer(200, index, list(junk.Descriptor(), good.Descriptor())), want: `{"good":1}`, warning: "it is no JSON"},
		{reason: "a package in place of a signature", answer: answer(200, index, list(pulled.Descriptor(), good.Descriptor())), want: `{"good":1}`},
		{reason: "more than are looked at", answer: answer(200, index, list(append(many, good.Descriptor())...)), warning: "100 manifests that may be signatures are looked at, and others are not"},
		{reason: "others that hide it", answer: answer(200, index, list(append(others, good.Descriptor())...)), want: `{"good":1}`},
		{reason: "nothing", answer: answer(200, index, list())},
		{reason: "HTML, after which the tag is asked for", answer: answer(200, "text/html", "<html>"), want: `{"good":1}`},
		{reason: "404, after which the tag is asked for", answer: answer(404, "text/plain", ""), want: `{"good":1}`},
		{reason: "500", answer: answer(500, "text/plain", ""), fails: true},
		{reason: "no JSON", answer: answer(200, index, "["), fails: true},
	} {
		r.Hostile = func(w http.ResponseWriter, request *http.Request) bool {
			if !strings.Contains(request.URL.Path, "/referrers/") {
				return false
			}
			tc.answer(w)
			return true
		}
		fresh := source(t, Home{Dir: t.TempDir()}, s.Registry) // the client remembers which way lists are kept
		again, err := fresh.Pull(t.Context(), pulled.Reference, Versions{})
		if err != nil {
			t.Fatal(err)
		}
		found, err := fresh.Signatures(t.Context(), again)
		if (err != nil) != tc.fails {
			t.Errorf("%s: %v", tc.reason, err)
		}
		got := ""
		for _, b := range found.Bundles {
			got += string(b)
		}
		if got != tc.want || !strings.Contains(strings.Join(found.Warnings, "\n"), tc.warning) || tc.warning == "" && len(found.Warnings) > 0 {
			t.Errorf("%s: %q with warnings %q, want %q and %q", tc.reason, got, found.Warnings, tc.want, tc.warning)
		}
	}
}

// TestAttachAgain checks S13: a signature that another writer has removed from the list is added again, and it is an error if that has no end.
func TestAttachAgain(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		removed int
		want    string
	}{{"once", 1, ""}, {"each time", 100, "does not list the signature"}} {
		r := ocitest.New(t, true)
		s := source(t, Home{Dir: t.TempDir()}, registry.Options{Roots: rootsOf(t, r), ConfigFile: ocitest.ConfigFile(t, "", r.Host())})
		pulled := signedPackage(t, s, "oci://"+r.Host()+"/kudo")
		removed := 0
		r.Hostile = func(_ http.ResponseWriter, request *http.Request) bool {
			if request.Method == http.MethodPut && strings.Contains(request.URL.Path, "/manifests/sha256-") && removed < tc.removed {
				removed++
				request.URL.Path = strings.Replace(request.URL.Path, "sha256-", "lost-", 1)
			}
			return false
		}
		err := s.Attach(t.Context(), pulled.Reference, pulled.Descriptor(), [][]byte{[]byte(`{}`)}, predicateType)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestBadSignatureFile checks S17: a file of signatures that cannot be read hinders no installation, which warns, and whoever needs the
// signatures gets an error.
func TestBadSignatureFile(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "web.tgz")
	if err := os.WriteFile(archive, []byte(pack(t, files("web"))), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ reason, text, want string }{
		{"good", "{}\n", ""},
		{"no JSON", "{}\nx\n", "line 2 is no JSON"},
		{"too large", strings.Repeat("x", maxSignatures*(artifact.MaxSignature+1)+1), "bytes allowed"},
		{"too many", strings.Repeat("{}\n", maxSignatures+1), "there are more than 16"},
	} {
		if err := os.WriteFile(archive+SignaturesSuffix, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := Resolve(t.Context(), archive, ".")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := found.Signatures(t.Context()); (err == nil) != (tc.want == "") {
			t.Errorf("%s: the signatures are read with the error %v", tc.reason, err)
		}
		packages, err := WithDependencies(t.Context(), found)
		if err != nil || len(packages) != 1 {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		p := packages[0]
		if tc.want == "" {
			if len(p.Warnings) > 0 || p.Provenance == nil || len(p.Provenance.Signatures) != 1 {
				t.Errorf("%s: warnings %q, provenance %v", tc.reason, p.Warnings, p.Provenance)
			}
			continue
		}
		if len(p.Warnings) != 1 || p.Provenance != nil {
			t.Errorf("%s: warnings %q, provenance %v", tc.reason, p.Warnings, p.Provenance)
			continue
		}
		for _, part := range []string{tc.want, "delete " + archive + SignaturesSuffix, "or replace it by that of the publisher"} {
			if !strings.Contains(p.Warnings[0].Message, part) {
				t.Errorf("%s: warning %q does not say %q", tc.reason, p.Warnings[0], part)
			}
		}
	}
}

// TestManySignatures checks S17: signatures that an OperatorVersion does not take are counted in a warning.
func TestManySignatures(t *testing.T) {
	large := `{"x":"` + strings.Repeat("x", v1beta1.MaxSignatureBytes) + `"}`
	for _, tc := range []struct {
		reason   string
		lines    []string
		want     int
		warnings []string
	}{
		{"as many as there may be", slices.Repeat([]string{"{}"}, v1beta1.MaxSignatures), v1beta1.MaxSignatures, nil},
		{"three more", slices.Repeat([]string{"{}"}, v1beta1.MaxSignatures+3), v1beta1.MaxSignatures, []string{"spec.provenance takes 8 signatures, " +
			"and leaves out 3 of 11: if they are required, delete those that no longer count where the package is from, and install it again"}},
		{"a large one", []string{large, "{}"}, 1, []string{"spec.provenance takes signatures of at most 32768 bytes, and leaves out 1 of 2: " +
			"if they are required, ask the publisher for smaller ones"}},
	} {
		archive := filepath.Join(t.TempDir(), "web.tgz")
		if err := errors.Join(os.WriteFile(archive, []byte(pack(t, files("web"))), 0o600),
			os.WriteFile(archive+SignaturesSuffix, []byte(strings.Join(tc.lines, "\n")), 0o600)); err != nil {
			t.Fatal(err)
		}
		found, err := Resolve(t.Context(), archive, ".")
		if err != nil {
			t.Fatal(err)
		}
		packages, err := WithDependencies(t.Context(), found)
		if err != nil {
			t.Fatal(err)
		}
		var warnings []string
		for _, w := range packages[0].Warnings {
			warnings = append(warnings, w.String())
		}
		if n := len(packages[0].Provenance.Signatures); n != tc.want || !slices.Equal(warnings, tc.warnings) {
			t.Errorf("%s: %d signatures, warnings %q, want %d, %q", tc.reason, n, warnings, tc.want, tc.warnings)
		}
	}
}

// TestSignatureFiles checks S17: the file beside an archive, and its bounds.
func TestSignatureFiles(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "web.tgz")
	if found, err := ReadSignatures(archive); err != nil || found != nil {
		t.Errorf("no file: %q, %v", found, err)
	}
	text, err := FormatSignatures([][]byte{[]byte("{\n \"a\": 1\n}"), []byte(`{"b":2}`)})
	if err != nil || string(text) != "{\"a\":1}\n{\"b\":2}\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := FormatSignatures([][]byte{[]byte("[")}); err == nil {
		t.Error("no JSON is written")
	}
	if _, err := FormatSignatures(make([][]byte, maxSignatures+1)); err == nil {
		t.Error("too many are written")
	}
	for _, tc := range []struct {
		reason, text string
		want         int
		fails        bool
	}{
		{"two, with an empty line", string(text) + "\n", 2, false},
		{"as many as there may be", strings.Repeat("{}\n", maxSignatures), maxSignatures, false},
		{"too many", strings.Repeat("{}\n", maxSignatures+1), 0, true},
		{"a line that is no JSON", string(text) + "[\n", 0, true},
		{"text that is no JSON", "<html>", 0, true},
		{"a huge file", strings.Repeat("x", maxSignatures*(artifact.MaxSignature+1)+1), 0, true},
	} {
		if err := os.WriteFile(archive+SignaturesSuffix, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := ReadSignatures(archive)
		if len(found) != tc.want || (err != nil) != tc.fails {
			t.Errorf("%s: %d, %v", tc.reason, len(found), err)
		}
	}
	if err := errors.Join(os.Remove(archive+SignaturesSuffix), os.Mkdir(archive+SignaturesSuffix, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSignatures(archive); err == nil {
		t.Error("a folder is read")
	}
}

// TestSignaturesOfMirror checks that signatures are found beside another address of the archive, under addresses with escapes, and that a host
// that does not answer is asked once.
func TestSignaturesOfMirror(t *testing.T) {
	packed := []byte(pack(t, files("web")))
	hang, release := context.WithCancel(t.Context())
	asked := map[string]int{}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.EscapedPath()]++
		mu.Unlock()
		switch r.URL.EscapedPath() {
		case "/a%2Fb/web.tgz", "/mirror/web.tgz", "/slow/web.tgz":
			_, _ = w.Write(packed)
		case "/a%2Fb/web.tgz.sigstore.json", "/signed/web.tgz.sigstore.json":
			_, _ = w.Write([]byte("{}\n"))
		case "/mirror/web.tgz.sigstore.json": // a page of its own for what is not there
			_, _ = w.Write([]byte("<html>"))
		case "/slow/web.tgz.sigstore.json":
			<-hang.Done()
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(release)
	source := NewRemote(Home{Dir: t.TempDir()}, 0, nil)
	t.Cleanup(func() { _ = source.Close() })
	r := Repository{Name: "r", URL: server.URL}
	found, err := source.Find(t.Context(), Request{Name: server.URL + "/a%2Fb/web.tgz"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := found.Signatures(t.Context()); err != nil || len(got.Bundles) != 1 {
		t.Errorf("an address with an escape: %d signatures, %v, asked %v", len(got.Bundles), err, asked)
	}
	e := &Entry{Name: "web", OperatorVersion: found.Package.Operator.OperatorVersion, AppVersion: found.Package.Operator.AppVersion,
		Digest: digestOf(packed), URLs: []string{"/none/web.tgz", "/mirror/web.tgz", "/signed/web.tgz"}}
	if found, err = source.fetch(t.Context(), r, e); err != nil {
		t.Fatal(err)
	}
	if got, err := found.Signatures(t.Context()); err != nil || len(got.Bundles) != 1 || asked["/signed/web.tgz.sigstore.json"] != 1 {
		t.Errorf("beside another address: %d signatures, %v, asked %v", len(got.Bundles), err, asked)
	}
	source.signaturesTimeout = 20 * time.Millisecond
	e.URLs = []string{"/slow/web.tgz"}
	if found, err = source.fetch(t.Context(), r, e); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := found.Signatures(t.Context()); err == nil || !strings.Contains(err.Error(), "no answer for signatures within 20ms") {
			t.Errorf("a host that does not answer: %v", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if n := asked["/slow/web.tgz.sigstore.json"]; n != 1 {
		t.Errorf("a host that does not answer is asked %d times", n)
	}
}

// TestSignaturesBeside checks S17 for repositories of archives: an installation takes the signatures in the file beside an archive, asks for
// no more than that file, and warns if it cannot be read, but not if there is none.
func TestSignaturesBeside(t *testing.T) {
	s := serve(t, false, map[string]map[string]string{"web": files("web")})
	answer := func(status int, text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, SignaturesSuffix) {
				return false
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
			return true
		}
	}
	for _, tc := range []struct {
		reason   string
		spoil    func(http.ResponseWriter, *http.Request) bool
		want     int
		warnings int
	}{
		{"no file", nil, 0, 0},
		{"no file, in the words of a server that lists nothing", answer(http.StatusForbidden, ""), 0, 0},
		{"two signatures", answer(http.StatusOK, "{\"a\":1}\n{\"b\":2}\n"), 2, 0},
		{"no signatures", answer(http.StatusOK, "\n"), 0, 0},
		{"a page instead of signatures", answer(http.StatusOK, "<html>"), 0, 1},
		{"a server with an error", answer(http.StatusInternalServerError, ""), 0, 1},
		{"more than there may be", answer(http.StatusOK, strings.Repeat("{}\n", maxSignatures+1)), 0, 1},
		{"more bytes than there may be", answer(http.StatusOK, strings.Repeat(" ", maxSignatureFile+1)), 0, 1},
	} {
		for _, name := range []string{"web", s.URL + "/repo/web.tgz"} {
			s.spoil = tc.spoil
			source := NewRemote(configured(t, Repository{Name: "r", URL: s.URL + "/repo"}), 0, nil)
			chain := Chain{source}
			found, err := chain.Resolve(t.Context(), Request{Name: name})
			if err != nil {
				t.Fatal(tc.reason, err)
			}
			s.seen()
			packages, err := chain.WithDependencies(t.Context(), found)
			if err := errors.Join(err, source.Close()); err != nil {
				t.Fatal(tc.reason, err)
			}
			got := 0
			if p := packages[0].Provenance; p != nil {
				got = len(p.Signatures)
			}
			if seen := s.seen(); got != tc.want || len(packages[0].Warnings) != tc.warnings || len(seen) != 1 || seen[0] != "web.tgz"+SignaturesSuffix {
				t.Errorf("%s, %s: %d signatures, the warnings %v, and the requests %v", tc.reason, name, got, packages[0].Warnings, seen)
			}
		}
	}
}
