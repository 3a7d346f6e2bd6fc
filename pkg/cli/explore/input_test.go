package explore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// healthConfig is a Config of a name that answers for objects of a kind.
func healthConfig(name, kind string) string {
	return "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: " + name + "}\n" +
		"spec: {explorations: [{apiVersion: g/v1, kind: " + kind + ", healthLua: return true}]}\n"
}

// write writes a file, and makes its folder.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCheckInputs checks which files of a command line are read as Configs.
func TestCheckInputs(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		in     string
		args   []string
		code   int
		want   string
	}{
		"Stdin":         {"- is the standard input", nil, healthConfig("a", "K"), []string{"-f", "-"}, 0, "1 Configs are valid\n"},
		"Documents":     {"a file has several documents", nil, healthConfig("a", "K") + "---\n" + healthConfig("b", "L"), []string{"-f", "-"}, 0, "2 Configs are valid\n"},
		"Two":           {"the flag is given twice", map[string]string{"a.yaml": healthConfig("a", "K"), "b.yaml": healthConfig("b", "L")}, "", []string{"-f", "a.yaml", "-f", "b.yaml"}, 0, "2 Configs are valid\n"},
		"Folder":        {"the YAML files of a folder, by both endings", map[string]string{"d/a.yaml": healthConfig("a", "K"), "d/b.yml": healthConfig("b", "L"), "d/c.txt": "{"}, "", []string{"-f", "d"}, 0, "2 Configs are valid\n"},
		"NotBelow":      {"those of folders below are not read", map[string]string{"d/a.yaml": healthConfig("a", "K"), "d/e/b.yaml": "{"}, "", []string{"-f", "d"}, 0, "1 Configs are valid\n"},
		"OtherObjects":  {"a folder may have other objects", map[string]string{"d/a.yaml": healthConfig("a", "K"), "d/b.yaml": "apiVersion: v1\nkind: Secret\n"}, "", []string{"-f", "d"}, 0, "1 Configs are valid\n"},
		"Brackets":      {"a folder may have any name", map[string]string{"d[1]/a.yaml": healthConfig("a", "K")}, "", []string{"-f", "d[1]"}, 0, "1 Configs are valid\n"},
		"OpenBracket":   {"one that is no pattern, too", map[string]string{"d[/a.yaml": healthConfig("a", "K")}, "", []string{"-f", "d["}, 0, "1 Configs are valid\n"},
		"FolderAsFile":  {"a folder below may end like a file", map[string]string{"d/a.yaml": healthConfig("a", "K"), "d/x.yaml/b": ""}, "", []string{"-f", "d"}, 0, "1 Configs are valid\n"},
		"EmptyFolder":   {"a folder without Configs", map[string]string{"d/c.txt": "x"}, "", []string{"-f", "d"}, command.ExitError, "there is no Config in d"},
		"OtherFile":     {"a file of another object", map[string]string{"b.yaml": "apiVersion: v1\nkind: Secret\n"}, "", []string{"-f", "b.yaml"}, command.ExitError, "Secret"},
		"Empty":         {"an empty input", nil, "", []string{"-f", "-"}, command.ExitError, "there is no Config in -"},
		"Missing":       {"files exist", nil, "", []string{"-f", "none.yaml"}, command.ExitError, "none.yaml"},
		"BrokenInside":  {"a broken file of a folder is no other object", map[string]string{"d/a.yaml": healthConfig("a", "K"), "d/b.yaml": "a: ["}, "", []string{"-f", "d"}, command.ExitError, "b.yaml"},
		"Large":         {"an input has a limit", nil, "# " + strings.Repeat("x", maxInput), []string{"-f", "-"}, command.ExitError, "- has more than 16777216 bytes"},
		"Conflict":      {"two Configs that answer the same", nil, healthConfig("a", "K") + "---\n" + healthConfig("b", "K"), []string{"-f", "-"}, command.ExitError, "found 1 errors in 2 Configs"},
		"NoSuchCommand": {"an argument is no file", nil, "", []string{"a.yaml"}, command.ExitUsage, "takes no arguments, but files by -f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for file, text := range tc.files {
				write(t, file, text)
			}
			out, errs := commandtest.Expect(t, New, tc.code, tc.in, append([]string{"explore", "check"}, tc.args...)...)
			if !strings.Contains(out+errs, tc.want) {
				t.Errorf("%s: no %q in\n%s%s", tc.reason, tc.want, out, errs)
			}
		})
	}
}
