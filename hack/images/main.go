// Command images makes a container image without a container engine, and writes it as an archive that engines load.
//
//	images REFERENCE USER ARCHIVE PATH=FILE…
//
// The image holds the host's files under the paths; its containers run the first one as the user.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 4 {
		return errors.New("usage: images REFERENCE USER ARCHIVE PATH=FILE…")
	}
	reference, user, archive, files := args[0], args[1], args[2], args[3:]
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	layer, err := pack(files)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	entrypoint, _, _ := strings.Cut(files[0], "=")
	file.Config = v1.Config{User: user, Entrypoint: []string{entrypoint}}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return err
	}
	return tarball.WriteToFile(archive, tag, image)
}

// pack makes a layer of files. They have no times, so that the same files make the same layer.
func pack(files []string) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, pair := range files {
		path, file, found := strings.Cut(pair, "=")
		if !found {
			return nil, fmt.Errorf("%q is not PATH=FILE", pair)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(path, "/"), Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil })
}
