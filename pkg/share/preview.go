package share

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// ReleasePreview is what a release will do to an object.
type ReleasePreview struct {
	ID apply.ID
	// Deleted is set if the object will be deleted.
	Deleted bool
	// Blocks is set if the whole release waits for the object.
	Blocks bool
	// Reason says why it stays, or what is destroyed along with it.
	Reason string
	// Holders are the other holders, for which the object stays.
	Holders []string
	// Unknown is why it is not known what will become of the object, or nil if it is.
	Unknown error
}

// Preview returns what a release would do to each held object, in the order of the release. It changes nothing. The effect on an object
// that the user may not read is unknown.
func (s *Session) Preview(ctx context.Context, force bool) ([]ReleasePreview, error) {
	var out []ReleasePreview
	for _, r := range slices.Backward(s.inventory) {
		effect, err := s.previewRelease(ctx, r, force)
		switch {
		case apierrors.IsForbidden(err):
			effect = ReleasePreview{Unknown: err}
		case err != nil:
			return nil, err
		}
		effect.ID = IDOf(r)
		out = append(out, effect)
	}
	return out, nil
}

// isHolder reports whether a holder that was named is this one.
func (s *Session) isHolder(name string) bool {
	f := s.holder.Spec.Subject
	return name == fmt.Sprintf("%s %s/%s", f.Kind, f.Namespace, f.Name)
}

func (s *Session) previewRelease(ctx context.Context, r v1beta1.HeldResource, force bool) (ReleasePreview, error) {
	if r.State == v1beta1.HoldExisting {
		return ReleasePreview{Reason: "kudo did not create it"}, nil
	}
	resource, err := s.objects.Resource(IDOf(r).Object())
	if meta.IsNoMatchError(err) {
		return ReleasePreview{Reason: "its kind no longer exists"}, nil
	}
	if err != nil {
		return ReleasePreview{}, err
	}
	live, err := apply.GetOrNil(ctx, resource, r.Name)
	switch {
	case err != nil:
		return ReleasePreview{}, fmt.Errorf("%s: %w", IDOf(r), err)
	case live == nil:
		return ReleasePreview{Reason: "it is deleted already"}, nil
	case !s.ours(r, live):
		return ReleasePreview{Reason: "it is another object of the name"}, nil
	case !Managed(live):
		return ReleasePreview{Reason: "it was taken over: its annotation " + v1beta1.ManagedAnnotation + " was removed"}, nil
	}
	if v1beta1.IsKept(live.GetAnnotations()) {
		return ReleasePreview{Reason: "it is annotated to be kept"}, nil
	}
	other, err := s.otherOwner(ctx, live)
	if err != nil {
		return ReleasePreview{}, err
	}
	if other != nil {
		holders := slices.DeleteFunc(s.Holders(ctx, live), s.isHolder)
		return ReleasePreview{Reason: strings.Join(holders, ", ") + " holds it too", Holders: holders}, nil
	}
	block, err := s.deletionBlock(ctx, live)
	switch {
	case err != nil:
		return ReleasePreview{}, err
	case block == nil:
		return ReleasePreview{Deleted: true}, nil
	case force:
		return ReleasePreview{Deleted: true, Reason: block.Found}, nil
	}
	return ReleasePreview{Blocks: true, Reason: block.Found}, nil
}
