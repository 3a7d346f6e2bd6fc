package gen

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/repository"
)

// WriteRepository writes archives of packages into a folder, and their index.
func WriteRepository(dir string, packages ...fs.FS) error {
	for n, pkg := range packages {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.tgz", n)))
		if err != nil {
			return err
		}
		_, err = archive.Write(file, pkg)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	entries, skipped, err := repository.Build(os.DirFS(dir), "")
	if err := errors.Join(append(skipped, err)...); err != nil {
		return err
	}
	index, err := repository.EncodeIndex(entries, time.Time{})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, repository.IndexFileName), index, 0o600)
}
