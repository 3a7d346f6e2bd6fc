package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPrintTable checks how rows become lines.
func TestPrintTable(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		rows   [][]string
		want   string
	}{
		"None":         {"no rows are no lines", nil, ""},
		"Columns":      {"three blanks stand between columns", [][]string{{"NAME", "AGE"}, {"longer", "1d"}}, "NAME     AGE\nlonger   1d\n"},
		"NoTrailing":   {"no line ends with blanks", [][]string{{"NAME", "AGE"}, {"a", ""}}, "NAME   AGE\na\n"},
		"EmptyBetween": {"an empty cell keeps its place", [][]string{{"A", "B", "C"}, {"a", "", "c"}}, "A   B   C\na       c\n"},
		"EmptyBehind": {
			"a row whose last cells are empty does not part the columns of the rows around it",
			[][]string{{"NAME", "STATUS", "PLAN"}, {"a", "", ""}, {"long-name", "COMPLETE", "deploy"}},
			"NAME        STATUS     PLAN\na\nlong-name   COMPLETE   deploy\n",
		},
		"ShortRow":    {"nor does a row with fewer cells", [][]string{{"NAME", "STATUS"}, {"a"}, {"long-name", "COMPLETE"}}, "NAME        STATUS\na\nlong-name   COMPLETE\n"},
		"EmptyRow":    {"a row without text is an empty line", [][]string{{"A"}, {""}, {"b"}}, "A\n\nb\n"},
		"Lines":       {"a cell is one line", [][]string{{"A", "B"}, {"one\ntwo", "x\ty"}}, "A         B\none two   x y\n"},
		"Controls":    {"a cell commands no terminal", [][]string{{"a\x1b[2J", "b\r"}}, `a\x1b[2J   b\r` + "\n"},
		"FormFeed":    {"and parts no columns", [][]string{{"a\v", "b\fc"}}, `a\v   b\fc` + "\n"},
		"OtherScript": {"columns count characters", [][]string{{"Größe", "x"}, {"a", "y"}}, "Größe   x\na       y\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := NewEnv(nil, &out, nil).PrintTable(tc.rows); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// fullDisk fails each write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("no space left")

// TestWriteErrors checks that an output that cannot be written is an error of each way to print.
func TestWriteErrors(t *testing.T) {
	env := NewEnv(nil, fullDisk{}, fullDisk{})
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	for name, err := range map[string]error{
		"PrintTable":   env.PrintTable([][]string{{"a"}}),
		"Print":        env.Print("a"),
		"YAML":         env.PrintValue("yaml", 1),
		"JSON":         env.PrintValue("json", 1),
		"ObjectsYAML":  env.PrintObjects("yaml", []*unstructured.Unstructured{object}),
		"ObjectsJSON":  env.PrintObjects("json", []*unstructured.Unstructured{object}),
		"controlWrite": func() error { _, err := env.printer().Write([]byte("a")); return err }(),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestPrintValue checks the formats of values.
func TestPrintValue(t *testing.T) {
	type value struct {
		Name  string   `json:"name"`
		Parts []string `json:"parts"`
	}
	for name, tc := range map[string]struct {
		reason, format string
		value          any
		want, fails    string
	}{
		"YAML":        {"the names of JSON", "yaml", value{"a", []string{"b"}}, "name: a\nparts:\n- b\n", ""},
		"JSON":        {"indented", "json", value{"a", []string{"b"}}, "{\n  \"name\": \"a\",\n  \"parts\": [\n    \"b\"\n  ]\n}\n", ""},
		"EmptyList":   {"an empty list is a list", "json", []value{}, "[]\n", ""},
		"Controls":    {"a program reads control characters as JSON writes them", "json", "a\x1b", "\"a\\u001b\"\n", ""},
		"Number":      {"a text that looks like a number stays a text", "yaml", map[string]string{"v": "1.10"}, "v: \"1.10\"\n", ""},
		"Table":       {"a table is no format of values", "table", value{}, "", `invalid output format "table": only yaml and json are known`},
		"None":        {"nor is none", "", value{}, "", `invalid output format ""`},
		"LetterCase":  {"formats are written as they are", "JSON", value{}, "", `invalid output format "JSON"`},
		"NoJSONValue": {"what JSON does not have is an error", "json", func() {}, "", "unsupported type"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := NewEnv(nil, &out, nil).PrintValue(tc.format, tc.value)
			if out.String() != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, out.String(), tc.want)
			}
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
		})
	}
}

// TestCheckFormat checks which formats a command accepts before it acts.
func TestCheckFormat(t *testing.T) {
	for format, wrong := range map[string]bool{"": false, "yaml": false, "json": false, "Yaml": true, "yml": true, "wide": true, " json": true} {
		err := CheckFormat(format)
		var coded *CodeError
		if (err != nil) != wrong || wrong && (!errors.As(err, &coded) || coded.Code != ExitUsage) {
			t.Errorf("format %q: %v", format, err)
		}
	}
}

// TestPrintObjects checks documents and lists of objects.
func TestPrintObjects(t *testing.T) {
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	}
	for _, tc := range []struct {
		reason, format string
		names          []string
		want           []string
		documents      int
	}{
		{"documents in their order", "yaml", []string{"b", "a"}, []string{"name: b\n---\n", "name: a\n"}, 2},
		{"the default is YAML", "", []string{"b"}, []string{"kind: ConfigMap\nmetadata:\n  name: b\n"}, 1},
		{"no document", "yaml", nil, nil, 0},
		{"one list", "json", []string{"b", "a"}, []string{`"apiVersion": "v1"`, `"name": "b"`, `"name": "a"`, `"kind": "List"`}, 1},
		{"an empty list is a list", "json", nil, []string{`"items": []`, `"kind": "List"`}, 1},
	} {
		var objs []*unstructured.Unstructured
		for _, name := range tc.names {
			objs = append(objs, object(name))
		}
		var out bytes.Buffer
		if err := NewEnv(nil, &out, nil).PrintObjects(tc.format, objs); err != nil {
			t.Fatal(err)
		}
		text, at := out.String(), 0
		for _, want := range tc.want {
			next := strings.Index(text[at:], want)
			if next < 0 {
				t.Errorf("%s: no %q, or not in this order, in\n%s", tc.reason, want, text)
				break
			}
			at += next
		}
		if n := strings.Count(text, "\n---\n") + min(len(text), 1); n != tc.documents {
			t.Errorf("%s: %d documents, want %d:\n%s", tc.reason, n, tc.documents, text)
		}
	}
}

