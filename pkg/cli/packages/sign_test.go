package packages

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/ocitest"
)

// newKey writes a private and a public key, and returns their files.
func newKey(t *testing.T) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := x509.MarshalPKCS8PrivateKey(key)
	b, errB := x509.MarshalPKIXPublicKey(key.Public())
	private, public = filepath.Join(t.TempDir(), "key.pem"), filepath.Join(t.TempDir(), "key.pub")
	if err := errors.Join(errA, errB, os.WriteFile(private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: a}), 0o600),
		os.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: b}), 0o600)); err != nil {
		t.Fatal(err)
	}
	return private, public
}

// packed packs a folder, and returns the archive.
func packed(t *testing.T, dir, name string) string {
	t.Helper()
	target := t.TempDir()
	run(t, 0, nil, "create", dir, "-d", target)
	return filepath.Join(target, name)
}

// TestSignArchive checks S17 and S22: an archive is signed and verified, and another package, key or file is not.
func TestSignArchive(t *testing.T) {
	home(t)
	private, public := newKey(t)
	otherPrivate, otherPublic := newKey(t)
	archive := packed(t, packageDir(t, "web", "1.0.0"), "web-1.0.0.tgz")
	if _, errs := run(t, 3, nil, "verify", archive, "--key", public); !strings.Contains(errs, "is not signed") {
		t.Errorf("an archive without signatures: %s", errs)
	}
	run(t, 0, nil, "sign", archive, "--key", private)
	if out, _ := run(t, 0, nil, "verify", archive, "--key", public); !strings.Contains(out, "1           Verified") || !strings.Contains(out, "is signed by key") {
		t.Errorf("verify prints %s", out)
	}
	before, err := os.ReadFile(archive + ".sigstore.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, errs := run(t, 0, nil, "sign", archive, "--key", private); !strings.Contains(errs, "Unchanged") {
		t.Errorf("a second signature of the same key: %s", errs)
	}
	if out, errs := run(t, 3, nil, "verify", archive, "--key", otherPublic); !strings.Contains(out, "WrongKey") || !strings.Contains(errs, "no signature of") {
		t.Errorf("another key: %s%s", out, errs)
	}
	run(t, 0, nil, "sign", archive, "--key", otherPrivate)
	after, err := os.ReadFile(archive + ".sigstore.json")
	if err != nil || !bytes.HasPrefix(after, before) || bytes.Count(after, []byte("\n")) != 2 {
		t.Errorf("the signatures were %s and are %s, %v", before, after, err)
	}
	if out, _ := run(t, 0, nil, "verify", archive, "--key", public); strings.Contains(out, "WrongKey") {
		t.Errorf("what is behind the signature of the key is judged (S13): %s", out)
	}
	out, _ := run(t, 0, nil, "verify", archive, "--key", otherPublic, "-o", "json")
	var said struct {
		Verified   bool
		Signatures []struct{ Verdict string }
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || !said.Verified || len(said.Signatures) != 2 || said.Signatures[0].Verdict != "WrongKey" {
		t.Errorf("JSON %s, %v", out, err)
	}
	for _, tc := range []struct{ reason, dir, name, want string }{
		{"another content", changedPackage(t, "app.yaml", "other.yaml"), "web-1.0.0.tgz", "ContentDiffers"},
		{"the same content in another file, of which namespaceManifest may be part", changedPackage(t, "Ann", "Eve"), "web-1.0.0.tgz", "ContentDiffers"},
		{"another version", packageDir(t, "web", "1.0.1"), "web-1.0.1.tgz", "NameDiffers"},
		{"another name", packageDir(t, "bank", "1.0.0"), "bank-1.0.0.tgz", "NameDiffers"},
	} {
		other := packed(t, tc.dir, tc.name)
		if err := os.WriteFile(other+".sigstore.json", before, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, errs := run(t, 3, nil, "verify", other, "--key", public); !strings.Contains(out, tc.want) {
			t.Errorf("%s: %s%s, want %s", tc.reason, out, errs, tc.want)
		}
	}
}

// TestManifestsSigned checks S14: what GitOps stores has the signatures of the package, so that the manager can verify it.
func TestManifestsSigned(t *testing.T) {
	home(t)
	private, _ := newKey(t)
	archive := packed(t, packageDir(t, "web", "1.0.0"), "web-1.0.0.tgz")
	run(t, 0, nil, "sign", archive, "--key", private)
	signature, err := os.ReadFile(archive + ".sigstore.json")
	if err != nil {
		t.Fatal(err)
	}
	out, _ := run(t, 0, nil, "render", archive, "--manifests")
	for document := range strings.SplitSeq(out, "\n---\n") {
		version := &v1beta1.OperatorVersion{}
		if err := yaml.Unmarshal([]byte(document), version); err != nil {
			t.Fatal(err)
		}
		if version.Kind != "OperatorVersion" {
			continue
		}
		if p := version.Spec.Provenance; p == nil || len(p.Signatures) != 1 || p.Signatures[0] != strings.TrimSpace(string(signature)) {
			t.Errorf("the provenance is %+v", p)
		}
		return
	}
	t.Errorf("there is no OperatorVersion in\n%s", out)
}

// TestBadSignatureFile checks S17: verify, sign and push refuse an archive whose file of signatures cannot be read, and leave the file as it is.
func TestBadSignatureFile(t *testing.T) {
	home(t)
	private, public := newKey(t)
	archive := packed(t, packageDir(t, "web", "1.0.0"), "web-1.0.0.tgz")
	if err := os.WriteFile(archive+".sigstore.json", []byte("<html>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	layout := "layout:" + filepath.ToSlash(t.TempDir())
	for _, args := range [][]string{{"verify", archive, "--key", public}, {"verify", archive, "--policy", policyFile(t, "web", public)},
		{"sign", archive, "--key", private}, {"push", archive, layout}} {
		if _, errs := run(t, 1, nil, args...); !strings.Contains(errs, "line 1 is no JSON: delete "+archive+".sigstore.json") {
			t.Errorf("%s: %s", args, errs)
		}
	}
	if data, err := os.ReadFile(archive + ".sigstore.json"); err != nil || string(data) != "<html>\n" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

// changedPackage is the package web 1.0.0 with a text of operator.yaml replaced.
func changedPackage(t *testing.T, old, replacement string) string {
	t.Helper()
	dir := packageDir(t, "web", "1.0.0")
	file := filepath.Join(dir, "operator.yaml")
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("there is no %q in %s: %v", old, text, err)
	}
	changed := strings.ReplaceAll(string(text), old, replacement)
	if old == "app.yaml" {
		err = os.Rename(filepath.Join(dir, "templates", old), filepath.Join(dir, "templates", replacement))
	}
	if err := errors.Join(err, os.WriteFile(file, []byte(changed), 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestSignReference checks S8, S13 and S22: signatures are pushed, copied and pulled along, and verify where they arrive.
func TestSignReference(t *testing.T) {
	home(t)
	private, public := newKey(t)
	otherPrivate, otherPublic := newKey(t)
	r := ocitest.New(t, true)
	flags, base := flagsFor(t, r), "oci://"+r.Host()+"/kudo"
	dir := packageDir(t, "web", "1.0.0")
	run(t, 0, append(flags, "--sign-key", private), "push", dir, base)
	run(t, 0, append(flags, "--key", public), "verify", base+"/web:1.0.0")
	run(t, 0, append(flags, "--key", otherPrivate), "sign", base+"/web:1.0.0")
	layout := "layout:" + filepath.ToSlash(filepath.Join(t.TempDir(), "carried"))
	second := ocitest.New(t, true)
	both := []string{"--registry-ca", ocitest.CAFile(t, r.Server, second.Server), "--registry-config", ocitest.ConfigFile(t, "", r.Host(), second.Host())}
	run(t, 0, both, "copy", base+"/web:1.0.0", layout)
	if _, errs := run(t, 0, both, "copy", layout, "oci://"+second.Host()+"/inside"); errs != "" {
		t.Errorf("signatures are no surprise in a folder: %s", errs)
	}
	target := t.TempDir()
	run(t, 0, both, "pull", "oci://"+second.Host()+"/inside/web:1.0.0", "-d", target)
	for _, key := range []string{public, otherPublic} {
		for _, name := range []string{layout + "/web:1.0.0", "oci://" + second.Host() + "/inside/web:1.0.0", filepath.Join(target, "web-1.0.0.tgz")} {
			run(t, 0, append(both, "--key", key), "verify", name)
		}
	}
	run(t, 0, both, "pull", "oci://"+second.Host()+"/inside/web:1.0.0", "-d", target) // adds nothing
	data, err := os.ReadFile(filepath.Join(target, "web-1.0.0.tgz.sigstore.json"))
	if err != nil || bytes.Count(data, []byte("\n")) != 2 {
		t.Errorf("the signatures of the archive are %s, %v", data, err)
	}
	archive := packed(t, packageDir(t, "db", "1.0.0"), "db-1.0.0.tgz")
	run(t, 0, nil, "sign", archive, "--key", private)
	run(t, 0, flags, "push", archive, base)
	run(t, 0, append(flags, "--key", public), "verify", base+"/db:1.0.0")
	moved := "oci://" + r.Host() + "/kudo/web@" + strings.Split(r.Tags()["kudo/db:1.0.0"], "@")[0]
	if out, errs, code := commandtest.Run(t, New, "", slices.Concat([]string{"package", "verify", moved, "--key", public}, flags)...); code == 0 {
		t.Errorf("a package of another repository is verified: %s%s", out, errs)
	}
}

// TestVerifyHostileReferrers checks S13 and S5: the first signature of the key ends the verification, whatever others have added behind it,
// and signatures that could not be read are an error if none of those before is of the key.
func TestVerifyHostileReferrers(t *testing.T) {
	home(t)
	private, public := newKey(t)
	otherPrivate, otherPublic := newKey(t)
	r := ocitest.New(t, true)
	flags, name := flagsFor(t, r), "oci://"+r.Host()+"/kudo/web:1.0.0"
	run(t, 0, append(flags, "--sign-key", private), "push", packageDir(t, "web", "1.0.0"), "oci://"+r.Host()+"/kudo")
	run(t, 0, append(flags, "--key", otherPrivate), "sign", name)
	var list struct{ Manifests []struct{ Digest string } }
	for tag, d := range r.Tags() {
		if strings.HasPrefix(tag, "kudo/web:sha256-") {
			if err := json.Unmarshal(r.Blob("kudo/web", d), &list); err != nil || len(list.Manifests) != 2 {
				t.Fatalf("the list of signatures is %s, %v", r.Blob("kudo/web", d), err)
			}
		}
	}
	manifest := func(i int) string {
		return fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":1}`, ocispec.MediaTypeImageManifest, list.Manifests[i].Digest)
	}
	second := "GET /v2/kudo/web/manifests/" + list.Manifests[1].Digest
	requests := func() string { all, _ := r.Requests(); return strings.Join(all, "\n") }
	requests()
	if out, errs := run(t, 0, append(flags, "--key", public), "verify", name); strings.Contains(out, "WrongKey") || errs != "" ||
		strings.Contains(requests(), second) {
		t.Errorf("a signature behind the one of the key is read: %s%s", out, errs)
	}
	if out, _ := run(t, 0, append(flags, "--key", otherPublic), "verify", name); !strings.Contains(out, "1           WrongKey") ||
		!strings.Contains(out, "2           Verified") {
		t.Errorf("one before the one of the key: %s", out)
	}
	r.Hostile = func(w http.ResponseWriter, q *http.Request) bool {
		switch {
		case !strings.Contains(q.URL.Path, "/referrers/"):
			return false
		case q.URL.Query().Get("at") != "":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.Header().Set("Link", "<"+q.URL.Path+`?at=1>; rel="next"`)
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			_, _ = fmt.Fprintf(w, `{"schemaVersion":2,"manifests":[%s]}`, manifest(0))
		}
		return true
	}
	run(t, 0, append(flags, "--key", public), "verify", name)
	if _, errs := run(t, 1, append(flags, "--key", otherPublic), "verify", name); !strings.Contains(errs, "that could be read is by key") {
		t.Errorf("the key of a signature that is not read: %s", errs)
	}
	if _, errs := run(t, 0, append(flags, "--policy", policyFile(t, "web", public)), "verify", name); !strings.Contains(errs, "not all signatures were read") {
		t.Errorf("a policy that is met: %s", errs)
	}
	if _, errs := run(t, 1, append(flags, "--policy", policyFile(t, "web", otherPublic)), "verify", name); !strings.Contains(errs, "the verdict without them is WrongKey") {
		t.Errorf("a policy of the key of a signature that is not read: %s", errs)
	}
}

// TestSignRefuses checks S22: what would become something else than was signed, and flags that do not fit.
func TestSignRefuses(t *testing.T) {
	home(t)
	private, public := newKey(t)
	tarball := func(text string) string {
		dir := packageDir(t, "web", "1.0.0")
		file, err := os.OpenFile(filepath.Join(dir, "operator.yaml"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteString("crdTarball: {" + text + "}\n")
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		return packed(t, dir, "web-1.0.0.tgz")
	}
	depending := func(spec string) string { return packed(t, packageDir(t, "web", "1.0.0", spec), "web-1.0.0.tgz") }
	plain := packed(t, packageDir(t, "web", "1.0.0"), "web-1.0.0.tgz")
	digest := strings.Repeat("a", 64)
	for _, tc := range []struct {
		reason string
		code   int
		args   []string
		want   string
	}{
		{"a range", 1, []string{depending("package: db, operatorVersion: ^1.0"), "--key", private}, `task d0 depends on "db" "^1.0"`},
		{"a path", 1, []string{depending("package: ../db, operatorVersion: 1.0.0"), "--key", private}, "operator.lock by kubectl kudo package lock"},
		{"a version whose content is not known", 1, []string{depending("package: db, operatorVersion: 1.0.0"), "--key", private}, "kubectl kudo package lock"},
		{"a content of a range", 1, []string{depending("package: db, operatorVersion: ^1.0, content: 'sha256:" + digest + "'"), "--key", private}, "kubectl kudo package lock"},
		{"a content of a path", 1, []string{depending("package: ../db, operatorVersion: 1.0.0, content: 'sha256:" + digest + "'"), "--key", private}, "kubectl kudo package lock"},
		{"a content", 0, []string{depending("package: db, operatorVersion: 1.0.0, content: 'sha256:" + digest + "'"), "--key", private}, ""},
		{"CRDs without a digest", 1, []string{tarball("httpSource: {url: 'https://example.org/x.tgz'}"), "--key", private}, "crdTarball.httpSource.sha256 is missing"},
		{"CRDs with a digest", 0, []string{tarball("httpSource: {url: 'https://example.org/x.tgz', sha256: " + digest + "}"), "--key", private}, ""},
		{"no key", 2, []string{plain}, "by --key"},
		{"a command without a public key", 2, []string{plain, "--signer", "true"}, "--signer needs --signer-key"},
		{"a key and a command", 2, []string{plain, "--key", private, "--signer", "true"}, "cannot be used with"},
		{"a password for a command", 2, []string{plain, "--signer", "true", "--signer-key", public, "--password-stdin"}, "give the password to the command"},
		{"a command that makes no signature", 1, []string{plain, "--signer", "true", "--signer-key", public}, "does not verify the signature"},
		{"a public key", 1, []string{plain, "--key", public}, "is not PKCS#8"},
		{"a key that is not there", 1, []string{plain, "--key", private + "x"}, "no such file"},
		{"a folder", 2, []string{"./web", "--key", private}, "pack a folder by package create"},
		{"a reference without a version", 2, []string{"layout:x/web", "--key", private}, "names no version"},
	} {
		if _, errs := run(t, tc.code, nil, append([]string{"sign"}, tc.args...)...); !strings.Contains(errs, tc.want) {
			t.Errorf("%s: %s, want %q", tc.reason, errs, tc.want)
		}
	}
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"a folder", []string{packageDir(t, "web", "1.0.0"), "--key", public}, "is a folder, which has no signatures"},
		{"a key and a policy", []string{"web-1.0.0", "--key", public, "--policy", "p.yaml"}, "--key and --policy exclude each other"},
		{"all namespaces without a cluster", []string{"web-1.0.0", "-A"}, "--all-namespaces requires --in-cluster"},
		{"all namespaces and a name", []string{"web-1.0.0", "--in-cluster", "-A"}, "--all-namespaces requires --in-cluster"},
		{"a policy and another check", []string{"web-1.0.0", "--policy", "p.yaml", "--strict"}, "they verify signatures, and nothing else"},
		{"a policy for nothing", []string{"--policy", "p.yaml"}, "none with --in-cluster"},
	} {
		if _, errs := run(t, 2, nil, append([]string{"verify"}, tc.args...)...); !strings.Contains(errs, tc.want) {
			t.Errorf("%s: %s, want %q", tc.reason, errs, tc.want)
		}
	}
	if r := ocitest.New(t, true); true {
		if _, errs := run(t, 1, append(flagsFor(t, r), "--sign-key", private), "push", packageDir(t, "web", "1.0.0", "package: db"), "oci://"+r.Host()+"/kudo"); !strings.Contains(errs, "sign ") || len(r.Tags()) > 0 {
			t.Errorf("what cannot be signed is pushed: %s, %v", errs, r.Tags())
		}
	}
}

// TestSignWarnsOfImages checks S22: images without a digest are named when a package is signed, and those with one are not.
func TestSignWarnsOfImages(t *testing.T) {
	home(t)
	private, _ := newKey(t)
	pod := func(image string) string {
		dir := packageDir(t, "web", "1.0.0")
		text := "apiVersion: v1\nkind: Pod\nmetadata: {name: app}\nspec: {containers: [{name: a, image: '" + image + "'}]}\n"
		if err := os.WriteFile(filepath.Join(dir, "templates", "app.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return packed(t, dir, "web-1.0.0.tgz")
	}
	if _, errs := run(t, 0, nil, "sign", pod("registry.example.org/web:1"), "--key", private); !strings.Contains(errs, "name these by digest: registry.example.org/web:1") {
		t.Errorf("a tag: %s", errs)
	}
	if _, errs := run(t, 0, nil, "sign", pod("registry.example.org/web@sha256:"+strings.Repeat("a", 64)), "--key", private); strings.Contains(errs, "Warning") {
		t.Errorf("a digest: %s", errs)
	}
}
