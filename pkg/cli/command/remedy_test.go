package command

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/diagnostics"
	"kudo.dev/kudo/pkg/health/culprit"
	"kudo.dev/kudo/plans"
)

// defined is a parameter with a default.
func defined(name, value string, change ...func(*v1beta1.Parameter)) v1beta1.Parameter {
	def := v1beta1.Parameter{Name: name, Default: &value}
	for _, c := range change {
		c(&def)
	}
	return def
}

// TestRemedy (P22): the commands fit the cause and the state of the plan.
func TestRemedy(t *testing.T) {
	noImage := culprit.Finding{Culprit: v1beta1.Culprit{Container: "app", Reason: "ImagePullBackOff"}, Image: "nginx:none"}
	child := func(name string) culprit.Finding {
		return culprit.Finding{Culprit: v1beta1.Culprit{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Namespace: "lab", Name: name, Reason: "ImagePullBackOff"}, Image: "nginx:none"}
	}
	const (
		image  = "correct image nginx:none, or let the nodes pull it (registry, imagePullSecrets)"
		retry  = ", then kubectl kudo plan retry --instance site -n lab"
		watch  = "; the plan continues: kubectl kudo plan status --instance site -n lab --watch"
		update = ": kubectl kudo update --instance site -n lab -p IMAGE=…"
		back   = ", or kubectl kudo rollback --instance site -n lab"
	)
	for _, tc := range []struct {
		reason  string
		f       culprit.Finding
		defs    []v1beta1.Parameter
		running bool
		upgrade bool
		want    string
	}{
		{"a cause that is not known", culprit.Finding{}, nil, false, false, "correct the cause" + retry},
		{"while the plan runs", culprit.Finding{}, nil, true, false, "correct the cause" + watch},
		{"in an upgrade", culprit.Finding{}, nil, false, true, "correct the cause" + retry + back},
		{"an image that no parameter has", noImage, nil, false, false, image + retry},
		{"an image of a parameter", noImage, []v1beta1.Parameter{defined("IMAGE", "nginx:none")}, false, false, image + update},
		{"in an upgrade that runs", noImage, []v1beta1.Parameter{defined("IMAGE", "nginx:none")}, true, true, image + update + back},
		{"a sensitive parameter is not named", noImage, []v1beta1.Parameter{defined("IMAGE", "nginx:none", func(p *v1beta1.Parameter) { p.Sensitive = true })}, true, false, image + watch},
		{"nor one that is sensitive by its name", noImage, []v1beta1.Parameter{defined("PASSWORD", "nginx:none")}, true, false, image + watch},
		{"a cause that is no image", culprit.Finding{Culprit: v1beta1.Culprit{Container: "app", Reason: "OOMKilled"}, Image: "nginx:none"},
			[]v1beta1.Parameter{defined("IMAGE", "nginx:none")}, false, false, "raise the memory limit of container app, or let it use less" + retry},
		{"another Instance", child("db"), []v1beta1.Parameter{defined("IMAGE", "nginx:none")}, true, false, "correct what kubectl kudo plan status --instance db -n lab shows" + watch},
		{"another Instance whose name must not be copied", child("$(id)"), nil, false, false, image + retry},
	} {
		e := &explainer{redact: &diagnostics.Redactor{}, subject: "--instance site -n lab", definitions: tc.defs, upgrade: tc.upgrade}
		if got := e.remedy(tc.f, tc.running); got != tc.want {
			t.Errorf("%s:\n got %q\nwant %q", tc.reason, got, tc.want)
		}
	}
}

// TestFindImage (P22): the parameters that hold an image, or parts of it.
func TestFindImage(t *testing.T) {
	repository, tag := defined("REPOSITORY", "registry.example.com/shop/web"), defined("TAG", "1.27")
	for _, tc := range []struct {
		reason, image string
		defs          []v1beta1.Parameter
		values        map[string]string
		want          []string
	}{
		{"a later part that is the whole between separators", "reg/nginx-x/nginx:1.99", []v1beta1.Parameter{defined("NAME", "nginx")}, nil, []string{"NAME"}},
		{"a part of a word only", "reg/nginx-x:1.99", []v1beta1.Parameter{defined("NAME", "nginx")}, nil, nil},
		{"the default", "nginx:none", []v1beta1.Parameter{defined("IMAGE", "nginx:none")}, nil, []string{"IMAGE"}},
		{"the value counts, and not the default", "nginx:none", []v1beta1.Parameter{defined("IMAGE", "nginx:1"), defined("OTHER", "nginx:none")},
			map[string]string{"IMAGE": "nginx:none", "OTHER": "x"}, []string{"IMAGE"}},
		{"the whole image hides its parts", "nginx:none", []v1beta1.Parameter{defined("TAG", "none"), defined("IMAGE", "nginx:none")}, nil, []string{"IMAGE"}},
		{"parts", "registry.example.com/shop/web:1.27", []v1beta1.Parameter{repository, tag}, nil, []string{"REPOSITORY", "TAG"}},
		{"no more than three", "a/b/c/d", []v1beta1.Parameter{defined("A", "a"), defined("B", "b"), defined("C", "c"), defined("D", "d")}, nil, []string{"A", "B", "C"}},
		{"a number may be one of replicas", "redis:3", []v1beta1.Parameter{defined("REPLICAS", "3")}, nil, nil},
		{"a part of a word", "nginx:none", []v1beta1.Parameter{defined("A", "ngin"), defined("B", "one"), defined("C", "x:n")}, nil, nil},
		{"no value", "nginx:none", []v1beta1.Parameter{defined("A", ""), {Name: "B"}}, nil, nil},
		{"a parameter that cannot change", "nginx:none", []v1beta1.Parameter{defined("A", "nginx:none", func(p *v1beta1.Parameter) { p.Immutable = ptr.To(true) })}, nil, nil},
		{"a name that a user must not copy into a shell", "nginx:none", []v1beta1.Parameter{defined("A;id", "nginx:none"), defined(strings.Repeat("A", 65), "nginx:none")}, nil, nil},
		{"an image that is not known", "", []v1beta1.Parameter{defined("IMAGE", "nginx:none")}, nil, nil},
	} {
		if got := findImage(tc.image, tc.defs, tc.values); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestStoredCulprit checks that the culprit of a status, which others may write, adds no line (P22).
func TestStoredCulprit(t *testing.T) {
	e := &explainer{redact: &diagnostics.Redactor{}}
	stored := e.stored(plans.CulpritAt{Task: v1beta1.TaskStatus{Culprit: &v1beta1.Culprit{Container: "x\n  What to do: run this", Reason: "OOMKilled"}}})
	if do := stored.Remedy(); strings.Contains(do, "\n") || !strings.Contains(do, "raise the memory limit") {
		t.Errorf("got %q", do)
	}
}
