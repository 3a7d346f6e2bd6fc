package instance

import (
	"fmt"
	"os"
	"path/filepath"
)

const stateName = "instance.json"

// DefaultRoot is the state folder when none is named: KUDO_LOCAL_STATE, or
// kudo-local in the folder that the XDG base directory specification has for
// state.
func DefaultRoot() (string, error) {
	if dir := os.Getenv("KUDO_LOCAL_STATE"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "kudo-local"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for state: %w; name one with --state", err)
	}
	return filepath.Join(home, ".local", "state", "kudo-local"), nil
}

// Dir is the folder of the instance.
func (i *Instance) Dir() string { return filepath.Join(i.root, i.Name) }

func (i *Instance) stateFile() string { return i.Path(stateName) }

// Path is a file in the folder of the instance.
func (i *Instance) Path(elements ...string) string {
	return filepath.Join(append([]string{i.Dir()}, elements...)...)
}

// Kubeconfig is the path of the admin kubeconfig.
func (i *Instance) Kubeconfig() string { return i.Path("kubeconfig") }

// ManagerKubeconfig is the path of the kubeconfig that 'kubectl kudo init'
// writes for the manager.
func (i *Instance) ManagerKubeconfig() string { return i.Path("manager.kubeconfig") }

// Log is the path of the log of a component.
func (i *Instance) Log(component string) string { return i.Path("logs", component+".log") }

// Context is the name of the context in kubeconfigs.
func (i *Instance) Context() string {
	if i.Name == "default" {
		return "kudo-local"
	}
	return "kudo-local-" + i.Name
}
