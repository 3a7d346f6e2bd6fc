package repos

import (
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/repository"
)

// TestContext checks that a repository that is not known cannot be used or removed, and that the one in use is listed.
func TestContext(t *testing.T) {
	t.Setenv("KUDO_HOME", t.TempDir())
	for _, args := range [][]string{{"repo", "context", "ours"}, {"repo", "remove", "ours"}} {
		if _, errs := commandtest.Expect(t, New, command.ExitError, "", args...); !strings.Contains(errs, "ours") {
			t.Errorf("%v: the repository is named:\n%s", args, errs)
		}
	}
	if out, _ := commandtest.Expect(t, New, 0, "", "repo", "list", "-o", "yaml"); out != "[]\n" {
		t.Errorf("this build knows no catalog, and lists:\n%s", out)
	}
	if out, _ := commandtest.Expect(t, New, 0, "", "repo", "list"); !strings.Contains(out, "no repository is configured: add one by kubectl kudo repo add NAME URL") {
		t.Errorf("it does not say what to do:\n%s", out)
	}
	repository.CatalogURL = "https://example.org/kudo"
	t.Cleanup(func() { repository.CatalogURL = "" })
	if out, _ := commandtest.Expect(t, New, 0, "", "repo", "list"); !strings.Contains(out, "*catalog") {
		t.Errorf("the catalog of a release is not in use:\n%s", out)
	}
	commandtest.Expect(t, New, command.ExitUsage, "", "repo", "list", "-o", "table")
}
