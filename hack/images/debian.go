package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// debian says which packages of Debian the images of servers hold. They share one layer, which is loaded once.
type debian struct {
	Suite    string   `json:"suite"`
	Packages []string `json:"packages"`
	// Exclude are patterns of paths that are not installed, and Remove are patterns of paths that are removed at the end.
	Exclude []string `json:"exclude"`
	Remove  []string `json:"remove"`
}

// layer returns the layer of the packages, from the cache if it is there.
func (d debian) layer() (v1.Layer, error) {
	key, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	folder, err := cache(key)
	if err != nil {
		return nil, err
	}
	archive := filepath.Join(folder, "layer.tar.gz")
	if _, err := os.Stat(archive); err == nil {
		return tarball.LayerFromFile(archive)
	}
	args := []string{"--quiet", "--variant=minbase", "--include=" + strings.Join(d.Packages, ",")}
	for _, pattern := range d.Exclude {
		args = append(args, "--dpkgopt=path-exclude="+pattern)
	}
	for _, pattern := range d.Remove {
		args = append(args, `--customize-hook=rm -rf "$1"`+pattern)
	}
	fmt.Fprintln(os.Stderr, "installing packages of Debian for the images (some minutes, once)…")
	// Another run may be making the same layer. The name says how mmdebstrap compresses.
	work, err := os.MkdirTemp(folder, "work-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	building := filepath.Join(work, "layer.tar.gz")
	if out, err := exec.Command("mmdebstrap", append(args, d.Suite, building)...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mmdebstrap: %w\n%s", err, out)
	}
	if err := os.Rename(building, archive); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(archive)
}

// cache returns the folder for what is made by a recipe, in the user's cache folder.
func cache(recipe []byte) (string, error) {
	root, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(recipe)
	folder := filepath.Join(root, "kudo", "images", "debian-"+hex.EncodeToString(sum[:8]))
	return folder, os.MkdirAll(folder, 0o755)
}
