package packages

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"kudo.dev/kudo/pkg/trust"
)

// TestAttest checks S17 and S22: the statement of a package can be signed elsewhere, and a bundle is added if it has this very statement.
func TestAttest(t *testing.T) {
	home(t)
	private, public := newKey(t)
	archive, other := packed(t, packageDir(t, "web", "1.0.0"), "web-1.0.0.tgz"), packed(t, packageDir(t, "web", "1.1.0"), "web-1.1.0.tgz")
	out, _ := run(t, 0, nil, "attest", archive)
	var said struct {
		Type    string `json:"_type"`
		Subject []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil || said.Type != "https://in-toto.io/Statement/v1" || len(said.Subject) != 2 || said.Subject[1].Name != "content" {
		t.Errorf("the statement: %s, %v", out, err)
	}
	if _, err := os.Stat(archive + ".sigstore.json"); err == nil {
		t.Error("printing the statement has written a signature")
	}
	run(t, 0, nil, "sign", archive, "--key", private)
	file := filepath.Join(t.TempDir(), "made.sigstore.json")
	bundle, err := os.ReadFile(archive + ".sigstore.json")
	if err != nil {
		t.Fatal(err)
	}
	var pretty map[string]any
	if err := json.Unmarshal(bundle, &pretty); err != nil {
		t.Fatal(err)
	}
	indented, err := json.MarshalIndent(pretty, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, indented, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs := run(t, 1, nil, "attest", other, "--bundle", file); !strings.Contains(errs, "the signature is for web 1.0.0, and this is web 1.1.0") {
		t.Errorf("a bundle of another package: %s", errs)
	}
	if err := os.Remove(archive + ".sigstore.json"); err != nil {
		t.Fatal(err)
	}
	if out, _ := run(t, 0, nil, "attest", archive, "--bundle", file); !strings.Contains(out, "signature 1 added") {
		t.Errorf("a bundle of this package: %s", out)
	}
	if _, errs := run(t, 0, nil, "attest", archive, "--bundle", file); !strings.Contains(errs, "Unchanged") {
		t.Errorf("the same bundle again: %s", errs)
	}
	run(t, 0, nil, "verify", archive, "--key", public)
	for reason, text := range map[string]string{"no JSON": "---", "no bundle": "{}", "too large": `"` + strings.Repeat("x", 64<<10) + `"`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs := run(t, 1, nil, "attest", archive, "--bundle", file); !strings.Contains(errs, "bundle") && !strings.Contains(errs, "no signature of") {
			t.Errorf("%s: %s", reason, errs)
		}
	}
}

// TestSignTarball checks S34: the signature of a tarball of CustomResourceDefinitions is printed, for a file and for a reference.
func TestSignTarball(t *testing.T) {
	home(t)
	private, public := newKey(t)
	file := filepath.Join(t.TempDir(), "crds.tar.gz")
	if err := os.WriteFile(file, []byte("definitions"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	key, err := trust.ParsePublicKey(text)
	if err != nil {
		t.Fatal(err)
	}
	ofFile := digest.FromString("definitions").String()
	ofManifest := "sha256:" + strings.Repeat("ab", 32)
	for name, want := range map[string]string{file: ofFile, "registry.example.org/crds/web@" + ofManifest: ofManifest} {
		out, _ := run(t, 0, nil, "sign", name, "--crds", "--key", private)
		if err := trust.VerifyTarball([]byte(out), want, trust.Authority{Name: "a", Key: key}, time.Now()); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	for name, code := range map[string]int{"registry.example.org/crds/web@sha256:1": 2, file + "x": 1} {
		if _, errs := run(t, code, nil, "sign", name, "--crds", "--key", private); !strings.Contains(errs, "digest") && !strings.Contains(errs, "no such file") {
			t.Errorf("%s: %s", name, errs)
		}
	}
}
