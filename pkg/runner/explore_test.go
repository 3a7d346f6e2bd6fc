package runner

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/explore"
)

// unanswered has no answer, and calls a function first.
type unanswered func()

func (u unanswered) Explore(context.Context, explore.Request) (explore.Answer, bool, error) {
	u()
	return explore.Answer{}, false, errors.New("the webhook is down")
}

// TestRulesChanged checks C66: a run knows the kinds that its steps render before the first question about one is answered, and none of those
// after it.
func TestRulesChanged(t *testing.T) {
	run, pot, kettle := &Run{}, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pot"}, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Kettle"}
	explores := func(kind schema.GroupVersionKind) bool {
		return run.RulesChanged(func(k schema.GroupVersionKind) bool { return k == kind })
	}
	object := func(kind schema.GroupVersionKind) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		return o
	}
	asked := 0
	r := &Runner{all: unanswered(func() {
		asked++
		if !explores(pot) {
			t.Error("the kind is not known while it is asked about")
		}
	})}
	if explores(pot) {
		t.Error("a run knows a kind before it was rendered")
	}
	if err := r.pack(t.Context(), run, []*unstructured.Unstructured{object(pot), object(kettle)}); err == nil || asked != 1 {
		t.Errorf("error %v after %d questions, want one of the first", err, asked)
	}
	if !explores(pot) || explores(kettle) {
		t.Errorf("the run explores Pot: %t, Kettle: %t", explores(pot), explores(kettle))
	}
}
