package packages

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestP30ManifestFiles: files have the same bytes each time, and what a user has changed is not replaced unasked.
func TestP30ManifestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet", "site")
	render := func(code int, more ...string) (out, errs string) {
		t.Helper()
		return commandtest.Expect(t, New, code, "", append([]string{"package", "render", "testdata/package/choices", "--manifests", "-p", "FLAGS=[-v]", "-p", "VOLUMES=[]",
			"--instance", "site", "-d", dir}, more...)...)
	}
	contents := func() map[string]string {
		t.Helper()
		out := map[string]string{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			out[e.Name()] = string(text)
		}
		return out
	}
	out, _ := render(0)
	first := contents()
	if len(first) != 3 || !strings.Contains(out, "instance site written to "+filepath.Join(dir, "3-instance-site.yaml")) {
		t.Fatalf("%v\n%s", first, out)
	}
	render(0)
	if diff := cmp.Diff(first, contents()); diff != "" {
		t.Errorf("the second time: -want +got:\n%s", diff)
	}
	edited := filepath.Join(dir, "3-instance-site.yaml")
	if err := os.WriteFile(edited, []byte(first["3-instance-site.yaml"]+"# mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := contents()
	if _, errs := render(command.ExitError, "-p", "TAG=2"); !strings.Contains(errs, edited+" exists already, with other content: use --overwrite") {
		t.Errorf("a file that was edited: %s", errs)
	}
	if diff := cmp.Diff(before, contents()); diff != "" {
		t.Errorf("something was written: -want +got:\n%s", diff)
	}
	render(0, "--overwrite")
	if diff := cmp.Diff(first, contents()); diff != "" {
		t.Errorf("with --overwrite: -want +got:\n%s", diff)
	}
}

// TestP30SensitiveManifests: no value of a sensitive parameter gets into a repository, wherever it is given.
func TestP30SensitiveManifests(t *testing.T) {
	const postgres = "../../../operators/catalog/postgres/operator"
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte("PASSWORD: correct-horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	others := []string{"-p", "IMAGE_REGISTRY=registry.example.com", "-p", "BACKUP_KEY=battery-horse"}
	for _, given := range [][]string{{"-p", "PASSWORD=correct-horse"}, {"-P", file}, {"-p", "PASSWORD=correct-horse", "--parameters-from", "secret/login"}} {
		args := slices.Concat([]string{"package", "render", postgres, "--manifests"}, others, given)
		out, errs := commandtest.Expect(t, New, command.ExitUsage, "", args...)
		if !strings.Contains(errs, "parameter PASSWORD is sensitive") || !strings.Contains(errs, "--parameters-from secret/NAME") || strings.Contains(out+errs, "horse") {
			t.Errorf("%v: %s%s", given, out, errs)
		}
	}
	out, _ := commandtest.Expect(t, New, 0, "", "package", "render", postgres, "--manifests", "--parameters-from", "secret/login", "-p", "IMAGE_REGISTRY=registry.example.com")
	if !strings.Contains(out, "parametersFrom:\n  - kind: Secret\n    name: login\n") {
		t.Errorf("the source is missing:\n%s", out)
	}
}

// TestP30Dependencies: the OperatorVersions of dependencies are among the manifests, Operators first and the Instance last.
func TestP30Dependencies(t *testing.T) {
	out, _ := commandtest.Expect(t, New, 0, "", "package", "render", "../../../docs/examples/site", "--manifests")
	var kinds []string
	for line := range strings.Lines(out) {
		if kind, found := strings.CutPrefix(line, "kind: "); found {
			kinds = append(kinds, strings.TrimSpace(kind))
		}
	}
	if diff := cmp.Diff([]string{"Operator", "Operator", "OperatorVersion", "OperatorVersion", "Instance"}, kinds); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
