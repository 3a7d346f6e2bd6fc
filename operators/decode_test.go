package operators

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// readErrors reads a package that is wrong, and returns its errors.
func readErrors(t *testing.T, operator, params string, opts ...Option) []string {
	t.Helper()
	p, err := Read(pkg(operator, params), opts...)
	if err == nil {
		return nil
	}
	var errs Errors
	if !errors.As(err, &errs) || p != nil {
		t.Fatalf("error is %T %v, package %v", err, err, p)
	}
	return findings(errs)
}

// TestDecodeScalars checks which scalars a field takes by its type, and the message for all others.
func TestDecodeScalars(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, operator, params string
		want                     []string
	}{
		"TextMap":  {"a map is no text", "url: {a: b}\nname: x", "", []string{"operator.yaml:1: url: expected text, found a map"}},
		"TextList": {"a list is no text", "name: x\nurl: [a]", "", []string{"operator.yaml:2: url: expected text, found a list"}},
		"TextAny":  {"any scalar is text", "name: yes\nurl: 0x1F\ndescription: 2020-01-01", "", nil},
		"BoolText": {"quotes make text", "name: x\ntasks: [{spec: {done: 'true'}}]", "",
			[]string{"operator.yaml:2: tasks[0].spec.done: expected true or false, found text: remove the quotes"}},
		"BoolTextNo": {"other words of YAML have no hint when they are quoted", "name: x\ntasks: [{spec: {done: 'yes'}}]", "",
			[]string{`operator.yaml:2: tasks[0].spec.done: expected true or false, found "yes"`}},
		"BoolNumber": {"a number is no boolean", "name: x\ntasks: [{spec: {done: 1}}]", "",
			[]string{`operator.yaml:2: tasks[0].spec.done: expected true or false, found "1"`}},
		"BoolList": {"a list is no boolean", "name: x\ntasks: [{spec: {done: [true]}}]", "",
			[]string{"operator.yaml:2: tasks[0].spec.done: expected true or false, found a list"}},
		"BoolYes": {"words of YAML 1.1 are booleans", "name: x\ntasks: [{spec: {done: On, wantErr: n, fatal: TRUE}}]", "", nil},
		"NumberText": {"text is no number", "name: x", "groups: [{prio: '1'}]",
			[]string{`params.yaml:1: groups[0].prio: expected a whole number, found "1"`}},
		"NumberFloat": {"a fraction is no whole number", "name: x", "groups: [{prio: 1.5}]",
			[]string{`params.yaml:1: groups[0].prio: expected a whole number, found "1.5"`}},
		"NumberWhole": {"nor is a float that is whole", "name: x", "groups: [{prio: 1.0}]",
			[]string{`params.yaml:1: groups[0].prio: expected a whole number, found "1.0"`}},
		"NumberHuge": {"nor is one beyond int64", "name: x", "groups: [{prio: 9223372036854775808}]",
			[]string{`params.yaml:1: groups[0].prio: expected a whole number, found "9223372036854775808"`}},
		"Number32": {"a field of 32 bits has its own bound", "name: x", "parameters: [{name: A, maxLines: 2147483648}]",
			[]string{`params.yaml:1: parameters[0].maxLines: expected a whole number, found "2147483648"`}},
		"Number32Max": {"the bound itself is allowed", "name: x", "parameters: [{name: A, maxLines: 2147483647}]", nil},
		"NumberTag": {"a tag that does not fit", "name: x", "groups: [{prio: !!int x}]",
			[]string{`params.yaml:1: groups[0].prio: line 1: "x" is no value of type !!int`}},
		"Long": {"a long value is cut", "name: x\ntasks: [{spec: {done: " + strings.Repeat("x", 100) + "}}]", "",
			[]string{`operator.yaml:2: tasks[0].spec.done: expected true or false, found "` + strings.Repeat("x", 61) + `…"`}},
		"ListScalar": {"one value is no list", "name: x\ntasks: a", "", []string{`operator.yaml:2: tasks: expected a list, found "a"`}},
		"ListMap":    {"a map is no list", "name: x\ntasks: {a: b}", "", []string{"operator.yaml:2: tasks: expected a list, found a map"}},
		"MapScalar": {"one value is no map", "name: x\nplans: deploy", "",
			[]string{`operator.yaml:2: plans: expected a map, found "deploy"`}},
		"StructList": {"a list is no task", "name: x\ntasks: [[a]]", "", []string{"operator.yaml:2: tasks[0]: expected a map, found a list"}},
		"StructText": {"text is no phase", "name: x\nplans: {deploy: {phases: [main]}}", "",
			[]string{`operator.yaml:2: plans.deploy.phases[0]: expected a map, found "main"`}},
		"PointerText": {"text is no source", "name: x\ncrdTarball: url", "",
			[]string{`operator.yaml:2: crdTarball: expected a map, found "url"`}},
		"EnumScalar": {"one value is no enum", "name: x", "parameters: [{name: A, enum: a}]",
			[]string{`params.yaml:1: parameters[0].enum: expected a list, found "a"`}},
		"DefaultTag": {"a default whose tag does not fit", "name: x", "parameters:\n- name: A\n  default: !!int a",
			[]string{`params.yaml:3: parameters[0].default: line 3: "a" is no value of type !!int`}},
		"EnumTag": {"an allowed value whose tag does not fit", "name: x", "parameters:\n- name: A\n  enum: [a, !!bool b]",
			[]string{`params.yaml:3: parameters[0].enum[1]: line 3: "b" is no value of type !!bool`}},
		"RootText":   {"a file is a map", "name", "", []string{`operator.yaml:1: expected a map, found "name"`}},
		"RootParams": {"params.yaml as well", "name: x", "[a]", []string{"params.yaml:1: expected a map, found a list"}},
		"KeyMap":     {"a key is text", "name: x\n? {a: b}\n: c", "", []string{"operator.yaml:2: a key must be text, not a map"}},
		"KeyList": {"in maps of plans as well", "name: x\nplans:\n  ? [a]\n  : {}", "",
			[]string{"operator.yaml:3: plans: a key must be text, not a list"}},
		"MergeText": {"only maps can be merged", "name: x\nplans: {<<: a}", "",
			[]string{"operator.yaml:2: plans: << needs a map or a list of maps"}},
		"MergeListOf": {"or lists of maps", "name: x\nplans: {<<: [{a: {}}, b]}", "",
			[]string{"operator.yaml:2: plans: << needs a map or a list of maps"}},
		"UnknownDeep": {"errors below an alias have the line of the anchor", "x-a: &a {phases: b}\nname: x\nplans: {deploy: *a}", "",
			[]string{`operator.yaml:1: plans.deploy.phases: expected a list, found "b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, readErrors(t, tc.operator, tc.params)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDecodeNulls checks that a null leaves a field as it is, whatever its type is.
func TestDecodeNulls(t *testing.T) {
	p, err := Read(pkg("name: ~\nurl:\n"+
		"tasks: [~, {name: a, spec: ~}, {spec: {resources: [~, b], done: ~, pipe: ~}}]\n"+
		"plans: {deploy: ~, update: {phases: ~}}\ncrdTarball: ~\nmaintainers: ~",
		"groups: ~\nparameters: [~, {name: ~, required: ~, immutable: ~, enum: ~, maxLines: ~}]"))
	if err != nil {
		t.Fatal(err)
	}
	want := OperatorFile{Tasks: []v1beta1.Task{{}, {Name: "a"}, {Spec: v1beta1.TaskSpec{Resources: []string{"", "b"}}}},
		Plans: map[string]v1beta1.Plan{"deploy": {}, "update": {}}}
	if diff := cmp.Diff(want, p.Operator); diff != "" {
		t.Errorf("operator.yaml: -want +got:\n%s", diff)
	}
	yes, no := true, false
	plain := Parameter{Parameter: v1beta1.Parameter{Required: &yes, Immutable: &no}}
	if diff := cmp.Diff(ParamsFile{Parameters: []Parameter{plain, plain}}, p.Params); diff != "" {
		t.Errorf("params.yaml: -want +got:\n%s", diff)
	}
}

// TestDecodeMerges checks which entry counts when `<<` brings in others, and where a warning points.
func TestDecodeMerges(t *testing.T) {
	const anchors = "name: x\nx-a: &a {strategy: serial, phases: [{name: a}]}\nx-b: &b {strategy: parallel}\n"
	strategies := func(p *Package) string {
		plan := p.Operator.Plans["deploy"]
		return fmt.Sprintf("%s %d", plan.Strategy, len(plan.Phases))
	}
	for name, tc := range map[string]struct{ reason, plan, want string }{
		"One":    {"entries of the other map", "{<<: *a}", "serial 1"},
		"First":  {"the first of several maps wins", "{<<: [*b, *a]}", "parallel 1"},
		"Own":    {"the map itself wins, wherever its key stands", "{<<: *a, strategy: other}", "other 1"},
		"Before": {"also in front", "{strategy: other, <<: *a}", "other 1"},
		"Inline": {"a map in place", "{<<: {strategy: inline}}", "inline 0"},
		"Two":    {"two merges in one map", "{<<: *b, <<: *a}", "parallel 1"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Read(pkg(anchors+"plans: {deploy: "+tc.plan+"}", ""))
			if err != nil {
				t.Fatal(err)
			}
			if got := strategies(p); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
	p, err := Read(pkg("name: x\nx-a: &a {strategi: serial}\nplans: {deploy: {<<: *a}}", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"operator.yaml:2: x-a: unknown field, ignored",
		"operator.yaml:2: plans.deploy.strategi: unknown field, did you mean strategy?"}
	if diff := cmp.Diff(want, findings(p.Warnings)); diff != "" {
		t.Errorf("a merged field that is unknown has the line where it stands: -want +got:\n%s", diff)
	}
}

// TestDecodeUnknownFields checks which name is proposed for a field, and which field a name in another letter case is.
func TestDecodeUnknownFields(t *testing.T) {
	for name, tc := range map[string]struct{ reason, operator, want string }{
		"Near": {"one letter is missing", "maintainer: [{name: a}]",
			"operator.yaml:2: maintainer: unknown field, did you mean maintainers?"},
		"Far": {"nothing is near", "somethingElse: x", "operator.yaml:2: somethingElse: unknown field, ignored"},
		"Case": {"another letter case is the field", "OPERATORVERSION: 1.0.0",
			"operator.yaml:2: OPERATORVERSION: unknown field, taken for operatorVersion"},
		"Deep": {"in a list of maps", "tasks: [{nme: a}]", "operator.yaml:2: tasks[0].nme: unknown field, did you mean name?"},
		"Pipe": {"in a pipe", "tasks: [{spec: {pipe: [{files: a}]}}]",
			"operator.yaml:2: tasks[0].spec.pipe[0].files: unknown field, did you mean file?"},
		"Tarball": {"behind a pointer", "crdTarball: {httpSource: {uri: x}}",
			"operator.yaml:2: crdTarball.httpSource.uri: unknown field, did you mean url?"},
		"Number": {"a key that is a number", "1: x", "operator.yaml:2: 1: unknown field, ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Read(pkg("name: x\n"+tc.operator, ""))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want}, findings(p.Warnings)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]string{tc.want}, readErrors(t, "name: x\n"+tc.operator, "", WithStrict())); diff != "" {
				t.Errorf("%s: strict: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	p, err := Read(pkg("NAME: x\nOPERATORVERSION: 1.0.0", ""))
	if err != nil || p.Operator.Name != "x" || p.Operator.OperatorVersion != "1.0.0" {
		t.Errorf("the value of a field in another letter case counts: %+v, %v", p, err)
	}
}

// TestDecodeDuplicates checks that the last of duplicate keys counts, also in maps of free keys, and that each is named.
func TestDecodeDuplicates(t *testing.T) {
	p, err := Read(pkg("name: x\nplans:\n  a: {strategy: serial}\n  b: {}\n  a: {strategy: parallel}\n  a: {strategy: last}", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"operator.yaml:5: plans.a: the key stands in line 3 already, whose value is lost",
		"operator.yaml:6: plans.a: the key stands in line 5 already, whose value is lost",
	}
	if diff := cmp.Diff(want, findings(p.Warnings)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if p.Operator.Plans["a"].Strategy != "last" || len(p.Operator.Plans) != 2 {
		t.Errorf("got %+v", p.Operator.Plans)
	}
}

// TestDecodeLines checks the lines of fields, for findings that are made later.
func TestDecodeLines(t *testing.T) {
	p, err := Read(pkg("name: x\nplans:\n  deploy:\n    phases:\n    - name: a\n      steps:\n      - tasks:\n        - t\n",
		"\nparameters:\n- name: A\n  enum:\n  - a\n  - b\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		file, field string
		want        int
	}{
		{"operator.yaml", "name", 1}, {"operator.yaml", "plans", 3}, {"operator.yaml", "plans.deploy", 4},
		{"operator.yaml", "plans.deploy.phases[0]", 5},
		{"operator.yaml", "plans.deploy.phases[0].steps[0].tasks[0]", 8}, {"params.yaml", "parameters[0]", 3},
		{"params.yaml", "parameters[0].enum[1]", 6},
		{"operator.yaml", "url", 0}, {"operator.yaml", "plans.deploy.phases[1]", 0}, {"params.yaml", "name", 0}, {"other.yaml", "name", 0},
		{"operator.yaml", "", 0},
	} {
		if got := p.Line(tc.file, tc.field); got != tc.want {
			t.Errorf("%s %s: line %d, want %d", tc.file, tc.field, got, tc.want)
		}
	}
}

// TestDecodeValueBound checks where the bound on values is, that it is reported once, and that values beyond it do no harm.
func TestDecodeValueBound(t *testing.T) {
	// Each parameter has 1004 values: itself, its enum twice, as a pointer and as a list, 1000 values and its name.
	params := "parameters:\n- &p {name: A, enum: [" + strings.Repeat("x,", 1000) + "]}\n" + strings.Repeat("- *p\n", 199)
	want := []string{"params.yaml:2: parameters[199].enum[195]: more than 200000 values once aliases are expanded"}
	if diff := cmp.Diff(want, readErrors(t, "name: x", params)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
