package operators

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// tree makes a file system of paths and texts.
func tree(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// pkg is a tree with operator.yaml and params.yaml.
func pkg(operator, params string) fstest.MapFS {
	return tree(map[string]string{"operator.yaml": operator, "params.yaml": params})
}

func findings(list []Finding) []string {
	var texts []string
	for _, f := range list {
		texts = append(texts, f.String())
	}
	return texts
}

func TestReadOperator(t *testing.T) {
	p, err := Read(pkg(`
apiVersion: kudo.dev/v1beta1
name: my-op
description: 1.0
operatorVersion: 1.10
appVersion: 5.7
kudoVersion: 0.19.0
kubernetesVersion: 1.20
url: https://example.org
namespaceManifest: ns.yaml
maintainers: [{name: A, email: <a@b.c>}]
tasks:
- name: deploy
  kind: Apply
  spec: {resources: [a.yaml, b/c.yaml]}
- name: pipe
  kind: Pipe
  spec: {pod: pod.yaml, pipe: [{file: /tmp/x, kind: Secret, key: k}]}
- name: dummy
  kind: Dummy
  spec: {done: true, wantErr: no, resources: }
- name: child
  kind: KudoOperator
  spec: {package: ./child, operatorVersion: 0.10, parameterFile: p.yaml}
plans:
  deploy:
    strategy: serial
    phases:
    - name: main
      strategy: parallel
      steps: [{name: all, tasks: [deploy, 8080]}]
  empty:
`, "parameters:\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := OperatorFile{
		APIVersion: APIVersion, Name: "my-op", Description: "1.0", OperatorVersion: "1.10", AppVersion: "5.7", KudoVersion: "0.19.0",
		KubernetesVersion: "1.20", URL: "https://example.org", NamespaceManifest: "ns.yaml",
		Maintainers: []v1beta1.Maintainer{{Name: "A", Email: "<a@b.c>"}},
		Tasks: []v1beta1.Task{
			{Name: "deploy", Kind: "Apply", Spec: v1beta1.TaskSpec{Resources: []string{"a.yaml", "b/c.yaml"}}},
			{Name: "pipe", Kind: "Pipe", Spec: v1beta1.TaskSpec{Pod: "pod.yaml", Pipe: []v1beta1.PipeSpec{{File: "/tmp/x", Kind: "Secret", Key: "k"}}}},
			{Name: "dummy", Kind: "Dummy", Spec: v1beta1.TaskSpec{Done: true}},
			{Name: "child", Kind: "KudoOperator", Spec: v1beta1.TaskSpec{Package: "./child", OperatorVersion: "0.10", ParameterFile: "p.yaml"}},
		},
		Plans: map[string]v1beta1.Plan{
			"deploy": {Strategy: "serial", Phases: []v1beta1.Phase{{Name: "main", Strategy: "parallel", Steps: []v1beta1.Step{{Name: "all", Tasks: []string{"deploy", "8080"}}}}}},
			"empty":  {},
		},
	}
	if diff := cmp.Diff(want, p.Operator); diff != "" {
		t.Errorf("rule 8: versions may be unquoted numbers and are the text as written: -want +got:\n%s", diff)
	}
	if len(p.Warnings) > 0 {
		t.Errorf("no warnings: %v", p.Warnings)
	}
	if line := p.Line("operator.yaml", "tasks[0].spec.resources[1]"); line != 15 {
		t.Errorf("fields know their line: %d", line)
	}
}

func TestReadParameters(t *testing.T) {
	yes, no := true, false
	two := int32(2)
	text := func(s string) *string { return &s }
	for name, tc := range map[string]struct {
		reason, yaml string
		want         Parameter
	}{
		"Defaults":   {"rule 7: required unless said otherwise, not immutable", "name: A", Parameter{Parameter: v1beta1.Parameter{Name: "A", Required: &yes, Immutable: &no}}},
		"Optional":   {"not required", "{name: A, required: false, immutable: true}", Parameter{Parameter: v1beta1.Parameter{Name: "A", Required: &no, Immutable: &yes}}},
		"NameY":      {"a name is text", "name: Y", Parameter{Parameter: v1beta1.Parameter{Name: "Y", Required: &yes, Immutable: &no}}},
		"Int":        {"integers are exact", "{name: A, type: integer, default: 1000000}", Parameter{Parameter: v1beta1.Parameter{Name: "A", Type: "integer", Default: text("1000000"), Required: &yes, Immutable: &no}}},
		"Float":      {"floats as written", "{name: A, default: 1.10}", Parameter{Parameter: v1beta1.Parameter{Name: "A", Default: text("1.10"), Required: &yes, Immutable: &no}}},
		"Bool":       {"booleans have one spelling", "{name: A, default: yes}", Parameter{Parameter: v1beta1.Parameter{Name: "A", Default: text("true"), Required: &yes, Immutable: &no}}},
		"Null":       {"null is no default", "{name: A, default: null}", Parameter{Parameter: v1beta1.Parameter{Name: "A", Required: &yes, Immutable: &no}}},
		"Empty":      {"the empty text is one", `{name: A, default: ""}`, Parameter{Parameter: v1beta1.Parameter{Name: "A", Default: text(""), Required: &yes, Immutable: &no}}},
		"Array":      {"arrays are YAML", "{name: A, type: array, default: [80, 12345678, x]}", Parameter{Parameter: v1beta1.Parameter{Name: "A", Type: "array", Default: text("- 80\n- 12345678\n- x\n"), Required: &yes, Immutable: &no}}},
		"Map":        {"maps are YAML with sorted keys", "{name: A, type: map, default: {b: 1, a: {c: 'yes'}}}", Parameter{Parameter: v1beta1.Parameter{Name: "A", Type: "map", Default: text("a:\n  c: \"yes\"\nb: 1\n"), Required: &yes, Immutable: &no}}},
		"Enum":       {"enums are text", "{name: A, enum: [1, 2.50, true, x], default: 1}", Parameter{Parameter: v1beta1.Parameter{Name: "A", Enum: &[]string{"1", "2.50", "true", "x"}, Default: text("1"), Required: &yes, Immutable: &no}}},
		"Bounds":     {"texts may be bounded", "{name: A, pattern: '[a-z]+', maxLines: 2}", Parameter{Parameter: v1beta1.Parameter{Name: "A", Pattern: "[a-z]+", MaxLines: &two, Required: &yes, Immutable: &no}}},
		"EnumEmpty":  {"an empty enum is one", "{name: A, enum: []}", Parameter{Parameter: v1beta1.Parameter{Name: "A", Enum: &[]string{}, Required: &yes, Immutable: &no}}},
		"Display":    {"fields of the package only", "{name: A, displayName: a, description: b, trigger: c, group: d, advanced: true, hint: e}", Parameter{Parameter: v1beta1.Parameter{Name: "A", DisplayName: "a", Description: "b", Trigger: "c", Required: &yes, Immutable: &no}, Group: "d", Advanced: true, Hint: "e"}},
		"LetterCase": {"KUDO did not distinguish upper and lower case", "{Name: A, displayname: a}", Parameter{Parameter: v1beta1.Parameter{Name: "A", DisplayName: "a", Required: &yes, Immutable: &no}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Read(pkg("name: x", "groups: [{name: d, prio: 10}]\nparameters:\n- "+tc.yaml+"\n"))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff([]Parameter{tc.want}, p.Params.Parameters); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if p.Params.Groups[0].Priority != 10 {
				t.Error("groups have a priority")
			}
		})
	}
}

func TestReadWarnings(t *testing.T) {
	fsys := pkg("name: x\nnam: y\nname: z\ntasks:\n- name: a\n  kind: Dummy\n  spec: {done: true, resource: [a]}\nplans:\n  deploy:\n    stategy: serial\n",
		"parameters:\n- name: A\n  desribtion: hm\n  DEFAULT: 1\n  something: else\n")
	want := []string{
		"operator.yaml:3: name: the key stands in line 1 already, whose value is lost",
		"operator.yaml:2: nam: unknown field, did you mean name?",
		"operator.yaml:7: tasks[0].spec.resource: unknown field, did you mean resources?",
		"operator.yaml:10: plans.deploy.stategy: unknown field, did you mean strategy?",
		"params.yaml:3: parameters[0].desribtion: unknown field, did you mean description?",
		"params.yaml:4: parameters[0].DEFAULT: unknown field, taken for default",
		"params.yaml:5: parameters[0].something: unknown field, ignored",
	}
	p, err := Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, findings(p.Warnings)); diff != "" {
		t.Errorf("what is ignored is named: -want +got:\n%s", diff)
	}
	if p.Operator.Name != "z" {
		t.Errorf("the last of duplicate keys counts: %s", p.Operator.Name)
	}
	_, err = Read(fsys, WithStrict())
	var errs Errors
	if !errors.As(err, &errs) {
		t.Fatalf("strict reading makes errors of them: %v", err)
	}
	if diff := cmp.Diff(want, findings(errs)); diff != "" {
		t.Errorf("strict reading makes errors of them: -want +got:\n%s", diff)
	}
}

func TestReadWrapped(t *testing.T) {
	wrapped := tree(map[string]string{"a/b/operator.yaml": "name: x", "a/b/params.yaml": ""})
	hint := "; it is in the folder a/b of the archive: pack that folder by itself, with kubectl kudo package create"
	_, err := Read(wrapped, WithArchive("./x.tgz"))
	want := []string{"operator.yaml: file not found in ./x.tgz" + hint, "params.yaml: file not found in ./x.tgz" + hint}
	var errs Errors
	if !errors.As(err, &errs) {
		t.Fatalf("error is %T %v", err, err)
	}
	if diff := cmp.Diff(want, findings(errs)); diff != "" {
		t.Errorf("what is in a folder of an archive is found there: -want +got:\n%s", diff)
	}
}

func TestReadErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		fsys   fs.FS
		want   []string
	}{
		"Nothing": {"both files are looked for", tree(nil), []string{
			"operator.yaml: file not found in ./here; a package is a folder with operator.yaml, params.yaml and templates",
			"params.yaml: file not found in ./here; a package is a folder with operator.yaml, params.yaml and templates"}},
		"Below": {"one level down", tree(map[string]string{"operator/operator.yaml": "", "operator/params.yaml": ""}), []string{
			"operator.yaml: file not found in ./here; did you mean ./here/operator?",
			"params.yaml: file not found in ./here; did you mean ./here/operator?"}},
		"NoParams": {"only one", tree(map[string]string{"operator.yaml": "name: x"}), []string{
			"params.yaml: file not found in ./here; a package is a folder with operator.yaml, params.yaml and templates"}},
		"Malformed": {"both files are read, and the line is named", pkg("name: [\n", "parameters:\n- a: b: c\n"), []string{
			"operator.yaml:1: malformed YAML: did not find expected node content",
			"params.yaml:2: malformed YAML: mapping values are not allowed in this context"}},
		"Version": {"other versions of the format", pkg("apiVersion: kudo.dev/v1beta2\nname: x", "\n\napiVersion: v1\n"), []string{
			`operator.yaml:1: apiVersion: "kudo.dev/v1beta2" is not supported, only kudo.dev/v1beta1 is`,
			`params.yaml:3: apiVersion: "v1" is not supported, only kudo.dev/v1beta1 is`}},
		"Types": {"all mistakes are reported", pkg("name: {a: b}\ntasks:\n- kind: Apply\n  spec:\n    resources: a.yaml\n    done: \"true\"\n    wantErr: 3\nplans: []\nmaintainers: x\n", "groups: [{prio: high}]\nparameters:\n- hm\n- required: maybe\n"), []string{
			"operator.yaml:1: name: expected text, found a map",
			`operator.yaml:5: tasks[0].spec.resources: expected a list, found "a.yaml"`,
			"operator.yaml:6: tasks[0].spec.done: expected true or false, found text: remove the quotes",
			`operator.yaml:7: tasks[0].spec.wantErr: expected true or false, found "3"`,
			"operator.yaml:8: plans: expected a map, found a list",
			`operator.yaml:9: maintainers: expected a list, found "x"`,
			`params.yaml:1: groups[0].prio: expected a whole number, found "high"`,
			`params.yaml:3: parameters[0]: expected a map, found "hm"`,
			`params.yaml:4: parameters[1].required: expected true or false, found "maybe"`}},
		"Empty":  {"an operator.yaml without content", pkg("# nothing\n", ""), []string{"operator.yaml: the file is empty"}},
		"List":   {"an operator.yaml that is a list", pkg("- a\n", ""), []string{"operator.yaml:1: expected a map, found a list"}},
		"Folder": {"a folder in place of a file", tree(map[string]string{"operator.yaml/x": "", "params.yaml": ""}), []string{"operator.yaml: is no regular file"}},
		"Large":  {"large files", tree(map[string]string{"operator.yaml": "name: x", "params.yaml": "", "templates/a.yaml": strings.Repeat("a", MaxFile+1)}), []string{"templates/a.yaml: has more than the 1572864 bytes allowed"}},
		"Same": {"two templates of one name", tree(map[string]string{"operator.yaml": "name: x", "params.yaml": "", "templates/a.yaml": "", "templates/x/templates/a.yaml": ""}), []string{
			`templates/x/templates/a.yaml: this template has the same name in tasks "a.yaml" as templates/a.yaml: rename one of the two`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(tc.fsys, WithPath("./here"))
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("%s: error is %T %v", tc.reason, err, err)
			}
			if diff := cmp.Diff(tc.want, findings(errs)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadAccepts(t *testing.T) {
	for name, fsys := range map[string]fs.FS{
		"null parameters":    pkg("name: x", "parameters:\n"),
		"an empty file":      pkg("name: x", ""),
		"comments":           pkg("# hi\n---\nname: x\n# end\n", "# nothing\n"),
		"later documents":    pkg("name: x\n---\nother: y\n", "parameters: []\n---\n- [\n"),
		"BOM":                pkg("\ufeffname: x\n", "\ufeffparameters: []"),
		"CRLF":               pkg("name: x\r\nplans: {}\r\n", "parameters:\r\n- name: A\r\n  default: a\r\n"),
		"null plans":         pkg("name: x\nplans:\n", ""),
		"anchors and merges": pkg("name: x\nplans: {deploy: &p {strategy: serial}, update: {<<: *p}}", ""),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Read(fsys, WithStrict())
			if err != nil || p.Operator.Name != "x" {
				t.Errorf("got %+v, %v", p, err)
			}
			if name == "anchors and merges" && p.Operator.Plans["update"].Strategy != v1beta1.Serial {
				t.Errorf("<< brings in the fields of another map: %+v", p.Operator.Plans)
			}
		})
	}
}

func TestReadBomb(t *testing.T) {
	bomb := "name: x\na: &a {tasks: [" + strings.Repeat("t,", 100) + "]}\nb: &b {steps: [" + strings.Repeat("*a,", 100) + "]}\nc: &c {phases: [" +
		strings.Repeat("*b,", 100) + "]}\nplans: {" + func() (s string) {
		for i := range 100 {
			s += "p" + string(rune('a'+i%26)) + strings.Repeat("x", i/26) + ": *c,"
		}
		return s
	}() + "}\n"
	_, err := Read(pkg(bomb, ""))
	if err == nil || !strings.Contains(err.Error(), "once aliases are expanded") {
		t.Errorf("aliases that multiply are refused: %v", err)
	}
	if _, err := Read(pkg("plans: &a {x: {phases: [*a]}}", "")); err != nil && len(err.Error()) > 10_000 {
		t.Errorf("aliases that hold themselves end: %v", err)
	}
}

func TestReadTemplates(t *testing.T) {
	p, err := Read(tree(map[string]string{
		"operator.yaml": "name: x", "params.yaml": "",
		"templates/a.yaml": "a", "templates/sub/b.yaml": "b", "templates/c.yaml.tpl": "c", "templates/deep/templates/d.yaml": "d", "templates/bom.yaml": "\ufeffe",
		"templates/_helpers.tpl": "no", "templates/README.md": "no", "other/templates/e.yaml": "no", "packages/child/operator.yaml": "no", "f.yaml": "no",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a.yaml": "a", "sub/b.yaml": "b", "c.yaml.tpl": "c", "d.yaml": "d", "bom.yaml": "e"}
	if diff := cmp.Diff(want, p.Templates); diff != "" {
		t.Errorf("templates are files with .yaml in their name, by their path after templates/: -want +got:\n%s", diff)
	}
}

func TestLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "..data-1/operator.yaml"), "name: x")
	write(filepath.Join(dir, "params.yaml"), "")
	write(filepath.Join(dir, "templates/a.yaml"), "a")
	write(filepath.Join(outside, "secret.yaml"), "secret")
	// As a ConfigMap is mounted.
	link("..data-1", "..data")
	link("..data/operator.yaml", "operator.yaml")
	link("a.yaml", "templates/inside.yaml")
	link("../../"+filepath.Base(outside)+"/secret.yaml", "templates/relative.yaml")
	link(filepath.Join(outside, "secret.yaml"), "templates/absolute.yaml")
	link(outside, "folder")
	link("../folder/secret.yaml", "templates/byfolder.yaml")
	p, err := Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a.yaml": "a", "inside.yaml": "a"}, p.Templates); diff != "" {
		t.Errorf("links are followed inside of the tree only: -want +got:\n%s", diff)
	}
	if len(p.Warnings) != 3 {
		t.Errorf("links that leave are named: %v", p.Warnings)
	}
	link("loop.yaml", "templates/loop.yaml")
	if _, err := Read(os.DirFS(dir)); err == nil || !strings.Contains(err.Error(), "too many links") {
		t.Errorf("links in a circle end: %v", err)
	}
}
