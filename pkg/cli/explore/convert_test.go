package explore

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
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

// TestConvertToKarmada (C20, C21) has Configs that become customizations, and some that do not.
func TestConvertToKarmada(t *testing.T) {
	const body = "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: c}\nspec: {explorations: [{apiVersion: g/v1, kind: K, %s}]}\n"
	config := func(rule string) string { return strings.Replace(body, "%s", rule, 1) }
	for name, tc := range map[string]struct {
		reason, input string
		args          []string
		code          int
		out, errs     string
	}{
		"Script":  {"a script", config("healthLua: return true"), nil, 0, "      luaScript: |\n        function InterpretHealth(observedObj)\n        return true\n        end\n", ""},
		"Two":     {"two Configs", healthConfig("a", "K") + "---\n" + healthConfig("b", "L"), nil, 0, "---\napiVersion: config.karmada.io/v1alpha1\n", ""},
		"Packing": {"an operation that Karmada has not", config("packingLua: return desiredObj, healthLua: return true"), nil, 0, "healthInterpretation", "Warning: Config/c: spec.explorations[0].packingLua is left out"},
		"Strict":  {"the same with --strict", config("packingLua: return desiredObj, healthLua: return true"), []string{"--strict"}, command.ExitError, "", "found 1 parts of Configs that Karmada has not"},
		"Nothing": {"no script at all", config("health: {field: '{.status.phase}', healthy: [Done]}"), nil, 0, "", "spec.explorations[0].health is left out"},
		"Invalid": {"a Config that is not valid", config("healthLua: return ("), nil, command.ExitError, "", "invalid Config/c: spec.explorations[0].healthLua: "},
		"Other":   {"what is no Config", "apiVersion: v1\nkind: Secret\n", nil, command.ExitError, "", `kind "Secret": want a Config`},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs := commandtest.Expect(t, New, tc.code, tc.input, append([]string{"explore", "convert", "--to", "karmada", "-"}, tc.args...)...)
			if !strings.Contains(out, tc.out) || !strings.Contains(errs, tc.errs) || tc.out == "" && out != "" {
				t.Errorf("%s:\n%s%s", tc.reason, out, errs)
			}
		})
	}
}

// TestConvertWebhook checks C20: the flags name the webhook of a hub in one way, and the certificates that Karmada trusts.
func TestConvertWebhook(t *testing.T) {
	input := "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: c}\nspec: {explorations: [{apiVersion: g/v1, kind: K, health: {field: '{.status.phase}', healthy: [Done]}}]}\n"
	t.Chdir(t.TempDir())
	write(t, "key.pem", "-----BEGIN PRIVATE KEY-----\nZ2VoZWlt\n-----END PRIVATE KEY-----\n")
	server := httptest.NewTLSServer(nil)
	server.Close()
	write(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	to := func(args ...string) []string {
		return append([]string{"explore", "convert", "--to", "karmada", "-"}, args...)
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		"URL":       {"a URL", to("--webhook-url", "https://hub:9443", "--strict"), 0, "url: https://hub:9443/karmada/v1alpha1\n"},
		"Service":   {"a Service", to("--webhook-service", "a/b", "--strict"), 0, "service:\n      name: b\n      namespace: a\n      path: /karmada/v1alpha1\n      port: 443\n"},
		"CA":        {"certificates", to("--webhook-service", "a/b", "--webhook-ca-file", "ca.crt"), 0, "caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0t"},
		"None":      {"without a webhook, a rule by fields is an error", to("--strict"), command.ExitError, "found 1 parts"},
		"Both":      {"both", to("--webhook-url", "https://hub", "--webhook-service", "a/b"), command.ExitUsage, "one of --webhook-url and --webhook-service"},
		"OnlyCA":    {"neither", to("--webhook-ca-file", "ca.crt"), command.ExitUsage, "one of --webhook-url and --webhook-service"},
		"HTTP":      {"no TLS", to("--webhook-url", "http://hub"), command.ExitUsage, "--webhook-url: the URL must be like https://"},
		"NoService": {"no namespace", to("--webhook-service", "b"), command.ExitUsage, "--webhook-service: service \"b\" must be NAMESPACE/NAME"},
		"Key":       {"a key is no certificate, and is not printed", to("--webhook-url", "https://hub", "--webhook-ca-file", "key.pem"), command.ExitError, "--webhook-ca-file key.pem: it has a block \"PRIVATE KEY\""},
		"Missing":   {"no file", to("--webhook-url", "https://hub", "--webhook-ca-file", "absent"), command.ExitError, "--webhook-ca-file absent: "},
		"ToConfig":  {"Configs have no webhook of Karmada", []string{"explore", "convert", "--webhook-url", "https://hub", "-"}, command.ExitUsage, "require --to karmada"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs := commandtest.Expect(t, New, tc.code, input, tc.args...)
			if !strings.Contains(out+errs, tc.want) || strings.Contains(out+errs, "Z2VoZWlt") || tc.code == 0 && errs != "" {
				t.Errorf("%s: want %q in\n%s%s", tc.reason, tc.want, out, errs)
			}
		})
	}
}

// TestConvertLibrary (C20) converts the rules that come with kudo, and reads them again.
func TestConvertLibrary(t *testing.T) {
	out, errs := commandtest.Expect(t, New, 0, "", "explore", "convert", "--library", "--to", "karmada", "--strict")
	if errs != "" || strings.Count(out, "kind: ResourceInterpreterCustomization\n") < 30 {
		t.Errorf("the rules: %s%s", errs, out)
	}
	again, _ := commandtest.Expect(t, New, 0, out, "explore", "convert", "-")
	commandtest.Expect(t, New, 0, again, "explore", "check", "-f", "-")
	names := map[string]bool{}
	configs, _ := commandtest.Expect(t, New, 0, "", "explore", "convert", "--library")
	for _, line := range strings.Split(configs, "\n") {
		if name, found := strings.CutPrefix(line, "  name: "); found && names[name] {
			t.Errorf("two Configs have the name %s: one would replace the other", name)
		} else if found {
			names[name] = true
		}
	}
	if len(names) < 20 {
		t.Errorf("the Configs are %v", names)
	}
	commandtest.Expect(t, New, command.ExitUsage, "", "explore", "convert", "--library", "a")
}

