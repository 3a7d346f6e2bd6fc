package repository

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files of a package that depends on others.
func files(name string, dependencies ...string) map[string]string {
	operator := fmt.Sprintf("apiVersion: kudo.dev/v1beta1\nname: %s\noperatorVersion: 0.1.0\nkubernetesVersion: 1.20.0\nmaintainers: []\nurl: ''\n", name)
	tasks, steps := "tasks:\n- {name: dummy, kind: Dummy, spec: {done: true}}\n", "dummy"
	for i, d := range dependencies {
		tasks += fmt.Sprintf("- {name: d%d, kind: KudoOperator, spec: {package: %q}}\n", i, d)
		steps += fmt.Sprintf(", d%d", i)
	}
	plan := "plans: {deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [" + steps + "]}]}]}}\n"
	return map[string]string{"operator.yaml": operator + tasks + plan, "params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: []\n"}
}

func write(t *testing.T, dir string, content map[string]string) {
	t.Helper()
	for name, text := range content {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func pack(t *testing.T, content map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, text := range content {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestResolve: a folder, an archive, and what is neither.
func TestResolve(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "folder"), files("one"))
	write(t, dir, map[string]string{
		"a.tgz": pack(t, files("two")), "b.tar.gz": pack(t, files("two")), "broken.tgz": "no archive", "text.yaml": "a: b",
		"wrong/operator.yaml": "name: [", "empty/readme": "",
	})
	for name, tc := range map[string]struct {
		reason, path, want, text string
		missing                  bool
	}{
		"Folder":   {"relative to the base", "folder", "one", "", false},
		"Dots":     {"not as clean", "./empty/../folder/", "one", "", false},
		"Absolute": {"a whole path", filepath.Join(dir, "folder"), "one", "", false},
		"Tgz":      {"an archive", "a.tgz", "two", "", false},
		"TarGz":    {"with its other ending", "b.tar.gz", "two", "", false},
		"Missing":  {"nothing is there", "nowhere", "", "no such folder or archive: name the folder that holds operator.yaml, such as ./nowhere, or a .tgz", true},
		"InAFile":  {"nothing can be there", "a.tgz/child", "", "no such folder or archive", true},
		"Text":     {"a file that is no archive by its name", "text.yaml", "", "is neither a folder nor an archive", true},
		"Broken":   {"a file that is none by its content", "broken.tgz", "", "package broken.tgz", false},
		"Empty":    {"a folder without a package", "empty", "", "operator.yaml", false},
		"Wrong":    {"a package that cannot be read", "wrong", "", "package wrong", false},
	} {
		found, err := Resolve(context.Background(), tc.path, dir)
		var missing *NotFoundError
		switch {
		case tc.want != "" && (err != nil || found.Package.Operator.Name != tc.want || !filepath.IsAbs(found.Origin)):
			t.Errorf("%s: %s: %+v, %v", name, tc.reason, found, err)
		case tc.want == "" && (err == nil || !strings.Contains(err.Error(), tc.text) || errors.As(err, &missing) != tc.missing):
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
}

// TestWithDependencies: each package comes after what it depends on, once; a circle is named.
func TestWithDependencies(t *testing.T) {
	dir := t.TempDir()
	for name, dependencies := range map[string][]string{
		"single": nil, "leaf": nil, "left": {"../leaf"}, "right": {"../leaf", "../packed.tgz"}, "top": {"../right", "../left", "../right"},
		"circle": {"../round"}, "round": {"../about"}, "about": {"../circle"}, "self": {"../self"}, "lost": {"../nowhere"}, "deep": {"../lost"},
	} {
		write(t, filepath.Join(dir, name), files(name, dependencies...))
	}
	write(t, dir, map[string]string{"packed.tgz": pack(t, files("packed", "../single"))})
	for name, tc := range map[string]struct {
		reason, root, text string
		want               []string
	}{
		"None":    {"a package alone", "single", "", []string{"single"}},
		"Diamond": {"what two depend on comes once, and first; paths in an archive are relative to it", "top", "", []string{"leaf", "single", "packed", "right", "left", "top"}},
		"Circle":  {"the way around is named", "circle", "cyclic package dependency found: circle -> round -> about -> circle", nil},
		"Self":    {"so is the shortest", "self", "cyclic package dependency found: self -> self", nil},
		"Lost":    {"task and package are named", "deep", `dependency of task "d0" of package lost: package "../nowhere"`, nil},
	} {
		found, err := Resolve(context.Background(), tc.root, dir)
		if err != nil {
			t.Fatal(err)
		}
		packages, err := WithDependencies(context.Background(), found)
		if tc.text != "" && (err == nil || !strings.Contains(err.Error(), tc.text)) || tc.text == "" && err != nil {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
		var got []string
		for _, p := range packages {
			got = append(got, p.Operator.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
	}
}
