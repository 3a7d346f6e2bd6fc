package runner

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/enhance"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
	"kudo.dev/kudo/test/gen"
)

// TestNameTemplates checks what a failed task says of the template and the parameters of an object that the API server refuses: names and
// fields, no values, and not more than people read (P8).
func TestNameTemplates(t *testing.T) {
	const container = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: '{{ .Name }}'}\nspec:\n  template:\n    spec:\n      containers:\n" +
		"      - name: db\n        image: x:{{ .Params.TAG }}\n        resources: {limits: {memory: '{{ .Params.MEMORY }}', example.com/gpu: '{{ .Params.GPU }}'}}\n"
	const memory = "spec.template.spec.containers[0].resources.limits.memory: template set.yaml uses MEMORY"
	invalid := func(path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, "i", field.ErrorList{field.Invalid(path, "hunter2", "no")})
	}
	resources := field.NewPath("spec", "template", "spec", "containers").Index(0).Child("resources")
	for _, tc := range []struct {
		reason, template string
		err              error
		given            map[string]string
		state            plans.State
		want             string
	}{
		{"the field that the API server names", container, invalid(resources.Child("limits").Key("x")), map[string]string{"TAG": "1"}, plans.Fatal,
			"spec.template.spec.containers[0].image: template set.yaml uses TAG"},
		{"a field around it", container, invalid(resources), map[string]string{"TAG": "1", "MEMORY": "banana"}, plans.Fatal, memory},
		{"a field in it", container, invalid(resources.Child("limits", "memory", "x")), map[string]string{"TAG": "1", "MEMORY": "banana"}, plans.Fatal, memory},
		{"an answer without a field", container, apierrors.NewBadRequest("quantities must match"), map[string]string{"MEMORY": "banana"}, plans.Fatal, memory},
		{"nothing is set by the Instance: the defaults", container, invalid(resources), nil, plans.Fatal,
			memory + ", spec.template.spec.containers[0].resources.limits[example.com/gpu]: template set.yaml uses GPU"},
		{"a parameter in a condition", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: '{{ .Name }}'}\nspec: {template: {}{{ if eq .Params.TAG \"1\" }}, replicas: -1{{ end }}}\n",
			invalid(resources), map[string]string{"TAG": "1"}, plans.Fatal, "template set.yaml uses TAG"},
		{"a parameter twice in a field", strings.Replace(container, ":{{", ":{{ .Params.TAG }}{{ .Params.MEM }}{{", 1), invalid(resources), map[string]string{"TAG": "1"}, plans.Fatal,
			"spec.template.spec.containers[0].image: template set.yaml uses TAG"},
		{"a namespace that the engine replaces", strings.Replace(container, "metadata: {", "metadata: {namespace: other, ", 1), invalid(resources), map[string]string{"MEMORY": "x"}, plans.Fatal, memory},
		{"very many places", strings.Replace(container, "image: x", "args: [{{ range until 20000 }}'{{ $.Params.TAG }}',{{ end }}'']\n        image: x", 1), invalid(field.NewPath("spec", "replicas")),
			map[string]string{"TAG": "1"}, plans.Fatal, "spec.template.spec.containers[0].args[0]: template set.yaml uses TAG, spec.template.spec.containers[0].args[1]: template set.yaml uses TAG, " +
				"spec.template.spec.containers[0].args[2]: template set.yaml uses TAG and 97 more"},
		{"no parameter", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: '{{ .Name }}'}\nspec: {template: {}}\n", invalid(resources), nil, plans.Fatal, "template set.yaml makes it"},
		{"a denial of a webhook", container, &apierrors.StatusError{ErrStatus: apierrors.NewForbidden(schema.GroupResource{}, "i", errors.New("no")).ErrStatus}, map[string]string{"MEMORY": "x"}, plans.Fatal, memory},
		{"an object of another owner is no matter of its content", container, &apply.CollisionError{}, map[string]string{"TAG": "1"}, plans.Fatal, ""},
		{"a failure that passes", container, invalid(resources), map[string]string{"TAG": "1"}, plans.Transient, ""},
	} {
		version := gen.Version("ns", "db", gen.Param("TAG", "1", ""), gen.Param("MEMORY", "1Gi", ""), gen.Param("MEM", "1", ""), gen.Param("GPU", "1", ""),
			gen.Template("set.yaml", tc.template), gen.Template("other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Params.TAG }}'}\n"),
			gen.Apply("app", "other.yaml", "set.yaml"), gen.Serial("deploy", "app"))
		parsed, err := NewVersions().ForSpec(&version.Spec)
		if err != nil {
			t.Fatal(err)
		}
		run := &Run{Subject: Subject{Kind: "Instance", Namespace: "ns", Name: "i"}, Version: parsed, Plan: "deploy", Parameters: tc.given}
		if err := run.resolve(); err != nil {
			t.Fatal(err)
		}
		failed := apply.Change{ID: apply.ID{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}}, Err: &apply.FatalError{Err: tc.err}}
		failed.ID.Namespace, failed.ID.Name = "ns", "i"
		outcome := plans.Outcome{State: tc.state, Message: "refused"}
		made, err := run.render([]string{"other.yaml", "set.yaml"}, run.variables("deploy", "app"))
		if err != nil {
			t.Fatal(err)
		}
		namespaced := enhance.Context{Instance: failed.ID.NamespacedName, Scope: func(schema.GroupKind) (bool, error) { return true, nil }}
		if err := enhance.Enhance(made.objects, namespaced, nil); err != nil {
			t.Fatal(err)
		}
		(&PreparedTask{run: run, Name: "app", rendered: made.objects, templates: made.templates}).nameTemplates(&outcome, Effects{Failed: []apply.Change{failed}})
		want := "refused"
		if tc.want != "" {
			want += "; " + tc.want
		}
		if diff := cmp.Diff(want, outcome.Message); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}

// TestBlameOfNamespace checks that of two objects that differ by namespace, as an install plan may make them, the template of the refused
// one is blamed (P8).
func TestBlameOfNamespace(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: NS}\ndata: {key: '{{ .Params.VALUE }}'}\n"
	version := gen.Version("ns", "db", gen.Param("VALUE", "1", ""), gen.Template("one.yaml", strings.Replace(object, "NS", "one", 1)),
		gen.Template("two.yaml", strings.Replace(object, "NS", "two", 1)), gen.Apply("app", "one.yaml", "two.yaml"), gen.Serial("install", "app"))
	parsed, err := NewVersions().ForSpec(&version.Spec)
	if err != nil {
		t.Fatal(err)
	}
	run := &Run{Version: parsed, Plan: "install"}
	if err := run.resolve(); err != nil {
		t.Fatal(err)
	}
	made, err := run.render([]string{"one.yaml", "two.yaml"}, run.variables("install", "app"))
	if err != nil {
		t.Fatal(err)
	}
	w := &PreparedTask{run: run, Name: "app", rendered: made.objects, templates: made.templates}
	failed := apply.Change{ID: apply.IDOf(made.objects[1]), Err: &apply.FatalError{Err: apierrors.NewBadRequest("no")}}
	want := []Blame{{Field: "data.key", Template: "two.yaml", Parameters: []string{"VALUE"}}}
	if diff := cmp.Diff(want, w.Blame(failed, func(string) bool { return true })); diff != "" {
		t.Error(diff)
	}
}

