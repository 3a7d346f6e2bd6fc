package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const root = "../.."

// TestPagesAreUpToDate: R36, the pages of docs/reference are what the sources give.
func TestPagesAreUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := run(root, dir); err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		want, err := os.ReadFile(filepath.Join(dir, p.file))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, "docs", "reference", p.file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("docs/reference/%s is out of date: run make generate (-want +got):\n%s", p.file, diff)
		}
	}
}

// TestP30HealthChecksAreUpToDate: the health checks for Argo CD are what the table of conditions gives.
func TestP30HealthChecksAreUpToDate(t *testing.T) {
	table, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Health) != 2 {
		t.Fatalf("%d health checks, want those of Instances and OperatorVersions", len(table.Health))
	}
	dir := t.TempDir()
	if err := writeHealthChecks(dir); err != nil {
		t.Fatal(err)
	}
	for _, h := range table.Health {
		want, err := os.ReadFile(filepath.Join(dir, healthFile(h.Kind)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, "docs", "examples", "gitops", healthFile(h.Kind)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is out of date: run make generate (-want +got):\n%s", healthFile(h.Kind), diff)
		}
	}
}

// TestP30HealthRules: a check that names what the engine does not set, or leaves out what it sets, is an error.
func TestP30HealthRules(t *testing.T) {
	table := conditionTable{
		Conditions: []conditionText{{Type: "Ready", Of: []string{"Instance"}}, {Type: "Stalled", Of: []string{"Instance", "OperatorVersion"}}, {Type: "Other", Of: []string{"OperatorVersion"}}},
		Reasons: []reasonText{{Reason: "Wrong", In: []string{"Instance Ready False"}, Permanent: true}, {Reason: "Late", In: []string{"Instance Ready False"}},
			{Reason: "Elsewhere", In: []string{"OperatorVersion Stalled True"}, Permanent: true}},
	}
	for reason, tc := range map[string]struct {
		rules   []healthRule
		ignored map[string]string
		want    string
	}{
		"all are used":                    {[]healthRule{{Condition: "Stalled", Health: "Degraded"}}, nil, ""},
		"one is ignored for a reason":     {nil, map[string]string{"Stalled": "why"}, ""},
		"one is left out":                 {nil, nil, "must either use condition Stalled or say why not"},
		"one is used and ignored":         {[]healthRule{{Condition: "Stalled", Health: "Degraded"}}, map[string]string{"Stalled": "why"}, "must either use condition Stalled or say why not"},
		"one of another kind is used":     {[]healthRule{{Absent: []string{"Stalled", "Other"}, Health: "Degraded"}}, nil, "names Other, which is no condition of it"},
		"one that does not exist is used": {[]healthRule{{Outdated: true, Except: "None", Health: "Progressing"}, {ConditionFalse: "Stalled", Health: "Healthy"}}, nil, "names None, which is no condition"},
		"a rule has no test":              {[]healthRule{{Condition: "Stalled", Health: "Degraded"}, {Health: "Healthy"}}, nil, "rule 2 of the health of Instance has 0 tests"},
		"a rule has two tests":            {[]healthRule{{Condition: "Stalled", Unready: true, Health: "Degraded"}}, nil, "rule 1 of the health of Instance has 2 tests"},
		"a state is not one of Argo CD":   {[]healthRule{{Condition: "Stalled", Health: "Bad"}}, nil, `the health "Bad"`},
	} {
		err := healthCheck{Kind: "Instance", Ready: "Ready", Rules: tc.rules, Ignored: tc.ignored}.check(table)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", reason, err, tc.want)
		}
	}
	if diff := cmp.Diff([]string{"Wrong"}, table.permanentReasons("Instance", "Ready")); diff != "" {
		t.Errorf("reasons that do not end by waiting: -want +got: %s", diff)
	}
}

