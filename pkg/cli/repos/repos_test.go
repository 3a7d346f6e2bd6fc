package repos

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/trust"
)

// TestContext checks that a repository that is not known cannot be used or removed, and that the one in use is listed.
func TestContext(t *testing.T) {
	t.Setenv("KUDO_HOME", t.TempDir())
	for _, args := range [][]string{{"repo", "context", "ours"}, {"repo", "remove", "ours"}} {
		if _, errs := commandtest.Expect(t, New, command.ExitError, "", args...); !strings.Contains(errs, "ours") {
			t.Errorf("%v: the repository is named:\n%s", args, errs)
		}
	}
	if out, _ := commandtest.Expect(t, New, 0, "", "repo", "list", "-o", "yaml"); out != "[]\n" {
		t.Errorf("this build knows no catalog, and lists:\n%s", out)
	}
	if out, _ := commandtest.Expect(t, New, 0, "", "repo", "list"); !strings.Contains(out, "no repository is configured: add one by kubectl kudo repo add NAME URL") {
		t.Errorf("it does not say what to do:\n%s", out)
	}
	repository.CatalogURL = "https://example.org/kudo"
	t.Cleanup(func() { repository.CatalogURL = "" })
	if out, _ := commandtest.Expect(t, New, 0, "", "repo", "list"); !strings.Contains(out, "*catalog") {
		t.Errorf("the catalog of a release is not in use:\n%s", out)
	}
	commandtest.Expect(t, New, command.ExitUsage, "", "repo", "list", "-o", "table")
}

// TestDescribe checks that paths become absolute, and that the secret of stdin becomes what its flag names.
func TestDescribe(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := filepath.Abs("")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		options repoAddOptions
		url     string
		want    repository.Repository
	}{
		"a URL":     {url: "https://example.com", want: repository.Repository{URL: "https://example.com"}},
		"a folder":  {url: "layout:packages", want: repository.Repository{URL: "layout:" + filepath.ToSlash(filepath.Join(here, "packages"))}},
		"no folder": {url: "layout:", want: repository.Repository{URL: "layout:"}},
		"certificates": {options: repoAddOptions{caFile: "ca.pem", tokenHosts: []string{"auth.example.com"}}, url: "https://example.com",
			want: repository.Repository{URL: "https://example.com", CAFile: filepath.Join(here, "ca.pem"), TokenHosts: []string{"auth.example.com"}}},
		"a password": {options: repoAddOptions{username: "me", passwordStdin: true}, url: "https://example.com",
			want: repository.Repository{URL: "https://example.com", Username: "me", Password: "secret"}},
		"a token": {options: repoAddOptions{tokenStdin: true}, url: "https://example.com",
			want: repository.Repository{URL: "https://example.com", Token: "secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.env, tc.want.Name = &command.Env{In: strings.NewReader("secret\n")}, "ours"
			got, err := tc.options.describe("ours", tc.url)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestSignIndex shows S36 with commands: an index is signed, users who name the key take it, and one that is not signed, or older, is refused.
func TestSignIndex(t *testing.T) {
	t.Setenv("KUDO_HOME", t.TempDir())
	dir := t.TempDir()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte, err error) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), name)
		if err := errors.Join(err, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	key := write("release.pem", "PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(private.Public())
	public := write("release.pub", "PUBLIC KEY", der, err)
	url := "file://" + dir
	expect := func(code int, want string, args ...string) {
		t.Helper()
		if out, errs := commandtest.Expect(t, New, code, "", args...); !strings.Contains(out+errs, want) {
			t.Errorf("%v: no %q in\n%s%s", args, want, out, errs)
		}
	}
	expect(0, "signed by key", "repo", "index", dir, "--sign-key", key)
	signature := filepath.Join(dir, "index.yaml.sigstore.json")
	first, err := os.ReadFile(signature)
	if err != nil {
		t.Fatal(err)
	}
	expect(0, "repository ours added", "repo", "add", "ours", url, "--key", public)
	expect(command.ExitError, "is signed, and users may need the signature", "repo", "index", dir, "--overwrite")
	expect(command.ExitUsage, "--valid -1h0m0s", "repo", "index", dir, "--overwrite", "--sign-key", key, "--valid", "-1h")
	expect(0, "is up to date\nsigned by key", "repo", "index", dir, "--overwrite", "--sign-key", key)
	second, err := os.ReadFile(signature)
	if err != nil || trust.SequenceOf(bytes.TrimSpace(second)) <= trust.SequenceOf(bytes.TrimSpace(first)) {
		t.Errorf("the sequence does not grow: %s, %s, %v", first, second, err)
	}
	expect(0, "repository again added", "repo", "add", "again", url, "--key", public)
	if err := os.WriteFile(signature, first, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(0, "repository ours removed", "repo", "remove", "ours")
	expect(0, "repository again removed", "repo", "remove", "again")
	expect(command.ExitError, "was seen before: it is an older one", "repo", "add", "again", url, "--key", public)
	if err := os.Remove(signature); err != nil {
		t.Fatal(err)
	}
	expect(command.ExitError, "the index is not signed", "repo", "add", "ours", url, "--key", public)
	expect(command.ExitUsage, "a registry has no index", "repo", "add", "ours", "layout:"+dir, "--key", public)
	expect(command.ExitError, "--key "+key, "repo", "add", "ours", url, "--key", key)
}