// TestLinksOfCases: links in a tree of others do not lead outside of it.
func TestLinksOfCases(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "rules/c.yaml", healthConfig("a", "K"))
	write(t, "outside.yaml", "operation: InterpretHealth\nobservedObj: {apiVersion: g/v1, kind: K, metadata: {name: a}}\noutput: {healthy: true}\n")
	write(t, "rules/testdata/a.txt", "x")
	if err := os.Symlink("../../outside.yaml", "rules/testdata/link.yaml"); err != nil {
		t.Fatal(err)
	}
	out, errs := commandtest.Expect(t, New, command.ExitError, "", "explore", "test", "rules")
	for _, want := range []string{"BROKEN link.yaml", "path escapes from parent", "0 cases passed, 0 failed, 1 broken"} {
		if !strings.Contains(out+errs, want) {
			t.Errorf("no %q in\n%s%s", want, out, errs)
		}
	}
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
		"NoCases":  {"a Config without cases", map[string]string{"rules/a.yaml": healthConfig("a", "K")}, []string{"rules"}, command.ExitError, "there are no cases below rules: put them into testdata/ or into customizations_tests.yaml, beside a Config or customizations.yaml"},
		"Missing":  {"the folder exists", nil, []string{"rules"}, command.ExitError, "rules"},
		"None":     {"one folder", nil, nil, command.ExitUsage, "takes one folder"},
		"Two":      {"and no more", nil, []string{"a", "b"}, command.ExitUsage, "takes one folder"},
		"YAML":     {"results have no YAML", map[string]string{"rules/a.yaml": healthConfig("a", "K")}, []string{"rules", "-o", "yaml"}, command.ExitUsage, `invalid output format "yaml": only json and junit are known`},
		"Passed":   {"all cases pass", map[string]string{"rules/config.yaml": healthConfig("a", "K"), "rules/testdata/a.yaml": healthy}, []string{"rules"}, 0, "1 cases passed, 0 failed, 0 broken, 0 unasserted"},
		"TwoCases": {"cases of one operation are counted together", map[string]string{"rules/config.yaml": healthConfig("a", "K"), "rules/testdata/a.yaml": healthy + "---\n" + healthy}, []string{"rules"}, 0, "2 cases passed, 0 failed"},
		"Broken":   {"a Config that cannot be read", map[string]string{"rules/config.yaml": "a: [", "rules/testdata/a.yaml": healthy}, []string{"rules"}, command.ExitError, "BROKEN config.yaml (config.yaml)"},
		"BrokenCase": {
			"a broken case ends with 1, also if another fails, and the run continues",
			map[string]string{"rules/c.yaml": healthConfig("a", "K"), "rules/testdata/a.yaml": "operation: x\n---\n" + healthy + "---\n" + strings.Replace(healthy, "true", "false", 1)},
			[]string{"rules"}, command.ExitError, "1 cases passed, 1 failed, 1 broken, 0 unasserted\nError: 1 of 3 cases are broken, and 1 failed",
		},
		"Failed": {
			"a case that fails ends with 3",
			map[string]string{"rules/c.yaml": healthConfig("a", "K"), "rules/testdata/a.yaml": strings.Replace(healthy, "true", "false", 1)},
			[]string{"rules"}, command.ExitFailed, "Error: 1 of 1 cases failed",
		},
		"Unasserted": {
			"a case without output passes, and is counted by itself",
			map[string]string{"rules/c.yaml": healthConfig("a", "K"), "rules/testdata/a.yaml": strings.Split(healthy, "output")[0]},
			[]string{"rules"}, 0, "0 cases passed, 0 failed, 0 broken, 1 unasserted",
		},
		"Warning": {
			"an unknown field is a warning",
			map[string]string{"rules/c.yaml": healthConfig("a", "K"), "rules/testdata/a.yaml": healthy + "x: 1\n"},
			[]string{"rules"}, 0, "testdata/a.yaml:1: InterpretHealth: field x is unknown",
		},
		"Strict": {
			"and a failure with --strict",
			map[string]string{"rules/c.yaml": healthConfig("a", "K"), "rules/testdata/a.yaml": healthy + "x: 1\n"},
			[]string{"rules", "--strict"}, command.ExitFailed, "FAIL InterpretHealth (testdata/a.yaml:1)\n  field x is unknown",
		},
		"StrictOrder": {
			"a folder's warnings stand before its own cases",
			map[string]string{"rules/a/c.yaml": healthConfig("a", "K"), "rules/a/testdata/a.yaml": healthy + "x: 1\n", "rules/b/c.yaml": healthConfig("a", "K"),
				"rules/b/testdata/a.yaml": healthy, "rules/b/testdata/a.txt": "x"},
			[]string{"rules", "--strict", "-o", "junit"}, command.ExitFailed, `<testsuite name="b" tests="2" failures="1" errors="0">`,
		},
		"StrictFolder": {
			"warnings of folders, too",
			map[string]string{"rules/c.yaml": healthConfig("a", "K"), "rules/testdata/a.yaml": healthy, "rules/testdata/a.txt": "x"},
			[]string{"rules", "--strict"}, command.ExitFailed, "testdata/a.txt is not read",
		},
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
