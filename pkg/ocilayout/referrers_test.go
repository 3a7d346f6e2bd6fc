package ocilayout

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/pkg/registry"
)

// referring returns a manifest that refers to another one.
func referring(subject registry.Blob, text string) registry.Blob {
	return blob(ocispec.MediaTypeImageManifest, fmt.Sprintf(`{"subject":{"digest":%q},"annotations":{"x":%q}}`, subject.Digest, text))
}

// TestReferrers checks S13: what refers to a manifest of a folder is found, and what cannot be read hides nothing.
func TestReferrers(t *testing.T) {
	f := Folder{filepath.Join(t.TempDir(), "web")}
	first, second := blob(ocispec.MediaTypeImageManifest, "{}"), blob(ocispec.MediaTypeImageManifest, `{"x":1}`)
	one, two, other, broken := referring(first, "1"), referring(first, "2"), referring(second, "3"), blob(ocispec.MediaTypeImageManifest, "[")
	huge := referring(first, strings.Repeat("x", maxReferrer))
	for _, step := range []struct {
		manifest registry.Blob
		tag      string
	}{{first, "1.0.0"}, {second, "2.0.0"}, {broken, ""}, {one, ""}, {other, ""}, {huge, ""}, {two, ""}, {two, ""}} {
		if err := f.Push(t.Context(), step.manifest, nil, step.tag); err != nil {
			t.Fatal(err)
		}
	}
	tags, err := f.Tags(t.Context())
	if err != nil || len(tags) != 2 {
		t.Errorf("what refers to a manifest has a tag: %q, %v", tags, err)
	}
	missing := referring(first, "4")
	if err := f.Push(t.Context(), missing, nil, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(f.Dir, "blobs", "sha256", missing.Digest.Encoded())); err != nil {
		t.Fatal(err)
	}
	found, err := f.Referrers(t.Context(), first.Descriptor)
	if err != nil || len(found) != 2 || found[0].Digest != one.Digest || found[1].Digest != two.Digest {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := (Folder{t.TempDir()}).Referrers(t.Context(), first.Descriptor); err == nil {
		t.Error("a folder that is no layout has referrers")
	}
}
