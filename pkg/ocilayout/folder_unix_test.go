//go:build unix

package ocilayout

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/pkg/registry"
)

// TestPipes checks that neither a push nor a read waits for the writer of a pipe that stands in a folder from elsewhere: what a file is, is
// asked once it is open.
func TestPipes(t *testing.T) {
	manifest := blob(ocispec.MediaTypeImageManifest, "first")
	for _, tc := range []struct{ reason, path, push, read string }{
		{"the folder", "web", "web: it is a file: name another folder", "web: it is a file"},
		{"the lock", "web/.lock", "web/.lock: it is no regular file: remove it", "is no folder in OCI layout"},
		{"the index", "web/index.json", "web/index.json: it is no regular file: remove it", "web/index.json: it is no regular file"},
		{"a blob", "web/" + blobPath(manifest.Digest), "", ""},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, filepath.FromSlash(tc.path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		f := Folder{filepath.Join(dir, "web")}
		if _, _, err := f.Manifest(t.Context(), "1.0.0", 1<<10); tc.read != "" && (err == nil || !strings.Contains(err.Error(), tc.read)) {
			t.Errorf("%s is read: %v, want %q", tc.reason, err, tc.read)
		}
		if _, err := f.Blob(t.Context(), manifest.Descriptor); err == nil {
			t.Errorf("%s: a blob is read", tc.reason)
		}
		err := f.Push(t.Context(), manifest, []registry.Blob{blob("x", "part")}, "1.0.0")
		if (err == nil) != (tc.push == "") || err != nil && !strings.Contains(err.Error(), tc.push) {
			t.Errorf("%s: push: %v, want %q", tc.reason, err, tc.push)
		}
	}
}
