package repos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestMirrorCommands checks S12: mirrors are added, replaced, listed and removed, and a wrong one names the argument and the remedy.
func TestMirrorCommands(t *testing.T) {
	t.Setenv("KUDO_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	here, err := filepath.Abs("inside")
	if err != nil {
		t.Fatal(err)
	}
	expect := func(code int, want string, args ...string) {
		t.Helper()
		out, errs := commandtest.Expect(t, New, code, "", append([]string{"repo", "mirror"}, args...)...)
		if !strings.Contains(out+errs, want) {
			t.Errorf("%v: %s%s, want %q", args, out, errs, want)
		}
	}
	expect(0, "no registry has a mirror", "list")
	expect(0, "[]", "list", "-o", "yaml")
	expect(0, "mirror of oci://a.example/kudo added", "add", "oci://a.example/kudo", "layout:inside", "oci://b.example/kudo")
	expect(0, "layout:"+filepath.ToSlash(here)+", oci://b.example/kudo\n", "list")
	expect(0, "mirror of oci://a.example/kudo added", "add", "oci://a.example/kudo", "oci://c.example", "--fallback")
	expect(0, "oci://c.example, oci://a.example/kudo\n", "list")
	expect(0, "fallback: true", "list", "-o", "yaml")
	expect(0, "mirror of oci://a.example/kudo removed", "remove", "oci://a.example/kudo")
	expect(1, "oci://a.example/kudo has no mirror", "remove", "oci://a.example/kudo")
	expect(command.ExitUsage, "only registries have mirrors", "add", "https://a.example", "oci://b.example")
	expect(command.ExitUsage, "takes a registry, and the places", "add", "oci://a.example")
	expect(command.ExitUsage, "it must begin with oci://", "add", "oci://a.example", "/tmp")
	expect(command.ExitUsage, "", "list", "-o", "table")
	expect(command.ExitUsage, "its own mirror", "add", "oci://a.example/kudo", "oci://A.example:443/kudo/")
	expect(command.ExitUsage, "name 1 to 8 places", append([]string{"add", "oci://a.example"}, strings.Fields(strings.Repeat("oci://b.example ", 9))...)...)
	expect(command.ExitUsage, "a registry that has a mirror", "remove")
	expect(0, "Manage mirrors of registries", "--help")
	expect(0, "no registry has a mirror: add one by kubectl kudo repo mirror add", "list")
}

// TestMirrorFile checks that mirrors stand in the file of the repositories, beside them, and that a file that cannot be read is left as it is.
func TestMirrorFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("KUDO_HOME", home)
	commandtest.Expect(t, New, 0, "", "repo", "add", "ours", "oci://a.example/kudo")
	commandtest.Expect(t, New, 0, "", "repo", "mirror", "add", "oci://a.example/kudo", "layout:/srv/kudo")
	file := filepath.Join(home, "repository", "repositories.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: ours", "prefix: oci://a.example/kudo", "- layout:/srv/kudo"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the file:\n%s", want, text)
		}
	}
	commandtest.Expect(t, New, 0, "", "repo", "remove", "ours")
	if out, _ := commandtest.Expect(t, New, 0, "", "repo", "mirror", "list"); !strings.Contains(out, "layout:/srv/kudo") {
		t.Errorf("the mirror was removed with the repository: %s", out)
	}
	commandtest.Expect(t, New, 0, "", "repo", "mirror", "remove", "oci://a.example/kudo/")
	if err := os.WriteFile(file, []byte("repoVersion: v2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file, which may hold credentials, can be read by others: %v, %v", info.Mode(), err)
	}
	for _, args := range [][]string{{"list"}, {"add", "oci://a.example", "oci://b.example"}, {"remove", "oci://a.example"}} {
		if _, errs := commandtest.Expect(t, New, command.ExitError, "", append([]string{"repo", "mirror"}, args...)...); !strings.Contains(errs, "repoVersion") {
			t.Errorf("%v: %s", args, errs)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != "repoVersion: v2\n" {
		t.Errorf("a file of a later version was changed: %s, %v", after, err)
	}
}
