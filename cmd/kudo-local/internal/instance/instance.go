// Package instance keeps what is known about one control plane between two
// runs of this program: its settings, its ports and its processes.
package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Instance is one control plane and its folder.
type Instance struct {
	Name     string         `json:"name"`
	Settings Settings       `json:"settings"`
	Ports    map[string]int `json:"ports"`
	// Subnet is the number of the networks of a real node; 0 if it has none.
	Subnet int `json:"subnet,omitempty"`

	root string
}

// ErrNotFound is returned for an instance that was never made.
var ErrNotFound = errors.New("no such instance")

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

// CheckName returns an error for a name that cannot be a folder and a context
// of a kubeconfig.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of an instance: use at most 40 lower-case letters, digits and dashes", name)
	}
	return nil
}

// New returns an instance without ports in the state folder root.
func New(root, name string, settings Settings) *Instance {
	return &Instance{Name: name, Settings: settings, Ports: map[string]int{}, root: root}
}

// Load reads an instance from the state folder root.
func Load(root, name string) (*Instance, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	i := New(root, name, Settings{})
	data, err := os.ReadFile(i.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %q in %s; make it with 'kudo-local up'", ErrNotFound, name, root)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state of instance %q: %w", name, err)
	}
	if err := json.Unmarshal(data, i); err != nil {
		return nil, fmt.Errorf("reading %s: %w; 'kudo-local down --delete' starts over", i.stateFile(), err)
	}
	return i, nil
}

// Save writes the instance to its folder, which is for its owner only: keys, tokens, logs and the data of etcd lie
// there. A folder that an earlier version made for others to read is closed.
func (i *Instance) Save() error {
	if err := os.MkdirAll(i.Dir(), 0o700); err != nil {
		return fmt.Errorf("making the folder of instance %q: %w", i.Name, err)
	}
	if err := os.Chmod(i.Dir(), 0o700); err != nil {
		return fmt.Errorf("closing the folder of instance %q to other users: %w", i.Name, err)
	}
	return writeJSON(i.stateFile(), i)
}

// Delete removes the folder of the instance and all that is in it.
func (i *Instance) Delete() error {
	if err := os.RemoveAll(i.Dir()); err != nil {
		return fmt.Errorf("removing the folder of instance %q: %w", i.Name, err)
	}
	return nil
}

// List returns the names of all instances in the state folder root, sorted.
func List(root string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "*", stateName))
	if err != nil {
		return nil, fmt.Errorf("listing instances in %s: %w", root, err)
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, filepath.Base(filepath.Dir(f)))
	}
	slices.Sort(names)
	return names, nil
}

// writeJSON writes by rename, so that a reader never sees half a file.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return WriteFile(path, append(data, '\n'))
}

// WriteFile replaces path by content in one step.
func WriteFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("replacing %s: %w", path, err)
	}
	return nil
}
