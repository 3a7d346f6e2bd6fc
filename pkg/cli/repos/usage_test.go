package repos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// construct returns the command that a line begins with.
func construct(line string) commandtest.Constructor {
	if strings.HasPrefix(line, "search") {
		return NewSearch
	}
	return New
}

// TestUsage checks wrong command lines, on stdin too.
func TestUsage(t *testing.T) {
	t.Setenv("KUDO_HOME", t.TempDir())
	t.Setenv("SOURCE_DATE_EPOCH", "")
	long := strings.Repeat("x", maxSecret+1)
	for name, tc := range map[string]struct{ line, in, want string }{
		"group":              {"repo ad", "", `has no command "ad", did you mean add?`},
		"add nothing":        {"repo add", "", "a name and a URL"},
		"add a path":         {"repo add ours ./packages", "", "./packages"},
		"add a wrong name":   {"repo add a/b https://example.com", "", "a/b"},
		"add two secrets":    {"repo add ours https://example.com --password-stdin --token-stdin", "x", "none of the others can be"},
		"add no secret":      {"repo add ours https://example.com --token-stdin", "", "stdin must hold the secret as one line"},
		"add an empty line":  {"repo add ours https://example.com --token-stdin", "\n", "stdin must hold the secret as one line"},
		"add two lines":      {"repo add ours https://example.com --token-stdin", "a\nb\n", "stdin must hold the secret as one line"},
		"add a long secret":  {"repo add ours https://example.com --token-stdin", long, "stdin must hold the secret as one line"},
		"add without a user": {"repo add ours https://example.com --password-stdin", "x", "user"},
		"remove nothing":     {"repo remove", "", "takes the names of repositories"},
		"list in a format":   {"repo list -o wide", "", `invalid output format "wide"`},
		"list arguments":     {"repo list ours", "", "no arguments"},
		"context of none":    {"repo context", "", "the name of a repository"},
		"index of none":      {"repo index", "", "one folder of archives"},
		"index twice":        {"repo index . --url https://example.com --url-repo ours", "", "none of the others can be"},
		"index merges twice": {"repo index . --merge a --merge-repo b", "", "none of the others can be"},
		"search two":         {"search a b", "", "a part of a name, and got 2 arguments"},
		"search in a format": {"search -o table", "", `invalid output format "table"`},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs := commandtest.Expect(t, construct(tc.line), command.ExitUsage, tc.in, strings.Fields(tc.line)...)
			if out != "" || !strings.Contains(errs, tc.want) {
				t.Errorf("no %q in\n%s%s", tc.want, out, errs)
			}
		})
	}
}

// TestChanges adds, uses and removes repositories without reading their indexes, and compares the lists with golden files.
func TestChanges(t *testing.T) {
	t.Setenv("KUDO_HOME", t.TempDir())
	expect := func(code int, in, line, want string) {
		t.Helper()
		out, errs := commandtest.Expect(t, construct(line), code, in, strings.Fields(line)...)
		if !strings.Contains(out+errs, want) {
			t.Errorf("%s: no %q in\n%s%s", line, want, out, errs)
		}
		if strings.Contains(out+errs, "hunter2") {
			t.Errorf("%s shows the secret:\n%s%s", line, out, errs)
		}
	}
	golden := func(name string, args ...string) {
		t.Helper()
		out, _ := commandtest.Expect(t, New, 0, "", append([]string{"repo", "list"}, args...)...)
		commandtest.Golden(t, filepath.Join("testdata", name), out, "repositories without their credentials")
	}
	expect(0, "", "repo add plain https://example.com/plain --skip-check", "repository plain added")
	expect(0, "hunter2\r\n", "repo add basic https://example.com/basic --username me --password-stdin -f", "repository basic added")
	expect(0, "hunter2", "repo add bearer https://example.com/bearer --token-stdin -f", "repository bearer added")
	expect(command.ExitError, "", "repo add plain https://example.com/other --skip-check", "plain")
	expect(0, "", "repo context bearer", "repository bearer is in use")
	golden("list.txt")
	golden("list.json", "-o", "json")
	golden("list.yaml", "-o", "yaml")
	expect(command.ExitError, "", "repo remove plain none", "none")
	expect(0, "", "repo rm plain basic", "repository plain removed\nrepository basic removed\n")
	expect(0, "", "repo remove bearer", "no repository is in use now")
	golden("list-after.txt")
	expect(command.ExitError, "", "search x", "Error: ")
}

// TestIndex checks which folders get an index, and what it is made of.
func TestIndex(t *testing.T) {
	t.Setenv("KUDO_HOME", t.TempDir())
	t.Setenv("SOURCE_DATE_EPOCH", "")
	t.Chdir(t.TempDir())
	for _, dir := range []string{"empty", "other"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		reason string
		code   int
		line   string
		want   string
	}{
		{"a folder without archives has an index without entries", 0, "repo index empty", "index created: "},
		{"an index is not overwritten unasked", command.ExitError, "repo index empty", "exists already: use --overwrite"},
		{"an index that would be the same is left alone", 0, "repo index empty -w", "is up to date"},
		{"the folder exists", command.ExitError, "repo index none", "none"},
		{"the repository of the URL is known", command.ExitError, "repo index other --url-repo ours", "ours"},
		{"the URL is one", command.ExitUsage, "repo index other --url other", "--url: "},
		{"the index to merge exists", command.ExitError, "repo index other --merge none.yaml", "index to merge: "},
		{"the repository to merge is known", command.ExitError, "repo index other --merge-repo ours", "index to merge: "},
		{"the index to merge can be read", 0, "repo index other --merge empty/index.yaml", "index created: "},
	} {
		out, errs := commandtest.Expect(t, New, tc.code, "", strings.Fields(tc.line)...)
		if !strings.Contains(out+errs, tc.want) {
			t.Errorf("%s: %s: no %q in\n%s%s", tc.reason, tc.line, tc.want, out, errs)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, errs := commandtest.Expect(t, New, command.ExitUsage, "", "repo", "index", "other", "-w"); !strings.Contains(errs, "SOURCE_DATE_EPOCH") {
		t.Errorf("a time that is none:\n%s", errs)
	}
}

// TestTexts checks that each command has a short text without a full stop.
func TestTexts(t *testing.T) {
	env := command.NewEnv(strings.NewReader(""), nil, nil)
	for _, cmd := range append([]*cobra.Command{NewSearch(env), New(env)}, New(env).Commands()...) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the short text is %q", cmd.CommandPath(), cmd.Short)
		}
	}
}
