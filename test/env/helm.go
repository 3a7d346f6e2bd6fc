package env

import (
	"os"
	"os/exec"
	"path/filepath"

	"kudo.dev/kudo/test/sourcetree"
)

// Helm runs Helm of the version that releases are tested with, in the root of the sources, with a folder for what Helm stores. It returns what
// Helm prints.
func (e *Env) Helm(home string, args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"tool", "-modfile=" + filepath.Join("hack", "release", "go.mod"), "helm"}, args...)...)
	cmd.Dir = sourcetree.Root()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
