package packages

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/lint"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestTaskUses checks what the list of tasks says of each kind.
func TestTaskUses(t *testing.T) {
	for _, tc := range []struct {
		kind string
		spec v1beta1.TaskSpec
		want string
	}{
		{v1beta1.ApplyTask, v1beta1.TaskSpec{Resources: []string{"a.yaml", "b.yaml"}}, "a.yaml, b.yaml"},
		{v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"a.yaml"}}, "a.yaml"},
		{v1beta1.ApplyTask, v1beta1.TaskSpec{}, ""},
		{"Other", v1beta1.TaskSpec{Resources: []string{"a.yaml"}}, ""},
		{v1beta1.DummyTask, v1beta1.TaskSpec{}, "never done"},
		{v1beta1.DummyTask, v1beta1.TaskSpec{Done: true}, ""},
		{v1beta1.DummyTask, v1beta1.TaskSpec{WantErr: true, Done: true}, "fails"},
		{v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "zookeeper"}, "zookeeper"},
		{v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "zookeeper", OperatorVersion: "0.3", ParameterFile: "p.yaml"}, "zookeeper 0.3 with p.yaml"},
	} {
		task := v1beta1.Task{Name: "t", Kind: tc.kind, Spec: tc.spec}
		if got := taskUses(task); got != tc.want {
			t.Errorf("%s %+v: got %q, want %q", tc.kind, tc.spec, got, tc.want)
		}
		want := strings.TrimSpace("Task t [" + tc.kind + "] " + tc.want)
		if got := describeTask("t", map[string]v1beta1.Task{"t": task}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := describeTask("u", nil); got != "Task u [not defined]" {
		t.Errorf("a task that is not defined: %q", got)
	}
}

// TestFormatDefault checks that a default is one short line of a table.
func TestFormatDefault(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, tc := range []struct {
		reason string
		value  *string
		want   string
	}{
		{"no default", nil, ""},
		{"an empty default", text(""), ""},
		{"a short one", text("3"), "3"},
		{"lines become one", text("a: 1\nb: 2\n"), "a: 1 b: 2"},
	} {
		if got := formatDefault(tc.value); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
	if got := formatDefault(text(strings.Repeat("ü", 100))); len([]rune(got)) > 43 || !strings.HasPrefix(got, "üü") || strings.Contains(got, "\ufffd") {
		t.Errorf("a long one is cut between letters: %q", got)
	}
}

// TestListFormats checks the formats that only one of the lists has, and wrong usage.
func TestListFormats(t *testing.T) {
	const web = "testdata/package/web"
	out, _ := commandtest.Expect(t, New, 0, "", "package", "list", "parameters", web, "-o", "json-schema")
	var schema struct {
		Type       string
		Properties map[string]any
	}
	if err := json.Unmarshal([]byte(out), &schema); err != nil || schema.Type != "object" || schema.Properties["MESSAGE"] == nil {
		t.Errorf("the schema of a file of parameters: %v\n%s", err, out)
	}
	out, _ = commandtest.Expect(t, New, 0, "", "package", "list", "parameters", web, "--names", "-o", "json")
	var names []string
	if err := json.Unmarshal([]byte(out), &names); err != nil || len(names) != len(schema.Properties) {
		t.Errorf("names as a list: %v\n%s", err, out)
	}
	for line, want := range map[string]string{
		"list plans WEB -o json-schema":        `invalid output format "json-schema"`,
		"list tasks WEB -o table":              `invalid output format "table"`,
		"list":                                 "",
		"list parameter WEB":                   `has no command "parameter", did you mean parameters?`,
		"list tasks":                           "takes one package",
		"list plans WEB --operator-version >>": "neither a version nor a range",
		"render WEB WEB":                       "got 2 arguments",
		"render WEB -p MESSAGE":                "-p MESSAGE",
		"rights WEB -o wide":                   `invalid output format "wide": use table, yaml or json`,
		"create WEB -o table":                  `invalid output format "table"`,
		"verify WEB WEB":                       "takes one package",
		"verify WEB -o table":                  `invalid output format "table"`,
		"new A_b":                              `"A_b" cannot name an operator: use lower case letters, digits and -`,
		"new a.b":                              `"a.b" cannot name an operator`,
		"new -- -a":                            `"-a" cannot name an operator`,
		"new a b":                              "the name of the operator",
	} {
		code := command.ExitUsage
		if want == "" {
			code = 0
		}
		_, errs := commandtest.Expect(t, New, code, "", strings.Fields("package "+strings.ReplaceAll(line, "WEB", web))...)
		if !strings.Contains(errs, want) {
			t.Errorf("%s: no %q in\n%s", line, want, errs)
		}
	}
}

// TestVerdict checks which findings make a package invalid.
func TestVerdict(t *testing.T) {
	found := []operators.Finding{{Message: "it is wrong"}}
	for _, tc := range []struct {
		reason   string
		findings lint.Findings
		strict   bool
		want     string
	}{
		{"nothing was found", lint.Findings{}, false, ""},
		{"nothing was found, and warnings count", lint.Findings{}, true, ""},
		{"warnings do not count", lint.Findings{Warnings: found}, false, ""},
		{"warnings count", lint.Findings{Warnings: found}, true, "found 0 package verification errors and 1 warnings, which --strict does not allow"},
		{"errors count", lint.Findings{Errors: found}, false, "found 1 package verification errors"},
		{"errors alone", lint.Findings{Errors: found}, true, "found 1 package verification errors"},
		{"both", lint.Findings{Errors: found, Warnings: found}, false, "found 1 package verification errors"},
	} {
		text := ""
		if err := verdictOf(tc.findings, tc.strict); err != nil {
			text = err.Error()
		}
		if text != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, text, tc.want)
		}
	}
}

