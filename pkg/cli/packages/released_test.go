package packages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/crdcompat"
)

const servedCRDs = "../../../manifests/crds"

// released are folders of the CustomResourceDefinitions of earlier versions of kudo, named after the version or the commit.
func released(t *testing.T) []string {
	t.Helper()
	folders, err := filepath.Glob("testdata/released/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no CustomResourceDefinitions of an earlier version are in testdata/released: %v", err)
	}
	return folders
}

// acceptedChanges are the changes of kudo's own definitions that a comparison cannot know to be safe, and why they are.
var acceptedChanges = map[string]string{
	"configs.config.kudo.dev spec.explorations[] ValidationRule":          "an exploration may have one more script, componentsLua, and is refused as before without any",
	"configs.config.kudo.dev spec.explorations[].health ValidationRule":   "the field is new, so that no object has it",
	"instances.kudo.dev spec.placement ValidationRule":                    "the field is new, so that no object has it",
	"instances.kudo.dev spec.crdTarball.crdDownloadPolicy Default":        "kudo has always taken an absent policy for IfNotPresent",
	"operatorversions.kudo.dev spec.crdTarball.crdDownloadPolicy Default": "kudo has always taken an absent policy for IfNotPresent",
	"operatorversions.kudo.dev spec ValidationRule":                       "such an OperatorVersion never ran, and may still be changed elsewhere and deleted",
}

// TestReleasedCRDs shows R20: kubectl kudo package crd-diff calls no change of kudo's own definitions since the last release unsafe but
// those that are accepted, and no kind was dropped.
func TestReleasedCRDs(t *testing.T) {
	met := map[string]bool{}
	for _, folder := range released(t) {
		old, err := readCRDs(folder)
		if err != nil {
			t.Fatal(err)
		}
		now, err := readCRDs(servedCRDs)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range crdcompat.CompareAll(old, now) {
			if c.Change == crdcompat.Removed {
				t.Errorf("R20: %s has CustomResourceDefinition %s, and this version does not: objects of users would stay without a manager",
					folder, c.Name)
			}
			for _, breach := range c.BreakingChanges {
				change := fmt.Sprintf("%s %s %s", c.Name, breach.Path, breach.Rule)
				met[change] = true
				if acceptedChanges[change] == "" {
					t.Errorf("R20: %s: %s: %s", folder, change, breach.Message)
				}
			}
		}
	}
	for change := range acceptedChanges {
		if !met[change] {
			t.Errorf("%s is accepted, and is in no released version: remove it from the list", change)
		}
	}
}

// TestUnsafeReleasedCRDs shows that the comparison of R20 refuses what would break a client of the last release.
func TestUnsafeReleasedCRDs(t *testing.T) {
	for reason, tc := range map[string]struct{ file, old, new, want string }{
		"a field is removed":        {"kudo.dev_instances.yaml", `(?m)^ {14}planExecution:$`, "              planRequest:", "planExecution"},
		"a field has another type":  {"kudo.dev_instances.yaml", `(suspend:\n(?:.*\n){1,6}? +type: )boolean`, "${1}string", "suspend"},
		"a version is not served":   {"kudo.dev_operators.yaml", `served: true`, "served: false", "v1beta1"},
		"a kind gets another scope": {"kudo.dev_installations.yaml", `scope: Cluster`, "scope: Namespaced", "scope"},
	} {
		for _, folder := range released(t) {
			changed := t.TempDir()
			if err := os.CopyFS(changed, os.DirFS(folder)); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(folder, tc.file))
			if err != nil {
				t.Fatal(err)
			}
			next := regexp.MustCompile(tc.old).ReplaceAllString(string(text), tc.new)
			if next == string(text) {
				t.Fatalf("%s: %s has nothing that matches %s", reason, tc.file, tc.old)
			}
			if err := os.WriteFile(filepath.Join(changed, tc.file), []byte(next), 0o600); err != nil {
				t.Fatal(err)
			}
			out, _ := commandtest.Expect(t, New, command.ExitFailed, "", "package", "crd-diff", folder, changed)
			if !strings.Contains(out, tc.want) {
				t.Errorf("R20: %s: the comparison does not name %s:\n%s", reason, tc.want, out)
			}
		}
	}
}
