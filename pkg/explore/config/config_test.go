package config

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
	"kudo.dev/kudo/pkg/explore/lua"
)

func host() *lua.Host {
	return lua.New(func() time.Time { return time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC) }, lua.DefaultLimits())
}

func named(name string, spec v1alpha1.ConfigSpec) v1alpha1.Config {
	c := v1alpha1.Config{Spec: spec}
	c.Name = name
	return c
}

const (
	desired = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"lab"},"spec":{"replicas":2,"paused":false}}`
	live    = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"lab"},"spec":{"replicas":5,"paused":true}}`
)

func full() v1alpha1.Config {
	return named("deployments", v1alpha1.ConfigSpec{
		Retentions: []v1alpha1.LocalValueRetention{{APIVersion: "apps/v1", Kind: "Deployment", Fields: []string{"{.spec.replicas}"}, RetentionLua: "desiredObj.spec.paused = desiredObj.spec.replicas == 5 return desiredObj"}},
		Explorations: []v1alpha1.Exploration{{
			APIVersion: "apps/v1", Kind: "Deployment",
			HealthLua: "return observedObj.spec.replicas == 2, 'no'", ReplicaLua: "return desiredObj.spec.replicas", StatusLua: "return {n = observedObj.spec.replicas}",
			ReplicaRevisingLua: "desiredObj.spec.replicas = desiredReplica return desiredObj", DependenciesLua: "return {{apiVersion = 'v1', kind = 'Secret', name = 's'}}",
			PackingLua: "desiredObj.spec.extra = 1 return desiredObj", StatusAggregatingLua: "desiredObj.status = {n = #statusItems} return desiredObj",
		}},
	})
}

// TestConformance is what all layers pass.
func TestConformance(t *testing.T) {
	broken := named("broken", v1alpha1.ConfigSpec{Explorations: []v1alpha1.Exploration{{APIVersion: "x/v1", Kind: "Broken", HealthLua: "retrun true", StatusLua: "error('no')"}}})
	layer := New(host(), []v1alpha1.Config{full(), broken}, nil)
	object := func() *unstructured.Unstructured { return exploretest.Object(t, desired) }
	wrong := exploretest.Object(t, `{"apiVersion":"x/v1","kind":"Broken","metadata":{"name":"b"}}`)
	spec := func(want string) func(*testing.T, explore.Answer) {
		return func(t *testing.T, a explore.Answer) {
			if got := exploretest.Text(t, a.Object.Object["spec"]); got != exploretest.Text(t, exploretest.Object(t, `{"kind":"x","apiVersion":"v1","spec":`+want+`}`).Object["spec"]) {
				t.Errorf("got %s, want %s", got, want)
			}
			if a.Who != "Config/deployments" {
				t.Errorf("who: %q", a.Who)
			}
		}
	}
	exploretest.Run(t, layer,
		exploretest.Case{Name: "retain: fields, then the script", Request: explore.Request{Operation: explore.Retaining, Object: object(), Observed: exploretest.Object(t, live)}, Check: spec(`{"replicas":5,"paused":true}`)},
		exploretest.Case{Name: "pack", Request: explore.Request{Operation: explore.Packing, Object: object()}, Check: spec(`{"replicas":2,"paused":false,"extra":1}`)},
		exploretest.Case{Name: "revise", Request: explore.Request{Operation: explore.ReplicaRevising, Object: object(), Replicas: 0}, Check: spec(`{"replicas":0,"paused":false}`)},
		exploretest.Case{Name: "health", Request: explore.Request{Operation: explore.Healthy, Object: object()}},
		exploretest.Case{Name: "replicas", Request: explore.Request{Operation: explore.Replica, Object: object()}},
		exploretest.Case{Name: "status", Request: explore.Request{Operation: explore.Status, Object: object()}},
		exploretest.Case{Name: "dependencies", Request: explore.Request{Operation: explore.Dependencies, Object: object()}},
		exploretest.Case{Name: "aggregate", Request: explore.Request{Operation: explore.StatusAggregating, Object: object(), Items: exploretest.Items([]string{"a"}, `{}`)}},
		exploretest.Case{Name: "does not compile", Request: explore.Request{Operation: explore.Healthy, Object: wrong}, Unknown: true},
		exploretest.Case{Name: "fails", Request: explore.Request{Operation: explore.Status, Object: wrong}, Unknown: true},
	)
}

