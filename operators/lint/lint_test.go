package lint

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/operators"
)

// files are those of a package. Without an operator.yaml or params.yaml it has plain ones.
type files map[string]string

const plainOperator = `name: x
operatorVersion: 1.0.0
kubernetesVersion: 1.25.0
tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml]}}]
plans:
  deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [a]}]}]}
`

const plainObject = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"

const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x}\n"

func (f files) read(t testing.TB) *operators.Package {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range (files{"operator.yaml": plainOperator, "params.yaml": "", "templates/a.yaml": plainObject}) {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name, text := range f {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	pkg, err := operators.Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func lines(found Findings) []string {
	var all []string
	for _, f := range found.Errors {
		all = append(all, "E "+f.String())
	}
	for _, f := range found.Warnings {
		all = append(all, "W "+f.String())
	}
	return all
}

// operator is the plain operator.yaml with a task of its own, which deploy uses.
func operator(task string) string {
	return strings.Replace(plainOperator, "tasks: [{name: a, kind: Apply, spec: {resources: [a.yaml]}}]",
		"tasks:\n- {name: a, kind: Apply, spec: {resources: [a.yaml]}}\n- "+task, 1)
}

func used(task string) string {
	return strings.Replace(operator(task), "tasks: [a]", "tasks: [a, b]", 1)
}

// data is an object whose data is a template.
func data(template string) string { return plainObject + "data:\n  x: |-\n    " + template + "\n" }

type lintCase struct {
	reason string
	files  files
	want   []string
}

func run(t *testing.T, cases map[string]lintCase, more ...Linter) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lines(Lint(tc.files.read(t), more...))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOperator(t *testing.T) {
	plans := func(text string) string { return plainOperator[:strings.Index(plainOperator, "plans:")] + text }
	run(t, map[string]lintCase{
		"Plain":         {"nothing is wrong", files{}, nil},
		"Reading":       {"what reading ignored is a warning", files{"operator.yaml": plainOperator + "descripton: x\n"}, []string{"W operator.yaml:7: descripton: unknown field, did you mean description?"}},
		"Name":          {"names must be names in Kubernetes", files{"operator.yaml": strings.Replace(plainOperator, "name: x", "name: X_", 1)}, []string{`E operator.yaml:1: name: "X_" cannot name an object: use lower case letters, digits, - and .`}},
		"NoVersions":    {"two versions are required", files{"operator.yaml": strings.Replace(strings.Replace(plainOperator, "operatorVersion: 1.0.0\n", "", 1), "kubernetesVersion: 1.25.0\n", "", 1)}, []string{`E operator.yaml: "operatorVersion" is required and must be semver`, `E operator.yaml: "kubernetesVersion" is required and must be semver`}},
		"OddVersions":   {"the others must be semver if given", files{"operator.yaml": plainOperator + "appVersion: latest\nkudoVersion: a.b\n"}, []string{`E operator.yaml:7: unable to parse "appVersion": "latest" is not semver`, `E operator.yaml:8: unable to parse "kudoVersion": "a.b" is not semver`}},
		"ShortVersion":  {"5.7 is a version", files{"operator.yaml": plainOperator + "appVersion: 5.7\n"}, nil},
		"NoResources":   {"an Apply needs templates", files{"operator.yaml": used("{name: b, kind: Apply}")}, []string{`E operator.yaml:6: task validation error: task "b": a task of kind Apply needs at least one template`}},
		"UnknownKind":   {"kinds exist", files{"operator.yaml": used("{name: b, kind: Aply}")}, []string{`E operator.yaml:6: task validation error: task "b": there is no kind "Aply": did you mean Apply?`}},
		"NoSwitch":      {"a dependency is switched by a parameter", files{"operator.yaml": used("{name: b, kind: KudoOperator, spec: {package: c, operatorVersion: 1.0.0, enablingParameter: WITH_C}}")}, []string{`E operator.yaml:6: parameter "WITH_C" in KudoOperatorTask b is not defined`}},
		"NoParameter":   {"a Toggle needs a parameter", files{"operator.yaml": used("{name: b, kind: Toggle, spec: {resources: [a.yaml]}}")}, []string{`E operator.yaml:6: task validation error: task "b": a Toggle needs the name of the parameter that selects`}},
		"NoPackage":     {"a KudoOperator needs a package", files{"operator.yaml": used("{name: b, kind: KudoOperator}")}, []string{`E operator.yaml:6: task validation error: task "b": a KudoOperator task needs the package to install`}},
		"NoDependency":  {"dependencies are not resolved", files{"operator.yaml": used("{name: b, kind: KudoOperator, spec: {package: nowhere}}")}, nil},
		"BadPipe":       {"pipes have a kind and a key", files{"operator.yaml": used("{name: b, kind: Pipe, spec: {pod: a.yaml, pipe: [{file: /x, kind: Pod, key: 'a b'}]}}")}, []string{`E operator.yaml:6: task validation error: task "b": there is no kind of pipe "Pod": use Secret or ConfigMap`, `E operator.yaml:6: task validation error: task "b": "a b" is no key: use letters, digits, _ and -`}},
		"Endless":       {"a Dummy without done holds its plan", files{"operator.yaml": used("{name: b, kind: Dummy, spec: {done: false}}")}, []string{`W operator.yaml:6: task "b" is a Dummy that is never done: its plan stays in progress until another one is asked for or it is cancelled`}},
		"Done":          {"one with done does not", files{"operator.yaml": used("{name: b, kind: Dummy, spec: {done: true}}")}, nil},
		"NoTask":        {"steps name tasks that exist", files{"operator.yaml": strings.Replace(plainOperator, "tasks: [a]", "tasks: [a, bb]", 1)}, []string{`E operator.yaml:6: task "bb" in plan "deploy" is not defined`}},
		"TwoTasks":      {"the first of two tasks is run", files{"operator.yaml": operator("{name: a, kind: Dummy, spec: {done: true}}")}, []string{`W operator.yaml:6: task "a" is never run: an earlier task has the same name`}},
		"UnusedTask":    {"tasks are for steps", files{"operator.yaml": operator("{name: b, kind: Dummy, spec: {done: true}}")}, []string{`W operator.yaml:6: task "b" defined but not used`}},
		"NoDeploy":      {"deploy makes an Instance", files{"operator.yaml": plans("plans: {depoy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [a]}]}]}}")}, []string{`E operator.yaml:5: an operator is required to have 'deploy' plan`}},
		"NoStrategy":    {"an omitted strategy is parallel", files{"operator.yaml": plans("plans: {deploy: {phases: [{name: p, steps: [{name: s, tasks: [a]}]}]}}")}, []string{`W operator.yaml:5: plan "deploy" has no strategy, which means parallel: say serial or parallel`, `W operator.yaml:5: phase "p" of plan "deploy" has no strategy, which means parallel: say serial or parallel`}},
		"OddStrategy":   {"so is one that does not exist", files{"operator.yaml": strings.Replace(plainOperator, "{strategy: serial, phases", "{strategy: Serial, phases", 1)}, []string{`W operator.yaml:6: plan "deploy" has the unknown strategy "Serial", which means parallel: say serial or parallel`}},
		"Trigger":       {"triggers are plans", files{"params.yaml": "parameters:\n- {name: A, trigger: depoy}\n"}, []string{`E params.yaml:2: plan "depoy" used in parameter "A" is not defined, did you mean deploy?`}},
		"UnknownToggle": {"the parameter of a Toggle exists", files{"operator.yaml": used("{name: b, kind: Toggle, spec: {resources: [a.yaml], parameter: ON}}")}, []string{`E operator.yaml:6: parameter "ON" in ToggleTask b is not defined`}},
		"Toggle":        {"a Toggle uses its parameter", files{"operator.yaml": used("{name: b, kind: Toggle, spec: {resources: [a.yaml], parameter: ON}}"), "params.yaml": "parameters: [{name: ON, default: true}]"}, nil},
	})
}

func TestParameters(t *testing.T) {
	params := func(text string) files {
		return files{"params.yaml": "parameters:\n- " + text + "\n", "templates/a.yaml": data("{{ .Params.A }}")}
	}
	run(t, map[string]lintCase{
		"Duplicate":      {"letter case does not matter", params("{name: A, default: 1}\n- {name: a, default: 1, trigger: deploy}"), []string{`E params.yaml:3: parameter "a" has a duplicate`}},
		"Characters":     {"lists of parameters use these", params("{name: A, default: 1}\n- {name: 'b,;', trigger: deploy}"), []string{`E params.yaml:3: parameter "b,;" contains invalid character ';'`, `E params.yaml:3: parameter "b,;" contains invalid character ','`}},
		"Unused":         {"a parameter is for something", params("{name: A, default: 1}\n- {name: B}"), []string{`W params.yaml:3: parameter "B" defined but not used.`}},
		"Immutable":      {"one without a value could never get one", params("{name: A, immutable: true, required: false}"), []string{`E params.yaml:2: parameter "A" is immutable but is not marked as required or has a default value`}},
		"ImmutableRight": {"required is enough", params("{name: A, immutable: true}"), nil},
		"Type":           {"types exist", params("{name: A, type: int, default: 1}"), []string{`W params.yaml:2: parameter "A" has the unknown type "int", which counts as string: use string, integer, number, boolean, array, map`}},
		"Integer":        {"integers need no quotes", params("{name: A, type: integer, default: 1}"), nil},
		"NoInteger":      {"defaults have their type", params("{name: A, type: integer, default: x}"), []string{`E params.yaml:2: parameter "A" has the value "x", which is not of type integer: correct the default in params.yaml`}},
		"EnumEmpty":      {"no value would be allowed", params("{name: A, enum: [], default: 1}"), []string{`E params.yaml:2: parameter "A" has an enum without values`}},
		"EnumType":       {"allowed values have the type", params("{name: A, type: integer, enum: [1, x], default: 1}"), []string{`E params.yaml:2: parameter "A" has the value "x", which is not of type integer: correct the enum in params.yaml`}},
		"Bounds":         {"texts may be bounded", params("{name: A, pattern: '[a-z]+', maxLines: 1, enum: [a, b], default: b}"), nil},
		"PatternSyntax":  {"RE2 has no look-ahead", params("{name: A, pattern: '(?=a)', default: 1}"), []string{"E params.yaml:2: parameter \"A\" has a pattern that cannot be used: error parsing regexp: invalid or unsupported Perl syntax: `(?=`: write a regular expression of RE2, see https://github.com/google/re2/wiki/Syntax"}},
		"PatternType":    {"numbers have no pattern", params("{name: A, type: integer, pattern: '1', default: 1}"), []string{`E params.yaml:2: parameter "A" has a pattern, but its type is integer: a pattern is for type string: remove one of the two`}},
		"PatternDefault": {"the default matches", params("{name: A, pattern: '[a-z]', default: ab}"), []string{`E params.yaml:2: parameter "A" has the value "ab", which does not match the pattern [a-z]: correct the default in params.yaml`}},
		"PatternEnum":    {"allowed values match", params("{name: A, pattern: '[a-z]', enum: [a, B], default: a}"), []string{`E params.yaml:2: parameter "A" has the value "B", which does not match the pattern [a-z]: correct the enum in params.yaml`}},
		"MaxLinesZero":   {"a value has a line", params("{name: A, maxLines: 0, default: 1}"), []string{`E params.yaml:2: parameter "A" has maxLines 0, which is less than 1: write 1 for a single line`}},
		"LinesEnum":      {"allowed values have few lines", params(`{name: A, maxLines: 1, enum: [a, "a\nb"], default: a}`), []string{`E params.yaml:2: parameter "A" has a value of more than one line: correct the enum in params.yaml`}},
		"EnumDefault":    {"the default is allowed", params("{name: A, enum: [a, b], default: c}"), []string{`E params.yaml:2: parameter "A" has the value "c", which is not allowed: correct the default in params.yaml`}},
		"NoGroup":        {"groups are declared", params("{name: A, default: 1, group: ap}\ngroups: [{name: app}, {name: app}, {name: a/b}]"), []string{`E params.yaml:3: parameter group "app" has a duplicate`, `E params.yaml:3: parameter group "a/b" contains invalid character '/'`, `E params.yaml:2: parameter group "ap" of parameter "A" is not declared, did you mean app?`}},
		"GroupPath":      {"groups are path elements", params("{name: A, default: 1, group: a/b}"), []string{`E params.yaml:2: parameter group "a/b" of parameter "A" contains invalid character '/'`}},
		"Sensitive":      {"a default is no secret", params("{name: A, sensitive: true, default: x}"), []string{`W params.yaml:2: parameter "A" is sensitive, and has a default, which is no secret: remove it`}},
		"Advanced":       {"experts' parameters have defaults", params("{name: A, advanced: true}"), []string{`E params.yaml:2: parameter "A" is advanced and required, but has no default: users would have to set it`}},
	})
}

func TestTemplates(t *testing.T) {
	manifest := plainOperator + "namespaceManifest: n.yaml\n"
	pipe := used("{name: b, kind: Pipe, spec: {pod: pod.yaml, pipe: [{file: /x, kind: Secret, key: cert}]}}")
	child := used("{name: b, kind: KudoOperator, spec: {package: c, parameterFile: p.yaml}}")
	run(t, map[string]lintCase{
		"Parse":           {"parse errors have a line", files{"templates/a.yaml": plainObject + "{{ if }}{{ end }}"}, []string{`E templates/a.yaml:4: template file "a.yaml" reports the following error: missing value for if`}},
		"Function":        {"functions exist", files{"templates/a.yaml": data("{{ qoute .Name }}")}, []string{`E templates/a.yaml:6: template file "a.yaml" reports the following error: there is no function "qoute"; did you mean quote?`}},
		"Denied":          {"functions are allowed", files{"templates/a.yaml": data("{{ now }}")}, []string{`E templates/a.yaml:6: template file "a.yaml" reports the following error: the function now is denied in kudo: it reads the clock, so that objects would change with every run; pass the value as a parameter`}},
		"Missing":         {"templates exist", files{"operator.yaml": used("{name: b, kind: Apply, spec: {resources: [b.yaml]}}")}, []string{`E operator.yaml:6: template "b.yaml" required by b but is not defined, did you mean a.yaml?`}},
		"MissingPod":      {"pods too, once", files{"operator.yaml": used("{name: b, kind: Pipe, spec: {pod: podd.yaml, pipe: [{file: /x, kind: Secret, key: k}]}}")}, []string{`E operator.yaml:6: template "podd.yaml" required by b but is not defined`}},
		"HelpersComments": {"files of definitions are for templates, with comments above them too", files{"templates/_h.yaml": "# Names.\n{{- /* of all */}}\n{{ define \"x\" }}a{{ end }}\n"}, nil},
		"Unreferenced":    {"templates are for tasks", files{"templates/b.yaml": plainObject}, []string{`W templates/b.yaml: template "b.yaml" is not referenced from any task`}},
		"Helpers":         {"definitions are for templates", files{"templates/_h.yaml": "{{/* h */}}\n{{ define \"h\" }}x{{ end }}\n"}, nil},
		"Included":        {"a file may be used by another", files{"templates/a.yaml": data(`{{ include "b.yaml" . }}`), "templates/b.yaml": "{{ .Name }}"}, nil},
		"IncludedDict":    {"with a dot of its own, even by one that no task names", files{"templates/b.yaml": "{{ .root.Name }}", "templates/c.yaml": `{{ include "b.yaml" (dict "root" .) }}`}, []string{`W templates/c.yaml: template "c.yaml" is not referenced from any task`}},
		"Fails":           {"templates render with the defaults", files{"templates/a.yaml": data(`{{ required "give A" "" }}`)}, []string{`E templates/a.yaml:6: rendering template "a.yaml" with the defaults failed: at <required "give A" "">: error calling required: give A`}},
		"FromBranch":      {"G5: also from a version before, said once", files{"templates/a.yaml": data(`{{ if .From.AppVersion }}{{ fail "x" }}{{ end }}{{ if .From.OperatorVersion }}{{ fail "x" }}{{ end }}`)}, []string{`E templates/a.yaml:6: rendering template "a.yaml" with the defaults failed: at <fail "x">: error calling fail: x`}},
		"FromTwice":       {"G5: and what fails anyhow is said once", files{"templates/a.yaml": data(`{{ fail "x" }}{{ .From.AppVersion }}`)}, []string{`E templates/a.yaml:6: rendering template "a.yaml" with the defaults failed: at <fail "x">: error calling fail: x`}},
		"NoObject":        {"to objects", files{"templates/a.yaml": "a: b\n"}, []string{`E templates/a.yaml: rendering template "a.yaml" with the defaults failed: template a.yaml, line 1 of what it renders to: document 1: has no apiVersion and no kind`}},
		"Demands":         {"a template may demand a parameter that is empty by default", files{"params.yaml": "parameters: [{name: A, default: '', required: false}]", "templates/a.yaml": plainObject + "data: {a: {{ required \"give A\" .Params.A | quote }}}"}, nil},
		"MadeUp":          {"what must be given is made up, and may be wrong", files{"params.yaml": "parameters: [{name: A}]", "templates/a.yaml": plainObject + "data: {{ .Params.A }}\n{{ fail .Params.A }}"}, []string{`W templates/a.yaml:5: rendering template "a.yaml" with the defaults failed: at <fail .Params.A>: error calling fail: sample (with made-up values for A)`}},
		"KeyTwice":        {"duplicate keys are surely mistakes", files{"templates/a.yaml": plainObject + "data: {a: b, a: c}\n"}, []string{`W templates/a.yaml: line 4 of what a.yaml renders to: data.a is a duplicate of line 4, whose value is lost`}},
		"ParameterFile":   {"parameter files are no objects", files{"operator.yaml": child, "templates/p.yaml": "A: 1\n"}, nil},
		"NoParameters":    {"but maps", files{"operator.yaml": child, "templates/p.yaml": "[1]\n"}, []string{`E templates/p.yaml: rendering template "p.yaml" with the defaults failed: template p.yaml: reading parameters: line 1: expected a map of names to values, like ` + "`REPLICAS: 3`" + `; quote values that may be empty, like X: "{{ .Params.X }}"`}},
		"PipePod":         {"pods of pipes have no name, and the keys of pipes are known in all plans", files{"operator.yaml": pipe, "templates/pod.yaml": "apiVersion: v1\nkind: Pod\nspec: {}\n", "templates/a.yaml": data("{{ .Pipes.cert }}")}, nil},
		"NoPipe":          {"other keys are not", files{"operator.yaml": pipe, "templates/pod.yaml": "apiVersion: v1\nkind: Pod\nspec: {}\n", "templates/a.yaml": data("{{ .Pipes.crt }}")}, []string{`E templates/a.yaml:6: pipe "crt" in template a.yaml is not defined, did you mean cert?`}},
		"Namespace":       {"plans make no namespaces, not even at times", files{"templates/a.yaml": plainObject + "{{ if false }}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n{{ end }}"}, []string{`E templates/a.yaml:7: template "a.yaml" contains a Namespace: only the template that namespaceManifest names may`}},
		"NamespaceText":   {"what only looks like one is none", files{"templates/a.yaml": plainObject + "data:\n  x: |\n    kind: Namespace\n"}, nil},
		"Claim":           {"data is kept, or is not on purpose", files{"templates/a.yaml": claim + "---\n" + strings.ReplaceAll(claim, "x}", "z}")}, []string{`W templates/a.yaml: PersistentVolumeClaim x is deleted with the Instance, and its data with it: add the annotation kudo.dev/keep: "true" to keep it, or "false" if that is meant`}},
		"ClaimKept":       {"data that is kept", files{"templates/a.yaml": strings.ReplaceAll(claim, "x}", `x, annotations: {kudo.dev/keep: "true"}}`)}, nil},
		"ClaimOfHelm":     {"data that is kept by the annotation of Helm", files{"templates/a.yaml": strings.ReplaceAll(claim, "x}", "x, annotations: {helm.sh/resource-policy: keep}}")}, nil},
		"ClaimDeleted":    {"data that is deleted on purpose", files{"templates/a.yaml": strings.ReplaceAll(claim, "x}", `x, annotations: {kudo.dev/keep: "false"}}`)}, nil},
		"Dependencies":    {"C63: a wrong value of the annotation ends a plan", files{"templates/a.yaml": strings.ReplaceAll(claim, "x}", `x, annotations: {kudo.dev/keep: "true", kudo.dev/dependencies: wait}}`)}, []string{`E templates/a.yaml: PersistentVolumeClaim x: annotation kudo.dev/dependencies is "wait": use await or refuse, or remove the annotation`}},
		"DependenciesSet": {"a right value does not", files{"templates/a.yaml": strings.ReplaceAll(claim, "x}", `x, annotations: {kudo.dev/keep: "true", kudo.dev/dependencies: refuse}}`)}, nil},
		"Manifest":        {"the manifest holds a namespace, without a name", files{"operator.yaml": manifest, "templates/n.yaml": "apiVersion: v1\nkind: Namespace\n"}, nil},
		"NoManifest":      {"the manifest exists", files{"operator.yaml": manifest}, []string{`E operator.yaml:7: template "n.yaml" required by namespaceManifest but is not defined, did you mean a.yaml?`}},
		"TwoInManifest":   {"the manifest holds nothing else", files{"operator.yaml": manifest, "templates/n.yaml": plainObject}, []string{`E operator.yaml:7: namespaceManifest "n.yaml" must hold exactly one object of kind Namespace, and nothing else`}},
	})
}

func TestParamChecks(t *testing.T) {
	const wrong = `groups: [{name: g}]
parameters:
- {name: A, default: 1, trigger: deploy}
- {name: B, default: 1, trigger: deploy, displayName: "b:", hint: x, description: x, type: string, group: g}
- {name: C, default: 1, trigger: deploy, displayName: Cc, hint: X., description: (1 is fine), type: string, group: g}
`
	for check, want := range map[string][]string{
		"display":  {`W params.yaml:3: parameter "A" has no displayName`, `W params.yaml:4: parameter "B" has a displayName that ends with ':'`, `W params.yaml:4: parameter "B" has a displayName that does not begin with a capital letter`},
		"hint":     {`W params.yaml:3: parameter "A" has no hint`, `W params.yaml:4: parameter "B" has a hint that does not end with '.'`},
		"desc":     {`W params.yaml:3: parameter "A" has no description`, `W params.yaml:4: parameter "B" has a description that does not end with one of '.!?)'`, `W params.yaml:4: parameter "B" has a description that does not begin with a capital letter`},
		"type":     {`W params.yaml:3: parameter "A" has no type`},
		"hasgroup": {`W params.yaml:3: parameter "A" has no group`},
		"groups":   {`W params.yaml:1: parameter group "g" has no displayName`, `W params.yaml:1: parameter group "g" has no description`},
	} {
		chain, err := ParamChecks(check)
		if err != nil {
			t.Fatal(err)
		}
		run(t, map[string]lintCase{check: {"asked for alone", files{"params.yaml": wrong}, want}}, chain...)
	}
	all, err := ParamChecks("all")
	if err != nil || len(all) != len(ParamCheckNames())-1 {
		t.Errorf("all is all: %d, %v", len(all), err)
	}
	if _, err := ParamChecks("tpye"); err == nil {
		t.Error("checks that do not exist are refused")
	}
}

// large is a package of many parameters, each used by a template.
func large(parameters, templates int) files {
	f := files{}
	var params, resources strings.Builder
	params.WriteString("parameters:\n")
	for i := range parameters {
		fmt.Fprintf(&params, "- name: P%d\n  displayName: P\n  description: A parameter.\n  type: integer\n  default: %d\n", i, i)
	}
	for i := range templates {
		var text strings.Builder
		text.WriteString(plainObject + "data:\n")
		for p := i; p < parameters; p += 3 {
			fmt.Fprintf(&text, "{{- if ne .Params.P%d \"\" }}\n  k%d: {{ include \"h\" (dict \"root\" $ \"v\" .Params.P%d) | quote }}\n{{- end }}\n", p, p, p)
		}
		f[fmt.Sprintf("templates/t%d.yaml", i)] = text.String()
		fmt.Fprintf(&resources, ", t%d.yaml", i)
	}
	f["templates/_h.yaml"] = `{{ define "h" }}{{ .root.Name }}-{{ .v }}{{ end }}`
	f["params.yaml"] = params.String()
	f["operator.yaml"] = strings.Replace(plainOperator, "[a.yaml]", "[a.yaml"+resources.String()+"]", 1)
	return f
}

func TestLargePackage(t *testing.T) {
	run(t, map[string]lintCase{"Large": {"nothing is wrong with many parameters", large(250, 25), nil}})
}

// BenchmarkLint reads and checks a package of 250 parameters, which must stay below 200 ms.
func BenchmarkLint(b *testing.B) {
	f := large(250, 25)
	for b.Loop() {
		if !Lint(f.read(b)).Valid() {
			b.Fatal("not valid")
		}
	}
}