// TestFieldsNeedDescriptions: R36, each field of each kind has a description, and one without is an error.
func TestFieldsNeedDescriptions(t *testing.T) {
	crds, err := readCRDs(filepath.Join(root, "manifests", "crds"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			fields, err := listFields(crd.Spec.Names.Kind, version.Schema.OpenAPIV3Schema)
			if err != nil {
				t.Error(err)
			}
			count += len(fields)
		}
	}
	if count < 300 {
		t.Errorf("only %d fields", count)
	}
	schema := &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"a": {Description: "A.", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"b": {Type: "string"}}}}},
		"c": {Description: "Either|or.", Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"x"`)}, {Raw: []byte(`"y"`)}}},
	}, Required: []string{"c"}}
	fields, err := listFields("Web", schema)
	if err == nil || !strings.Contains(err.Error(), "Web: field a[].b has no description") {
		t.Errorf("a field below a list: %v", err)
	}
	want := []field{{"a", "list of object", "A."}, {"a[].b", "string", ""}, {"c*", "string", `Either\|or. One of ` + "`x`, `y`."}}
	if diff := cmp.Diff(want, fields, cmp.AllowUnexported(field{})); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestTableIsComplete checks what the table of conditions and events must have.
func TestTableIsComplete(t *testing.T) {
	constants := []constant{
		{name: "ReasonDone", value: "Done", place: "a.go"}, {name: "EventBegun", value: "Begun", place: "a.go"},
		{name: "ReadyCondition", value: "Ready", place: "a.go"}, {name: "ReasonOther", value: "Other", typed: true},
	}
	full := func(change func(*conditionTable)) conditionTable {
		table := conditionTable{
			Conditions: []conditionText{{"Ready", []string{"Web"}, "It works."}},
			Reasons:    []reasonText{{"Done", []string{"Web Ready True"}, "It is done.", "Nothing.", "", false}},
			Events:     []eventText{{"Begun", []string{"Web"}, "Normal", "It has begun.", "Nothing."}},
		}
		change(&table)
		return table
	}
	for _, tc := range []struct {
		reason string
		table  conditionTable
		want   string
	}{
		{"all is there", full(func(*conditionTable) {}), ""},
		{"a reason of another type is none of a condition", full(func(c *conditionTable) {
			c.Reasons = append(c.Reasons, reasonText{"Other", []string{"x"}, "x", "Nothing.", "", false})
		}), "has the reason Other, which is no constant"},
		{"a constant without an entry", full(func(c *conditionTable) { c.Events = nil }), "no event Begun, which is constant EventBegun of a.go"},
		{"an entry twice", full(func(c *conditionTable) { c.Events = append(c.Events, c.Events[0]) }), "the event Begun twice"},
		{"an entry without a meaning", full(func(c *conditionTable) { c.Conditions[0].Meaning = "" }), "condition Ready lacks a field"},
		{"an entry without a remedy", full(func(c *conditionTable) { c.Reasons[0].Remedy = "" }), "reason Done lacks a field"},
		{"a remedy without a section", full(func(c *conditionTable) { c.Reasons[0].Remedy = "Wait." }), "reason Done has a remedy, and no section"},
	} {
		err := tc.table.check(constants)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// TestMeaning checks what a comment of a constant must be.
func TestMeaning(t *testing.T) {
	for _, tc := range []struct{ reason, doc, want string }{
		{"a sentence on two lines", "KeepAnnotation keeps\nan object.\n", "Keeps an object."},
		{"none", "", ""},
		{"of another name", "Keep keeps an object.", ""},
	} {
		got, err := meaning(constant{name: "KeepAnnotation", doc: tc.doc, place: "a.go"})
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %v", tc.reason, got, err)
		}
	}
}

// TestManagerFlags checks how the help of the manager is read.
func TestManagerFlags(t *testing.T) {
	help := "Usage of manager:\n  -cert string\n    \tfolder of the\n    \tcertificate (default \"/tmp/cert\")\n  -elect\n    \tlet several run (default true)\n" +
		"  -n int\ta number (default 12)\n"
	var got [][]string
	for _, m := range managerFlag.FindAllStringSubmatch(help, -1) {
		text, value := cell(m[3]), ""
		if parts := managerDefault.FindStringSubmatch(text); parts != nil {
			text, value = parts[1], parts[2]
		}
		got = append(got, []string{m[1], m[2], text, value})
	}
	want := [][]string{{"cert", "string", "folder of the certificate", "/tmp/cert"}, {"elect", "", "let several run", "true"},
		{"n", "int", "a number", "12"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestTroubleshooting: R36, a person on call finds each reason in docs/troubleshooting.md: in the section that the table of conditions
// names, or for one that needs nothing anywhere on the page.
func TestTroubleshooting(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{"": string(text)}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections[strings.ReplaceAll(strings.ToLower(title), " ", "-")] = body
	}
	for _, r := range table.Reasons {
		if body, ok := sections[r.Section]; !ok {
			t.Errorf("docs/troubleshooting.md has no section #%s, which conditions.yaml names for the reason %s", r.Section, r.Reason)
		} else if !strings.Contains(body, "`"+r.Reason+"`") {
			t.Errorf("docs/troubleshooting.md#%s does not name the reason %s", r.Section, r.Reason)
		}
	}
}
