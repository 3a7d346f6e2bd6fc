package env

import (
	"os"
	"os/exec"
	"path/filepath"

	"kudo.dev/kudo/test/sourcetree"
)

// Helm runs Helm of the version that hack/release pins, in that folder, with another folder for what Helm stores. It returns what Helm prints.
func (e *Env) Helm(home string, args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"tool", "helm"}, args...)...)
	cmd.Dir = filepath.Join(sourcetree.Root(), "hack", "release")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
