package env

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kuttl returns the path of kuttl, which make kuttl builds.
func kuttl() string { return filepath.Join(bin(), "kubectl-kuttl") }

// HasKuttl reports whether make kuttl has built kuttl.
func HasKuttl() bool {
	_, err := os.Stat(kuttl())
	return err == nil
}

// RequireKuttl skips the test where kuttl could not be built.
func RequireKuttl(t testing.TB) {
	t.Helper()
	if !HasKuttl() {
		t.Skip("kuttl is absent: make kuttl builds it")
	}
}

// Kuttl runs the case in a folder by kuttl itself. It takes the folders beside it for cases, too.
func (e *Env) Kuttl(t testing.TB, dir string) {
	t.Helper()
	name := filepath.Base(dir)
	cmd := exec.CommandContext(t.Context(), kuttl(), "test", "--timeout", "120", "--test", "^"+regexp.QuoteMeta(name)+"$", filepath.Dir(dir))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig, "PATH="+e.Path())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: kuttl/harness/"+name+" ") {
		t.Errorf("kuttl: %v\n%s", err, out)
	}
}
