package repository

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/archive"
)

// Local finds folders and archives on this disk, and packages that lie within the archive of the package that depends
// on them. It does not look at versions: a path names one package.
type Local struct {
	// Base is what paths that a user gives are relative to.
	Base string
	// Names says that other sources know names: a folder that is called like a package of a repository, and holds none,
	// is then not what is meant.
	Names bool
}

// Find implements Source.
func (l Local) Find(_ context.Context, r Request, from *Found) (*Found, error) {
	if isURL(r.Name) || IsReference(r.Name) {
		return nil, &NotFoundError{Name: r.Name}
	}
	if r.bare() && r.Repository != "" {
		return nil, &NotFoundError{Name: r.Name}
	}
	base := l.Base
	if from != nil {
		if found, err := findInArchive(r, from); found != nil || err != nil {
			return found, err
		}
		base = from.dir
	}
	if l.Names && r.bare() && isPlainFolder(filepath.Join(base, r.Name)) {
		return nil, &NotFoundError{r.Name, "the folder ./" + r.Name + " holds no operator.yaml"}
	}
	found, err := onDisk(r, base)
	if err != nil {
		return nil, err
	}
	found.repository = r.Repository
	if from != nil {
		found.repository = from.repository
	}
	return found, nil
}

// findInArchive finds a dependency within the archive of the package that has it. It returns nothing where the disk may
// have it.
func findInArchive(r Request, from *Found) (*Found, error) {
	if from.files == nil {
		return nil, nil
	}
	inside := path.Join(from.inside, filepath.ToSlash(r.Name))
	if !path.IsAbs(r.Name) && isPackage(from.files, inside) {
		found, err := within(from.files, inside, r.Name, strings.TrimSuffix(from.Origin, "/"+from.inside)+"/"+inside)
		if err != nil {
			return nil, err
		}
		found.repository, found.source = from.repository, from.source
		if from.dir != "" {
			found.dir = filepath.Join(from.dir, filepath.FromSlash(r.Name))
		}
		return found, nil
	}
	switch {
	case from.dir != "":
		return nil, nil
	case r.bare():
		return nil, &NotFoundError{Name: r.Name}
	}
	return nil, fmt.Errorf("package %q is not in the archive %s: a package from elsewhere can name a package of a repository, a URL, or a "+
		"folder within its own archive", r.Name, from.Origin)
}

// isPackage reports whether a folder of an archive has a package.
func isPackage(files fs.FS, dir string) bool {
	if !fs.ValidPath(dir) {
		return false
	}
	_, err := fs.Stat(files, path.Join(dir, operators.OperatorFileName))
	return err == nil
}

// isPlainFolder reports whether there is a folder that is no package.
func isPlainFolder(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, operators.OperatorFileName))
	return errors.Is(err, fs.ErrNotExist)
}

// onDisk finds a folder or an archive.
func onDisk(r Request, base string) (*Found, error) {
	where := r.Name
	if !filepath.IsAbs(where) {
		where = filepath.Join(base, where)
	}
	where, err := filepath.Abs(where)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(where)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, &NotFoundError{r.Name, "no such folder or archive: name the folder that holds operator.yaml, such as ./" +
			filepath.Base(r.Name) + ", or a .tgz"}
	}
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		pkg, err := operators.Read(os.DirFS(where), operators.WithPath(r.Name))
		if err != nil {
			return nil, wrap(r.Name, err)
		}
		return &Found{Package: pkg, Origin: where, dir: where}, nil
	}
	if !isArchive(where) {
		return nil, &NotFoundError{r.Name, "is neither a folder nor an archive (.tgz)"}
	}
	packed, err := readBounded(where, archive.DefaultLimits().Compressed)
	if err != nil {
		return nil, wrap(r.Name, err)
	}
	found, err := unpack(packed, r.Name, where)
	if err != nil {
		return nil, err
	}
	found.dir, found.Archive = where, packed
	found.signatures = func(context.Context) (Signatures, error) {
		bundles, err := ReadSignatures(where)
		return Signatures{Bundles: bundles}, err
	}
	return found, nil
}

func isArchive(name string) bool {
	return strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar.gz")
}

// readBounded reads a file of at most limit bytes.
func readBounded(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than the %d bytes allowed", name, limit)
	}
	return data, nil
}
