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

func anyType(ocispec.Descriptor) bool { return true }

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
	found, cut, err := f.Referrers(t.Context(), first.Descriptor, anyType)
	if err != nil || cut || len(found) != 2 || found[0].Digest != one.Digest || found[1].Digest != two.Digest {
		t.Errorf("found %v, %v", found, err)
	}
	if _, _, err := (Folder{t.TempDir()}).Referrers(t.Context(), first.Descriptor, anyType); err == nil {
		t.Error("a folder that is no layout has referrers")
	}
}

// TestManyReferrers checks S13 and S5: manifests of other types do not use up the bound, whether the index names their type or not, and a
// list that is cut is said to be.
func TestManyReferrers(t *testing.T) {
	const wanted = "application/x-wanted"
	keep := func(d ocispec.Descriptor) bool { return d.ArtifactType == "" || d.ArtifactType == wanted }
	subject := blob(ocispec.MediaTypeImageManifest, "{}")
	typed := func(artifactType string, i int, named bool) registry.Blob {
		b := blob(ocispec.MediaTypeImageManifest, fmt.Sprintf(`{"artifactType":%q,"subject":{"digest":%q},"annotations":{"x":"%d"}}`, artifactType,
			subject.Digest, i))
		if named {
			b.ArtifactType = artifactType
		}
		return b
	}
	for _, tc := range []struct {
		reason       string
		artifactType string
		named        bool
		junk, wanted int
		found        int
		cut          bool
	}{
		{"other types in the index", "application/x-junk", true, registry.MaxReferrers + 1, 1, 1, false},
		{"other types in the manifests alone", "application/x-junk", false, registry.MaxReferrers + 1, 1, 1, false},
		{"as many as are looked at", wanted, true, 0, registry.MaxReferrers, registry.MaxReferrers, false},
		{"one more", wanted, true, 0, registry.MaxReferrers + 1, registry.MaxReferrers, true},
	} {
		f := Folder{filepath.Join(t.TempDir(), "web")}
		for i := range tc.junk + tc.wanted {
			b := typed(tc.artifactType, i, tc.named)
			if i >= tc.junk {
				b = typed(wanted, i, false)
			}
			if err := f.Push(t.Context(), b, nil, ""); err != nil {
				t.Fatal(err)
			}
		}
		found, cut, err := f.Referrers(t.Context(), subject.Descriptor, keep)
		if err != nil || len(found) != tc.found || cut != tc.cut {
			t.Errorf("%s: %d, cut %t, %v, want %d, cut %t", tc.reason, len(found), cut, err, tc.found, tc.cut)
		}
	}
}
