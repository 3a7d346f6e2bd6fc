//go:build unix

package trust

import (
	"bytes"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/youmark/pkcs8"
)

// TestPassword checks S18: a key with a password.
func TestPassword(t *testing.T) {
	key := newECDSA(t, elliptic.P256())
	der, err := pkcs8.MarshalPrivateKey(key, []byte("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	file := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der})
	s, err := ParsePrivateKey(file, func() ([]byte, error) { return []byte("secret"), nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(sign(t, wanted(), s), wanted(), authority(newSigner(t, key)), now); err != nil {
		t.Error(err)
	}
	if _, err := ParsePrivateKey(file, func() ([]byte, error) { return []byte("other"), nil }); err == nil {
		t.Error("another password is taken")
	}
}

// TestProgram checks S18: a program that signs, and programs that do not.
func TestProgram(t *testing.T) {
	key := newECDSA(t, elliptic.P256())
	dir := t.TempDir()
	file := filepath.Join(dir, "it's a key.pem")
	if err := os.WriteFile(file, private(t, key), 0o600); err != nil {
		t.Fatal(err)
	}
	public, err := NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	programs := []struct{ reason, command, want string }{
		{"a program that fails", "sh -c 'echo why >&2; exit 3'", "exit status 3"},
		{"a program that is not there", "/nonexistent/signer", "no such file"},
		{"a signature of something else", "echo hello", "does not verify the signature that was made"},
		{"no end of output", "sh -c 'while :; do echo yyyyyyyyyyyyyyyyyyyy; done'", "run sh"},
		{"nothing", "true", "does not verify the signature that was made"},
	}
	if _, err := exec.LookPath("openssl"); err == nil {
		programs = append(programs, struct{ reason, command, want string }{"a program that signs",
			`openssl dgst -sha256 -sign "` + file + `"`, ""})
	}
	for _, tc := range programs {
		var said bytes.Buffer
		s, err := NewProgram(tc.command, public, &said)
		if err != nil {
			t.Fatal(err)
		}
		made, err := Sign(t.Context(), wanted(), s)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if err == nil {
			if err := Verify(made, wanted(), Authority{Name: "x", Key: public}, now); err != nil {
				t.Error(err)
			}
		}
	}
	for _, command := range []string{"", "  ", "'"} {
		if _, err := NewProgram(command, public, nil); err == nil {
			t.Errorf("the command %q is taken", command)
		}
	}
	if _, err := x509.ParsePKIXPublicKey(public.der); err != nil {
		t.Error(err)
	}
}
