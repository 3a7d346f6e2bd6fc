// Package ocilayout reads an image from a tar archive that is an OCI layout, and pushes it to a registry. The archive is hostile: nothing
// is unpacked, sizes are bounded, and all digests are compared before anything is pushed.
package ocilayout

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"
)

const (
	// maxManifest bounds what is read into memory, in bytes: a manifest, and the index of the layout.
	maxManifest = 4 << 20
	// maxEntries bounds the files of an archive.
	maxEntries = 4096
	// maxDepth bounds how deep manifests name manifests.
	maxDepth = 4
)

// Layout is an image in a file. All of its blobs are there, with their digests.
type Layout struct {
	// Root is the descriptor of the image: of its index, or of its only manifest.
	Root ocispec.Descriptor
	// Platforms are those that the index names, such as linux/amd64.
	Platforms []string

	store *oci.ReadOnlyStorage
	// sizes are those of the blobs whose content has the digest.
	sizes map[digest.Digest]int64
	// index is the file index.json.
	index []byte
}

// Open reads an image from a file, and compares all digests.
func Open(ctx context.Context, file string) (*Layout, error) {
	l := &Layout{sizes: map[digest.Digest]int64{}}
	err := l.scan(ctx, file)
	if err == nil {
		l.store, err = oci.NewStorageFromTar(file)
	}
	if err == nil {
		err = l.resolve(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read the image %s: %w", file, err)
	}
	return l, nil
}

// scan reads the archive once from its begin to its end.
func (l *Layout) scan(ctx context.Context, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("this is no file: name the file manager_VERSION.oci.tar of a release")
	}
	rest, seen := info.Size(), map[string]bool{}
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("this is no tar archive of an OCI layout: %w", err)
		}
		// A sparse file may be larger than the archive.
		if rest -= header.Size; rest < 0 {
			return fmt.Errorf("the files of the archive are larger than the archive: %q", header.Name)
		}
		entry := path.Clean(header.Name)
		switch {
		case header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir:
			return fmt.Errorf("%q is neither a file nor a folder", header.Name)
		case !fs.ValidPath(entry):
			return fmt.Errorf("%q leaves the folder of the archive", header.Name)
		case seen[entry]:
			return fmt.Errorf("%q is there twice", header.Name)
		case len(seen) == maxEntries:
			return fmt.Errorf("the archive has more than %d files", maxEntries)
		}
		seen[entry] = true
		if err := l.read(entry, header.Size, archive); err != nil {
			return err
		}
	}
}

// read reads a file of the archive: it keeps the index, and compares a blob with its digest.
func (l *Layout) read(name string, size int64, in io.Reader) error {
	if name == ocispec.ImageIndexFile {
		if size > maxManifest {
			return fmt.Errorf("%s has %d bytes, more than %d", name, size, maxManifest)
		}
		var err error
		l.index, err = io.ReadAll(in)
		return err
	}
	encoded, is := strings.CutPrefix(name, ocispec.ImageBlobsDir+"/sha256/")
	if !is {
		return nil
	}
	want := digest.NewDigestFromEncoded(digest.SHA256, encoded)
	got, err := digest.SHA256.FromReader(in)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s has the digest %s: download the file again", name, got)
	}
	l.sizes[got] = size
	return nil
}

// resolve finds the image, and checks that all it names is there.
func (l *Layout) resolve(ctx context.Context) error {
	var index ocispec.Index
	if err := json.Unmarshal(l.index, &index); err != nil {
		return fmt.Errorf("%s cannot be read: %w", ocispec.ImageIndexFile, err)
	}
	if len(index.Manifests) != 1 {
		return fmt.Errorf("%s names %d images: it must name one", ocispec.ImageIndexFile, len(index.Manifests))
	}
	l.Root = ocispec.Descriptor{MediaType: index.Manifests[0].MediaType, Digest: index.Manifests[0].Digest, Size: index.Manifests[0].Size}
	if !isManifest(l.Root) {
		return fmt.Errorf("%s names a %s, which is no image", ocispec.ImageIndexFile, l.Root.MediaType)
	}
	return l.walk(ctx, l.Root, map[digest.Digest]bool{}, 0)
}

func isManifest(d ocispec.Descriptor) bool {
	switch d.MediaType {
	case ocispec.MediaTypeImageIndex, ocispec.MediaTypeImageManifest:
		return true
	}
	return false
}

// walk checks a blob and all that it names.
func (l *Layout) walk(ctx context.Context, d ocispec.Descriptor, seen map[digest.Digest]bool, depth int) error {
	size, is := l.sizes[d.Digest]
	switch {
	case !is:
		return fmt.Errorf("the blob %q is missing: download the file again", d.Digest)
	case size != d.Size:
		return fmt.Errorf("the blob %s has %d bytes, and its descriptor says %d", d.Digest, size, d.Size)
	case seen[d.Digest]:
		return nil
	case size > maxManifest && isManifest(d):
		return fmt.Errorf("the manifest %s has %d bytes, more than %d", d.Digest, size, maxManifest)
	case size > maxManifest: // a layer
		return nil
	case depth == maxDepth:
		return fmt.Errorf("manifests name manifests more than %d levels deep", maxDepth)
	}
	seen[d.Digest] = true
	successors, err := content.Successors(ctx, l.store, d)
	if err != nil {
		return fmt.Errorf("the manifest %s cannot be read: %w", d.Digest, err)
	}
	for _, next := range successors {
		if p := next.Platform; depth == 0 && p != nil {
			l.Platforms = append(l.Platforms, p.OS+"/"+p.Architecture)
		}
		if err := l.walk(ctx, next, seen, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// Report is called for each blob that a repository has now; pushed is false if the repository had the blob before.
type Report func(blob ocispec.Descriptor, pushed bool)

// Push copies the image to a repository by its digest, and gives it a tag unless that is empty.
func (l *Layout) Push(ctx context.Context, repository *remote.Repository, tag string, report Report) error {
	options := oras.CopyGraphOptions{
		PostCopy:      func(_ context.Context, d ocispec.Descriptor) error { report(d, true); return nil },
		OnCopySkipped: func(_ context.Context, d ocispec.Descriptor) error { report(d, false); return nil },
	}
	if err := oras.CopyGraph(ctx, l.store, repository, l.Root, options); err != nil {
		return err
	}
	if tag == "" {
		return nil
	}
	manifest, err := content.FetchAll(ctx, l.store, l.Root)
	if err != nil {
		return err
	}
	return repository.Manifests().PushReference(ctx, l.Root, bytes.NewReader(manifest), tag)
}
