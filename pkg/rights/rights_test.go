package rights

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// lines are rules as text: group/resources: verbs names.
func lines(rules []rbacv1.PolicyRule) []string {
	var out []string
	for _, r := range rules {
		if len(r.NonResourceURLs) > 0 {
			out = append(out, strings.Join(r.NonResourceURLs, ",")+": "+strings.Join(r.Verbs, ","))
			continue
		}
		line := r.APIGroups[0] + "/" + strings.Join(r.Resources, ",") + ": " + strings.Join(r.Verbs, ",")
		if len(r.ResourceNames) > 0 {
			line += " " + strings.Join(r.ResourceNames, ",")
		}
		out = append(out, line)
	}
	return out
}

func rule(group, resources, verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: strings.Split(group, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","), ResourceNames: names}
}

// TestMerge: rules are few, sorted, and allow what was asked for and nothing else.
func TestMerge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		rules  []rbacv1.PolicyRule
		want   []string
	}{
		"Empty":        {"nothing allows nothing", nil, nil},
		"Names":        {"rules that differ in names only are one", []rbacv1.PolicyRule{rule("", "pods", "get,patch", "b"), rule("", "pods", "patch,get", "a")}, []string{"/pods: get,patch a,b"}},
		"Verbs":        {"verbs of one object are one rule, in their order", []rbacv1.PolicyRule{rule("", "pods", "delete", "a"), rule("", "pods", "get", "a")}, []string{"/pods: get,delete a"}},
		"Resources":    {"resources with the same names are one rule", []rbacv1.PolicyRule{rule("", "services,pods", "get", "a")}, []string{"/pods,services: get a"}},
		"NotCrossed":   {"resources with other names are not: it would allow more", []rbacv1.PolicyRule{rule("", "pods", "get", "a"), rule("", "services", "get", "b")}, []string{"/pods: get a", "/services: get b"}},
		"Groups":       {"groups are rules of their own", []rbacv1.PolicyRule{rule("apps,", "pods", "get")}, []string{"/pods: get", "apps/pods: get"}},
		"AllNames":     {"what is allowed on all objects is not allowed by name again", []rbacv1.PolicyRule{rule("", "pods", "get"), rule("", "pods", "get,patch", "a")}, []string{"/pods: get", "/pods: patch a"}},
		"AllVerbs":     {"* covers verbs", []rbacv1.PolicyRule{rule("", "pods", "*"), rule("", "pods", "get", "a")}, []string{"/pods: *"}},
		"AllResources": {"* covers resources and what is below them, of its group", []rbacv1.PolicyRule{rule("", "*", "get"), rule("", "pods/log,pods", "get"), rule("apps", "deployments", "get")}, []string{"/*: get", "apps/deployments: get"}},
		"AllBelow":     {"*/scale covers a subresource only", []rbacv1.PolicyRule{rule("apps", "*/scale", "get"), rule("apps", "deployments/scale,deployments", "get")}, []string{"apps/*/scale,deployments: get"}},
		"AllGroups":    {"* covers groups", []rbacv1.PolicyRule{rule("*", "pods", "get"), rule("", "pods", "get", "x")}, []string{"*/pods: get"}},
		"ByName":       {"a name under * does not cover all objects", []rbacv1.PolicyRule{rule("", "*", "*", "x"), rule("", "pods", "get")}, []string{"/pods: get", "/*: * x"}},
		"Paths":        {"paths are rules of their own", []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics", "/healthz"}, Verbs: []string{"get"}}}, []string{"/healthz: get", "/metrics: get"}},
		"OddNames":     {"names are compared as they are, whatever they hold", []rbacv1.PolicyRule{rule("", "pods", "get", "a,b"), rule("", "pods", "get", `"`)}, []string{`/pods: get ",a,b`}},
	} {
		if diff := cmp.Diff(tc.want, lines(Merge(tc.rules))); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

// TestWithout: the difference of two lists of rules.
func TestWithout(t *testing.T) {
	have := []rbacv1.PolicyRule{rule("", "pods", "get,patch", "a"), rule("apps", "*", "create")}
	want := []rbacv1.PolicyRule{rule("", "pods", "get,patch,delete", "a", "b"), rule("apps", "deployments", "create")}
	if diff := cmp.Diff([]string{"/pods: delete a", "/pods: get,patch,delete b"}, lines(Without(want, have))); diff != "" {
		t.Errorf("what is new (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"apps/*: create"}, lines(Without(have, want))); diff != "" {
		t.Errorf("what is left out (-want +got):\n%s", diff)
	}
	if left := Without(have, have); left != nil {
		t.Errorf("a list has nothing that it has not: %v", left)
	}
}

// spec builds a version of one plan, whose task has the kind and the templates.
func spec(task v1beta1.Task, templates map[string]string, params ...v1beta1.Parameter) *v1beta1.OperatorVersionSpec {
	task.Name = "t"
	return &v1beta1.OperatorVersionSpec{
		Version: "1.0.0", Templates: templates, Tasks: []v1beta1.Task{task}, Parameters: params,
		Plans: map[string]v1beta1.Plan{"deploy": {Phases: []v1beta1.Phase{{Name: "p", Steps: []v1beta1.Step{{Name: "s", Tasks: []string{"t"}}}}}}},
	}
}

const (
	role        = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n---\n"
	roleBinding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\n"
	crd         = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: policies.x.io}\nspec: {group: x.io, scope: Namespaced, names: {kind: Policy, plural: policyset}}\n"
)

// TestOf is T33: the rights of a task, by its kind and by what its templates hold.
func TestOf(t *testing.T) {
	apply := v1beta1.Task{Kind: v1beta1.ApplyTask, Spec: v1beta1.TaskSpec{Resources: []string{"a"}}}
	one := func(text string) map[string]string { return map[string]string{"a": text} }
	off := "false"
	for name, tc := range map[string]struct {
		reason        string
		spec          *v1beta1.OperatorVersionSpec
		change        func(*Subject)
		rules, wide   []string
		notes, object string
	}{
		"Apply": {"create by kind, the rest by name", spec(apply, one("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: '{{ .Name }}'}\nspec: {template: {}}")), nil,
			[]string{"apps/deployments: create", "apps/deployments: get,patch,delete i"}, nil, "", ""},
		"Delete": {"no create, no patch", spec(v1beta1.Task{Kind: v1beta1.DeleteTask, Spec: apply.Spec}, one("apiVersion: v1\nkind: Secret\nmetadata: {name: s}")), nil,
			[]string{"/secrets: get,delete s"}, nil, "", ""},
		"Toggle": {"both states, whatever the parameter says", spec(v1beta1.Task{Kind: v1beta1.ToggleTask, Spec: v1beta1.TaskSpec{Resources: []string{"a"}, Parameter: "ON"}}, one("apiVersion: v1\nkind: Service\nmetadata: {name: s}"), v1beta1.Parameter{Name: "ON", Default: &off}), nil,
			[]string{"/services: create", "/services: get,patch,delete s"}, nil, "", ""},
		"Pipe": {"its pod, the files in it, and the artifacts, by the names that KUDO gives", spec(v1beta1.Task{Kind: v1beta1.PipeTask, Spec: v1beta1.TaskSpec{Pod: "a", Pipe: []v1beta1.PipeSpec{{File: "/x", Kind: "Secret", Key: "Key"}}}}, one("")), nil,
			[]string{"/pods,secrets: create", "/pods: get,patch,delete i.deploy.p.s.t.pipepod", "/pods/exec: create i.deploy.p.s.t.pipepod", "/secrets: get,patch,delete i.deploy.p.s.t.key"}, nil, "", ""},
		"Dummy": {"nothing", spec(v1beta1.Task{Kind: v1beta1.DummyTask}, nil), nil, nil, nil, "", ""},
		"Role": {"what the Role allows, so that no escalate is needed; its binding needs nothing more", spec(apply, one(role+roleBinding)), nil,
			[]string{"/pods: get", "rbac.authorization.k8s.io/rolebindings,roles: create", "rbac.authorization.k8s.io/rolebindings: get,patch,delete b", "rbac.authorization.k8s.io/roles: get,patch,delete r"}, nil, "", ""},
		"Binding": {"bind on a role that the package does not make", spec(apply, one(roleBinding)), nil,
			[]string{"rbac.authorization.k8s.io/rolebindings: create", "rbac.authorization.k8s.io/rolebindings: get,patch,delete b", "rbac.authorization.k8s.io/roles: bind r"}, nil, "", ""},
		"ClusterRole": {"cluster-scoped objects, and what they allow, are listed apart", spec(apply, one("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: c}\nrules: [{nonResourceURLs: [/metrics], verbs: [get]}]")), nil,
			nil, []string{"rbac.authorization.k8s.io/clusterroles: create", "rbac.authorization.k8s.io/clusterroles: get,patch,delete c", "/metrics: get"}, "", "ClusterRole c of deploy.p.s.t"},
		"Aggregated": {"an aggregated role needs escalate", spec(apply, one("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: c}\naggregationRule: {clusterRoleSelectors: []}")), nil,
			nil, []string{"rbac.authorization.k8s.io/clusterroles: create", "rbac.authorization.k8s.io/clusterroles: get,patch,delete,escalate c"}, "", "ClusterRole c of deploy.p.s.t"},
		"Definition": {"a kind that the package defines, by its plural", spec(apply, one(crd+"---\napiVersion: x.io/v1\nkind: Policy\nmetadata: {name: p}\n")), nil,
			[]string{"x.io/policyset: create", "x.io/policyset: get,patch,delete p"}, []string{"apiextensions.k8s.io/customresourcedefinitions: create", "apiextensions.k8s.io/customresourcedefinitions: get,patch,delete policies.x.io"}, "", "CustomResourceDefinition policies.x.io of deploy.p.s.t"},
		"Unknown": {"a kind without a definition is guessed, and noted", spec(apply, one("apiVersion: x.io/v1\nkind: Policy\nmetadata: {name: p}\n")), nil,
			[]string{"x.io/policies: create", "x.io/policies: get,patch,delete p"}, nil, "kind Policy of x.io/v1 is not known here: it is taken as namespaced, with the resource policies.x.io", ""},
		"Dependencies": {"ConfigMaps and Secrets that pods read, unless the task has them", spec(apply, one("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {imagePullSecrets: [{name: pull}], volumes: [{configMap: {name: own}}, {secret: {secretName: tls}}]}}}")), nil,
			[]string{"/configmaps: create", "/configmaps: get,patch,delete own", "/secrets: get pull,tls", "batch/jobs: create", "batch/jobs: get,patch,delete j"}, nil, "", ""},
		"From": {"G5: what an upgrade from the version that is there needs", spec(apply, one("{{ if .From.AppVersion }}apiVersion: v1\nkind: Secret\nmetadata: {name: 'of-{{ .From.AppVersion }}'}{{ end }}")), func(s *Subject) {
			s.From = v1beta1.PackageVersion{AppVersion: "15"}
		}, []string{"/secrets: create", "/secrets: get,patch,delete of-15"}, nil, "", ""},
		"Sources": {"the sources of parameters", spec(v1beta1.Task{Kind: v1beta1.DummyTask}, nil), func(s *Subject) {
			s.Sources = []v1beta1.ParametersSource{{Kind: "Secret", Name: "login"}, {Kind: "ConfigMap", Name: "site"}}
		}, []string{"/configmaps: get site", "/secrets: get login"}, nil, "", ""},
		"Written": {"what plans have written may have to be deleted; objects of other namespaces and of the cluster are not", spec(v1beta1.Task{Kind: v1beta1.DummyTask}, nil), func(s *Subject) {
			s.Written = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "old"}, {APIVersion: "v1", Kind: "Secret", Namespace: "other", Name: "x"}, {APIVersion: "v1", Kind: "Node", Name: "n"}}
		}, []string{"/secrets: get,delete old"}, nil, "", ""},
		"InstallPlan": {"the install plan runs as another account", spec(apply, one("apiVersion: v1\nkind: Secret\nmetadata: {name: s}")), func(s *Subject) { s.Version.InstallPlan = "deploy" }, nil, nil, "", ""},
		"Child": {"the Instance of a dependency; one that is not known is noted", spec(v1beta1.Task{Kind: v1beta1.KudoOperatorTask, Spec: v1beta1.TaskSpec{Package: "db", OperatorVersion: "1.0.0"}}, nil), nil,
			[]string{"kudo.dev/instances: create", "kudo.dev/instances: get,patch,delete i-db"}, nil, "OperatorVersion db-1.0.0 of Instance i-db is not known: what its plans need is not listed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := Subject{Namespace: "ns", Name: "i", Version: tc.spec}
			if tc.change != nil {
				tc.change(&s)
			}
			got, err := Of(s, Known{})
			if err != nil {
				t.Fatal(tc.reason, err)
			}
			if diff := cmp.Diff(tc.rules, lines(got.Rules)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.wide, lines(got.ClusterRules)); diff != "" {
				t.Errorf("%s, for the cluster (-want +got):\n%s", tc.reason, diff)
			}
			if notes := strings.Join(got.Notes, "; "); notes != tc.notes {
				t.Errorf("%s: the notes are %q", tc.reason, notes)
			}
			objects := ""
			for _, o := range got.ClusterScoped {
				objects += o.Kind + " " + o.Name + " of " + o.Task
			}
			if objects != tc.object {
				t.Errorf("%s: cluster-scoped are %q", tc.reason, objects)
			}
		})
	}
}

// TestDependencies: the plans of a dependency run as the same account; a sensitive value goes there by a Secret. Packages
// that depend on one another in a circle end.
func TestDependencies(t *testing.T) {
	child := spec(v1beta1.Task{Kind: v1beta1.ApplyTask, Spec: v1beta1.TaskSpec{Resources: []string{"a"}}},
		map[string]string{"a": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-{{ .Params.TEXT }}'}"}, v1beta1.Parameter{Name: "TEXT"})
	parent := spec(v1beta1.Task{Kind: v1beta1.KudoOperatorTask, Spec: v1beta1.TaskSpec{Package: "db", OperatorVersion: "1.0.0", ParameterFile: "p"}},
		map[string]string{"p": "TEXT: '{{ .Params.PASSWORD }}'"}, v1beta1.Parameter{Name: "PASSWORD", Sensitive: true})
	got, err := Of(Subject{Namespace: "ns", Name: "i", Version: parent, Parameters: map[string]string{"PASSWORD": "x"}}, Known{Versions: func(name string) *v1beta1.OperatorVersionSpec {
		return map[string]*v1beta1.OperatorVersionSpec{"db-1.0.0": child}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/configmaps,secrets: create", "/configmaps: get,patch,delete i-db-x", "/secrets: get,patch,delete i-db-parameters", "kudo.dev/instances: create", "kudo.dev/instances: get,patch,delete i-db"}
	if diff := cmp.Diff(want, lines(got.Rules)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Of(Subject{Namespace: "ns", Name: "i", Version: parent}, Known{Versions: func(string) *v1beta1.OperatorVersionSpec { return parent }}); err != nil {
		t.Errorf("a circle: %v", err)
	}
}

// TestHostileRole: a Role whose lists multiply is refused, and not computed.
func TestHostileRole(t *testing.T) {
	var names, verbs []string
	for n := range 1000 {
		names, verbs = append(names, "a"+strings.Repeat("x", n)), append(verbs, "v"+strings.Repeat("x", n))
	}
	text := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [" + strings.Join(verbs, ",") + "], resourceNames: [" + strings.Join(names, ",") + "]}]\n"
	_, err := Of(Subject{Namespace: "ns", Name: "i", Version: spec(v1beta1.Task{Kind: v1beta1.ApplyTask, Spec: v1beta1.TaskSpec{Resources: []string{"a"}}}, map[string]string{"a": text})}, Known{})
	if err == nil || !strings.Contains(err.Error(), "allow more than can be listed") {
		t.Errorf("the error is %v", err)
	}
}

// TestResourceName: how people name resources.
func TestResourceName(t *testing.T) {
	for _, tc := range [][3]string{{"", "pods", "pods"}, {"", "pods/exec", "pods/exec"}, {"apps", "deployments", "deployments.apps"}, {"apps", "deployments/scale", "deployments.apps/scale"}} {
		if got := ResourceName(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%v: %s", tc, got)
		}
	}
	k := kinds{guessed: map[string]bool{}}
	if got := k.find(schema.GroupVersionKind{Version: "v1", Kind: "Endpoints"}); got.name != "endpoints" {
		t.Errorf("the resource of Endpoints is %s", got.name)
	}
}
