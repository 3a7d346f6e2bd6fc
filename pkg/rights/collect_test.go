package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// applying is a version of one plan, which applies a template.
func applying(text string, params ...v1beta1.Parameter) *v1beta1.OperatorVersionSpec {
	task := v1beta1.Task{Kind: v1beta1.ApplyTask, Spec: v1beta1.TaskSpec{Resources: []string{"a"}}}
	return spec(task, map[string]string{"a": text}, params...)
}

// depending is a version of one plan, which makes an Instance of a package.
func depending(on v1beta1.TaskSpec, templates map[string]string, params ...v1beta1.Parameter) *v1beta1.OperatorVersionSpec {
	return spec(v1beta1.Task{Kind: v1beta1.KudoOperatorTask, Spec: on}, templates, params...)
}

// TestBindings has the roles that bindings name, and what the account needs to write the bindings.
func TestBindings(t *testing.T) {
	const group = "apiVersion: rbac.authorization.k8s.io/v1\n"
	binding := func(kind, roleKind, role string) string {
		return "---\n" + group + "kind: " + kind + "\nmetadata: {name: b}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: " + roleKind + ", name: " + role + "}\n"
	}
	const clusterRole = "---\n" + group + "kind: ClusterRole\nmetadata: {name: c}\nrules: [{apiGroups: [''], resources: [nodes], verbs: [list]}]\n"
	for name, tc := range map[string]struct {
		reason, text string
		// rules and wide are the rules about roles and about what they allow; those about the objects themselves are left out.
		rules, wide []string
	}{
		"Named":       {"a ClusterRole that others have made, in the namespace", binding("RoleBinding", "ClusterRole", "view"), []string{"rbac.authorization.k8s.io/clusterroles: bind view"}, nil},
		"Cluster":     {"a ClusterRole that others have made, for the whole cluster", binding("ClusterRoleBinding", "ClusterRole", "view"), nil, []string{"rbac.authorization.k8s.io/clusterroles: bind view"}},
		"Own":         {"one that a plan makes needs what it allows", clusterRole + binding("ClusterRoleBinding", "ClusterRole", "c"), nil, []string{"/nodes: list"}},
		"OwnBelow":    {"which is enough in the namespace, too", clusterRole + binding("RoleBinding", "ClusterRole", "c"), nil, []string{"/nodes: list"}},
		"SameName":    {"a Role is not a ClusterRole of its name", clusterRole + binding("RoleBinding", "Role", "c"), []string{"rbac.authorization.k8s.io/roles: bind c"}, []string{"/nodes: list"}},
		"UnknownKind": {"a reference to no role is refused by the API server", binding("RoleBinding", "Group", "c"), nil, nil},
		"Aggregated": {
			"of an aggregated role the rules are not known, so that it is bound by name",
			"---\n" + group + "kind: ClusterRole\nmetadata: {name: c}\naggregationRule: {clusterRoleSelectors: []}\n" + binding("RoleBinding", "ClusterRole", "c"),
			[]string{"rbac.authorization.k8s.io/clusterroles: bind c"}, []string{"rbac.authorization.k8s.io/clusterroles: escalate c"},
		},
		"OtherGroup": {"a Role of another group allows nothing", "apiVersion: x.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(Subject{Namespace: "ns", Name: "i", Version: applying(tc.text)}, Known{})
			if err != nil {
				t.Fatal(err)
			}
			about := func(all []string) (out []string) {
				for _, line := range all {
					if strings.Contains(line, ": bind") || !strings.Contains(line, ".io/") {
						out = append(out, line)
					} else if strings.Contains(line, "escalate") {
						out = append(out, strings.Replace(line, "get,patch,delete,escalate", "escalate", 1))
					}
				}
				return out
			}
			if diff := cmp.Diff(tc.rules, about(lines(got.Rules))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.wide, about(lines(got.ClusterRules))); diff != "" {
				t.Errorf("%s, for the cluster (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestErrors has packages whose rights cannot be computed: the error names the task and the object.
func TestErrors(t *testing.T) {
	list := "a: ["
	for name, tc := range map[string]struct {
		reason string
		spec   *v1beta1.OperatorVersionSpec
		want   string
	}{
		"Parameter": {"a value that is no list", applying("", v1beta1.Parameter{Name: "SIZES", Type: v1beta1.ArrayType, Default: &list}), "SIZES"},
		"Template":  {"a template that fails", applying("{{ fail \"too small\" }}"), "task deploy.p.s.t: "},
		"Role": {
			"a Role whose rules are none", applying("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: [x]\n"),
			"task deploy.p.s.t: Role r: ",
		},
		"Binding": {
			"a binding whose reference is none", applying("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: b}\nroleRef: x\n"),
			"task deploy.p.s.t: ClusterRoleBinding b: ",
		},
		"Delete": {
			"a template of a Delete", spec(v1beta1.Task{Kind: v1beta1.DeleteTask, Spec: v1beta1.TaskSpec{Resources: []string{"absent"}}}, nil),
			"task deploy.p.s.t: ",
		},
		"Kind": {"a kind of tasks that there is not", spec(v1beta1.Task{Kind: "Dance"}, nil), "task deploy.p.s.t: "},
		"File": {
			"a file of parameters that is no map", depending(v1beta1.TaskSpec{Package: "db", OperatorVersion: "1.0.0", ParameterFile: "p"}, map[string]string{"p": "- a"}),
			"task deploy.p.s.t: ",
		},
	} {
		got, err := Of(Subject{Namespace: "ns", Name: "i", Version: tc.spec}, Known{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || got != nil {
			t.Errorf("%s: %s: %+v, error %v, want %q", name, tc.reason, got, err, tc.want)
		}
	}
	absent := applying("")
	absent.Plans["deploy"].Phases[0].Steps[0].Tasks[0] = "absent"
	if got, err := Of(Subject{Namespace: "ns", Name: "i", Version: absent}, Known{}); err != nil || len(got.Rules) > 0 {
		t.Errorf("a task that is not defined needs nothing, since its plan fails: %+v, %v", got, err)
	}
}

// TestServed has kinds that only the cluster knows.
func TestServed(t *testing.T) {
	const thing = "apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: a}\n"
	served := func(scope meta.RESTScope, err error) func(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
		return func(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
			if kind.String() != "Thing.x.io" || fmt.Sprint(versions) != "[v1]" {
				t.Errorf("asked for %s in %v", kind, versions)
			}
			return &meta.RESTMapping{Resource: schema.GroupVersionResource{Group: "x.io", Version: "v1", Resource: "thingies"}, Scope: scope}, err
		}
	}
	for name, tc := range map[string]struct {
		reason, text      string
		served            func(schema.GroupKind, ...string) (*meta.RESTMapping, error)
		rules, wide, note string
	}{
		"Namespaced": {"the resource of the cluster", thing, served(meta.RESTScopeNamespace, nil), "x.io/thingies: create", "", ""},
		"Cluster":    {"a kind without namespaces", thing, served(meta.RESTScopeRoot, nil), "", "x.io/thingies: create", ""},
		"Error": {
			"a cluster that does not answer", thing, served(meta.RESTScopeRoot, errors.New("no")), "x.io/things: create", "",
			"kind Thing of x.io/v1 is not known here: it is taken as namespaced, with the resource things.x.io",
		},
		"Definition": {
			"a definition of the package comes first", strings.NewReplacer("Policy", "Thing", "policyset", "own", "policies", "own").Replace(crd) + "---\n" + thing,
			served(meta.RESTScopeRoot, nil), "x.io/own: create", "apiextensions.k8s.io/customresourcedefinitions: create", "",
		},
		"ClusterDefinition": {
			"one without namespaces", strings.NewReplacer("Policy", "Thing", "policyset", "own", "Namespaced", "Cluster").Replace(crd) + "---\n" + thing,
			nil, "", "apiextensions.k8s.io/customresourcedefinitions: create; x.io/own: create", "",
		},
		"Kubernetes": {"the cluster is not asked for kinds of Kubernetes", "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n", served(nil, nil), "", "/nodes: create", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(Subject{Namespace: "ns", Name: "i", Version: applying(tc.text)}, Known{Served: tc.served})
			if err != nil {
				t.Fatal(err)
			}
			creates := func(all []string) string {
				var out []string
				for _, line := range all {
					if strings.HasSuffix(line, ": create") {
						out = append(out, line)
					}
				}
				return strings.Join(out, "; ")
			}
			have := []string{creates(lines(got.Rules)), creates(lines(got.ClusterRules)), strings.Join(got.Notes, "; ")}
			if diff := cmp.Diff([]string{tc.rules, tc.wide, tc.note}, have); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestClusterScoped lists objects once, with the first task that has them, by kind, group and name.
func TestClusterScoped(t *testing.T) {
	object := func(apiVersion, kind, name string) string {
		return "---\napiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: " + name + "}\n"
	}
	version := applying(object("v1", "Node", "kept") + object("v1", "Namespace", "space"))
	version.Templates["b"] = object("v1", "Node", "kept") + object("v1", "Node", "dropped") + object("v1", "ConfigMap", "c")
	version.Tasks = append(version.Tasks, v1beta1.Task{Name: "first", Kind: v1beta1.DeleteTask, Spec: v1beta1.TaskSpec{Resources: []string{"b"}}})
	version.Plans["cleanup"] = v1beta1.Plan{Phases: []v1beta1.Phase{{Name: "p", Steps: []v1beta1.Step{{Name: "s", Tasks: []string{"first"}}}}}}
	want := []ClusterScoped{
		{Kind: "Namespace", Name: "space", Resource: "namespaces", Task: "deploy.p.s.t", Instance: "i"},
		{Kind: "Node", Name: "dropped", Resource: "nodes", Task: "cleanup.p.s.first", Instance: "i", Deleted: true},
		{Kind: "Node", Name: "kept", Resource: "nodes", Task: "cleanup.p.s.first", Instance: "i"},
	}
	var first *Rights
	for range 5 {
		got, err := Of(Subject{Namespace: "ns", Name: "i", Version: version}, Known{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.ClusterScoped); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("the same package needs other rights (-first +again):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"/configmaps: get,delete c"}, lines(first.Rules)); diff != "" {
		t.Errorf("in the namespace (-want +got):\n%s", diff)
	}
}

// TestChain has Instances that depend on one another in a row: their plans run as one account, up to the bound of the controller.
func TestChain(t *testing.T) {
	versions := func(name string) *v1beta1.OperatorVersionSpec {
		var n int
		if _, err := fmt.Sscanf(name, "p%d-1.0.0", &n); err != nil {
			t.Errorf("asked for %s", name)
		}
		return depending(v1beta1.TaskSpec{Package: fmt.Sprintf("p%d", n+1), OperatorVersion: "1.0.0", InstanceName: fmt.Sprintf("c%d", n+1)}, nil)
	}
	got, err := Of(Subject{Namespace: "ns", Name: "i", Version: versions("p0-1.0.0")}, Known{Versions: versions})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"kudo.dev/instances: create", "kudo.dev/instances: get,patch,delete c1,c2,c3,c4,c5,c6,c7,c8,c9"}
	if diff := cmp.Diff(want, lines(got.Rules)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	unnamed := depending(v1beta1.TaskSpec{Package: "db"}, nil)
	got, err = Of(Subject{Namespace: "ns", Name: "i", Version: unnamed}, Known{Versions: func(name string) *v1beta1.OperatorVersionSpec {
		t.Errorf("asked for %s", name)
		return nil
	}})
	if err != nil || len(got.Notes) != 1 || !strings.HasSuffix(got.Notes[0], "of Instance i-db is not known: what its plans need is not listed") {
		t.Errorf("a task that names no version: %+v, %v", got, err)
	}
}

// TestChildSecrets has which Instances take values from a Secret, since a value of the Instance above is sensitive.
func TestChildSecrets(t *testing.T) {
	const pass = "VALUE: '{{ .Params.VALUE }}'"
	plain, sensitive := v1beta1.Parameter{Name: "VALUE"}, v1beta1.Parameter{Name: "VALUE", Sensitive: true}
	secret := []v1beta1.ParametersSource{{Kind: "Secret", Name: "login"}}
	for name, tc := range map[string]struct {
		reason string
		// top and middle are how the Instances of a chain of three declare their parameter.
		top, middle v1beta1.Parameter
		value       string
		sources     []v1beta1.ParametersSource
		want        string
	}{
		"None":      {"no value is sensitive", plain, plain, "x", nil, ""},
		"Unset":     {"a sensitive parameter without a value", sensitive, plain, "", nil, ""},
		"ConfigMap": {"a source that is no Secret", plain, plain, "x", []v1beta1.ParametersSource{{Kind: "ConfigMap", Name: "site"}}, ""},
		"Middle":    {"the package in the middle declares it", plain, sensitive, "x", nil, "leaf-parameters"},
		"Top":       {"a value that comes by a Secret is sensitive there, too", sensitive, plain, "x", nil, "leaf-parameters,middle-parameters"},
		"Source":    {"so is one of a Secret that a user names", plain, plain, "x", secret, "leaf-parameters,middle-parameters"},
		"Both":      {"all declare it", sensitive, sensitive, "x", nil, "leaf-parameters,middle-parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			templates := map[string]string{"p": pass}
			version := func(child string, p v1beta1.Parameter) *v1beta1.OperatorVersionSpec {
				return depending(v1beta1.TaskSpec{Package: child, OperatorVersion: "1.0.0", InstanceName: child, ParameterFile: "p"}, templates, p)
			}
			known := map[string]*v1beta1.OperatorVersionSpec{"middle-1.0.0": version("leaf", tc.middle), "leaf-1.0.0": applying("", plain)}
			top := Subject{Namespace: "ns", Name: "i", Version: version("middle", tc.top), Sources: tc.sources}
			if tc.value != "" {
				top.Parameters = map[string]string{"VALUE": tc.value}
			}
			got, err := Of(top, Known{Versions: func(name string) *v1beta1.OperatorVersionSpec { return known[name] }})
			if err != nil {
				t.Fatal(err)
			}
			var names string
			for _, line := range lines(got.Rules) {
				if found, is := strings.CutPrefix(line, "/secrets: get,patch,delete "); is {
					names = found
				}
			}
			if names != tc.want {
				t.Errorf("%s: the Secrets are %q, want %q", tc.reason, names, tc.want)
			}
		})
	}
}

// TestImages lists the images of all containers that the objects have, also in kinds that another controller makes pods of.
func TestImages(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         []string
	}{
		"Pod": {"containers and init containers, once each", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: b:1}, {name: b, image: a:2}], initContainers: [{name: c, image: b:1}]}\n",
			[]string{"a:2", "b:1"}},
		"Others": {"ephemeral containers, and volumes that are images", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {volumes: [{name: a, image: {reference: data:1}}, {name: b, image: x}, {name: c, emptyDir: {}}], " +
			"ephemeralContainers: [{name: c, image: debug:1}]}\n", []string{"data:1", "debug:1"}},
		"Template": {"a pod template, at any depth", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: p}\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: job:1}]}}}}}\n", []string{"job:1"}},
		"Other":    {"a kind that is not known here", "apiVersion: x.io/v1\nkind: Site\nmetadata: {name: p}\nspec: [{template: {spec: {containers: [{image: site:1}]}}}]\n", []string{"site:1"}},
		"Parameter": {"the default of a parameter", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: '{{ .Params.IMAGE }}'}]}\n",
			[]string{"default:1"}},
		"None": {"texts where lists and maps stand elsewhere", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {containers: x, image: y}\n", nil},
		"Odd":  {"containers without an image", "apiVersion: x.io/v1\nkind: Site\nmetadata: {name: p}\nspec: {containers: [a, {image: 1}, {image: ''}, [b]]}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(Subject{Namespace: "ns", Name: "i", Version: applying(tc.text, v1beta1.Parameter{Name: "IMAGE", Default: new("default:1")})}, Known{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Images); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestServedOnce checks that a cluster that does not answer is asked once, and one that does not serve a kind for each kind.
func TestServedOnce(t *testing.T) {
	two := "apiVersion: x.io/v1\nkind: One\nmetadata: {name: a}\n---\napiVersion: x.io/v1\nkind: Two\nmetadata: {name: b}\n"
	for reason, tc := range map[string]struct {
		err  error
		want int
	}{
		"no answer":                 {errors.New("connection refused"), 1},
		"a kind that is not served": {&meta.NoKindMatchError{}, 2},
	} {
		asked := map[string]bool{}
		_, err := Of(Subject{Namespace: "ns", Name: "i", Version: applying(two)}, Known{Served: func(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
			asked[kind.Kind] = true
			return nil, tc.err
		}})
		if err != nil || len(asked) != tc.want {
			t.Errorf("%s: %d kinds are asked for, want %d: %v", reason, len(asked), tc.want, err)
		}
	}
}

// TestBudget checks that a package that needs hours is refused in seconds: tasks that are listed many thousand times, templates that take long,
// and children that have children, each many times.
func TestBudget(t *testing.T) {
	many := func(v *v1beta1.OperatorVersionSpec, n int) *v1beta1.OperatorVersionSpec {
		for name, plan := range v.Plans {
			plan.Phases[0].Steps[0].Tasks = slices.Repeat(plan.Phases[0].Steps[0].Tasks, n)
			v.Plans[name] = plan
		}
		return v
	}
	costly := "# {{ range until 5000 }}{{ . | toString | repeat 1000 | sha256sum }}{{ end }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	deep := func(name string) *v1beta1.OperatorVersionSpec {
		var n int
		if _, err := fmt.Sscanf(name, "p%d-1.0.0", &n); err != nil {
			return nil
		}
		return many(depending(v1beta1.TaskSpec{Package: fmt.Sprintf("p%d", n+1), OperatorVersion: "1.0.0"}, nil), 100)
	}
	for reason, version := range map[string]*v1beta1.OperatorVersionSpec{"costly templates": many(applying(costly), 10_000), "children of children": deep("p0-1.0.0")} {
		_, err := Of(Subject{Namespace: "ns", Name: "i", Version: version}, Known{Versions: deep})
		if err == nil || !strings.Contains(err.Error(), "take too much work") {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