// TestSeparator checks which lines part documents of a template.
func TestSeparator(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		want         []string
	}{
		{"one document", "a: 1\n", []string{"a: 1"}},
		{"two", "a: 1\n---\nb: 2\n", []string{"a: 1", "b: 2"}},
		{"a line of Windows", "a: 1\r\n---\r\nb: 2\r\n", []string{"a: 1", "b: 2"}},
		{"blanks behind the dashes", "a: 1\n--- \t\nb: 2", []string{"a: 1", "b: 2"}},
		{"a comment behind them", "a: 1\n--- # next\nb: 2", []string{"a: 1", "b: 2"}},
		{"dashes inside of a line", "a: ---\nb: x--- \n", []string{"a: ---\nb: x--- "}},
		{"dashes of a block", "a: |\n  ---\n", []string{"a: |\n  ---"}},
		{"more dashes", "a: 1\n----\n", []string{"a: 1\n----"}},
		{"documents of comments are none", "# one\n---\na: 1\n---\n\n  # two\n", []string{"a: 1"}},
		{"nothing", "", nil},
	} {
		var got []string
		for _, document := range separator.Split(tc.text, -1) {
			if document = strings.Trim(document, "\r\n"); !blank(document) {
				got = append(got, document)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

// TestPick checks which uses of templates the flags of render choose.
func TestPick(t *testing.T) {
	pkg, _, err := lintPackage(t.Context(), "testdata/package/web")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason            string
		plan, phase, step string
		want              []string
		fails             string
	}{
		{"all", "", "", "", []string{"deploy.main.cert.cert", "deploy.main.app.app", "deploy.main.app.extra", "deploy.main.app.child", "clean.main.clean.clean"}, ""},
		{"a plan", "clean", "", "", []string{"clean.main.clean.clean"}, ""},
		{"a phase of all plans", "", "main", "", []string{"deploy.main.cert.cert", "deploy.main.app.app", "deploy.main.app.extra", "deploy.main.app.child", "clean.main.clean.clean"}, ""},
		{"a step", "", "", "cert", []string{"deploy.main.cert.cert"}, ""},
		{"a step of another plan", "clean", "", "cert", nil, "no task with templates of package web is in such a phase and step"},
		{"a phase that does not exist", "", "other", "", nil, "kubectl kudo package list plans shows them"},
		{"a plan that does not exist", "other", "", "", nil, `package web has no plan "other": there are deploy, clean`},
	} {
		uses, err := (&renderOptions{plan: tc.plan, phase: tc.phase, step: tc.step}).pick(pkg)
		var got []string
		for _, use := range uses {
			got = append(got, placeOf(use))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
			t.Errorf("%s: error %v, -want +got:\n%s", tc.reason, err, diff)
		}
	}
}

// TestRenderInstance checks that the name of an Instance is one, as install requires.
func TestRenderInstance(t *testing.T) {
	for _, command := range []string{"render", "rights"} {
		for _, name := range []string{"A_b", "a b", "-a"} {
			_, errs := commandtest.Expect(t, New, 2, "", "package", command, "../../../operators/catalog/hello/operator", "--instance="+name)
			if !strings.Contains(errs, "--instance: ") {
				t.Errorf("%s --instance=%s: %s", command, name, errs)
			}
		}
	}
}

// TestLintUnreadable checks which errors of a package are findings.
func TestLintUnreadable(t *testing.T) {
	pkg, found, err := lintPackage(t.Context(), "testdata/package")
	if err != nil || pkg != nil || len(found.Errors) == 0 {
		t.Errorf("a folder that holds no package is a finding: %v, %v", found, err)
	}
	var unreadable operators.Errors
	if _, found, err = lintPackage(t.Context(), "testdata/none"); err == nil || errors.As(err, &unreadable) || len(found.Errors) > 0 {
		t.Errorf("a folder that does not exist is an error: %v, %v", found, err)
	}
}

// TestRenderFrom shows G5: the flags of render say which version was before.
func TestRenderFrom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "web")
	if err := os.CopyFS(dir, os.DirFS("testdata/package/web")); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from}\ndata: {from: 'from {{ .From.AppVersion }}/{{ .From.OperatorVersion }}.'}\n"
	if err := os.WriteFile(filepath.Join(dir, "templates", "app.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, flags := range map[string][]string{"from /.": nil, "from 15.2/1.0.0.": {"--from-app-version", "15.2", "--from-operator-version", "1.0.0"}} {
		if out, _ := run(t, 0, flags, "render", dir, "-p", "MESSAGE=Hi"); !strings.Contains(out, want) {
			t.Errorf("%v: %q is not in\n%s", flags, want, out)
		}
	}
}
