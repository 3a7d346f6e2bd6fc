package operators

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/operators/yamldoc"
)

// Bounds of a package. An OperatorVersion, which holds the package, is stored in etcd, whose limit is 1.5 MiB.
const (
	// MaxFile is the size of one file in bytes.
	MaxFile = 1536 << 10
	// MaxTemplates is the size of all templates together in bytes, and MaxFiles their number.
	MaxTemplates = 16 << 20
	MaxFiles     = 10_000
)

// Option changes how Read works.
type Option func(*reader)

// WithStrict makes errors of unknown fields, fields in the wrong letter case and duplicate keys.
func WithStrict() Option { return func(r *reader) { r.strict = true } }

// WithPath tells where the package is, for messages only.
func WithPath(where string) Option { return func(r *reader) { r.where = where } }

// WithArchive tells which archive the package is unpacked from, for messages only.
func WithArchive(where string) Option {
	return func(r *reader) { r.where, r.packed = where, true }
}

// Read reads the package whose root is the root of a file system. All that is wrong is reported together: the error
// is of type Errors. Links are followed inside the tree only.
func Read(fsys fs.FS, opts ...Option) (*Package, error) {
	r := &reader{fsys: fsys, lines: map[string]int{}}
	for _, opt := range opts {
		opt(r)
	}
	p := &Package{Templates: map[string]string{}, lines: r.lines}
	if root := r.yaml(OperatorFileName); root != nil {
		r.decodeInto(OperatorFileName, root, &p.Operator)
		r.apiVersion(OperatorFileName, p.Operator.APIVersion)
	}
	if root := r.yaml(ParamsFileName); root != nil {
		p.Params = r.params(root)
		r.apiVersion(ParamsFileName, p.Params.APIVersion)
	}
	p.Lock = r.lock()
	r.templates(p.Templates)
	p.Warnings = r.warnings
	if err := r.errors.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// reader collects what is found while a package is read.
type reader struct {
	fsys     fs.FS
	strict   bool
	where    string
	packed   bool // where is an archive
	file     string
	values   int // decoded so far
	errors   Errors
	warnings []Warning
	lines    map[string]int
}

func (r *reader) fail(line int, field, format string, args ...any) {
	r.errors = append(r.errors, Finding{File: r.file, Line: line, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) warn(line int, field, format string, args ...any) {
	r.warnings = append(r.warnings, Finding{File: r.file, Line: line, Field: field, Message: fmt.Sprintf(format, args...)})
}

// strictWarning is a warning that strict reading makes an error.
func (r *reader) strictWarning(line int, field, format string, args ...any) {
	if r.strict {
		r.fail(line, field, format, args...)
	} else {
		r.warn(line, field, format, args...)
	}
}

func (r *reader) apiVersion(file, version string) {
	if version != "" && version != APIVersion {
		r.file = file
		r.fail(r.lines[file+":apiVersion"], "apiVersion", "%q is not supported, only %s is", version, APIVersion)
	}
}

// yaml reads a file and parses it. It returns nil when it has reported why there is nothing.
func (r *reader) yaml(name string) *yaml.Node {
	r.file = name
	text, err := r.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		r.fail(0, "", "%s", r.notFound(name))
		return nil
	}
	if err != nil {
		r.fail(0, "", "%v", err)
		return nil
	}
	root, err := yamldoc.First(text)
	var at *yamldoc.Error
	switch {
	case errors.As(err, &at):
		r.fail(at.Line, "", "%s", at.Reason)
	case err != nil:
		r.fail(0, "", "%v", err)
	case name == OperatorFileName && (root == nil || isEmpty(root)):
		r.fail(0, "", "the file is empty")
		return nil
	}
	return root
}

func isEmpty(root *yaml.Node) bool {
	text, scalar := yamldoc.Literal(root)
	return scalar && text == ""
}

// notFound says where a file was looked for and where it may be.
func (r *reader) notFound(name string) string {
	where := r.where
	if where == "" {
		where = "the root of the package"
	}
	message := fmt.Sprintf("file not found in %s", where)
	if folder := r.findRoot(name); folder != "" {
		switch {
		case r.packed:
			return fmt.Sprintf("%s; it is in the folder %s of the archive: pack that folder by itself, with kubectl kudo package create", message,
				folder)
		case r.where != "":
			return fmt.Sprintf("%s; did you mean %s/%s?", message, strings.TrimRight(r.where, "/"), folder)
		default:
			return fmt.Sprintf("%s; did you mean its folder %s?", message, folder)
		}
	}
	return message + "; a package is a folder with operator.yaml, params.yaml and templates"
}

// findRoot finds a folder that holds a file: one of the root, and in an archive, which is in memory, any.
func (r *reader) findRoot(name string) string {
	folder := ""
	_ = fs.WalkDir(r.fsys, ".", func(at string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || !entry.IsDir() || at == ".":
			return nil
		case exists(r.fsys, path.Join(at, name)):
			folder = at
			return fs.SkipAll
		case !r.packed:
			return fs.SkipDir
		}
		return nil
	})
	return folder
}

func exists(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err == nil
}

// read reads a file of the package, through links that stay inside.
func (r *reader) read(name string) ([]byte, error) {
	target, err := resolve(r.fsys, name)
	if err != nil {
		return nil, err
	}
	f, err := r.fsys.Open(target)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the file: %w", err)
	}
	if len(text) > MaxFile {
		return nil, fmt.Errorf("has more than the %d bytes allowed", MaxFile)
	}
	return text, nil
}

// templates reads all files below templates/ whose name contains `.yaml`. The key of a file is its path after the last
// folder called templates, as in KUDO.
func (r *reader) templates(into map[string]string) {
	r.file = TemplatesFolder
	total := 0
	from := map[string]string{}
	err := fs.WalkDir(r.fsys, TemplatesFolder, func(name string, entry fs.DirEntry, err error) error {
		r.file = name
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == TemplatesFolder:
			return fs.SkipAll
		case err != nil:
			return err
		case entry.IsDir() || !strings.Contains(entry.Name(), ".yaml"):
			return nil
		}
		text, err := r.read(name)
		if errors.Is(err, errLeaves) {
			r.warn(0, "", "%v: not read", err)
			return nil
		}
		if err != nil {
			r.fail(0, "", "%v", err)
			return nil
		}
		key := name[strings.LastIndex("/"+name, "/"+TemplatesFolder+"/")+len(TemplatesFolder)+1:]
		if first, ok := from[key]; ok {
			r.fail(0, "", "this template has the same name in tasks %q as %s: rename one of the two", key, first)
			return nil
		}
		from[key] = name
		into[key] = strings.TrimPrefix(string(text), "\ufeff")
		if total += len(text); total > MaxTemplates || len(into) > MaxFiles {
			return fmt.Errorf("more than %d templates or %d bytes of them", MaxFiles, MaxTemplates)
		}
		return nil
	})
	if err != nil {
		r.fail(0, "", "reading templates: %v", err)
	}
}
