package explore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

func TestValidateRequest(t *testing.T) {
	object := exploretest.Object(t, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","namespace":"n"}}`)
	for name, tc := range map[string]struct {
		reason  string
		request explore.Request
		err     string
	}{
		"Whole":    {"a whole request", explore.Request{Operation: explore.Packing, Object: object}, ""},
		"NoObject": {"an object is needed", explore.Request{Operation: explore.Packing}, "ExplorePacking: there is no object"},
		"NoFields": {
			"with fields",
			explore.Request{Operation: explore.Status, Object: &unstructured.Unstructured{}},
			"ExploreStatus: there is no object",
		},
		"NoKind": {
			"with a kind",
			explore.Request{Operation: explore.Status, Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1"}}},
			"ExploreStatus of an object without apiVersion or kind",
		},
		"NoVersion": {
			"and a version",
			explore.Request{Operation: explore.Status, Object: &unstructured.Unstructured{Object: map[string]any{"kind": "X"}}},
			"ExploreStatus of an object without apiVersion or kind",
		},
		"NoObserved": {
			"retaining needs the observed object",
			explore.Request{Operation: explore.Retaining, Object: object},
			"ExploreRetaining of X n/a: there is no observed object",
		},
		"NoFieldsLive": {
			"with fields",
			explore.Request{Operation: explore.Retaining, Object: object, Observed: &unstructured.Unstructured{}},
			"ExploreRetaining of X n/a: there is no observed object",
		},
		"Retaining": {"with both", explore.Request{Operation: explore.Retaining, Object: object, Observed: object}, ""},
		"Negative": {
			"0 replicas or more",
			explore.Request{Operation: explore.ReplicaRevising, Object: object, Replicas: -1},
			"ExploreReplicaRevising of X n/a: -1 replicas: must be 0 or more",
		},
		"NegativeElse": {"which other operations do not read", explore.Request{Operation: explore.Packing, Object: object, Replicas: -1}, ""},
		"Zero":         {"0 replicas", explore.Request{Operation: explore.ReplicaRevising, Object: object}, ""},
		"Operation": {
			"an operation of the list",
			explore.Request{Operation: "Other", Object: object},
			fmt.Sprintf(`operation "Other" is unknown: use one of %v`, explore.Operations()),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(tc.request.Validate()); got != tc.err && (tc.err != "" || got != "<nil>") {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

// TestChainErrors has what ends a search.
func TestChainErrors(t *testing.T) {
	cause := errors.New("timed out")
	object := exploretest.Object(t, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`)
	health := explore.Request{Operation: explore.Healthy, Object: object}
	next := fixed{layer: explore.Native, answer: explore.Answer{Healthy: true, Replicas: 1, Object: object}, known: true}
	for name, tc := range map[string]struct {
		reason  string
		layer   fixed
		request explore.Request
		err     string
	}{
		"Error": {"an error of a layer", fixed{layer: explore.User, err: cause}, health, "ExploreHealthy of X a is unknown: user: timed out"},
		"Unknown": {
			"an unknown that names who was asked",
			fixed{layer: explore.User, err: health.NewUnknown(explore.User, "Config/x", cause)},
			health,
			"ExploreHealthy of X a is unknown: user Config/x: timed out",
		},
		"Wrapped": {
			"a wrapped one stays as it is",
			fixed{layer: explore.User, err: fmt.Errorf("again: %w", health.NewUnknown(explore.User, "", cause))},
			health,
			"again: ExploreHealthy of X a is unknown: user: timed out",
		},
		"Answer": {
			"an answer that none may give names who gave it",
			fixed{layer: explore.Webhook, known: true, answer: explore.Answer{Replicas: -1, Who: "w"}},
			explore.Request{Operation: explore.Replica, Object: object},
			"ExploreReplica of X a is unknown: webhook w: -1 replicas: must be 0 or more",
		},
		"Request": {
			"a wrong request asks no layer",
			fixed{layer: explore.User, err: cause},
			explore.Request{Operation: "Other", Object: object},
			fmt.Sprintf(`operation "Other" is unknown: use one of %v`, explore.Operations()),
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, known, err := explore.NewChain(tc.layer, nil, nil, next).Explore(t.Context(), tc.request)
			if known || !cmp.Equal(answer, explore.Answer{}) {
				t.Errorf("%s: there is an answer beside the error: %+v", tc.reason, answer)
			}
			if got := fmt.Sprint(err); got != tc.err {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
			if _, is := explore.IsUnknown(err); is != (tc.request.Operation != "Other") {
				t.Errorf("%s: IsUnknown is %v", tc.reason, is)
			}
			if tc.layer.err != nil && tc.request.Operation != "Other" && !errors.Is(err, cause) {
				t.Errorf("%s: the error does not wrap its cause", tc.reason)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, known, err := explore.NewChain(fixed{layer: explore.User}, nil, nil, next).Explore(ctx, health)
	if got := fmt.Sprint(err); known || got != "ExploreHealthy of X a is unknown: user: context canceled" {
		t.Errorf("after the end of the context: known %v, error %s", known, got)
	}
}

func TestNameOf(t *testing.T) {
	for want, object := range map[string]*unstructured.Unstructured{
		"nothing": nil,
		"X a":     exploretest.Object(t, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`),
		"X n/a":   exploretest.Object(t, `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","namespace":"n"}}`),
		"X ":      exploretest.Object(t, `{"apiVersion":"v1","kind":"X"}`),
	} {
		if got := explore.NameOf(object); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
