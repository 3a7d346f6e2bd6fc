package registry

import (
	"context"
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
)

// MaxReferrers bounds how many manifests that refer to one are looked at.
const MaxReferrers = 100

// errTooManyReferrers ends a listing that has reached the bound.
var errTooManyReferrers = errors.New("too many referrers")

// Referrers returns descriptors of manifests that refer to a manifest, by the API of referrers, or by the tag that stands for it in
// registries without that API. It is not asked for a type, since registries report types that the manifests do not have; those that keep
// refuses are left out, so that whoever adds others does not use up the bound. What it returns is a way to find manifests, and is trusted
// for nothing. It reports whether the listing is cut: beyond MaxReferrers, or maxTagPages pages. What was found before an error is
// returned, too.
func (c *Client) Referrers(ctx context.Context, subject ocispec.Descriptor, keep func(ocispec.Descriptor) bool) (found []ocispec.Descriptor,
	cut bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = c.repository.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if !keep(d) {
				continue
			}
			if len(found) == MaxReferrers {
				return errTooManyReferrers
			}
			found = append(found, d)
		}
		return nil
	})
	switch {
	case errors.Is(err, errTooManyReferrers), errors.Is(err, errdef.ErrTooManyPages):
		return found, true, nil
	case err != nil && !errors.Is(err, ErrNotFound):
		return found, false, fmt.Errorf("list what refers to %s: %w", subject.Digest, explain(err))
	}
	return found, false, nil
}