// refusing is a writer that refuses all objects.
type refusing struct{ scripted }

func (r *refusing) preflight(_ context.Context, objs []*unstructured.Unstructured) apply.ChangeSet {
	return apply.ChangeSet{{ID: apply.IDOf(objs[0]), Err: &apply.FatalError{Err: apierrors.NewBadRequest("no")}}}
}

// unwatched is a mirror that watches nothing.
type unwatched struct{ apply.View }

func (unwatched) Watch(context.Context, ...schema.GroupVersionKind) {}

// TestBlamePod checks that the template of the pod of a Pipe task is blamed, though the engine names the pod (P8).
func TestBlamePod(t *testing.T) {
	u := run(nil)
	u.Installation = &v1beta1.Installation{}
	u.Version, u.Plan = version(t, map[string]string{"pod.yaml": "apiVersion: v1\nkind: Pod\nspec:\n  nodeName: '{{ .Params.NODE }}'\n" +
		"  initContainers: [{volumeMounts: [{name: v, mountPath: /out}]}]\n  volumes: [{name: v, emptyDir: {}}]\n"}, v1beta1.Task{Name: "pipe"}), "deploy"
	u.values = params.Values{"NODE": "a"}
	w := &PreparedTask{run: u, Name: "pipe", writer: &refusing{}}
	(&Runner{mirror: unwatched{}}).preparePipe(t.Context(), u, w, task.Pipe{Pod: "pod.yaml"}, u.variables("p", "pipe"))
	if len(w.effects.Failed) != 1 {
		t.Fatalf("the pod is not refused: %+v", w)
	}
	want := []Blame{{Field: "spec.nodeName", Template: "pod.yaml", Parameters: []string{"NODE"}}}
	if diff := cmp.Diff(want, w.Blame(w.effects.Failed[0], func(string) bool { return true })); diff != "" {
		t.Error(diff)
	}
}

// TestBlameIsBounded checks that a message names few of many fields and parameters, and no control characters (P8).
func TestBlameIsBounded(t *testing.T) {
	long := Blame{Field: "spec\x1b[2J", Template: strings.Repeat("x", 1000), Parameters: []string{"A"}}
	if got := long.String(); len(got) > maxBlame || strings.Contains(got, "\x1b") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	many := Blame{Template: "t.yaml", Parameters: strings.Split("A B C D E F G", " ")}
	if got := many.String(); got != "template t.yaml uses A, B, C, D, E and 2 more" {
		t.Error(got)
	}
}

// TestNamesParameter checks that a parameter is blamed only where a template names it, and not one whose name begins like it (P8).
func TestNamesParameter(t *testing.T) {
	for template, want := range map[string]bool{
		"cpu: {{ .Params.MEM }}": true, "cpu: {{ .Params.MEMORY }}": false, "{{ .Params.MEM_MAX }} {{.Params.MEM}}": true, "{{ .Params.MEM2 }}": false,
		"{{ if .Params.MEM": true, "MEM": false, "{{ .Params.MEMé }}": false, "{{ .Params.MEM | quote }}": true, "": false,
	} {
		if got := namesParameter(template, "MEM"); got != want {
			t.Errorf("%q names MEM: %t, want %t", template, got, want)
		}
	}
}
