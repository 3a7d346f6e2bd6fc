package runner

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
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
		{"a parameter in a condition", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: '{{ .Name }}'}\n{{ if eq .Params.TAG \"1\" }}spec: {replicas: -1}{{ end }}\n",
			invalid(resources), map[string]string{"TAG": "1"}, plans.Fatal, "template set.yaml uses TAG"},
		{"a namespace that the engine replaces", strings.Replace(container, "metadata: {", "metadata: {namespace: other, ", 1), invalid(resources), map[string]string{"MEMORY": "x"}, plans.Fatal, memory},
		{"very many places", strings.Replace(container, "image: x", "args: [{{ range until 20000 }}'{{ $.Params.TAG }}',{{ end }}'']\n        image: x", 1), invalid(field.NewPath("spec", "replicas")),
			map[string]string{"TAG": "1"}, plans.Fatal, "spec.template.spec.containers[0].args[0]: template set.yaml uses TAG, spec.template.spec.containers[0].args[1]: template set.yaml uses TAG, " +
				"spec.template.spec.containers[0].args[2]: template set.yaml uses TAG and 97 more"},
		{"no parameter", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: '{{ .Name }}'}\n", invalid(resources), nil, plans.Fatal, "template set.yaml makes it"},
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
		(&PreparedTask{run: run, Name: "app"}).nameTemplates(&outcome, Effects{Failed: []apply.Change{failed}})
		want := "refused"
		if tc.want != "" {
			want += "; " + tc.want
		}
		if diff := cmp.Diff(want, outcome.Message); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
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
