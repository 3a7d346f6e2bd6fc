package explore

import (
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestConvertConfigs checks that what convert prints can be read again, and has no status.
func TestConvertConfigs(t *testing.T) {
	two := healthConfig("a", "K") + "---\n" + healthConfig("b", "L")
	out, _ := commandtest.Expect(t, New, 0, two, "explore", "convert", "-")
	if strings.Count(out, "---\n") != 1 || strings.Contains(out, "status:") || strings.Contains(out, "creationTimestamp") {
		t.Errorf("two documents without a status:\n%s", out)
	}
	again, _ := commandtest.Expect(t, New, 0, out, "explore", "convert", "-")
	if again != out {
		t.Errorf("a second conversion changes nothing:\n%s\n%s", out, again)
	}
	if checked, _ := commandtest.Expect(t, New, 0, out, "explore", "check", "-f", "-"); checked != "2 Configs are valid\n" {
		t.Errorf("what is printed is valid: %s", checked)
	}
	commandtest.Expect(t, New, command.ExitUsage, "", "explore", "convert")
	commandtest.Expect(t, New, command.ExitUsage, "", "explore", "convert", "a", "b")
}

// TestTestTree checks what is said of trees without cases, and which exit code a failed case has.
func TestTestTree(t *testing.T) {
	const healthy = "operation: InterpretHealth\nobservedObj: {apiVersion: g/v1, kind: K, metadata: {name: a}}\noutput: {healthy: true}\n"
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		args   []string
		code   int
		want   string
	}{
		"NoCases":  {"a Config without cases", map[string]string{"rules/a.yaml": healthConfig("a", "K")}, []string{"rules"}, command.ExitError, "there are no cases below rules: put them into testdata/ beside a Config"},
		"Missing":  {"the folder exists", nil, []string{"rules"}, command.ExitError, "rules"},
		"None":     {"one folder", nil, nil, command.ExitUsage, "takes one folder"},
		"Two":      {"and no more", nil, []string{"a", "b"}, command.ExitUsage, "takes one folder"},
		"YAML":     {"results have no YAML", map[string]string{"rules/a.yaml": healthConfig("a", "K")}, []string{"rules", "-o", "yaml"}, command.ExitUsage, `invalid output format "yaml": only json and junit are known`},
		"Passed":   {"all cases pass", map[string]string{"rules/config.yaml": healthConfig("a", "K"), "rules/testdata/a.yaml": healthy}, []string{"rules"}, 0, "1 cases passed, 0 failed"},
		"TwoCases": {"cases of one operation are counted together", map[string]string{"rules/config.yaml": healthConfig("a", "K"), "rules/testdata/a.yaml": healthy + "---\n" + healthy}, []string{"rules"}, 0, "2 cases passed, 0 failed"},
		"Broken":   {"a Config that cannot be read", map[string]string{"rules/config.yaml": "a: [", "rules/testdata/a.yaml": healthy}, []string{"rules"}, command.ExitError, "rules: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for file, text := range tc.files {
				write(t, file, text)
			}
			out, errs := commandtest.Expect(t, New, tc.code, "", append([]string{"explore", "test"}, tc.args...)...)
			if !strings.Contains(out+errs, tc.want) {
				t.Errorf("%s: no %q in\n%s%s", tc.reason, tc.want, out, errs)
			}
		})
	}
}
