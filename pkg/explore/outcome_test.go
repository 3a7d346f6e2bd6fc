package explore_test

import (
	"fmt"
	"strings"
	"testing"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// TestOutcome (C61): an answer about health has one of three outcomes, and a layer must not contradict itself.
func TestOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		healthy bool
		set     v1alpha1.HealthOutcome
		want    v1alpha1.HealthOutcome
		err     string
	}{
		"Nothing": {
			reason: "without an outcome, what is not healthy is expected to become so",
			want:   v1alpha1.HealthProgressing,
		},
		"OnlyHealthy": {
			reason:  "without an outcome, what is healthy is so",
			healthy: true,
			want:    v1alpha1.HealthHealthy,
		},
		"Failed": {
			reason: "what is not healthy may have failed",
			set:    v1alpha1.HealthFailed,
			want:   v1alpha1.HealthFailed,
		},
		"Progressing": {
			reason: "or progress",
			set:    v1alpha1.HealthProgressing,
			want:   v1alpha1.HealthProgressing,
		},
		"Healthy": {
			reason:  "the same in both",
			healthy: true,
			set:     v1alpha1.HealthHealthy,
			want:    v1alpha1.HealthHealthy,
		},
		"HealthyFailed": {
			reason:  "healthy objects have not failed",
			healthy: true,
			set:     v1alpha1.HealthFailed,
			err:     "health Failed contradicts healthy true",
		},
		"HealthyProgressing": {
			reason:  "nor do they progress",
			healthy: true,
			set:     v1alpha1.HealthProgressing,
			err:     "health Progressing contradicts healthy true",
		},
		"NotHealthy": {
			reason: "and others are not healthy",
			set:    v1alpha1.HealthHealthy,
			err:    "health Healthy contradicts healthy false",
		},
		"Unknown": {
			reason: "names are exact",
			set:    "healthy",
			err:    `health "healthy" is unknown: use Healthy, Progressing or Failed`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := explore.Answer{Healthy: tc.healthy}
			err := a.SetOutcome(tc.set)
			if got := fmt.Sprint(err); got != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
			if err == nil && a.Outcome() != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, a.Outcome(), tc.want)
			}
		})
	}
	object := exploretest.Object(t, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`)
	both := explore.Answer{Healthy: true, Failed: true}
	if err := explore.Check(explore.Request{Operation: explore.Healthy, Object: object}, &both); err == nil {
		t.Error("an answer that is healthy and failed went through")
	}
}

// TestCheckComponents (C54) has what the components of an object must be.
func TestCheckComponents(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		components []v1alpha1.Component
		err        string
	}{
		"None": {
			reason: "there may be none",
		},
		"Two": {
			reason:     "of two names, also without replicas",
			components: []v1alpha1.Component{{Name: "a", Replicas: 1}, {Name: "b"}},
		},
		"Longest": {
			reason:     "the longest name",
			components: []v1alpha1.Component{{Name: strings.Repeat("x", 32)}},
		},
		"NoName": {
			reason:     "names must be there",
			components: []v1alpha1.Component{{Name: "a"}, {}},
			err:        `component 1: name "" must have 1 to 32 characters`,
		},
		"TooLong": {
			reason:     "and not too long",
			components: []v1alpha1.Component{{Name: strings.Repeat("x", 33)}},
			err:        `component 0: name "` + strings.Repeat("x", 33) + `" must have 1 to 32 characters`,
		},
		"Twice": {
			reason:     "each once",
			components: []v1alpha1.Component{{Name: "a"}, {Name: "b"}, {Name: "a"}},
			err:        `component 2: name "a" is that of another component: names must be unique`,
		},
		"Negative": {
			reason:     "with 0 replicas or more",
			components: []v1alpha1.Component{{Name: "a", Replicas: -1}},
			err:        `component "a": -1 replicas: must be 0 or more`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := exploretest.Object(t, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`)
			err := explore.Check(explore.Request{Operation: explore.Components, Object: object}, &explore.Answer{Components: tc.components})
			if got := fmt.Sprint(err); got != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}
