package repos

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestDescribe checks that paths become absolute, and that the secret of stdin becomes what its flag names.
func TestDescribe(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := filepath.Abs("")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		options repoAddOptions
		url     string
		want    repository.Repository
	}{
		"a URL":     {url: "https://example.com", want: repository.Repository{URL: "https://example.com"}},
		"a folder":  {url: "layout:packages", want: repository.Repository{URL: "layout:" + filepath.ToSlash(filepath.Join(here, "packages"))}},
		"no folder": {url: "layout:", want: repository.Repository{URL: "layout:"}},
		"certificates": {options: repoAddOptions{caFile: "ca.pem", tokenHosts: []string{"auth.example.com"}}, url: "https://example.com",
			want: repository.Repository{URL: "https://example.com", CAFile: filepath.Join(here, "ca.pem"), TokenHosts: []string{"auth.example.com"}}},
		"a password": {options: repoAddOptions{username: "me", passwordStdin: true}, url: "https://example.com",
			want: repository.Repository{URL: "https://example.com", Username: "me", Password: "secret"}},
		"a token": {options: repoAddOptions{tokenStdin: true}, url: "https://example.com",
			want: repository.Repository{URL: "https://example.com", Token: "secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.env, tc.want.Name = &command.Env{In: strings.NewReader("secret\n")}, "ours"
			got, err := tc.options.describe("ours", tc.url)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v, (-want +got):\n%s", err, diff)
			}
		})
	}
}
