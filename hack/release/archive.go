package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive.
type entry struct {
	// file that has the content.
	file string
	mode fs.FileMode
}

// packTar writes files, sorted by their names, that belong to user 0 and have one time.
func packTar(out io.Writer, entries map[string]entry, at time.Time) error {
	w := tar.NewWriter(out)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := packOne(w, name, entries[name], at); err != nil {
			return err
		}
	}
	return w.Close()
}

// packGzip writes the archive of packTar compressed, without a time and a name.
func packGzip(out io.Writer, entries map[string]entry, at time.Time) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	return errors.Join(packTar(compressed, entries, at), compressed.Close())
}

func packOne(w *tar.Writer, name string, e entry, at time.Time) error {
	file, err := os.Open(e.file)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: int64(e.mode), Size: info.Size(), Typeflag: tar.TypeReg, ModTime: at, Format: tar.FormatPAX}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return err
}

func packZip(out io.Writer, entries map[string]entry, at time.Time) error {
	w := zip.NewWriter(out)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
		header.SetMode(entries[name].mode)
		part, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(entries[name].file)
		if err != nil {
			return err
		}
		if _, err := part.Write(content); err != nil {
			return err
		}
	}
	return w.Close()
}

// write writes a file of the release by a function.
func (r *release) write(name string, pack func(io.Writer) error) (err error) {
	out, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return pack(out)
}

// packFolder writes all files of a folder as a tar archive, which is compressed if its name ends with gz.
func (r *release) packFolder(folder, name string) error {
	entries := map[string]entry{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		entries[filepath.ToSlash(relative)] = entry{path, 0o644}
		return err
	})
	if err != nil {
		return err
	}
	return r.write(name, func(out io.Writer) error {
		if strings.HasSuffix(name, "gz") {
			return packGzip(out, entries, r.commit.time)
		}
		return packTar(out, entries, r.commit.time)
	})
}

func (r *release) archiveName(p platform) string {
	name := fmt.Sprintf("kubectl-kudo_%s_%s_%s", r.version, p.system, p.processor)
	if p.system == "windows" {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// packCommands writes an archive for each platform: the command, its license, completions and man pages.
func (r *release) packCommands() error {
	documents, err := r.writeDocuments()
	if err != nil {
		return err
	}
	for _, p := range platforms {
		entries := maps.Clone(documents)
		entries["LICENSE"] = entry{"LICENSE", 0o644}
		entries[filepath.Base(r.commandFile(p))] = entry{r.commandFile(p), 0o755}
		err := r.write(r.archiveName(p), func(out io.Writer) error {
			if p.system == "windows" {
				return packZip(out, entries, r.commit.time)
			}
			return packGzip(out, entries, r.commit.time)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// writeSums writes the checksums of all files, sorted by their names, as sha256sum -c reads them.
func (r *release) writeSums() error {
	files, err := os.ReadDir(r.out) // is sorted
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, file := range files {
		digest, err := sum(filepath.Join(r.out, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", digest, file.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text.String()), 0o644)
}
