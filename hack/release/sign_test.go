package main

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
)

const (
	algorithmP256    = "P-256"
	algorithmP384    = "P-384"
	algorithmEd25519 = "Ed25519"
)

// privateKey is a key of the crypto packages.
type privateKey interface{ Public() crypto.PublicKey }

// algorithms make a private key.
var algorithms = map[string]func() (privateKey, error){
	algorithmP256: func() (privateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) },
	algorithmP384: func() (privateKey, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
	"P-521":       func() (privateKey, error) { return ecdsa.GenerateKey(elliptic.P521(), rand.Reader) },
	"X25519":      func() (privateKey, error) { return ecdh.X25519().GenerateKey(rand.Reader) },
	"RSA":         func() (privateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) },
	algorithmEd25519: func() (privateKey, error) {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	},
}

// newKeyFile makes a private key in a folder, and returns its file and that of the public key.
func newKeyFile(t *testing.T, folder, algorithm string) (private, public string) {
	t.Helper()
	private, public = filepath.Join(folder, "kudo.key"), filepath.Join(folder, "kudo.pub")
	made, err := algorithms[algorithm]()
	if err != nil {
		t.Fatal(err)
	}
	inner, err := x509.MarshalPKCS8PrivateKey(made)
	if err != nil {
		t.Fatal(err)
	}
	outer, err := x509.MarshalPKIXPublicKey(made.Public())
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{private: {Type: "PRIVATE KEY", Bytes: inner}, public: {Type: "PUBLIC KEY", Bytes: outer}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return private, public
}

// needOpenSSL skips a test where openssl is not installed.
func needOpenSSL(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("needs openssl: ", err)
	}
}

// verifyBundle verifies a bundle as sigstore-go does, with a public key.
func verifyBundle(t *testing.T, public string, text, artifact []byte) error {
	t.Helper()
	publicText, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	k, err := parsePublicKey(publicText)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.LoadDefaultVerifier(k.public)
	if err != nil {
		t.Fatal(err)
	}
	trusted := root.NewTrustedPublicKeyMaterialFromMapping(map[string]*root.ExpiringKey{string(k.GetHint()): root.NewExpiringKey(verifier, time.Time{}, time.Time{})})
	v, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps())
	if err != nil {
		t.Fatal(err)
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(text); err != nil {
		return err
	}
	if b.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" {
		t.Errorf("the bundle is of type %s", b.MediaType)
	}
	_, err = v.Verify(&b, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(artifact)), verify.WithKey()))
	return err
}

