// Package archive packs a package into a gzipped tar and unpacks it. The same files give the same bytes; what is
// unpacked is bounded and cannot leave its root.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

// FileName is the name of a package's archive: `<name>-<operatorVersion>.tgz`, or
// `<name>-<appVersion>_<operatorVersion>.tgz` if it has an appVersion.
func FileName(name, appVersion, operatorVersion string) string {
	if appVersion == "" {
		return name + "-" + operatorVersion + ".tgz"
	}
	return name + "-" + appVersion + "_" + operatorVersion + ".tgz"
}

// Write packs all regular files of a tree, sorted by path, and returns the SHA-256 of the archive in hex. Folders
// without files, and links, are left out. The bytes depend on the paths and contents alone.
func Write(w io.Writer, fsys fs.FS) (digest string, err error) {
	hash := sha256.New()
	zipped, err := gzip.NewWriterLevel(io.MultiWriter(w, hash), gzip.BestCompression)
	if err != nil {
		return "", fmt.Errorf("write the archive: %w", err)
	}
	packed := tar.NewWriter(zipped)
	names, err := files(fsys)
	for _, name := range names {
		if err = writeFile(packed, fsys, name); err != nil {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("write the archive: %w", err)
	}
	if err := errors.Join(packed.Close(), zipped.Close()); err != nil {
		return "", fmt.Errorf("write the archive: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// files lists the paths of all regular files, sorted.
func files(fsys fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

func writeFile(packed *tar.Writer, fsys fs.FS, name string) error {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644,
		Uname: "root", Gname: "root", ModTime: time.Unix(0, 0).UTC(),
	}
	if err := packed.WriteHeader(header); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	// A file that has grown meanwhile is refused by the tar writer, one that has shrunk by its Close.
	if _, err := io.Copy(packed, f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
