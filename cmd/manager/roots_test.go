package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRoots checks R5: the manager knows certificate authorities where its image has none, and those of a company take their place.
func TestRoots(t *testing.T) {
	if os.Getenv("PRINT_ROOTS") != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("roots: %d\n", len(pool.Subjects())) //nolint:staticcheck // counts what this pool has, whatever the system's verifier is
		return
	}
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	company := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(company, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		file string
		few  bool
	}{
		"no file":          {filepath.Join(t.TempDir(), "absent"), false},
		"a company's file": {company, true},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestRoots$", "-test.v")
			cmd.Env = append(os.Environ(), "PRINT_ROOTS=1", "SSL_CERT_FILE="+tc.file, "SSL_CERT_DIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			_, after, _ := strings.Cut(string(out), "roots: ")
			count := 0
			if _, err := fmt.Sscan(after, &count); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if few := count == 1; few != tc.few || count == 0 {
				t.Errorf("%d certificate authorities are known", count)
			}
		})
	}
}
