// Command images makes the container images of images.yaml without a container engine, and writes them as archives that engines
// load.
//
//	images [-o FOLDER] ARCHIVE…
//
// Images of servers hold packages of Debian, which mmdebstrap installs: it needs root. What takes long to make is kept in the
// user's cache folder.
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/yaml"
)

// config is the content of images.yaml.
type config struct {
	Debian debian `json:"debian"`
	// Archives are lists of images, by the name of the archive that holds them.
	Archives map[string][]image `json:"archives"`
}

// image is a container image.
type image struct {
	// Names are its references: all of an image that stands in for several.
	Names []string `json:"names"`
	// Debian has the image begin with the packages of Debian.
	Debian bool   `json:"debian"`
	User   string `json:"user"`
	// Files are files of the host by their paths in the image. ${NAME} in them stands for a variable of the environment.
	Files      map[string]string `json:"files"`
	Env        []string          `json:"env"`
	Entrypoint []string          `json:"entrypoint"`
	Cmd        []string          `json:"cmd"`
	StopSignal string            `json:"stopSignal"`
}

func main() {
	folder := flag.String("o", ".", "the `folder` to write the archives to")
	flag.Parse()
	if err := run(*folder, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(folder string, archives []string) error {
	data, err := os.ReadFile("images.yaml")
	if err != nil {
		return err
	}
	c := config{}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return fmt.Errorf("images.yaml: %w", err)
	}
	for _, archive := range archives {
		images, found := c.Archives[archive]
		if !found {
			return fmt.Errorf("images.yaml has no archive %s", archive)
		}
		content := map[name.Reference]v1.Image{}
		for _, i := range images {
			built, err := build(c.Debian, i)
			if err != nil {
				return fmt.Errorf("image %s: %w", i.Names[0], err)
			}
			for _, reference := range i.Names {
				tag, err := name.NewTag(reference)
				if err != nil {
					return err
				}
				content[tag] = built
			}
		}
		if err := tarball.MultiRefWriteToFile(filepath.Join(folder, archive+".tar"), content); err != nil {
			return fmt.Errorf("archive %s: %w", archive, err)
		}
	}
	return nil
}

func build(d debian, i image) (v1.Image, error) {
	var layers []v1.Layer
	if i.Debian {
		layer, err := d.layer()
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	files := map[string]string{}
	for path, file := range i.Files {
		files[path] = os.ExpandEnv(file)
	}
	layer, err := pack(files)
	if err != nil {
		return nil, err
	}
	built, err := mutate.AppendLayers(empty.Image, append(layers, layer)...)
	if err != nil {
		return nil, err
	}
	file, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config = v1.Config{User: i.User, Env: i.Env, Entrypoint: i.Entrypoint, Cmd: i.Cmd, StopSignal: i.StopSignal}
	return mutate.ConfigFile(built, file)
}

// pack makes a layer of files. They have no times, so that the same files make the same layer.
func pack(files map[string]string) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[path])
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Name: strings.TrimPrefix(path, "/"), Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(header); err != nil {
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
