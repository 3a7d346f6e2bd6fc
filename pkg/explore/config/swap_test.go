package config

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/explore"
)

// askHealth asks a layer about the health of an object of a kind in example.com/v1.
func askHealth(ctx context.Context, l explore.Explorer, kind string) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(exampleKind(kind))
	_, _, err := l.Explore(ctx, explore.Request{Operation: explore.Healthy, Object: object})
	return err
}

func exampleKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}
}

// TestUnanswered (C66) checks which kinds are noted that were asked about before there were rules.
func TestUnanswered(t *testing.T) {
	var current SwappableLayer
	if got := current.TakeUnanswered(); len(got) != 0 {
		t.Errorf("before the first question: %v", got)
	}
	for _, kind := range []string{"Ship", "Boat", "Ship"} {
		if err := askHealth(t.Context(), &current, kind); !errors.Is(err, errNotLoaded) {
			t.Errorf("before there are rules: %v", err)
		}
	}
	current.Set(New(host(), nil, nil))
	if err := askHealth(t.Context(), &current, "Raft"); err != nil {
		t.Errorf("with rules: %v", err)
	}
	if diff := cmp.Diff([]schema.GroupVersionKind{exampleKind("Boat"), exampleKind("Ship")}, current.TakeUnanswered()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := current.TakeUnanswered(); len(got) != 0 {
		t.Errorf("they are noted once: %v", got)
	}
}

// TestUnansweredConcurrently (C66) checks that each question has an answer, or is noted: none falls between the last note and the first rules.
func TestUnansweredConcurrently(t *testing.T) {
	var current SwappableLayer
	var group sync.WaitGroup
	refused := make([]bool, 200)
	for n := range refused {
		group.Go(func() { refused[n] = askHealth(t.Context(), &current, fmt.Sprintf("Kind%d", n)) != nil })
	}
	current.Set(New(host(), nil, nil))
	noted := map[schema.GroupVersionKind]bool{}
	for _, kind := range current.TakeUnanswered() {
		noted[kind] = true
	}
	group.Wait()
	for n, was := range refused {
		if kind := fmt.Sprintf("Kind%d", n); was != noted[exampleKind(kind)] {
			t.Errorf("%s was refused: %v, and noted: %v", kind, was, noted[exampleKind(kind)])
		}
	}
}
