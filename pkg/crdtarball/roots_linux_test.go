package crdtarball

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestNoRoots: where the system has no certificate authorities, the error says so. The Go library reads them once in the life
// of a process, so that the download runs in one of its own.
func TestNoRoots(t *testing.T) {
	const server = "KUDO_TEST_ROOTS_SERVER"
	const hint = "holds no certificate authorities at all: its image needs /etc/ssl/certs/ca-certificates.crt"
	if url := os.Getenv(server); url != "" {
		source := newTestSource(t, v1beta1.HTTPSource{URL: url}, anyHost(nil))
		t.Log(refuse(t, openCache(t, t.TempDir()), source, "", ReasonCertificate, "certificate is not trusted"))
		return
	}
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	authority, _ := clientPair(t)
	authorities := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(authorities, []byte(authority), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, file string
		hint         bool
	}{
		"None": {"the hint names the file", os.DevNull, true},
		"Some": {"another authority would do", authorities, false},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestNoRoots$", "-test.v")
			cmd.Env = append(os.Environ(), server+"="+s.URL, "SSL_CERT_FILE="+tc.file, "SSL_CERT_DIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s\n%s", err, out)
			}
			if got := strings.Contains(string(out), hint); got != tc.hint || !strings.Contains(string(out), "not trusted") {
				t.Errorf("%s: %s", tc.reason, out)
			}
		})
	}
}
