package main

import (
	"errors"
	"os"
	"path/filepath"
)

// packCatalog writes the archives of the catalog's packages, and their index: the files of the release are a repository of packages. They
// are packed in a folder of their own, since the index lists all archives of a folder.
func (r *release) packCatalog() error {
	folder := filepath.Join(r.work, "catalog")
	packages, err := filepath.Glob("operators/catalog/*/operator")
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return errors.New("operators/catalog has no packages")
	}
	for _, dir := range packages {
		if _, err := r.kudo("package", "create", dir, "-d", folder); err != nil {
			return err
		}
	}
	if _, err := r.kudo("repo", "index", folder); err != nil {
		return err
	}
	return os.CopyFS(r.out, os.DirFS(folder)) // fails if a file is there already
}
