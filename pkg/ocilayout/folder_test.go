package ocilayout

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/pkg/registry"
)

func blob(mediaType, text string) registry.Blob {
	return registry.Blob{Descriptor: ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromString(text), Size: int64(len(text))}, Data: []byte(text)}
}

// TestFolder checks S11: a folder in OCI layout is a repository. A tag that moves leaves what it was under its digest.
func TestFolder(t *testing.T) {
	f := Folder{filepath.Join(t.TempDir(), "new", "web")}
	if _, _, err := f.Manifest(t.Context(), "1.0.0", 1<<10); !errors.Is(err, registry.ErrNotFound) {
		t.Fatalf("a folder that is not there: %v", err)
	}
	first, second, part := blob(ocispec.MediaTypeImageManifest, "first"), blob(ocispec.MediaTypeImageManifest, "second"), blob("x", "part")
	for _, step := range []struct {
		manifest registry.Blob
		tag      string
		want     []string
	}{{first, "1.0.0", []string{"1.0.0"}}, {first, "1.0.0", []string{"1.0.0"}}, {second, "2.0.0", []string{"1.0.0", "2.0.0"}}, {second, "1.0.0", []string{"1.0.0", "2.0.0"}}} {
		if err := f.Push(t.Context(), step.manifest, []registry.Blob{part}, step.tag); err != nil {
			t.Fatal(err)
		}
		tags, err := f.Tags(t.Context())
		if slices.Sort(tags); err != nil || !slices.Equal(tags, step.want) {
			t.Errorf("tags %q, want %q (%v)", tags, step.want, err)
		}
		d, data, err := f.Manifest(t.Context(), step.tag, 1<<10)
		if err != nil || !bytes.Equal(data, step.manifest.Data) || d.Digest != step.manifest.Digest {
			t.Errorf("tag %s is %s (%v)", step.tag, data, err)
		}
	}
	if _, data, err := f.Manifest(t.Context(), string(first.Digest), 1<<10); err != nil || string(data) != "first" {
		t.Errorf("by the digest: %s (%v)", data, err)
	}
	if data, err := f.Blob(t.Context(), part.Descriptor); err != nil || string(data) != "part" {
		t.Errorf("blob: %s (%v)", data, err)
	}
	if text, err := os.ReadFile(filepath.Join(f.Dir, "oci-layout")); err != nil || string(text) != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout: %s (%v)", text, err)
	}
}

