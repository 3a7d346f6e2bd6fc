package ocilayout

import (
	"context"
	"encoding/json"
	"fmt"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/pkg/registry"
)

const (
	// maxUntagged bounds how many manifests without a tag are looked at.
	maxUntagged = 1000
	// maxReferrer bounds the manifest of one that refers to another, in bytes; a larger one is passed over.
	maxReferrer = 256 << 10
)

// Referrers returns descriptors of manifests of the folder that refer to a manifest, but for those that keep refuses. It reports whether
// the list is cut: beyond registry.MaxReferrers, or maxUntagged manifests. One that cannot be read is passed over, since a folder may hold
// all kinds of things.
func (f Folder) Referrers(ctx context.Context, subject ocispec.Descriptor, keep func(ocispec.Descriptor) bool) (found []ocispec.Descriptor,
	cut bool, err error) {
	all, err := f.Manifests()
	if err != nil {
		return nil, false, fmt.Errorf("list what refers to %s: %w", subject.Digest, err)
	}
	looked := 0
	for _, d := range all {
		if Tag(d) != "" || d.MediaType != ocispec.MediaTypeImageManifest || d.Size > maxReferrer || !keep(d) {
			continue
		}
		if looked++; looked > maxUntagged {
			return found, true, nil
		}
		var m ocispec.Manifest
		data, err := f.Blob(ctx, d)
		if err != nil || json.Unmarshal(data, &m) != nil || m.Subject == nil || m.Subject.Digest != subject.Digest {
			continue
		}
		d.ArtifactType = m.ArtifactType // the index may not have it
		if !keep(d) {
			continue
		}
		if len(found) == registry.MaxReferrers {
			return found, true, nil
		}
		found = append(found, d)
	}
	return found, false, nil
}