// releaseFolder writes checksums and provenance of a file.
func releaseFolder(t *testing.T) *release {
	t.Helper()
	t.Chdir("../..")
	r := &release{out: t.TempDir(), version: "v0.2.0", url: testURL}
	if err := os.WriteFile(filepath.Join(r.out, "install.yaml"), []byte("kind: List\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.writeProvenance(), r.writeSums()); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSign checks R13: each kind of key, as a file and in a program, makes bundles that sigstore-go verifies with its public key, and openssl
// by the commands of SECURITY.md. Another key, file or bundle is refused.
func TestSign(t *testing.T) {
	needOpenSSL(t)
	for _, tc := range []struct {
		reason, algorithm string
		keys              func(t *testing.T, private, public string) keyFlags
	}{
		{"P-256", algorithmP256, plain},
		{"P-384", algorithmP384, plain},
		{"Ed25519", algorithmEd25519, plain},
		{"P-256 with a password", algorithmP256, encrypted},
		{"Ed25519 with a password", algorithmEd25519, encrypted},
		{"P-256 in a program", algorithmP256, program("openssl dgst -sha256 -sign KEY")},
		{"P-384 in a program", algorithmP384, program("openssl dgst -sha384 -sign 'KEY'")},
		{"Ed25519 in a program", algorithmEd25519, program(`sh -c 'cat >KEY.in && openssl pkeyutl -sign -inkey KEY -rawin -in KEY.in'`)},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			folder := t.TempDir()
			private, public := newKeyFile(t, folder, tc.algorithm)
			_, other := newKeyFile(t, t.TempDir(), tc.algorithm)
			keys := tc.keys(t, private, public)
			r := releaseFolder(t)
			var err error
			if r.signing, err = keys.read(); err != nil {
				t.Fatal(err)
			}
			if err := r.signFiles(); err != nil {
				t.Fatal(err)
			}
			checkBundles(t, r.out, public, other)
			runSecurityPage(t, r.out, public, tc.algorithm)
		})
	}
}

func plain(_ *testing.T, private, _ string) keyFlags { return keyFlags{private: private} }

func encrypted(t *testing.T, private, _ string) keyFlags {
	sealed := private + ".enc"
	output(t, ".", nil, "openssl", "pkcs8", "-topk8", "-v2", "aes256", "-in", private, "-out", sealed, "-passout", "pass:secret")
	t.Setenv(passwordVariable, "secret")
	return keyFlags{private: sealed, password: readPassword}
}

func program(command string) func(*testing.T, string, string) keyFlags {
	return func(_ *testing.T, private, public string) keyFlags {
		return keyFlags{signer: strings.ReplaceAll(command, "KEY", private), public: public}
	}
}

// checkBundles verifies the bundles of a release with the public key in a file, and changes what is verified.
func checkBundles(t *testing.T, folder, public, other string) {
	t.Helper()
	sums, sumsBundle := []byte(read(t, folder, "SHA256SUMS")), []byte(read(t, folder, "SHA256SUMS.sigstore.json"))
	provenance := []byte(read(t, folder, "provenance.sigstore.json"))
	install := []byte(read(t, folder, "install.yaml"))
	payload := base64.StdEncoding.EncodeToString([]byte(read(t, folder, "provenance.json")))
	if !bytes.Contains(provenance, []byte(payload)) {
		t.Error("the envelope does not hold provenance.json as it is")
	}
	text := func(b []byte, old, new string) []byte {
		if !bytes.Contains(b, []byte(old)) {
			t.Fatalf("there is no %s in %s", old, b)
		}
		return bytes.Replace(b, []byte(old), []byte(new), 1)
	}
	forged := base64.StdEncoding.EncodeToString([]byte(strings.Replace(read(t, folder, "provenance.json"), `"version": "v`, `"version": "w`, 1)))
	for _, tc := range []struct {
		reason, public   string
		bundle, artifact []byte
		want             bool
	}{
		{"the checksums", public, sumsBundle, sums, true},
		{"the provenance of a file", public, provenance, install, true},
		{"checksums of another key", other, sumsBundle, sums, false},
		{"provenance of another key", other, provenance, install, false},
		{"changed checksums", public, sumsBundle, append(bytes.Clone(sums), '\n'), false},
		{"a changed file", public, provenance, append(bytes.Clone(install), '\n'), false},
		{"no signature", public, text(sumsBundle, `"signature":`, `"other":`), sums, false},
		{"a changed signature", public, flip(sumsBundle, `"signature":`), sums, false},
		{"a changed signature of the provenance", public, flip(provenance, `"sig":`), install, false},
		{"a changed statement", public, text(provenance, payload, forged), install, false},
		{"a changed digest", public, flip(sumsBundle, `"digest":`), sums, false},
		{"another type of payload", public, text(provenance, "application/vnd.in-toto+json", "application/json"), install, false},
		{"a bundle of another file", public, provenance, sums, false},
	} {
		if err := verifyBundle(t, tc.public, tc.bundle, tc.artifact); (err == nil) != tc.want {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// flip changes a bit of the base64 text after a name.
func flip(bundle []byte, name string) []byte {
	out := bytes.Clone(bundle)
	at := bytes.Index(out, []byte(name)) + len(name) + 20
	if out[at] == 'A' {
		out[at] = 'B'
	} else {
		out[at] = 'A'
	}
	return out
}

// runSecurityPage runs the commands by which SECURITY.md verifies a release without cosign, and again with other checksums.
func runSecurityPage(t *testing.T, folder, public, algorithm string) {
	t.Helper()
	key, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	page := read(t, ".", "SECURITY.md")
	block := func(begin string) string {
		_, after, found := strings.Cut(page, "```sh\n"+begin)
		if !found {
			t.Fatalf("SECURITY.md has no commands that begin with %s", begin)
		}
		commands, _, _ := strings.Cut(after, "```")
		return begin + commands
	}
	commands := block("sed ")
	switch algorithm {
	case algorithmP384:
		commands = strings.Replace(commands, "-sha256", "-sha384", 1)
	case algorithmEd25519:
		first, _, _ := strings.Cut(commands, "\n")
		commands = first + "\n" + block("openssl pkeyutl ")
	}
	commands += block("sha256sum ")
	if err := os.WriteFile(filepath.Join(folder, "kudo.pub"), key, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := output(t, folder, nil, "sh", "-ec", commands); !strings.Contains(out, "install.yaml: OK") {
		t.Errorf("%s prints %s", commands, out)
	}
	changed := exec.Command("sh", "-ec", "echo >>SHA256SUMS\n"+commands)
	changed.Dir = folder
	if out, err := changed.CombinedOutput(); err == nil {
		t.Errorf("changed checksums are accepted: %s", out)
	}
}

// TestKeys checks that R13 refuses keys of other kinds, and those by which a release could not be verified, with a remedy.
func TestKeys(t *testing.T) {
	needOpenSSL(t)
	folder := t.TempDir()
	private, public := newKeyFile(t, folder, algorithmP256)
	file := func(name, text string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	made := func(name, algorithm string) (string, string) {
		inside := filepath.Join(folder, name)
		if err := os.Mkdir(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		return newKeyFile(t, inside, algorithm)
	}
	rsa, rsaPublic := made("rsa", "RSA")
	p521, _ := made("p521", "P-521")
	x25519, _ := made("x25519", "X25519")
	_, other := made("other", algorithmP256)
	sec1 := filepath.Join(folder, "sec1")
	output(t, folder, nil, "openssl", "ec", "-in", private, "-out", sec1)
	sealed := filepath.Join(folder, "sealed")
	output(t, folder, nil, "openssl", "pkcs8", "-topk8", "-in", private, "-out", sealed, "-passout", "pass:secret")
	wrong := func(string) ([]byte, error) { return []byte("wrong"), nil }
	sign := "openssl dgst -sha256 -sign " + private
	for _, tc := range []struct {
		reason string
		keys   keyFlags
		want   string
	}{
		{"RSA", keyFlags{private: rsa}, "an RSA key is refused, only ECDSA and Ed25519 are taken: make a key by openssl genpkey"},
		{"RSA in a program", keyFlags{signer: sign, public: rsaPublic}, "-signer-key " + rsaPublic + ": an RSA key is refused"},
		{"another curve", keyFlags{private: p521}, "the curve P-521 is refused"},
		{"a key that cannot sign", keyFlags{private: x25519}, "make a key by openssl genpkey"},
		{"another form", keyFlags{private: sec1}, "EC PRIVATE KEY is not PKCS#8: convert the key by openssl pkcs8 -topk8"},
		{"a public key", keyFlags{private: public}, "PUBLIC KEY is not PKCS#8"},
		{"no key", keyFlags{private: file("text", "hello")}, "there is no key in PEM"},
		{"no file", keyFlags{private: filepath.Join(folder, "none")}, "no such file"},
		{"a wrong password", keyFlags{private: sealed, password: wrong}, "check the password"},
		{"no password", keyFlags{private: sealed, password: readPassword}, "put its password into the environment variable SIGN_PASSWORD"},
		{"two keys", keyFlags{private: private, signer: sign, public: public}, "-sign-key cannot be used with -signer"},
		{"a program without its public key", keyFlags{signer: sign}, "-signer needs -signer-key"},
		{"a public key without a program", keyFlags{public: public}, "-signer-key needs -signer"},
		{"no public key in the file", keyFlags{signer: sign, public: private}, "there is no PUBLIC KEY in PEM"},
		{"no program", keyFlags{signer: "'", public: public}, "name a program"},
		{"the public key of another program", keyFlags{signer: sign, public: other}, "the public key does not verify the signature: name the key of the program by -signer-key"},
		{"a program that fails", keyFlags{signer: "false", public: public}, "-signer false: exit status 1"},
		{"a program that does not exist", keyFlags{signer: folder + "/none", public: public}, "no such file"},
		{"a program without end", keyFlags{signer: "head -c 10000000 /dev/zero", public: public}, "the public key does not verify the signature"},
	} {
		k, err := tc.keys.read()
		if err == nil {
			_, _, err = k.SignData(t.Context(), []byte("a"))
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
		}
	}
	t.Setenv(passwordVariable, "secret")
	if password, err := readPassword(sealed); err != nil || string(password) != "secret" || os.Getenv(passwordVariable) != "" {
		t.Errorf("the password is %s, %v, and programs see it: %t", password, err, os.Getenv(passwordVariable) != "")
	}
}

// TestChooseKey checks R13 and R12: a release is signed only with the key of SECURITY.md, which a second machine links in, too.
func TestChooseKey(t *testing.T) {
	_, first := newKeyFile(t, t.TempDir(), algorithmP256)
	_, second := newKeyFile(t, t.TempDir(), algorithmEd25519)
	texts := map[string]string{"": "no key"}
	keys := map[string]*key{}
	for name, file := range map[string]string{"first": first, "second": second} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if keys[name], err = parsePublicKey(text); err != nil {
			t.Fatal(err)
		}
		texts[name] = "# Key\n\n```\n" + string(text) + "```\n"
	}
	for _, tc := range []struct {
		reason, security, signing string
		snapshot                  bool
		linked, want              string
	}{
		{"no key at all", "", "", false, "", ""},
		{"the second machine has no private key", "first", "", false, "first", ""},
		{"the key of the page", "first", "first", false, "first", ""},
		{"a page without a key", "", "first", false, "", "put it there, commit, and tag that commit:\n-----BEGIN PUBLIC KEY-----"},
		{"another key", "first", "second", false, "", "is not the first one in SECURITY.md"},
		{"a snapshot", "first", "second", true, "second", ""},
	} {
		r := &release{signing: keys[tc.signing]}
		err := r.chooseKey([]byte(texts[tc.security]), tc.snapshot)
		if text := errorText(err); tc.want == "" && text != "" || !strings.Contains(text, tc.want) || r.public != keys[tc.linked] && !bytes.Equal(r.public.der, keys[tc.linked].der) {
			t.Errorf("%s: error %q, want %q, key %v", tc.reason, text, tc.want, r.public)
		}
	}
	r := &release{}
	old := strings.Replace(texts["first"]+texts["second"], "PUBLIC", "RSA PUBLIC", 2)
	if err := r.chooseKey([]byte(old), false); err == nil || !strings.Contains(err.Error(), "SECURITY.md: there is no PUBLIC KEY") {
		t.Errorf("a page whose first key cannot be used: %v", err)
	}
}
