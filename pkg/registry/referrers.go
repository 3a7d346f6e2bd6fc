package registry

import (
	"context"
	"errors"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// MaxReferrers bounds how many manifests that refer to one are looked at.
const MaxReferrers = 100

// errTooManyReferrers ends a listing that has reached the bound.
var errTooManyReferrers = errors.New("too many referrers")

// Referrers returns descriptors of manifests that refer to a manifest, by the API of referrers, or by the tag that stands for it in
// registries without that API. It is not asked for a type, since registries report types that the manifests do not have. What it returns
// is a way to find manifests, and is trusted for nothing; beyond MaxReferrers it is cut.
func (c *Client) Referrers(ctx context.Context, subject ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var out []ocispec.Descriptor
	err := c.repository.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		for _, d := range page {
			if len(out) == MaxReferrers {
				return errTooManyReferrers
			}
			out = append(out, d)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errTooManyReferrers) && !errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("list what refers to %s: %w", subject.Digest, explain(err))
	}
	return out, nil
}
