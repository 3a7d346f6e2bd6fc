package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchies are the folders in which the node's cgroup lies: one with version 2, one for each controller with version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() { // cpu is a link to cpu,cpuacct on some systems
			dirs = append(dirs, filepath.Join(cgroupRoot, e.Name()))
		}
	}
	return dirs, nil
}

// makeCgroups makes the node's cgroup in each hierarchy.
func (c *Config) makeCgroups() error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		dir := filepath.Join(root, c.Cgroup)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // empty ones of version 1 take no process
			value, err := os.ReadFile(filepath.Join(root, file))
			if errors.Is(err, fs.ErrNotExist) || root == cgroupRoot {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), value, 0o644)
			}
			if err != nil {
				return fmt.Errorf("making a cgroup: %w", err)
			}
		}
	}
	return nil
}

// removeCgroups removes the node's cgroups, from the leaves up. The kernel may hold one of a process that has just ended for some moments.
func (c *Config) removeCgroups() error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(root, c.Cgroup), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.SortFunc(dirs, func(a, b string) int { return strings.Compare(b, a) })
		for _, dir := range dirs {
			if err := removeDir(dir); err != nil {
				return fmt.Errorf("removing a cgroup of the node: %w", err)
			}
		}
	}
	return nil
}

func removeDir(dir string) error {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}