func TestValidateAndConflicts(t *testing.T) {
	health := func(kind, script string) v1alpha1.ConfigSpec {
		return v1alpha1.ConfigSpec{Explorations: []v1alpha1.Exploration{{APIVersion: "x/v1", Kind: kind, HealthLua: script}}}
	}
	both := v1alpha1.ConfigSpec{
		Retentions:   []v1alpha1.LocalValueRetention{{APIVersion: "x/v1", Kind: "A", Fields: []string{"{.spec}"}}},
		Explorations: []v1alpha1.Exploration{{APIVersion: "x/v1", Kind: "A", RetainingLua: "return desiredObj"}},
	}
	for name, tc := range map[string]struct {
		reason             string
		config             v1alpha1.Config
		others             []v1alpha1.Config
		warnings, problems []string
	}{
		"Good":     {"what is right", full(), []v1alpha1.Config{full(), named("b", health("B", "return true"))}, nil, nil},
		"Typo":     {"globals that are not defined", named("a", health("A", "return obsrved.x")), nil, []string{"spec.explorations[0].healthLua: line 1: obsrved is not defined"}, nil},
		"Syntax":   {"scripts compile", named("a", health("A", "return )")), nil, nil, []string{`spec.explorations[0].healthLua: line 1: syntax error near ")"`}},
		"Field":    {"paths are read", named("a", v1alpha1.ConfigSpec{Retentions: []v1alpha1.LocalValueRetention{{APIVersion: "v1", Kind: "A", Fields: []string{"{.a}", "{..a}"}}}}), nil, nil, []string{`spec.retentions[0].fields[1]: field "{..a}": ".." would match at any depth: write the whole path`}},
		"Nothing":  {"a retention retains", named("a", v1alpha1.ConfigSpec{Retentions: []v1alpha1.LocalValueRetention{{APIVersion: "v1", Kind: "A"}}}), nil, nil, []string{"spec.retentions[0]: fields or retentionLua must be set"}},
		"Kind":     {"a kind is needed", named("a", health("", "return true")), nil, nil, []string{"spec.explorations[0].healthLua: apiVersion and kind must be set, as apps/v1 and Deployment"}},
		"Itself":   {"one answer in a Config", named("a", both), nil, nil, []string{"ExploreRetaining of x/v1 A is answered twice by Config/a, in spec.retentions[0] and spec.explorations[0].retainingLua: leave one"}},
		"Conflict": {"one Config for a kind and operation", named("a", health("A", "return true")), []v1alpha1.Config{named("b", health("A", "return false"))}, nil, []string{"ExploreHealthy of x/v1 A is answered by Config/a (spec.explorations[0].healthLua) and by Config/b (spec.explorations[0].healthLua): leave one of them"}},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, problems := Validate(&tc.config)
			problems = append(problems, Conflicts(&tc.config, tc.others)...)
			var got []string
			for _, p := range problems {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(tc.problems, got); diff != "" {
				t.Errorf("%s: problems (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChanges exchanges layers.
func TestChanges(t *testing.T) {
	health := func(name, kind, script string) v1alpha1.Config {
		return named(name, v1alpha1.ConfigSpec{Explorations: []v1alpha1.Exploration{{APIVersion: "x/v1", Kind: kind, HealthLua: script}}})
	}
	var current SwappableLayer
	r := explore.Request{Operation: explore.Healthy, Object: exploretest.Object(t, `{"apiVersion":"x/v1","kind":"A","metadata":{"name":"a"}}`)}
	if _, _, err := current.Explore(t.Context(), r); fmt.Sprint(err) != "ExploreHealthy of A a is unknown: user: the Configs have not been read yet" {
		t.Errorf("before the first layer: %v", err)
	}
	first := New(host(), []v1alpha1.Config{health("a", "A", "return true"), health("b", "B", "return true")}, nil)
	if current.Set(first) != nil {
		t.Error("there was a layer before the first")
	}
	if a, known, err := current.Explore(t.Context(), r); !a.Healthy || !known || err != nil {
		t.Errorf("with a layer: %v %v %v", a, known, err)
	}
	second := New(host(), []v1alpha1.Config{health("c", "A", "return false"), health("a", "A", "return true"), health("b", "B", "return true")}, first)
	if former := current.Set(second); former != first {
		t.Error("Set returns the former layer")
	}
	if diff := cmp.Diff("[x/v1, Kind=A]", fmt.Sprint(second.Changed(first))); diff != "" {
		t.Errorf("changed kinds:\n%s", diff)
	}
	if diff := cmp.Diff("[x/v1, Kind=A x/v1, Kind=B]", fmt.Sprint(second.Kinds())); diff != "" {
		t.Errorf("kinds:\n%s", diff)
	}
	want := "ExploreHealthy of A a is unknown: user Config/a: ExploreHealthy of x/v1 A is answered by Config/a (spec.explorations[0].healthLua) and by Config/c (spec.explorations[0].healthLua): leave one of them"
	if _, _, err := current.Explore(t.Context(), r); fmt.Sprint(err) != want {
		t.Errorf("two that answer the same: %v", err)
	}
	third := New(host(), []v1alpha1.Config{health("b", "B", "return true")}, second)
	if diff := cmp.Diff("[x/v1, Kind=A]", fmt.Sprint(third.Changed(second))); diff != "" {
		t.Errorf("a kind that no Config names any more:\n%s", diff)
	}
}
