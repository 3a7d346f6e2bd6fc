package config

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

func retentions(list ...v1alpha1.LocalValueRetention) v1alpha1.ConfigSpec {
	return v1alpha1.ConfigSpec{Retentions: list}
}

// TestValidatePlaces has one mistake for each script of a Config, whose place must be named.
func TestValidatePlaces(t *testing.T) {
	e := v1alpha1.Exploration{
		APIVersion: "x/v1", Kind: "A", PackingLua: ")", RetainingLua: ")", HealthLua: ")", DependenciesLua: ")",
		ReplicaLua: ")", ComponentsLua: ")", ReplicaRevisingLua: ")", StatusLua: ")", StatusAggregatingLua: ")",
	}
	c := named("a", v1alpha1.ConfigSpec{Explorations: []v1alpha1.Exploration{{APIVersion: "x/v1", Kind: "B"}, e}})
	_, problems := Validate(&c)
	var got, want []string
	for _, p := range problems {
		got = append(got, p.Error())
	}
	for _, field := range []string{
		"packingLua", "retainingLua", "healthLua", "dependenciesLua", "replicaLua", "componentsLua", "replicaRevisingLua", "statusLua", "statusAggregatingLua",
	} {
		want = append(want, fmt.Sprintf("spec.explorations[1].%s: line 1: syntax error near %q", field, ")"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValidateRetentions(t *testing.T) {
	const kind = ": apiVersion and kind must be set, as apps/v1 and Deployment"
	whole := v1alpha1.LocalValueRetention{APIVersion: "v1", Kind: "A", Fields: []string{"{.spec}"}}
	change := func(f func(*v1alpha1.LocalValueRetention)) v1alpha1.LocalValueRetention {
		changed := whole
		f(&changed)
		return changed
	}
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.ConfigSpec
		want   []string
	}{
		"Whole": {"a whole retention", retentions(whole), nil},
		"Script": {
			"a script in place of fields",
			retentions(change(func(r *v1alpha1.LocalValueRetention) { r.Fields, r.RetentionLua = nil, "return desiredObj" })),
			nil,
		},
		"Version": {
			"without a version",
			retentions(change(func(r *v1alpha1.LocalValueRetention) { r.APIVersion = "" })),
			[]string{"spec.retentions[0]" + kind},
		},
		"Slashes": {
			"a version of three parts",
			retentions(change(func(r *v1alpha1.LocalValueRetention) { r.APIVersion = "a/b/c" })),
			[]string{"spec.retentions[0]" + kind},
		},
		"Twice": {
			"the same kind twice",
			retentions(whole, whole),
			[]string{"ExploreRetaining of v1 A is answered twice by Config/a, in spec.retentions[0] and spec.retentions[1]: leave one"},
		},
		"Field": {
			"the first field that is wrong",
			retentions(whole, change(func(r *v1alpha1.LocalValueRetention) { r.Kind, r.Fields = "B", []string{"a", "{", "["} })),
			[]string{`spec.retentions[1].fields[1]: field "{": there is no closing brace`},
		},
		"Both": {
			"a wrong script beside fields",
			retentions(change(func(r *v1alpha1.LocalValueRetention) { r.RetentionLua = "x = 1" })),
			[]string{"spec.retentions[0]: the script must define function Retain(desiredObj, runtimeObj), or be its body and return a value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := named("a", tc.spec)
			_, problems := Validate(&c)
			var got []string
			for _, p := range problems {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConflictsOfMany compares a Config with others.
func TestConflictsOfMany(t *testing.T) {
	health := func(kind string) v1alpha1.ConfigSpec {
		return v1alpha1.ConfigSpec{Explorations: []v1alpha1.Exploration{{APIVersion: "v1", Kind: kind, HealthLua: "return true"}}}
	}
	own := named("own", health("A"))
	others := []v1alpha1.Config{named("z", health("A")), named("own", health("A")), named("b", health("B")), named("y", health("A"))}
	var got []string
	for _, err := range Conflicts(&own, others) {
		got = append(got, err.Error())
	}
	const field = "(spec.explorations[0].healthLua)"
	want := []string{
		"ExploreHealthy of v1 A is answered by Config/own " + field + " and by Config/z " + field + ": leave one of them",
		"ExploreHealthy of v1 A is answered by Config/own " + field + " and by Config/y " + field + ": leave one of them",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLayerAnswers has retentions by fields alone, and kinds that differ in their version.
func TestLayerAnswers(t *testing.T) {
	replicas := v1alpha1.LocalValueRetention{APIVersion: "apps/v1", Kind: "Deployment", Fields: []string{"{.spec.replicas}"}}
	byFields := named("f", retentions(replicas))
	layer := New(host(), []v1alpha1.Config{byFields}, nil)
	r := explore.Request{Operation: explore.Retaining, Object: exploretest.Object(t, desired), Observed: exploretest.Object(t, live)}
	answer, known, err := layer.Explore(t.Context(), r)
	if err != nil || !known || answer.Who != "Config/f" {
		t.Fatalf("known %v, error %v, answered by %q", known, err, answer.Who)
	}
	want := map[string]any{"replicas": int64(5), "paused": false}
	if diff := cmp.Diff(want, answer.Object.Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, known, err = layer.Explore(ctx, r)
	if got := fmt.Sprint(err); known || got != "ExploreRetaining of Deployment lab/web is unknown: user Config/f: context canceled" {
		t.Errorf("after the end of the context: known %v, error %s", known, got)
	}
	r.Object.SetAPIVersion("apps/v1beta1")
	if _, known, err := layer.Explore(t.Context(), r); known || err != nil {
		t.Errorf("another version of the kind: known %v, error %v", known, err)
	}
}

// TestThreeConfigs answers nothing where three Configs answer, in whatever order they come, and again once there is one.
func TestThreeConfigs(t *testing.T) {
	health := func(name, script string) v1alpha1.Config {
		return named(name, v1alpha1.ConfigSpec{Explorations: []v1alpha1.Exploration{{APIVersion: "x/v1", Kind: "A", HealthLua: script}}})
	}
	a, b, c := health("a", "return true"), health("b", "return true"), health("c", "return true")
	r := explore.Request{Operation: explore.Healthy, Object: exploretest.Object(t, `{"apiVersion":"x/v1","kind":"A","metadata":{"name":"a"}}`)}
	const field = "(spec.explorations[0].healthLua)"
	want := "ExploreHealthy of A a is unknown: user Config/a: ExploreHealthy of x/v1 A is answered by Config/a " + field +
		" and by Config/c " + field + ": leave one of them"
	var layers []*Layer
	for _, order := range [][]v1alpha1.Config{{a, b, c}, {c, b, a}, {b, a, c}} {
		layer := New(host(), order, nil)
		if _, _, err := layer.Explore(t.Context(), r); fmt.Sprint(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
		layers = append(layers, layer)
	}
	if changed := layers[1].Changed(layers[0]); len(changed) > 0 {
		t.Errorf("the order of Configs changes %v", changed)
	}
	two := New(host(), []v1alpha1.Config{a, b}, layers[0])
	if got := fmt.Sprint(two.Changed(layers[0])); got != "[x/v1, Kind=A]" {
		t.Errorf("without one of three: %s", got)
	}
	one := New(host(), []v1alpha1.Config{b}, two)
	if answer, known, err := one.Explore(t.Context(), r); !known || err != nil || !answer.Healthy || answer.Who != "Config/b" {
		t.Errorf("one Config: %+v %v %v", answer, known, err)
	}
}

// TestScriptsAreKept compiles the same script of the same operation once.
func TestScriptsAreKept(t *testing.T) {
	config := func(name, health, status string) v1alpha1.Config {
		e := v1alpha1.Exploration{APIVersion: "x/v1", Kind: "A", HealthLua: health, StatusLua: status}
		return named(name, v1alpha1.ConfigSpec{Explorations: []v1alpha1.Exploration{e}})
	}
	k := func(operation explore.Operation) key {
		return key{schema.FromAPIVersionAndKind("x/v1", "A"), operation}
	}
	first := New(host(), []v1alpha1.Config{config("a", "return true", "return true")}, nil)
	second := New(host(), []v1alpha1.Config{config("b", "return true", "return nil")}, first)
	if first.rules[k(explore.Healthy)].script != second.rules[k(explore.Healthy)].script {
		t.Error("a script was compiled again")
	}
	if first.rules[k(explore.Healthy)].script == first.rules[k(explore.Status)].script {
		t.Error("scripts of two operations are one")
	}
	if first.rules[k(explore.Status)].script == second.rules[k(explore.Status)].script {
		t.Error("a script that was changed is the former one")
	}
	var current SwappableLayer
	if current.Get() != nil || current.Layer() != explore.User {
		t.Error("a layer that was not set has a value, or another name")
	}
	if current.Set(second); current.Get() != second {
		t.Error("Get returns another layer than the one that was set")
	}
}
