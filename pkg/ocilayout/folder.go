package ocilayout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/pkg/atomicfile"
	"kudo.dev/kudo/pkg/registry"
	"kudo.dev/kudo/pkg/text"
)

// lockRetry is how often a lock that another process holds is tried.
const lockRetry = 20 * time.Millisecond

// lockName is the file that a process locks to write into a folder.
const lockName = ".lock"

// Folder is a folder in OCI layout, which stands for one repository of a registry. Its content is as hostile as that of a registry: nothing
// outside of the folder is read or written, links are refused, and digests are compared.
type Folder struct{ Dir string }

// Manifest returns the manifest of a tag or digest, of at most limit bytes. The error is registry.ErrNotFound if there is none.
func (f Folder) Manifest(ctx context.Context, reference string, limit int64) (ocispec.Descriptor, []byte, error) {
	index, err := f.index()
	if err != nil {
		return ocispec.Descriptor{}, nil, err
	}
	var found *ocispec.Descriptor
	for i := range index.Manifests {
		d := &index.Manifests[i]
		if reference != string(d.Digest) && (reference == "" || reference != Tag(*d)) {
			continue
		}
		if found != nil && found.Digest != d.Digest {
			return *d, nil, fmt.Errorf("read %s: it has the tag %q twice: remove the entry of %s or that of %s", f.path(ocispec.ImageIndexFile),
				reference, found.Digest, d.Digest)
		}
		found = d
	}
	if found == nil {
		return ocispec.Descriptor{}, nil, fmt.Errorf("find %q in %s: %w: name a tag or digest of %s", reference, f.Dir, registry.ErrNotFound,
			ocispec.ImageIndexFile)
	}
	d := ocispec.Descriptor{MediaType: found.MediaType, Digest: found.Digest, Size: found.Size}
	if d.Size > limit {
		return d, nil, fmt.Errorf("read the manifest %q in %s: it has %d bytes, more than the %d allowed", reference, f.Dir, d.Size, limit)
	}
	data, err := f.Blob(ctx, d)
	return d, data, err
}

// Blob returns a blob, which has the digest and the size of its descriptor. The caller has bounded the size.
func (f Folder) Blob(_ context.Context, d ocispec.Descriptor) ([]byte, error) {
	if d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 || d.Size < 0 {
		return nil, fmt.Errorf("read the blob %s in %s: its descriptor has no digest of sha256 or no size: copy the folder again",
			text.Quote(string(d.Digest), 128), f.Dir)
	}
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	data, err := f.readFile(root, blobPath(d.Digest), d.Size)
	if err == nil && (int64(len(data)) != d.Size || digest.FromBytes(data) != d.Digest) {
		err = fmt.Errorf("read %s: it has another content than its digest says", f.path(blobPath(d.Digest)))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: copy the folder again", err)
	}
	return data, nil
}

// Tags returns the tags of the folder.
func (f Folder) Tags(context.Context) ([]string, error) {
	manifests, err := f.Manifests()
	if err != nil {
		return nil, err
	}
	var tags []string
	for _, d := range manifests {
		if tag := Tag(d); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags, nil
}

// Manifests returns the descriptors of all manifests of the folder. A manifest with several tags has a descriptor for each.
func (f Folder) Manifests() ([]ocispec.Descriptor, error) {
	index, err := f.index()
	return index.Manifests, err
}

// Tag returns the tag in a descriptor of a folder, or "" if it has none.
func Tag(d ocispec.Descriptor) string { return d.Annotations[ocispec.AnnotationRefName] }

// Push writes blobs and then the manifest that names them, under a tag, or without one if that is empty. The folder is made if there is
// none. Processes that do so at the same time wait for one another.
func (f Folder) Push(ctx context.Context, manifest registry.Blob, blobs []registry.Blob, tag string) (err error) {
	root, err := f.create()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	lock, err := f.lock(ctx, root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	index, err := f.readIndex(root)
	if err != nil && !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	for _, b := range append(slices.Clone(blobs), manifest) {
		if err := f.write(root, blobPath(b.Digest), b.Data); err != nil {
			return err
		}
	}
	setTag(&index, manifest.Descriptor, tag)
	encoded, err := json.Marshal(index)
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path(ocispec.ImageIndexFile), err)
	}
	if err := f.write(root, ocispec.ImageLayoutFile, []byte(`{"imageLayoutVersion":"`+ocispec.ImageLayoutVersion+`"}`)); err != nil {
		return err
	}
	return f.write(root, ocispec.ImageIndexFile, encoded)
}

// create opens the folder, and makes the folders that are missing.
func (f Folder) create() (*os.Root, error) {
	above, name := filepath.Split(filepath.Clean(f.Dir))
	above = cmp.Or(above, ".")
	if err := os.MkdirAll(above, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder %s: %w", above, err)
	}
	parent, err := os.OpenRoot(above)
	if err != nil {
		return nil, fmt.Errorf("open the folder %s: %w", above, err)
	}
	defer func() { _ = parent.Close() }()
	if err := parent.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the folder %s: %w", f.Dir, err)
	}
	root, err := f.openIn(parent, name)
	if err != nil {
		return nil, err
	}
	blobs := path.Join(ocispec.ImageBlobsDir, "sha256")
	err = f.refuseLinks(root, blobs)
	if err == nil {
		err = root.MkdirAll(filepath.FromSlash(blobs), 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("make the folder %s: %w", f.path(blobs), errors.Join(err, root.Close()))
	}
	return root, nil
}

