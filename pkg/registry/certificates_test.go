package registry

import (
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAddCertificates checks which certificates a pool has, that the pool that is given does not change, and that errors name the file.
func TestAddCertificates(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	folder := t.TempDir()
	file := func(name, content string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good := file("good.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	only := x509.NewCertPool()
	only.AddCert(server.Certificate())
	empty := x509.NewCertPool()
	if got, err := AddCertificates(empty, good); err != nil || !got.Equal(only) || !empty.Equal(x509.NewCertPool()) {
		t.Errorf("the pool is %v, and the one that was given %v (%v)", got, empty, err)
	}
	system, err := x509.SystemCertPool()
	if err != nil { // a machine without certificates
		system = x509.NewCertPool()
	}
	system.AddCert(server.Certificate())
	if got, err := AddCertificates(nil, good); err != nil || !got.Equal(system) {
		t.Errorf("those of the system are not in the pool (%v)", err)
	}
	for name, want := range map[string]string{
		file("text.pem", "no certificate"):                        "text.pem: it holds no certificate in PEM: name",
		file("large.pem", strings.Repeat("x", maxCertificates+1)): "large.pem: it has more than the 1048576 bytes allowed: name",
		filepath.Join(folder, "none.pem"):                         "none.pem: no such file",
		folder:                                                    folder,
	} {
		if _, err := AddCertificates(nil, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
