// Package atomicfile replaces files as a whole: a reader finds the old content or the new, never a part, and a crash leaves
// one of the two.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path by data, with the permissions of mode. The folder of the file must exist. Errors name the
// file; the file is as it was then.
func Write(path string, data []byte, mode fs.FileMode) error {
	return WriteFunc(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// WriteFunc is Write with the content that a function writes. An error of the function is returned, and nothing is replaced.
func WriteFunc(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	// The temporary file stands in the same folder, since a rename is atomic within a file system only. Its mode is 0600
	// until the content is whole.
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(file.Name())))
		}
	}()
	err = write(file)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	// Windows renames no open file.
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
