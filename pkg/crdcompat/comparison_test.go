package crdcompat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// named returns a definition of another name.
func named(t *testing.T, name, f string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := parse(t, definition(f))
	crd.Name = name
	return crd
}

// TestCompareAll checks that definitions are matched by name, and listed in the order of names.
func TestCompareAll(t *testing.T) {
	const narrow, wide = "{type: string, maxLength: 2}", "{type: string, maxLength: 3}"
	old := Definitions{"a": named(t, "a", wide), "b": named(t, "b", wide), "c": named(t, "c", narrow), "d": named(t, "d", narrow)}
	new := Definitions{"b": named(t, "b", narrow), "c": named(t, "c", wide), "d": named(t, "d", narrow), "e": named(t, "e", narrow)}
	type row struct {
		Name, Change   string
		Breaking, Safe int
		IsSafe         bool
	}
	var got []row
	for _, c := range CompareAll(old, new) {
		got = append(got, row{c.Name, c.Change, len(c.BreakingChanges), len(c.SafeChanges), c.Safe()})
	}
	want := []row{{"a", Removed, 0, 0, true}, {"b", Kept, 1, 0, false}, {"c", Kept, 0, 1, true}, {"d", Kept, 0, 0, true}, {"e", Added, 0, 0, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestComparisonJSON checks that lists without items are lists, and that objects that were not checked are left out.
func TestComparisonJSON(t *testing.T) {
	text, err := json.Marshal(CompareAll(Definitions{"a": named(t, "a", "{type: string}")}, nil))
	if want := `[{"name":"a","change":"removed","breakingChanges":[],"safeChanges":[]}]`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	if text, err := json.Marshal(CompareAll(nil, nil)); err != nil || string(text) != "[]" {
		t.Errorf("%s, %v", text, err)
	}
}

// TestComparisonSafe checks that objects that would break make a comparison unsafe, too.
func TestComparisonSafe(t *testing.T) {
	for name, tc := range map[string]struct {
		comparison Comparison
		want       bool
	}{
		"nothing was found":     {Comparison{}, true},
		"objects are valid":     {Comparison{Objects: &Findings{Checked: 3}}, true},
		"an object is not":      {Comparison{Objects: &Findings{Checked: 3, Invalid: 1}}, false},
		"objects are unchecked": {Comparison{Objects: &Findings{Unchecked: []string{"v2"}}}, false},
		"a change breaks":       {Comparison{BreakingChanges: BreakingChanges{{Rule: RuleType}}, Objects: &Findings{}}, false},
		"a change does not":     {Comparison{SafeChanges: []Change{{Path: "a"}}}, true},
	} {
		if got := tc.comparison.Safe(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// cluster is a fake one that has a definition, and objects of its kind.
func cluster(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, funcs interceptor.Funcs, objects ...map[string]any) ctrlclient.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, kind := range []schema.GroupVersionKind{
		{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind},
		apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
	} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		list := kind
		list.Kind += "List"
		scheme.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		t.Fatal(err)
	}
	live := &unstructured.Unstructured{Object: content}
	live.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(live).WithInterceptorFuncs(funcs)
	for _, object := range objects {
		builder = builder.WithObjects(&unstructured.Unstructured{Object: object})
	}
	return builder.Build()
}

// TestValidateLive checks the objects of a cluster against another definition.
func TestValidateLive(t *testing.T) {
	live := parse(t, definition("{type: object, properties: {a: {type: string}}}"))
	narrow := parse(t, definition("{type: object, properties: {a: {type: string, maxLength: 2}}}"))
	c := cluster(t, live, interceptor.Funcs{}, widget(t, "short", "{a: x}"), widget(t, "long", "{a: xxx}"))
	found, err := ValidateLive(t.Context(), c, narrow)
	if err != nil {
		t.Fatal(err)
	}
	if found.Checked != 2 || found.Invalid != 1 || found.Objects[0].Name != "long" || found.Objects[0].Namespace != "lab" {
		t.Errorf("the object with the long value would break: %+v", found)
	}
	if found, err := ValidateLive(t.Context(), c, live); err != nil || found.Checked != 2 || !found.Safe() {
		t.Errorf("no object breaks in the definition that is in force: %+v, %v", found, err)
	}
	if found, err := ValidateLive(t.Context(), c, named(t, "others.example.org", "{type: object}")); found != nil || err != nil {
		t.Errorf("a definition that the cluster does not have, has no objects: %+v, %v", found, err)
	}
}

// TestValidateLiveFails checks that an answer that is missing is no success.
func TestValidateLiveFails(t *testing.T) {
	crd := parse(t, definition("{type: object, properties: {a: {type: string}}}"))
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		reason string
		funcs  interceptor.Funcs
		want   string
	}{
		"Definition": {"the definition cannot be read", interceptor.Funcs{
			Get: func(context.Context, ctrlclient.WithWatch, ctrlclient.ObjectKey, ctrlclient.Object, ...ctrlclient.GetOption) error {
				return refused
			},
		}, "refused"},
		"Malformed": {"the definition has another form", interceptor.Funcs{
			Get: func(_ context.Context, _ ctrlclient.WithWatch, _ ctrlclient.ObjectKey, object ctrlclient.Object, _ ...ctrlclient.GetOption) error {
				object.(*unstructured.Unstructured).Object["spec"] = "text"
				return nil
			},
		}, "of the cluster cannot be read: "},
		"Objects": {"the objects cannot be listed", interceptor.Funcs{
			List: func(context.Context, ctrlclient.WithWatch, ctrlclient.ObjectList, ...ctrlclient.ListOption) error {
				return refused
			},
		}, "to check them against widgets.example.org: refused"},
	} {
		found, err := ValidateLive(t.Context(), cluster(t, crd, tc.funcs), crd)
		if found != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s: %+v, %v", name, tc.reason, found, err)
		}
	}
}

// TestListerPages checks that the limit and the token of a page reach the cluster.
func TestListerPages(t *testing.T) {
	crd := parse(t, definition("{type: object}"))
	var limit int64
	var token string
	c := cluster(t, crd, interceptor.Funcs{
		List: func(_ context.Context, _ ctrlclient.WithWatch, _ ctrlclient.ObjectList, options ...ctrlclient.ListOption) error {
			o := ctrlclient.ListOptions{}
			o.ApplyOptions(options)
			limit, token = o.Limit, o.Continue
			return nil
		},
	})
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	list, err := objectLister{c}.List(t.Context(), kind, 7, "next")
	if err != nil || limit != 7 || token != "next" || list.GetKind() != "WidgetList" {
		t.Errorf("limit %d, token %q of %s: %v", limit, token, list.GetKind(), err)
	}
}
