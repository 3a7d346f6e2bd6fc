package operators

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestFileBound checks the bound on one file at its edge, for each kind of file.
func TestFileBound(t *testing.T) {
	comment := func(size int) string { return "#" + strings.Repeat("x", size-1) }
	fsys := tree(map[string]string{"operator.yaml": "name: x\n" + comment(MaxFile-8), "params.yaml": comment(MaxFile),
		"templates/a.yaml": strings.Repeat("a", MaxFile)})
	if p, err := Read(fsys); err != nil || len(p.Templates["a.yaml"]) != MaxFile {
		t.Errorf("the bound itself is allowed: %v", err)
	}
	for name := range fsys {
		large := fstest.MapFS{}
		for other, f := range fsys {
			large[other] = f
		}
		large[name] = &fstest.MapFile{Data: append(bytes.Clone(fsys[name].Data), '\n')}
		want := name + ": has more than the 1572864 bytes allowed"
		if _, err := Read(large); err == nil || err.Error() != want {
			t.Errorf("one byte more: error %v, want %s", err, want)
		}
	}
}

// TestTemplatesBound checks the bounds on the size and the number of all templates.
func TestTemplatesBound(t *testing.T) {
	const want = ": reading templates: more than 10000 templates or 16777216 bytes of them"
	data := bytes.Repeat([]byte("a"), 1<<20)
	size := func(n int) fstest.MapFS {
		fsys := pkg("name: x", "")
		for i := range n {
			fsys[fmt.Sprintf("templates/%02d.yaml", i)] = &fstest.MapFile{Data: data}
		}
		return fsys
	}
	if p, err := Read(size(16)); err != nil || len(p.Templates) != 16 {
		t.Errorf("the bound on the size itself is allowed: %v", err)
	}
	if _, err := Read(size(17)); err == nil || err.Error() != "templates/16.yaml"+want {
		t.Errorf("a larger size: %v", err)
	}
	many := pkg("name: x", "")
	for i := range MaxFiles {
		many[fmt.Sprintf("templates/%05d.yaml", i)] = &fstest.MapFile{}
	}
	if p, err := Read(many); err != nil || len(p.Templates) != MaxFiles {
		t.Errorf("the bound on the number itself is allowed: %v", err)
	}
	many["templates/x.yaml"] = &fstest.MapFile{}
	if _, err := Read(many); err == nil || err.Error() != "templates/x.yaml"+want {
		t.Errorf("one template more: %v", err)
	}
}

// brokenFS is a file system in which one path cannot be opened.
type brokenFS struct {
	files fstest.MapFS
	path  string
	err   error
}

func (b brokenFS) Open(name string) (fs.File, error) {
	if name == b.path {
		return nil, &fs.PathError{Op: "open", Path: name, Err: b.err}
	}
	return b.files.Open(name)
}

