package packages

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestPackageOutput compares what commands print with testdata/package/<case>.golden.
func TestPackageOutput(t *testing.T) {
	const web, broken = "testdata/package/web", "testdata/package/broken"
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
	}{
		"verify":              {"warnings do not make a package invalid", []string{"verify", web}, 0},
		"verify-json":         {"lists are lists", []string{"verify", web, "-o", "json"}, 0},
		"verify-strict":       {"unless they shall", []string{"verify", web, "--strict"}, command.ExitError},
		"verify-params":       {"what people read is checked if asked for", []string{"verify", web, "--param-checks", "hint,desc"}, 0},
		"verify-params-wrong": {"checks exist", []string{"verify", web, "--param-checks", "hnt"}, command.ExitUsage},
		"verify-broken":       {"errors do", []string{"verify", broken}, command.ExitError},
		"verify-broken-yaml":  {"in any format", []string{"verify", broken, "-o", "yaml"}, command.ExitError},
		"verify-unreadable":   {"what cannot be read is a finding, too", []string{"verify", "testdata/package", "-o", "json"}, command.ExitError},
		"verify-missing":      {"what is not there is no package", []string{"verify", "nothing"}, command.ExitError},
		"parameters":          {"all parameters", []string{"list", "parameters", web}, 0},
		"parameters-d":        {"with descriptions", []string{"list", "parameters", web, "-d"}, 0},
		"parameters-r":        {"required ones without default", []string{"list", "parameters", web, "--required"}, 0},
		"parameters-names":    {"names only", []string{"list", "parameters", web, "--names"}, 0},
		"parameters-yaml":     {"in the words of params.yaml", []string{"list", "parameters", web, "-o", "yaml"}, 0},
		"parameters-both":     {"flags that exclude each other", []string{"list", "parameters", web, "--names", "--required"}, command.ExitUsage},
		"parameters-wrong":    {"formats exist", []string{"list", "parameters", web, "-o", "table"}, command.ExitUsage},
		"plans":               {"plans in the order of the file", []string{"list", "plans", web}, 0},
		"plans-t":             {"with tasks of all kinds", []string{"list", "plans", web, "-t"}, 0},
		"plans-json":          {"as a list", []string{"list", "plans", web, "-o", "json"}, 0},
		"tasks":               {"tasks and what they use", []string{"list", "tasks", web}, 0},
		"tasks-yaml":          {"in the words of operator.yaml", []string{"list", "tasks", web, "-o", "yaml"}, 0},
		"render":              {"all plans, each document once", []string{"render", web, "-p", "MESSAGE=Hi", "-n", "lab", "--instance", "site"}, 0},
		"render-plan":         {"one plan", []string{"render", web, "-p", "MESSAGE=Hi", "--plan", "clean"}, 0},
		"render-plan-wrong":   {"plans exist", []string{"render", web, "-p", "MESSAGE=Hi", "--plan", "cleen"}, command.ExitError},
		"render-step-wrong":   {"steps exist", []string{"render", web, "-p", "MESSAGE=Hi", "--step", "x"}, command.ExitError},
		"render-structure":    {"T21: a value stays a value", []string{"render", web, "-p", `MESSAGE=Hi" x: "y`}, command.ExitError},
		"verify-choices":      {"T23: what parameters give away is listed", []string{"verify", "testdata/package/choices"}, 0},
		"verify-choices-json": {"T23: and warned of if it has no quotes", []string{"verify", "testdata/package/choices", "-o", "json"}, 0},
		"render-required":     {"required parameters are required", []string{"render", web}, command.ExitError},
		"render-broken":       {"errors have a place", []string{"render", broken}, command.ExitError},
		"manifests":           {"P30: what install would create", []string{"render", "testdata/package/choices", "--manifests", "-p", "FLAGS=[-v]", "-p", "VOLUMES=[]", "-n", "lab", "--instance", "site", "--service-account", "site-kudo"}, 0},
		"manifests-required":  {"P30: it is checked as install does", []string{"render", "../../../operators/catalog/postgres/operator", "--manifests"}, command.ExitError},
		"manifests-plan":      {"P30: manifests have all plans", []string{"render", web, "--manifests", "--plan", "deploy"}, command.ExitUsage},
		"manifests-from":      {"P30: nor is there a version before", []string{"render", web, "--manifests", "--from-app-version", "1"}, command.ExitUsage},
		"manifests-overwrite": {"P30: printed, they replace nothing", []string{"render", web, "--manifests", "-w"}, command.ExitUsage},
		"render-account":      {"P30: rendered objects name no account", []string{"render", web, "--service-account", "x"}, command.ExitUsage},
		"create-broken":       {"what is not valid is not packed", []string{"create", broken}, command.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			commandtest.ExpectGolden(t, New, tc.code, name, tc.reason, append([]string{"package"}, tc.args...)...)
		})
	}
}