// TestRuleRows checks the rows of rules, of which a package chooses the names.
func TestRuleRows(t *testing.T) {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}, Verbs: []string{"update"}, ResourceNames: []string{"a", "b"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}, ResourceNames: []string{"x\x1b[2K"}},
	}
	want := [][]string{
		{"RESOURCES", "VERBS", "NAMES"},
		{"pods, pods.apps", "get, list", "any"},
		{"deployments.apps/scale", "update", "a, b"},
		{"/metrics", "get", "any"},
		{"secrets", "*", `"x\x1b[2K"`},
	}
	if diff := cmp.Diff(want, RuleRows("", rules)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	signed := RuleRows("+ ", rules[:1])
	if diff := cmp.Diff([][]string{{"+ pods, pods.apps", "get, list", "any"}}, signed); diff != "" {
		t.Errorf("rows with a sign have no header: -want +got:\n%s", diff)
	}
	if rows := RuleRows("- ", nil); len(rows) != 0 {
		t.Errorf("no rules, no rows: %v", rows)
	}
	if rows := RuleRows("", nil); len(rows) != 1 {
		t.Errorf("no rules, the header alone: %v", rows)
	}
}

// TestQuoteControls checks which texts of a package are quoted.
func TestQuoteControls(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"a plain text stays", "ConfigMap site-a", "ConfigMap site-a"},
		{"an empty one stays", "", ""},
		{"letters of other scripts stay", "größe-日本", "größe-日本"},
		{"an escape sequence is quoted", "a\x1b[2K", `"a\x1b[2K"`},
		{"a second line is quoted", "a\nb", `"a\nb"`},
		{"a direction of text is quoted", "a\u202eb", `"a\u202eb"`},
		{"a text that is none is quoted", "a\xffb", `"a\xffb"`},
		{"a quotation mark is quoted, so that it does not look like that of a quoted text", `"a"`, `"\"a\""`},
	} {
		if got := QuoteControls(tc.text); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
		}
	}
}
