package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// packImage writes the manager's image for all platforms as an OCI layout, and keeps its digest.
func (r *release) packImage() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range managerPlatforms {
		image, err := r.buildImage(p)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: p.system, Architecture: p.processor},
		}})
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	r.digest = digest.String()
	folder := filepath.Join(r.work, "layout")
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version,
		"io.containerd.image.name":          r.image + ":" + r.tag(),
	})); err != nil {
		return err
	}
	return r.packFolder(folder, "manager_"+r.version+".oci.tar")
}

// buildImage makes the image of a platform: one file in one layer, and no time but 0.
func (r *release) buildImage(p platform) (v1.Image, error) {
	program, err := os.ReadFile(r.managerFile(p))
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	if err := w.WriteHeader(&tar.Header{Name: "manager", Mode: 0o555, Size: int64(len(program)), Typeflag: tar.TypeReg}); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = p.system, p.processor
	file.Config = v1.Config{User: "65532:65532", Entrypoint: []string{"/manager"}, Labels: map[string]string{
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit.hash,
		"org.opencontainers.image.source":   r.url,
		"org.opencontainers.image.licenses": "Apache-2.0",
	}}
	return mutate.ConfigFile(image, file)
}
