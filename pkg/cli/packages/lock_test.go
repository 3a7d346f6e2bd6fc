package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/test/ocitest"
)

// replaceIn replaces a text in a file of a package.
func replaceIn(t *testing.T, dir, file, old, replacement string) {
	t.Helper()
	name := filepath.Join(dir, file)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s does not have %q", name, old)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), old, replacement, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// addRepository adds a repository to those of the user, which is in use then.
func addRepository(t *testing.T, url string) {
	t.Helper()
	home := repository.Home{Dir: os.Getenv("KUDO_HOME")}
	if err := home.Change(t.Context(), func(l *repository.Repositories) error { return l.Add(repository.Repository{Name: "ours", URL: url}) }); err != nil {
		t.Fatal(err)
	}
}

func lockOf(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, operators.LockFileName))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// contentIn returns the content digest in the lock of a package with one dependency.
func contentIn(t *testing.T, dir string) string {
	t.Helper()
	_, rest, _ := strings.Cut(lockOf(t, dir), "content: ")
	digest, _, _ := strings.Cut(rest, "\n")
	return digest
}

// TestLock checks S32: what is found is written, kept until a task or --upgrade asks for something else, and used whatever the registry has
// meanwhile; a package with it is signed and verified as it is installed.
func TestLock(t *testing.T) {
	home(t)
	r := ocitest.New(t, true)
	base, flags := "oci://"+r.Host()+"/kudo", flagsFor(t, r)
	run(t, 0, flags, "push", packageDir(t, "db", "1.0.0"), base)
	dir := packageDir(t, "web", "1.0.0", "package: '"+base+"/db', operatorVersion: ^1")
	if _, errs := run(t, 1, flags, "lock", dir, "--check"); !strings.Contains(errs, "has no operator.lock") {
		t.Errorf("a package without a lock: %s", errs)
	}
	out, _ := run(t, 0, flags, "lock", dir)
	for _, want := range []string{"d0 ", "db 1.0.0", "sha256:", "found", "operator.lock written"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	first := lockOf(t, dir)
	if !strings.Contains(first, "from: "+base+"/db@sha256:") {
		t.Errorf("where it was found is not written: %s", first)
	}
	run(t, 0, flags, "push", packageDir(t, "db", "1.1.0"), base)
	r.Requests()
	if out, errs := run(t, 0, flags, "lock", dir); !strings.Contains(out, "kept") || !strings.Contains(errs, "Unchanged") || lockOf(t, dir) != first {
		t.Errorf("a newer version is there, and nothing asked for it: %s %s", out, errs)
	}
	if requests, _ := r.Requests(); len(requests) > 0 {
		t.Errorf("nothing is looked for, and yet: %q", requests)
	}
	if out, _ := run(t, 0, flags, "lock", dir, "--check"); !strings.Contains(out, "fits") {
		t.Errorf("a lock that fits: %s", out)
	}
	if out, _ := run(t, 0, flags, "render", dir, "--manifests"); strings.Contains(out, "1.1.0") || !strings.Contains(out, "name: db-1.0.0") || !strings.Contains(out, "content: sha256:") {
		t.Errorf("the dependency is not the one of the lock: %s", out)
	}
	if out, _ := run(t, 0, flags, "lock", dir, "--upgrade", "d0"); !strings.Contains(out, "db 1.1.0") || !strings.Contains(out, "was db 1.0.0") {
		t.Errorf("--upgrade: %s", out)
	}
	if _, errs := run(t, 2, flags, "lock", dir, "--upgrade", "other"); !strings.Contains(errs, "no plan of the package uses a KudoOperator task of this name") {
		t.Errorf("--upgrade of no task: %s", errs)
	}
	private, public := newKey(t)
	archive := packed(t, dir, "web-1.0.0.tgz")
	run(t, 0, nil, "sign", archive, "--key", private)
	run(t, 0, nil, "verify", archive, "--key", public)
	run(t, 0, append(flags, "--sign-key", private), "push", archive, base)
	run(t, 0, flags, "verify", base+"/web:1.0.0", "--key", public)
	replaceIn(t, dir, "operator.yaml", "operatorVersion: ^1", "operatorVersion: ^2")
	for _, args := range [][]string{{"verify", dir}, {"create", dir, "-d", t.TempDir()}, {"lock", dir, "--check"}} {
		if out, errs := run(t, 1, nil, args...); !strings.Contains(out+errs, `task "d0" asks for something else than when the file was written`) {
			t.Errorf("%s of a package that its lock does not fit: %s", args[0], errs)
		}
	}
	if _, errs := run(t, 1, flags, "lock", dir); !strings.Contains(errs, "none is operatorVersion ^2") {
		t.Errorf("a range that fits nothing: %s", errs)
	}
}

// TestLockedContent checks S33: a dependency of another content is refused, from wherever it comes, and nothing is fetched from elsewhere.
func TestLockedContent(t *testing.T) {
	home(t)
	r := ocitest.New(t, true)
	base, flags := "oci://"+r.Host()+"/kudo", flagsFor(t, r)
	child := packageDir(t, "db", "1.0.0")
	run(t, 0, flags, "push", child, base)
	near, far := packageDir(t, "near", "1.0.0", "package: '"+child+"'"), packageDir(t, "web", "1.0.0", "package: db")
	run(t, 0, nil, "lock", near)
	if strings.Contains(lockOf(t, near), "from:") {
		t.Errorf("a path of this machine is written: %s", lockOf(t, near))
	}
	addRepository(t, base)
	run(t, 0, flags, "lock", far)
	run(t, 0, flags, "push", far, base)
	replaceIn(t, child, "templates/app.yaml", "name: app", "name: evil")
	if _, errs := run(t, 1, nil, "render", near, "--manifests"); !strings.Contains(errs, "kubectl kudo package lock DIR --upgrade d0 takes it") || !strings.Contains(errs, "operator.lock wants content sha256:") {
		t.Errorf("a folder that was changed: %s", errs)
	}
	run(t, 0, append(flags, "--overwrite"), "push", child, base)
	if _, errs := run(t, 1, flags, "render", base+"/web:1.0.0", "--manifests"); !strings.Contains(errs, "dependency of task \"d0\" of package web") || !strings.Contains(errs, "operator.lock wants content sha256:") {
		t.Errorf("a tag that was moved: %s", errs)
	}
	if _, errs := run(t, 1, flags, "copy", "--with-dependencies", base+"/web:1.0.0", "layout:"+t.TempDir()); !strings.Contains(errs, "operator.lock wants content sha256:") {
		t.Errorf("a copy: %s", errs)
	}
	out, _ := run(t, 0, flags, "lock", far, "--upgrade", "d0")
	if !strings.Contains(out, "was db 1.0.0") {
		t.Errorf("the author takes what is there: %s", out)
	}
}

// TestLockedPlace checks S32: a dependency that is named by its name is taken from where the package is, else from where it was found, also
// if the place of the package has another version of it.
func TestLockedPlace(t *testing.T) {
	home(t)
	r := ocitest.New(t, true)
	base, flags := "oci://"+r.Host()+"/kudo", flagsFor(t, r)
	run(t, 0, flags, "push", packageDir(t, "db", "1.0.0"), base)
	addRepository(t, base)
	dir := packageDir(t, "web", "1.0.0", "package: db")
	run(t, 0, flags, "lock", dir)
	folder := "layout:" + t.TempDir()
	run(t, 0, nil, "push", dir, folder)
	list := func() (string, string) {
		t.Helper()
		return run(t, 0, flags, "render", folder+"/web:1.0.0", "--manifests")
	}
	if out, _ := list(); !strings.Contains(out, "name: db-1.0.0") {
		t.Errorf("the folder has no such package: %s", out)
	}
	run(t, 0, nil, "push", packageDir(t, "db", "2.0.0"), folder)
	if out, _ := list(); !strings.Contains(out, "name: db-1.0.0") {
		t.Errorf("the folder has another version: %s", out)
	}
	run(t, 0, flags, "copy", base+"/db:1.0.0", folder)
	r.Requests()
	list()
	if requests, _ := r.Requests(); len(requests) > 0 {
		t.Errorf("the folder has it, and yet: %q", requests)
	}
	run(t, 0, nil, "copy", folder, "layout:"+t.TempDir())
}

// TestLockNested checks S32: a dependency that depends on others needs a lock itself, and circles cannot be written.
func TestLockNested(t *testing.T) {
	home(t)
	inner := packageDir(t, "inner", "1.0.0")
	middle := packageDir(t, "middle", "1.0.0", "package: '"+inner+"'")
	outer := packageDir(t, "outer", "1.0.0", "package: '"+middle+"'")
	if _, errs := run(t, 1, nil, "lock", outer); !strings.Contains(errs, `depends on others (task "d0"), and has no operator.lock`) {
		t.Errorf("a dependency without a lock: %s", errs)
	}
	run(t, 0, nil, "lock", middle)
	run(t, 0, nil, "lock", outer)
	run(t, 0, nil, "lock", outer, "--check")
	replaceIn(t, inner, "templates/app.yaml", "name: app", "name: other")
	if _, errs := run(t, 1, nil, "lock", outer, "--check"); !strings.Contains(errs, "of package middle") {
		t.Errorf("what a dependency depends on has changed: %s", errs)
	}
	run(t, 0, nil, "lock", middle, "--upgrade", "d0")
	if _, errs := run(t, 1, nil, "lock", outer, "--check"); !strings.Contains(errs, "of package outer") {
		t.Errorf("the lock of a dependency is a part of its content: %s", errs)
	}
	inTask := packageDir(t, "intask", "1.0.0", "package: '"+inner+"', content: '"+contentIn(t, middle)+"'")
	over := packageDir(t, "over", "1.0.0", "package: '"+inTask+"'")
	run(t, 0, nil, "lock", over)
	run(t, 0, nil, "lock", over, "--check")
	self := packageDir(t, "self", "1.0.0", "package: .")
	if _, errs := run(t, 1, nil, "lock", self); !strings.Contains(errs, "has no operator.lock") {
		t.Errorf("a package that depends on itself: %s", errs)
	}
}

// TestLockNothing checks that a package without dependencies gets no file, and loses one that it does not need any more.
func TestLockNothing(t *testing.T) {
	home(t)
	dir := packageDir(t, "web", "1.0.0")
	if _, errs := run(t, 0, nil, "lock", dir); !strings.Contains(errs, "depends on no other package") {
		t.Errorf("no dependency: %s", errs)
	}
	if out, errs := run(t, 0, nil, "lock", dir, "--check"); out != "" || !strings.Contains(errs, "depends on no other package") {
		t.Errorf("a file that is not there fits: %s%s", out, errs)
	}
	if err := os.WriteFile(filepath.Join(dir, operators.LockFileName), []byte("dependencies: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := run(t, 0, nil, "lock", dir); !strings.Contains(out, "operator.lock removed") {
		t.Errorf("a file that is not needed: %s", out)
	}
	for _, tc := range []struct {
		reason string
		code   int
		args   []string
		want   string
	}{
		{"an archive", 1, []string{packed(t, dir, "web-1.0.0.tgz")}, "is no folder"},
		{"nothing there", 1, []string{filepath.Join(dir, "none")}, "no such folder"},
		{"both flags", 2, []string{dir, "--check", "--upgrade", "x"}, "--upgrade cannot be used with --check"},
	} {
		if _, errs := run(t, tc.code, nil, append([]string{"lock"}, tc.args...)...); !strings.Contains(errs, tc.want) {
			t.Errorf("%s: %s", tc.reason, errs)
		}
	}
}