// TestPackageNewAndCreate goes from nothing to an archive.
func TestPackageNewAndCreate(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(want int, args ...string) (string, string) {
		t.Helper()
		out, errs, code := commandtest.Run(t, New, "", append([]string{"package"}, args...)...)
		if code != want {
			t.Fatalf("%v: exit code %d, want %d\n%s%s", args, code, want, out, errs)
		}
		return out, errs
	}
	run(0, "new", "my-app")
	if out, errs := run(0, "verify", "my-app/operator", "--param-checks", "all", "--strict"); out != "package is valid\n" || errs != "" {
		t.Errorf("a new package is valid, down to its descriptions:\n%s%s", out, errs)
	}
	run(command.ExitError, "new", "my-app")
	run(0, "new", "my-app", "-w")
	run(command.ExitUsage, "new", "../x")

	t.Chdir("my-app/operator")
	out, _ := run(0, "create", ".", "-o", "json")
	var made struct{ Path, Digest string }
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatal(err)
	}
	if want := archive.FileName("my-app", "1.27.4", "0.1.0"); made.Path != want {
		t.Errorf("archives are named by name and versions: %s, not %s", made.Path, want)
	}
	if _, errs := run(command.ExitError, "create", "."); !strings.Contains(errs, "exists already") {
		t.Errorf("an archive is not overwritten unasked: %s", errs)
	}
	if out, _ := run(0, "create", ".", "-w"); !strings.Contains(out, made.Digest) {
		t.Errorf("the same files give the same archive, even if the last one stands among them: %s, then\n%s", made.Digest, out)
	}
	if out, _ := run(0, "verify", made.Path); out != "package is valid\n" {
		t.Errorf("archives can be verified: %s", out)
	}
	if out, _ := run(0, "render", made.Path); strings.Count(out, "---\n") != 3 {
		t.Errorf("and rendered:\n%s", out)
	}
	run(command.ExitError, "create", made.Path)
	if out, _ := run(0, "create", ".", "-d", filepath.Join("..", "made", "here")); !strings.Contains(out, filepath.Join("made", "here")) {
		t.Errorf("the folder of the archive is made: %s", out)
	}
	run(command.ExitError, "create", ".", "-d", made.Path) // a file
	if left, _ := filepath.Glob(".kudo-*"); len(left) > 0 {
		t.Errorf("temporary files go: %v", left)
	}
}

// TestPackLinks: an archive that would hold less than the folder is refused.
func TestPackLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, errs, code := commandtest.Run(t, New, "", "package", "new", "x"); code != 0 {
		t.Fatal(errs)
	}
	dir := filepath.Join("x", "operator")
	if err := os.Rename(filepath.Join(dir, "templates", "config.yaml"), filepath.Join(dir, "config")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../config", filepath.Join(dir, "templates", "config.yaml")); err != nil {
		t.Fatal(err)
	}
	pkg, err := operators.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := pack(dir, pkg); err == nil || !strings.Contains(err.Error(), "replace links by files") {
		t.Errorf("links are not packed: %v", err)
	}
}

// TestRenderedOnce: a document is kept once, and what is deleted to be made anew counts as applied.
func TestRenderedOnce(t *testing.T) {
	use := func(task string, role operators.Role) operators.Use {
		return operators.Use{Plan: "p", Phase: "h", Step: "s", Task: task, Template: "a.yaml", Role: role}
	}
	r := rendered{at: map[string]int{}}
	r.keep(use("clean", operators.Deleted), "a: 1")
	r.keep(use("other", operators.Applied), "a: 2")
	r.keep(use("apply", operators.Applied), "a: 1")
	r.keep(use("clean", operators.Deleted), "a: 2")
	var got []string
	for _, d := range r.documents {
		got = append(got, d.use.Task+" "+d.text+d.remark)
	}
	if diff := cmp.Diff([]string{"apply a: 1", "other a: 2"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
