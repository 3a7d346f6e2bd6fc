package lint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// installs is the plain operator.yaml with an install plan, whose task applies i.yaml. More is added at the end.
func installs(more string) string {
	text := operator("{name: i, kind: Apply, spec: {resources: [i.yaml]}}")
	return text + "  install: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [i]}]}]}\ninstallPlan: install\n" + more
}

const (
	aRole      = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: []\n"
	aNamespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: store}\n"
)

func TestInstallPlan(t *testing.T) {
	with := func(more, template string) files {
		return files{"operator.yaml": installs(more), "templates/i.yaml": template}
	}
	pipes := strings.Replace(installs(""), "\nplans:", "\n- {name: b, kind: Pipe, spec: {pod: pod.yaml, pipe: [{file: /x, kind: Secret, key: cert}]}}\nplans:", 1)
	pod := "apiVersion: v1\nkind: Pod\nspec: {}\n"
	run(t, map[string]lintCase{
		"Plain":     {"nothing is wrong", with("", aRole), nil},
		"Undefined": {"the plan exists", files{"operator.yaml": plainOperator + "installPlan: instal\n"}, []string{`E operator.yaml:7: plan "instal" named by installPlan is not defined`}},
		"Near":      {"a name that was meant is proposed", files{"operator.yaml": strings.Replace(installs(""), "installPlan: install", "installPlan: instal", 1), "templates/i.yaml": aRole}, []string{`E operator.yaml:10: plan "instal" named by installPlan is not defined, did you mean install?`}},
		"Deploy":    {"Instances run deploy", files{"operator.yaml": plainOperator + "installPlan: deploy\n", "templates/a.yaml": aRole}, []string{`E operator.yaml:7: installPlan cannot be "deploy", which Instances run: give it a plan of its own`}},
		"Trigger": {"no Instance runs the install plan", files{"operator.yaml": installs(""), "templates/i.yaml": aRole, "params.yaml": "parameters:\n- {name: A, default: 1, trigger: install}\n", "templates/a.yaml": data("{{ .Params.A }}")},
			[]string{`E params.yaml:2: parameter "A" triggers the install plan, which no Instance runs: values for it are given with --install-parameter`}},
		"Policy":       {"policies exist", with("installPolicy: {sharedUpdates: Always}\n", aRole), []string{`E operator.yaml:11: installPolicy.sharedUpdates is "Always": use None or SameOperator`}},
		"PolicyAlone":  {"a policy is for an install plan", files{"operator.yaml": plainOperator + "installPolicy: {sharedUpdates: SameOperator}\n"}, []string{`W operator.yaml:7: installPolicy has no effect without installPlan`}},
		"Namespace":    {"what is shared may be in a namespace of its own", with("", aNamespace), nil},
		"BothUse":      {"a template that deploy uses too makes no namespace", files{"operator.yaml": strings.Replace(installs(""), "tasks: [a]", "tasks: [a, i]", 1), "templates/i.yaml": aNamespace}, []string{`E templates/i.yaml:2: template "i.yaml" contains a Namespace: only the template that namespaceManifest names may, and those that only the install plan uses`}},
		"NoPlan":       {"nor does one of a task that no plan uses", files{"operator.yaml": strings.Replace(installs(""), "tasks: [i]", "tasks: [a]", 1), "templates/i.yaml": aNamespace}, []string{`E templates/i.yaml:2: template "i.yaml" contains a Namespace: only the template that namespaceManifest names may, and those that only the install plan uses`, `W operator.yaml:6: task "i" defined but not used`}},
		"NoName":       {"objects have names", with("", "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x-}\n"), []string{`E templates/i.yaml: rendering template "i.yaml" with the defaults failed: template i.yaml, line 1 of what it renders to: document 1: ConfigMap has no metadata.name; generateName cannot be used: each run would make another object`}},
		"Variable":     {"only these variables exist", with("", aRole+"# {{ .Instance }}\n"), []string{`E templates/i.yaml:5: template i.yaml defines an invalid implicit parameter "Instance"`}},
		"Parameter":    {"parameters exist", with("", aRole+"# {{ .Params.A }}\n"), []string{`E templates/i.yaml:5: parameter "A" in template i.yaml is not defined`}},
		"Name":         {"another OperatorVersion has another .Name", with("", strings.Replace(aRole, "name: r", "name: '{{ .Name }}'", 1)), []string{`W templates/i.yaml: the name of ClusterRole x-1.0.0 is made of .Name, .Namespace or a version: OperatorVersions that need it cannot share it`}},
		"Own":          {"what is in the OperatorVersion's namespace is its own", with("", plainObject+"data: {ns: '{{ .Namespace }}'}\n"), nil},
		"Content":      {"what is elsewhere is the same for all", with("", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: store}\ndata: {ns: '{{ .Namespace }}'}\n"), []string{`W templates/i.yaml: ConfigMap x is made of .Name, .Namespace or a version: another OperatorVersion that renders it differently fails with a mismatch`}},
		"ClusterScope": {"so is what has no namespace at all", with("", aRole+"aggregationRule: {clusterRoleSelectors: [{matchLabels: {v: '{{ .OperatorVersion }}'}}]}\n"), []string{`W templates/i.yaml: ClusterRole r is made of .Name, .Namespace or a version: another OperatorVersion that renders it differently fails with a mismatch`}},
		"Updates":      {"but a newer version may change it if the policy lets it", with("installPolicy: {sharedUpdates: SameOperator}\n", aRole+"aggregationRule: {clusterRoleSelectors: [{matchLabels: {v: '{{ .OperatorVersion }}'}}]}\n"), nil},
		"Label":        {"labels never decide", with("", strings.Replace(aRole, "name: r", "name: r, labels: {v: '{{ .OperatorVersion }}'}", 1)), nil},
		"Pipe":         {"a pipe of its own is there", files{"operator.yaml": strings.Replace(pipes, "tasks: [i]", "tasks: [b, i]", 1), "templates/i.yaml": data("{{ .Pipes.cert }}"), "templates/pod.yaml": pod}, nil},
		"PipeElsewhere": {"one of deploy is not, also in a branch that is not taken", files{"operator.yaml": strings.Replace(pipes, "tasks: [a]", "tasks: [b, a]", 1), "templates/i.yaml": data("{{ if false }}{{ .Pipes.cert }}{{ end }}"), "templates/pod.yaml": pod},
			[]string{`E templates/i.yaml:6: pipe "cert" in template i.yaml is made by a plan of an Instance, and the install plan runs without an Instance`}},
		"PipeHelper": {"nor in a definition", files{"operator.yaml": strings.Replace(pipes, "tasks: [a]", "tasks: [b, a]", 1), "templates/i.yaml": data(`{{ include "h" . }}`), "templates/_h.yaml": `{{ define "h" }}{{ .Pipes.cert }}{{ end }}`, "templates/pod.yaml": pod},
			[]string{`E templates/_h.yaml:1: pipe "cert" in template _h.yaml is made by a plan of an Instance, and the install plan runs without an Instance`}},
	})
}

func TestCRDTarball(t *testing.T) {
	const none = `crdTarball has 0 sources []: exactly one of httpSource, ociSource and configMapSource must be set`
	run(t, map[string]lintCase{
		"One":  {"one source is right", files{"operator.yaml": plainOperator + "crdTarball: {httpSource: {url: 'https://x/y.tgz'}}\n"}, nil},
		"None": {"one is needed", files{"operator.yaml": plainOperator + "crdTarball: {crdDownloadPolicy: Never}\n"}, []string{"E operator.yaml:7: " + none}},
		"Two":  {"and no more", files{"operator.yaml": plainOperator + "crdTarball: {httpSource: {url: 'https://x/y.tgz'}, configMapSource: {configMaps: [{name: c}], sha256: '" + strings.Repeat("0a", 32) + "'}}\n"}, []string{"E operator.yaml:7: crdTarball has 2 sources [httpSource configMapSource]: exactly one of httpSource, ociSource and configMapSource must be set"}},
	})
}

func TestRights(t *testing.T) {
	pipe := strings.Replace(installs(""), "\nplans:", "\n- {name: b, kind: Pipe, spec: {pod: pod.yaml, pipe: [{file: /x, kind: Secret, key: cert}]}}\n- {name: d, kind: Delete, spec: {resources: [a.yaml]}}\n- {name: k, kind: KudoOperator, spec: {package: c}}\nplans:", 1)
	all := strings.Split("create delete get list patch watch", " ")
	for name, tc := range map[string]struct {
		reason string
		files  files
		want   []Right
	}{
		"None":  {"without install plan nothing is needed", files{}, nil},
		"Apply": {"names are sorted, and have their namespace", files{"operator.yaml": installs(""), "templates/i.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: store}\n---\n" + plainObject}, []Right{{"v1", "ConfigMap", []string{"store/x", "x"}, all}}},
		"Roles": {"roles and bindings need verbs of their own", files{"operator.yaml": installs(""), "templates/i.yaml": aRole + "---\n" + strings.Replace(aRole, "ClusterRole", "ClusterRoleBinding", 1)}, []Right{
			{"rbac.authorization.k8s.io/v1", "ClusterRole", []string{"r"}, strings.Split("create delete escalate get list patch watch", " ")},
			{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", []string{"r"}, strings.Split("bind create delete get list patch watch", " ")},
		}},
		"Tasks": {"tasks of other kinds have theirs", files{"operator.yaml": strings.Replace(pipe, "tasks: [i]", "tasks: [b, d, k]", 1), "templates/i.yaml": aRole, "templates/pod.yaml": "apiVersion: v1\nkind: Pod\nspec: {}\n"}, []Right{
			{"v1", "ConfigMap", []string{"x"}, []string{"delete", "get"}},
			{"kudo.dev/v1beta1", "Instance", nil, all},
			{"v1", "Pod", nil, all},
			{"v1", "Pod/exec", nil, []string{"create"}},
			{"v1", "Secret", nil, all},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Rights(tc.files.read(t))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
