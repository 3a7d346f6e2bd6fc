// Package atomicfile replaces files as a whole: a reader finds the old content or the new, never a part, and a crash leaves
// one of the two.
package atomicfile

import (
	"crypto/rand"
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
func WriteFunc(path string, mode fs.FileMode, write func(io.Writer) error) error {
	// The temporary file stands in the same folder, since a rename is atomic within a file system only. Its mode is 0600
	// until the content is whole.
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = fill(file, mode, write); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// MoveFolder gives a folder that is complete the name target, on the same file system. Nothing but an empty folder may have that name.
// Errors name the target; the folder is as it was then.
func MoveFolder(folder, target string) error {
	if err := os.Rename(folder, target); err != nil {
		return fmt.Errorf("write %s: %w", target, err)
	}
	return nil
}

// WriteIn is Write for a file within a root: nothing outside of the root is written, whatever links there are.
func WriteIn(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	path := filepath.Join(root.Name(), name)
	temporary := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"-"+rand.Text())
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = fill(file, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, root.Remove(temporary)))
	}
	return nil
}

// fill writes and closes a file: Windows renames no open file.
func fill(file *os.File, mode fs.FileMode, write func(io.Writer) error) error {
	err := write(file)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