// TestUnreadableFiles checks that an error of the file system names the file, and hides no other mistake.
func TestUnreadableFiles(t *testing.T) {
	files := tree(map[string]string{"operator.yaml": "name: {}", "params.yaml": "", "templates/a.yaml": "a", "templates/b/c.yaml": "c"})
	for name, tc := range map[string]struct {
		reason, path string
		want         []string
	}{
		"Operator": {"operator.yaml", "operator.yaml", []string{"operator.yaml: open operator.yaml: permission denied"}},
		"Params": {"params.yaml", "params.yaml",
			[]string{"operator.yaml:1: name: expected text, found a map", "params.yaml: open params.yaml: permission denied"}},
		"Template": {"a template", "templates/a.yaml",
			[]string{"operator.yaml:1: name: expected text, found a map", "templates/a.yaml: open templates/a.yaml: permission denied"}},
		"Folder": {"a folder of templates", "templates/b",
			[]string{"operator.yaml:1: name: expected text, found a map", "templates/b: reading templates: open templates/b: permission denied"}},
		"Templates": {"the folder templates", "templates",
			[]string{"operator.yaml:1: name: expected text, found a map", "templates: reading templates: open templates: permission denied"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(brokenFS{files, tc.path, fs.ErrPermission})
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("%s: error is %T %v", tc.reason, err, err)
			}
			if diff := cmp.Diff(tc.want, findings(errs)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFoundRoots checks where a package is looked for when it is not at the root, and what the message proposes.
func TestFoundRoots(t *testing.T) {
	const shape = "; a package is a folder with operator.yaml, params.yaml and templates"
	in := func(folder string) fstest.MapFS {
		return tree(map[string]string{folder + "operator.yaml": "name: x", folder + "params.yaml": ""})
	}
	for name, tc := range map[string]struct {
		reason string
		fsys   fs.FS
		opts   []Option
		want   string
	}{
		"Nowhere":   {"no path is known", tree(nil), nil, "file not found in the root of the package" + shape},
		"Below":     {"a folder of the root", in("op/"), nil, "file not found in the root of the package; did you mean its folder op?"},
		"BelowPath": {"with the path", in("op/"), []Option{WithPath("/x/")}, "file not found in /x/; did you mean /x/op?"},
		"Deep": {"deeper folders are not searched, which may be many", in("a/b/"), []Option{WithPath("/x")},
			"file not found in /x" + shape},
		"DeepArchive": {"those of an archive are, which is in memory", in("a/b/c/"), []Option{WithArchive("x.tgz")},
			"file not found in x.tgz; it is in the folder a/b/c of the archive: pack that folder by itself, with kubectl kudo package create"},
		"EmptyArchive": {"an archive without a package", tree(nil), []Option{WithArchive("x.tgz")}, "file not found in x.tgz" + shape},
		"FirstByName": {"the first of two by name", tree(map[string]string{"b/operator.yaml": "", "a/operator.yaml": "", "a/params.yaml": ""}),
			nil, "file not found in the root of the package; did you mean its folder a?"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(tc.fsys, tc.opts...)
			var errs Errors
			if !errors.As(err, &errs) || len(errs) != 2 {
				t.Fatalf("%s: error is %T %v", tc.reason, err, err)
			}
			for i, file := range []string{"operator.yaml", "params.yaml"} {
				if got := errs[i].String(); got != file+": "+tc.want {
					t.Errorf("%s: got %q, want %q", tc.reason, got, file+": "+tc.want)
				}
			}
		})
	}
}

// TestTemplateKeys checks by which name tasks refer to a file, and which files are no templates.
func TestTemplateKeys(t *testing.T) {
	p, err := Read(tree(map[string]string{
		"operator.yaml": "name: x", "params.yaml": "",
		"templates/a.yaml": "1", "templates/a.yaml.bak": "2", "templates/x.yml": "no", "templates/A.YAML": "no", "templates/.yaml": "3",
		"templates/my.yaml.d/b.txt": "no",
		"templates/templates.yaml":  "4", "templates/a/templates/b/templates/c.yaml": "5", "templates/mytemplates/d.yaml": "6",
		"Templates/e.yaml": "no", "templates/empty.yaml": "",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.yaml": "1", "a.yaml.bak": "2", ".yaml": "3", "templates.yaml": "4", "c.yaml": "5",
		"mytemplates/d.yaml": "6", "empty.yaml": ""}
	if diff := cmp.Diff(want, p.Templates); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTemplatesAreNotChanged checks that the text of a template reaches the package byte for byte, but for a byte order mark.
func TestTemplatesAreNotChanged(t *testing.T) {
	for _, text := range []string{"", "\n", "a\r\nb\r\n", "\x00\xff\xfe", "\ufeff\ufeffa", "{{ broken", "a: [", "ü"} {
		p, err := Read(tree(map[string]string{"operator.yaml": "name: x", "params.yaml": "", "templates/a.yaml": text}))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := p.Templates["a.yaml"]; got != strings.TrimPrefix(text, "\ufeff") {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}

// TestAPIVersions checks that the reader takes only one version of the format, and names the line of another one.
func TestAPIVersions(t *testing.T) {
	for version, want := range map[string][]string{
		"": nil, "kudo.dev/v1beta1": nil, "~": nil,
		"kudo.dev/v1":      {`operator.yaml:2: apiVersion: "kudo.dev/v1" is not supported, only kudo.dev/v1beta1 is`},
		"KUDO.dev/v1beta1": {`operator.yaml:2: apiVersion: "KUDO.dev/v1beta1" is not supported, only kudo.dev/v1beta1 is`},
		"1":                {`operator.yaml:2: apiVersion: "1" is not supported, only kudo.dev/v1beta1 is`},
	} {
		if diff := cmp.Diff(want, readErrors(t, "name: x\napiVersion: "+version, "")); diff != "" {
			t.Errorf("%q: -want +got:\n%s", version, diff)
		}
	}
}

// TestReadIsDeterministic checks that warnings and errors come in the same order each time.
func TestReadIsDeterministic(t *testing.T) {
	const operator = "name: x\nf: 1\ne: 2\nd: 3\nplans: {z: {a: 1}, y: {b: 2}, x: {c: 3}}\n"
	var first []string
	for i := range 20 {
		p, err := Read(pkg(operator, "zz: 1\nyy: 2\n"))
		if err != nil {
			t.Fatal(err)
		}
		got := findings(p.Warnings)
		if i == 0 {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" || len(got) != 8 {
			t.Fatalf("run %d: %d warnings, -first +now:\n%s", i, len(got), diff)
		}
	}
	var errs []string
	for i := range 20 {
		got := readErrors(t, operator, "", WithStrict())
		if i == 0 {
			errs = got
		}
		if diff := cmp.Diff(errs, got); diff != "" || len(got) != 6 {
			t.Fatalf("run %d: %d errors, -first +now:\n%s", i, len(got), diff)
		}
	}
}
