package helmrelease

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/lint"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
)

// testScope knows the kinds of the tests.
func testScope(kind schema.GroupVersionKind) (bool, error) {
	switch kind.Kind {
	case "ClusterRole", "Namespace", "CustomResourceDefinition":
		return false, nil
	case "Unknown":
		return false, fmt.Errorf("no matches for kind %s", kind.Kind)
	}
	return true, nil
}

func testRelease(manifest string, hooks ...Hook) *Release {
	out := &Release{Name: "web.shop", Namespace: "lab", Version: 2, Manifest: manifest, Hooks: hooks}
	out.Chart.Metadata.Name, out.Chart.Metadata.Version, out.Chart.Metadata.AppVersion = "web", "1.2.3+build", "v4"
	return out
}

func parseLifts(t *testing.T, in ...string) (out []Lift) {
	t.Helper()
	for _, text := range in {
		lift, err := ParseLift(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, lift)
	}
	return out
}

// convert makes a package, and checks that it can be read and has no errors.
func convert(t *testing.T, r *Release, lifts ...Lift) (*Converted, *operators.Package) {
	t.Helper()
	converted, err := Convert(r, testScope, lifts)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for name, content := range converted.Files {
		files[name] = &fstest.MapFile{Data: content}
	}
	pkg, err := operators.Read(files)
	if err != nil {
		t.Fatalf("the package cannot be read: %v\n%s", err, converted.Files["operator.yaml"])
	}
	if found := lint.Lint(pkg); len(found.Errors) > 0 {
		t.Errorf("the package has errors: %v\n%s", found.Errors, converted.Files["operator.yaml"])
	}
	return converted, pkg
}

// rendered renders a template of a package.
func rendered(t *testing.T, pkg *operators.Package, template, plan string, given map[string]string) string {
	t.Helper()
	values, err := params.Resolve(pkg.Definitions(), given)
	if err != nil {
		t.Fatal(err)
	}
	text, err := render.New(pkg.Templates).Text(template, render.Variables{Name: "i", Namespace: "lab", Params: values, PlanName: plan})
	if err != nil {
		t.Fatalf("template %s: %v\n%s", template, err, pkg.Templates[template])
	}
	return text
}

func asValue(t *testing.T, text string) (out any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// TestObjects is P31: templates render to the objects of the release, whatever their texts are.
func TestObjects(t *testing.T) {
	for _, tc := range []struct{ reason, file, manifest string }{
		{"P31: a plain object", "configmap-a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v, n: '1', y: 'yes'}"},
		{"P31: template characters", "configmap-a.yaml",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: '{{ $labels.x }} {{{{ }} {{- /* x */ -}}', '{{ key }}': '{{\"'}"},
		{"P31: text of several lines", "configmap-a.yaml",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: |\n    {{ range .Alerts }}\n      a\n    {{ end }}\n\n    b\n"},
		{"P31: what stands for parameters", "configmap-a.yaml",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: kudo-parameter-0-0-end}"},
		{"P31: a name that is no name of a file", "role-a-b.yaml",
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: 'a:b'}\nrules: []"},
		{"P31: aliases", "configmap-a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: &x v, l: *x}"},
	} {
		_, pkg := convert(t, testRelease(tc.manifest))
		got := rendered(t, pkg, tc.file, "deploy", nil)
		if diff := cmp.Diff(asValue(t, tc.manifest), asValue(t, got)); diff != "" {
			t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, pkg.Templates[tc.file])
		}
	}
}

// TestPlaces is P31: which objects the plan deploy applies, which the install plan, and which are no part of the package.
func TestPlaces(t *testing.T) {
	manifest := `
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
data: {password: c2VjcmV0}
---
apiVersion: v1
kind: ConfigMapList
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: lab, annotations: {helm.sh/resource-policy: keep}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}
---
# nothing
---
apiVersion: example.org/v1
kind: Thing
metadata: {name: t, namespace: ignored}
`
	r := testRelease(manifest)
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.org}\n" +
		"spec: {group: example.org, scope: Cluster, names: {kind: Thing, plural: things}, versions: []}\n"
	r.Chart.Files = []File{{"README.md", []byte("{{")}, {"crds/things.yaml", []byte(crd)}}
	converted, pkg := convert(t, r)
	if got := tasksOf(pkg); got != "definitions[customresourcedefinition-things.example.org.yaml] "+
		"shared[namespace-other.yaml configmap-a-2.yaml thing-t.yaml] objects[configmap-a.yaml]" {
		t.Errorf("the tasks are %s", got)
	}
	if pkg.Operator.Name != "web-shop" || pkg.Operator.OperatorVersion != "1.2.3" || pkg.Operator.AppVersion != "4.0.0" || pkg.Operator.InstallPlan != "install" {
		t.Errorf("the package is %+v", pkg.Operator)
	}
	kept := asValue(t, rendered(t, pkg, "configmap-a.yaml", "deploy", nil)).(map[string]any)["metadata"].(map[string]any)
	want := map[string]any{"name": "a", "annotations": map[string]any{"helm.sh/resource-policy": "keep", "kudo.dev/keep": "true"}}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("an object that is kept: -want +got:\n%s", diff)
	}
	for name, content := range converted.Files {
		if strings.Contains(string(content), "c2VjcmV0") || strings.Contains(string(content), "secret") {
			t.Errorf("%s has the value of a Secret:\n%s", name, content)
		}
	}
	notes := strings.Join(converted.Notes, "\n")
	for _, text := range []string{"Secret key is no part of the package", "ConfigMap a lives in namespace other"} {
		if !strings.Contains(notes, text) {
			t.Errorf("the notes lack %q: %s", text, notes)
		}
	}
	if len(converted.Objects) != 5 || converted.Objects[4].Namespace != "" || !converted.Objects[4].Installed || converted.Objects[2].Namespace != "lab" {
		t.Errorf("the objects are %+v", converted.Objects)
	}
}

