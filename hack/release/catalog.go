package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// packCatalog writes the archives of the catalog's packages, and their index: the files of the release are a repository of packages. They
// are packed in a folder of their own, since the index lists all archives of a folder.
func (r *release) packCatalog() error {
	folder := filepath.Join(r.work, "catalog")
	packages, err := filepath.Glob("operators/catalog/*/operator")
	if err != nil || len(packages) == 0 {
		return fmt.Errorf("operators/catalog has no packages: %w", err)
	}
	for _, dir := range packages {
		if _, err := r.kudo("package", "create", dir, "-d", folder); err != nil {
			return err
		}
	}
	if _, err := r.kudo("repo", "index", folder); err != nil {
		return err
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, file.Name()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
