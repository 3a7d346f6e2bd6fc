package explore_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// TestNormalizeAggregation (C55): the chain takes only status of an aggregation, and names what else differs.
func TestNormalizeAggregation(t *testing.T) {
	const head = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","generation":3},"spec":{"x":1}`
	for name, tc := range map[string]struct {
		reason, before, after, want string
		ignored                     []string
	}{
		"Status": {"the status", head + `}`, head + `,"status":{"n":1}}`, head + `,"status":{"n":1}}`, nil},
		"NoSpec": {
			"a missing spec", head + `}`, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"status":{"n":1}}`,
			head + `,"status":{"n":1}}`, []string{"spec is missing in the result: only status is taken"},
		},
		"Identity": {
			"another object", head + `}`, `{"apiVersion":"v2","kind":"Y","metadata":{"name":"b"},"spec":{"x":2},"more":1,"status":{"n":1}}`,
			head + `,"status":{"n":1}}`, []string{
				"apiVersion is changed in the result: only status is taken", "kind is changed in the result: only status is taken",
				"metadata is changed in the result: only status is taken", "more is changed in the result: only status is taken",
				"spec is changed in the result: only status is taken",
			},
		},
		"Removed":    {"a status that is removed", head + `,"status":{"n":1}}`, head + `}`, head + `}`, nil},
		"Generation": {"a generation that is set does not matter", head + `}`, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","generation":0},"spec":{"x":1}}`, head + `}`, nil},
		"Empty":      {"an empty field is an absent one", head + `,"data":{}}`, head + `}`, head + `,"data":{}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := exploretest.Object(t, tc.before)
			chain := explore.Chain{fixed{known: true, answer: explore.Answer{Object: exploretest.Object(t, tc.after)}}}
			got, known, err := chain.Explore(t.Context(), explore.Request{Operation: explore.StatusAggregating, Object: before})
			if err != nil || !known {
				t.Fatalf("%s: known %v, error %v", tc.reason, known, err)
			}
			if diff := cmp.Diff(exploretest.Object(t, tc.want), got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.ignored, got.Ignored); diff != "" {
				t.Errorf("%s: ignored (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(exploretest.Object(t, tc.before), before); diff != "" {
				t.Errorf("%s: the request was changed:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNormalizeDependencies (C56): whatever layer answers, dependencies are a set in one order.
func TestNormalizeDependencies(t *testing.T) {
	named := func(apiVersion, kind, namespace, name string) v1alpha1.DependentObjectReference {
		return v1alpha1.DependentObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	}
	selected := func(text string) v1alpha1.DependentObjectReference {
		d := named("v1", "Pod", "n", "")
		d.LabelSelector = &metav1.LabelSelector{}
		if err := json.Unmarshal([]byte(text), d.LabelSelector); err != nil {
			t.Fatal(err)
		}
		return d
	}
	list := []v1alpha1.DependentObjectReference{
		named("v1", "Secret", "n", "b"), selected(`{"matchLabels":{"a":"1","b":"2"}}`), named("apps/v1", "Secret", "n", "b"),
		selected(`{"matchLabels":{"b":"2","a":"1"},"matchExpressions":[]}`), named("v1", "Secret", "m", "b"), named("v1", "Secret", "n", "b"),
		named("v1", "Secret", "n", "a"), selected(`{"matchLabels":{"a":"1"}}`), named("v1", "ConfigMap", "n", "b"),
	}
	want := []v1alpha1.DependentObjectReference{list[2], list[8], list[1], list[7], list[4], list[6], list[0]}
	chain := explore.Chain{fixed{known: true, answer: explore.Answer{Dependencies: list}}}
	object := exploretest.Object(t, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`)
	got, _, err := chain.Explore(t.Context(), explore.Request{Operation: explore.Dependencies, Object: object})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Dependencies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