// tasksOf are the tasks of a package with their templates.
func tasksOf(pkg *operators.Package) string {
	var out []string
	for _, task := range pkg.Operator.Tasks {
		out = append(out, fmt.Sprintf("%s%v", task.Name, task.Spec.Resources))
	}
	return strings.Join(out, " ")
}

// TestParameters is P31: a lifted value is a parameter of its type, with the present value as its default.
func TestParameters(t *testing.T) {
	manifest := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2, paused: false, template: {spec: {containers: " +
		"[{name: c, image: 'a:1', args: ['{{ x }}', \"on\"]}]}}}\n"
	_, pkg := convert(t, testRelease(manifest), parseLifts(t, "REPLICAS=Deployment/web:spec.replicas", "PAUSED=Deployment/web:spec.paused",
		"IMAGE=Deployment/web:spec.template.spec.containers[0].image", "ARG=Deployment/web:spec.template.spec.containers[0].args[1]")...)
	if diff := cmp.Diff(asValue(t, manifest), asValue(t, rendered(t, pkg, "deployment-web.yaml", "deploy", nil))); diff != "" {
		t.Errorf("with the defaults: -want +got:\n%s", diff)
	}
	changed := asValue(t, rendered(t, pkg, "deployment-web.yaml", "deploy", map[string]string{"REPLICAS": "5", "IMAGE": "a: \"b\"\n{{ c", "PAUSED": "true"}))
	spec := changed.(map[string]any)["spec"].(map[string]any)
	image := spec["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["image"]
	if spec["replicas"] != float64(5) || spec["paused"] != true || image != "a: \"b\"\n{{ c" {
		t.Errorf("with other values: %v", changed)
	}
	var types []string
	for _, p := range pkg.Definitions() {
		types = append(types, p.Name+"="+string(p.Type))
	}
	slices.Sort(types)
	if got := strings.Join(types, " "); got != "ARG=string IMAGE=string PAUSED=boolean REPLICAS=integer" {
		t.Errorf("the parameters are %s", got)
	}
}

// TestConvertErrors is P31: a release that no package can be made of.
func TestConvertErrors(t *testing.T) {
	for _, tc := range []struct{ reason, manifest, want string }{
		{"P31: no YAML", "a: [", "the manifest of the release: line 1"},
		{"P31: no object", "- a", "document 1 is no object"},
		{"P31: no name", "apiVersion: v1\nkind: ConfigMap", "lacks its apiVersion, kind or name"},
		{"P31: a kind that the cluster does not serve", "apiVersion: v1\nkind: Unknown\nmetadata: {name: a}", "whether Unknown a has a namespace"},
		{"P31: too many objects", strings.Repeat("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", maxObjects+1), "more than 2000 objects"},
	} {
		if _, err := Convert(testRelease(tc.manifest), testScope, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// FuzzConvert is P31: a hostile release neither crashes nor makes a package that cannot be read.
func FuzzConvert(f *testing.F) {
	f.Add([]byte(`{"name": "web", "namespace": "lab", "version": 1, "manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: '{{'}"}`))
	f.Add([]byte(`{"name": "..", "version": 1, "hooks": [{"name": "h", "events": ["pre-install"], "manifest": "apiVersion: v1\nkind: Pod\nmetadata: {name: ../a}"}]}`))
	f.Add([]byte(`{"name": "web", "version": 1, "manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b,*b]"}`))
	f.Add([]byte(`{"name": "web", "version": 1, "hooks": [{}, {"events": [], "delete_policies": null}], "chart": {"files": [{"name": "crds/a.yaml", "data": "e30="}, {}]}}`))
	f.Add([]byte(`{"name": "web", "version": 1, "manifest": "apiVersion: v1\nkind: ConfigMapList\nitems: [&a {apiVersion: v1, kind: ConfigMap, metadata: {name: a-2}}, *a, *a]"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		release, err := Decode(stored(string(text)))
		if err != nil {
			return
		}
		converted, err := Convert(release, testScope, []Lift{{Parameter: "A", Kind: "ConfigMap", Name: "a", Path: "data.k", steps: []any{"data", "k"}}})
		if err != nil {
			return
		}
		files := fstest.MapFS{}
		for name, content := range converted.Files {
			if strings.Contains(name, "..") || strings.Count(name, "/") > 1 {
				t.Errorf("the package has the file %q", name)
			}
			files[name] = &fstest.MapFile{Data: content}
		}
		pkg, err := operators.Read(files)
		if err != nil {
			t.Fatalf("the package cannot be read: %v", err)
		}
		for name := range pkg.Templates {
			values, err := params.Resolve(pkg.Definitions(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := render.New(pkg.Templates).Text(name, render.Variables{Name: "i", Namespace: "lab", Params: values, PlanName: "update"}); err != nil {
				t.Errorf("template %s: %v", name, err)
			}
		}
	})
}
