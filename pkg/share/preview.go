package share

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// Fate is what a release will do to an object.
type Fate struct {
	ID apply.ID
	// Goes is set if the object will be deleted.
	Goes bool
	// Keeps is set if the whole release waits for the object.
	Keeps bool
	// Reason says why it stays, or what is destroyed along with it.
	Reason string
}

// Preview says what a release would do to each held object, in the order of the release. Nothing is changed.
func (s *Session) Preview(ctx context.Context, force bool) ([]Fate, error) {
	var out []Fate
	for _, r := range slices.Backward(s.inventory) {
		fate, err := s.fate(ctx, r, force)
		if err != nil {
			return nil, err
		}
		fate.ID = IDOf(r)
		out = append(out, fate)
	}
	return out, nil
}

// self tells whether a holder that was named is this one.
func (s *Session) self(name string) bool {
	f := s.holder.Spec.For
	return name == fmt.Sprintf("%s %s/%s", f.Kind, f.Namespace, f.Name)
}

func (s *Session) fate(ctx context.Context, r v1beta1.HeldResource, force bool) (Fate, error) {
	if r.State == v1beta1.HoldExisting {
		return Fate{Reason: "kudo did not create it"}, nil
	}
	resource, err := s.objects.Resource(IDOf(r).Object())
	if meta.IsNoMatchError(err) {
		return Fate{Reason: "its kind is gone"}, nil
	}
	if err != nil {
		return Fate{}, err
	}
	live, err := apply.Look(ctx, resource, r.Name)
	switch {
	case err != nil:
		return Fate{}, fmt.Errorf("%s: %w", IDOf(r), err)
	case live == nil:
		return Fate{Reason: "it is gone already"}, nil
	case !s.ours(r, live):
		return Fate{Reason: "it is another object of the name"}, nil
	case !Managed(live):
		return Fate{Reason: "it was taken over: its annotation " + v1beta1.ManagedAnnotation + " is gone"}, nil
	}
	other, err := s.another(ctx, live)
	if err != nil {
		return Fate{}, err
	}
	if other != nil {
		return Fate{Reason: strings.Join(slices.DeleteFunc(s.holders(ctx, live), s.self), ", ") + " holds it too"}, nil
	}
	block, err := s.keep(ctx, live)
	switch {
	case err != nil:
		return Fate{}, err
	case block == nil:
		return Fate{Goes: true}, nil
	case force:
		return Fate{Goes: true, Reason: block.Found}, nil
	}
	return Fate{Keeps: true, Reason: block.Found}, nil
}