// open opens the folder.
func (f Folder) open() (*os.Root, error) {
	above, name := filepath.Split(filepath.Clean(f.Dir))
	parent, err := os.OpenRoot(cmp.Or(above, "."))
	if err != nil {
		return nil, fmt.Errorf("open the folder %s: %w", f.Dir, err)
	}
	defer func() { _ = parent.Close() }()
	return f.openIn(parent, name)
}

// openIn opens the folder within the folder above it. The folder above may come from elsewhere, with a link in place of this one.
func (f Folder) openIn(parent *os.Root, name string) (*os.Root, error) {
	info, err := parent.Lstat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open the folder %s: %w", f.Dir, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("open the folder %s: it is a link: name the folder that it leads to", f.Dir)
	case !info.IsDir():
		return nil, fmt.Errorf("open the folder %s: it is a file: name another folder", f.Dir)
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open the folder %s: %w", f.Dir, err)
	}
	return root, nil
}

// lock waits for the lock of the folder.
func (f Folder) lock(ctx context.Context, root *os.Root) (*flock.Flock, error) {
	// The lock is taken by a path, which could lead elsewhere by then; so the file is made here, and a path makes none.
	file, err := f.openFile(root, lockName, os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", f.Dir, err)
	}
	lock := flock.New(f.path(lockName), flock.SetFlag(os.O_RDONLY|syscall.O_NONBLOCK))
	if _, err = lock.TryLockContext(ctx, lockRetry); err != nil {
		err = fmt.Errorf("lock %s: %w", f.path(lockName), err)
	}
	return lock, errors.Join(err, file.Close())
}

func (f Folder) write(root *os.Root, name string, data []byte) error {
	if err := f.refuseLinks(root, name); err != nil {
		return fmt.Errorf("write %s: %w", f.path(name), err)
	}
	return atomicfile.WriteIn(root, filepath.FromSlash(name), data, 0o644)
}

// setTag gives a manifest a tag. A manifest that had the tag before stays in the index, under its digest.
func setTag(index *ocispec.Index, manifest ocispec.Descriptor, tag string) {
	kept, known := []ocispec.Descriptor{}, map[digest.Digest]bool{manifest.Digest: true}
	for _, d := range index.Manifests {
		if tag != "" && Tag(d) == tag {
			d.Annotations = maps.Clone(d.Annotations)
			delete(d.Annotations, ocispec.AnnotationRefName)
		}
		if len(d.Annotations) > 0 || !known[d.Digest] {
			kept = append(kept, d)
		}
		known[d.Digest] = true
	}
	index.Versioned, index.MediaType = specs.Versioned{SchemaVersion: 2}, ocispec.MediaTypeImageIndex
	if tag != "" {
		manifest.Annotations = map[string]string{ocispec.AnnotationRefName: tag}
	}
	index.Manifests = append(kept, manifest)
}

// index reads index.json. The error is registry.ErrNotFound if there is none.
func (f Folder) index() (ocispec.Index, error) {
	root, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return ocispec.Index{}, f.noLayout()
	}
	if err != nil {
		return ocispec.Index{}, err
	}
	defer func() { _ = root.Close() }()
	return f.readIndex(root)
}

func (f Folder) readIndex(root *os.Root) (index ocispec.Index, err error) {
	data, err := f.readFile(root, ocispec.ImageIndexFile, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return index, f.noLayout()
	}
	if err != nil {
		return index, err
	}
	if err := json.Unmarshal(data, &index); err != nil {
		return index, fmt.Errorf("read %s: it is no index in JSON: %w: copy the folder again", f.path(ocispec.ImageIndexFile), err)
	}
	return index, nil
}

func (f Folder) noLayout() error {
	return fmt.Errorf("read %s: %w: this is no folder in OCI layout: name one that package push or package copy has written",
		f.path(ocispec.ImageIndexFile), registry.ErrNotFound)
}

func blobPath(d digest.Digest) string { return path.Join(ocispec.ImageBlobsDir, "sha256", d.Encoded()) }

// path returns the path of a file of the folder, for messages.
func (f Folder) path(name string) string { return filepath.Join(f.Dir, filepath.FromSlash(name)) }

// readFile reads a regular file of at most limit bytes.
func (f Folder) readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	file, err := f.openFile(root, name, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.path(name), err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read %s: it has more than the %d bytes allowed", f.path(name), limit)
	}
	return data, nil
}

// openFile opens a regular file to read it. The file is checked once it is open, since another could be put in its place before; opening
// a pipe must not wait for a writer.
func (f Folder) openFile(root *os.Root, name string, flag int) (*os.File, error) {
	if err := f.refuseLinks(root, name); err != nil {
		return nil, fmt.Errorf("open %s: %w", f.path(name), err)
	}
	file, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK|flag, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.path(name), err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file: remove it")
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.path(name), errors.Join(err, file.Close()))
	}
	return file, nil
}

// refuseLinks returns an error if a file or one of the folders that it is in is a link. The root keeps links from leading out of the
// folder; this check names the link, and refuses those within the folder, too.
func (f Folder) refuseLinks(root *os.Root, name string) error {
	parts := strings.Split(name, "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		info, err := root.Lstat(filepath.FromSlash(at))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link: replace it by the file or folder that it leads to", f.path(at))
		}
	}
	return nil
}