// TestHostileFolder checks that a folder from elsewhere reads no other file, and nothing without its digest and in bounds.
func TestHostileFolder(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	manifest := blob(ocispec.MediaTypeImageManifest, "secret")
	entry := func(d ocispec.Descriptor, tag string) ocispec.Descriptor {
		d.Annotations = map[string]string{ocispec.AnnotationRefName: tag}
		return d
	}
	size := func(n int64) ocispec.Descriptor { d := manifest.Descriptor; d.Size = n; return d }
	index := func(entries ...ocispec.Descriptor) func(*testing.T, Folder) {
		return func(t *testing.T, f Folder) {
			text, err := json.Marshal(ocispec.Index{Manifests: entries})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(f.Dir, "index.json"), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace := func(name string) func(*testing.T, Folder) {
		return func(t *testing.T, f Folder) {
			name := filepath.Join(f.Dir, filepath.FromSlash(name))
			if err := errors.Join(os.Remove(name), os.Symlink(secret, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		reason string
		change func(*testing.T, Folder)
		want   string
	}{
		{"a blob that is a link", replace(blobPath(manifest.Digest)), "is a link: replace it by"},
		{"an index that is a link", replace("index.json"), "index.json is a link: replace it by"},
		{"a blob with another content", func(t *testing.T, f Folder) {
			if err := os.WriteFile(filepath.Join(f.Dir, filepath.FromSlash(blobPath(manifest.Digest))), []byte("Secret"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "has another content"},
		{"a blob that is missing", index(entry(blob("x", "none").Descriptor, "1.0.0")), "no such file"},
		{"a blob that is larger than it says", index(entry(size(3), "1.0.0")), "more than the 3 bytes"},
		{"a blob that is smaller than it says", index(entry(size(7), "1.0.0")), "has another content"},
		{"a huge manifest", index(entry(size(1<<40), "1.0.0")), "more than the 1024 allowed"},
		{"a negative size", index(entry(size(-1), "1.0.0")), "has no digest of sha256"},
		{"a digest that is a path", index(entry(ocispec.Descriptor{Digest: "sha256:../../../secret", Size: 6}, "1.0.0")), "has no digest of sha256"},
		{"a tag of two manifests", index(entry(manifest.Descriptor, "1.0.0"), entry(blob("x", "other").Descriptor, "1.0.0")), `has the tag "1.0.0" twice`},
		{"no index", func(t *testing.T, f Folder) {
			if err := os.WriteFile(filepath.Join(f.Dir, "index.json"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "index.json: it is no index in JSON"},
		{"a huge index", func(t *testing.T, f Folder) {
			if err := os.WriteFile(filepath.Join(f.Dir, "index.json"), make([]byte, maxManifest+1), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "more than the 4194304 bytes allowed"},
	} {
		f := Folder{t.TempDir()}
		if err := f.Push(t.Context(), manifest, nil, "1.0.0"); err != nil {
			t.Fatal(err)
		}
		tc.change(t, f)
		_, data, err := f.Manifest(t.Context(), "1.0.0", 1<<10)
		if err == nil || !strings.Contains(err.Error(), tc.want) || len(data) > 0 {
			t.Errorf("%s: %q, %v, want %q", tc.reason, data, err, tc.want)
		}
	}
}

// TestLinks checks that a push into a folder from elsewhere writes nothing outside of the folder: links in it are refused by their path.
func TestLinks(t *testing.T) {
	for _, tc := range []struct{ reason, path, target, want string }{
		{"the folder itself", "web", "outside", "web: it is a link: name the folder that it leads to"},
		{"the folder itself, to nothing", "web", "outside/none", "web: it is a link"},
		{"blobs", "web/blobs", "outside", "web/blobs is a link: replace it by"},
		{"a folder of blobs", "web/blobs/sha256", "outside", "web/blobs/sha256 is a link: replace it by"},
		{"the lock", "web/.lock", "outside/lock", "web/.lock is a link: replace it by"},
		{"the index", "web/index.json", "outside/index.json", "web/index.json is a link: replace it by"},
		{"the version of the layout", "web/oci-layout", "outside/oci-layout", "web/oci-layout is a link: replace it by"},
		{"a link within the folder", "web/blobs", "web/other", "web/blobs is a link: replace it by"},
	} {
		dir := t.TempDir()
		outside := filepath.Join(dir, "outside")
		path := filepath.Join(dir, filepath.FromSlash(tc.path))
		if err := errors.Join(os.Mkdir(outside, 0o755), os.MkdirAll(filepath.Dir(path), 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(dir, filepath.FromSlash(tc.target)), path); err != nil {
			t.Fatal(err)
		}
		f := Folder{filepath.Join(dir, "web")}
		manifest := blob(ocispec.MediaTypeImageManifest, "first")
		if err := f.Push(t.Context(), manifest, []registry.Blob{blob("x", "part")}, "1.0.0"); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is written outside (%v)", tc.reason, left, err)
		}
	}
}

// TestMovedTags checks that the index does not grow while a tag moves between the same manifests, and that none of them is lost.
func TestMovedTags(t *testing.T) {
	f := Folder{filepath.Join(t.TempDir(), "web")}
	first, second := blob(ocispec.MediaTypeImageManifest, "first"), blob(ocispec.MediaTypeImageManifest, "second")
	for _, manifest := range []registry.Blob{first, second, first, second, first, first, second} {
		if err := f.Push(t.Context(), manifest, nil, "1.0.0"); err != nil {
			t.Fatal(err)
		}
	}
	index, err := f.index()
	if err != nil || len(index.Manifests) != 2 || index.Manifests[0].Digest != first.Digest || index.Manifests[1].Digest != second.Digest ||
		Tag(index.Manifests[0]) != "" || Tag(index.Manifests[1]) != "1.0.0" {
		t.Errorf("the index holds %+v (%v), want one entry for each manifest", index.Manifests, err)
	}
}
