package ocilayout

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// file is a file of an archive.
type file struct {
	name, text string
	kind       byte
}

// archive collects the files of a layout.
type archive struct{ files []file }

// blob adds a blob, and returns its descriptor.
func (a *archive) blob(mediaType, text string) ocispec.Descriptor {
	d := digest.FromString(text)
	a.files = append(a.files, file{name: "blobs/sha256/" + d.Encoded(), text: text})
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(text))}
}

// json adds a blob that is an object in JSON, and returns its descriptor.
func (a *archive) json(mediaType string, object any) ocispec.Descriptor {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return a.blob(mediaType, string(text))
}

// image adds an image for a platform.
func (a *archive) image(system, processor string) ocispec.Descriptor {
	d := a.json(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: a.blob(ocispec.MediaTypeImageConfig, `{"os":"`+system+`","architecture":"`+processor+`"}`),
		Layers: []ocispec.Descriptor{a.blob(ocispec.MediaTypeImageLayerGzip, "layer for "+processor)},
	})
	d.Platform = &ocispec.Platform{OS: system, Architecture: processor}
	return d
}

// index adds an index of images.
func (a *archive) index(manifests ...ocispec.Descriptor) ocispec.Descriptor {
	return a.json(ocispec.MediaTypeImageIndex, ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: manifests})
}

// name adds the index of the layout.
func (a *archive) name(images ...ocispec.Descriptor) {
	text, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: images})
	if err != nil {
		panic(err)
	}
	a.files = append(a.files, file{name: "index.json", text: string(text)}, file{name: "oci-layout", text: `{"imageLayoutVersion":"1.0.0"}`})
}

func (a *archive) bytes() []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range a.files {
		header := &tar.Header{Name: f.name, Typeflag: f.kind, Mode: 0o644, Size: int64(len(f.text))}
		switch f.kind {
		case 0:
			header.Typeflag = tar.TypeReg
		case tar.TypeSymlink:
			header.Size, header.Linkname = 0, f.text
		}
		if err := w.WriteHeader(header); err != nil {
			panic(err)
		}
		if header.Size > 0 {
			_, _ = w.Write([]byte(f.text))
		}
	}
	_ = w.Close()
	return out.Bytes()
}

func open(t *testing.T, text []byte) (*Layout, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return Open(t.Context(), name)
}

// TestOpen checks R8: an image is read with all its platforms, also with those of other systems.
func TestOpen(t *testing.T) {
	a := &archive{}
	root := a.index(a.image("linux", "amd64"), a.image("linux", "arm64"), a.image("plan9", "mips"))
	a.files = append(a.files, file{name: "blobs/", kind: tar.TypeDir}, file{name: "./other", text: "not read"})
	a.name(root)
	l, err := open(t, a.bytes())
	if err != nil {
		t.Fatal(err)
	}
	if l.Root.Digest != root.Digest || !slices.Equal(l.Platforms, []string{"linux/amd64", "linux/arm64", "plan9/mips"}) {
		t.Errorf("the image is %s for %v", l.Root.Digest, l.Platforms)
	}
	single := &archive{}
	single.name(single.image("linux", "amd64"))
	if l, err := open(t, single.bytes()); err != nil || len(l.Platforms) != 0 {
		t.Errorf("an image without an index: %v, %v", l, err)
	}
}

// TestHostileLayouts checks that an archive is refused before anything of it is pushed (R8).
func TestHostileLayouts(t *testing.T) {
	const lie = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for _, tc := range []struct {
		reason string
		change func(a *archive, image ocispec.Descriptor)
		want   string
	}{
		{"no image", func(a *archive, _ ocispec.Descriptor) { a.name() }, "names 0 images"},
		{"two images", func(a *archive, d ocispec.Descriptor) { a.name(d, d) }, "names 2 images"},
		{"no index", func(*archive, ocispec.Descriptor) {}, "index.json cannot be read"},
		{"an index that is no JSON", func(a *archive, _ ocispec.Descriptor) {
			a.files = append(a.files, file{name: "index.json", text: "<html>"})
		}, "index.json cannot be read"},
		{"a large index", func(a *archive, _ ocispec.Descriptor) {
			a.files = append(a.files, file{name: "index.json", text: strings.Repeat(" ", maxManifest+1)})
		}, "more than 4194304"},
		{"a layer as image", func(a *archive, _ ocispec.Descriptor) { a.name(a.blob(ocispec.MediaTypeImageLayer, "x")) }, "which is no image"},
		{"a blob that is missing", func(a *archive, d ocispec.Descriptor) { d.Digest = lie; a.name(d) }, "is missing"},
		{"a blob of a platform that is missing", func(a *archive, d ocispec.Descriptor) {
			d.Digest = lie
			a.name(a.index(d))
		}, "is missing"},
		{"a digest that is a path", func(a *archive, d ocispec.Descriptor) { d.Digest = "sha256:../../../etc/passwd"; a.name(d) }, "is missing"},
		{"another size", func(a *archive, d ocispec.Descriptor) { d.Size++; a.name(d) }, "its descriptor says"},
		{"a size that cannot be allocated (GHSA-f36w-mj3v-6jqv)", func(a *archive, d ocispec.Descriptor) { d.Size = 1 << 62; a.name(d) }, "its descriptor says 4611686018427387904"},
		{"a negative size", func(a *archive, d ocispec.Descriptor) { d.Size = -1; a.name(d) }, "its descriptor says -1"},
		{"a changed blob", func(a *archive, d ocispec.Descriptor) { a.name(d); a.files[0].text += " " }, "has the digest sha256:"},
		{"a blob twice", func(a *archive, d ocispec.Descriptor) {
			a.name(d)
			a.files = append(a.files, file{name: "x/../" + a.files[0].name, text: a.files[0].text})
		}, "is there twice"},
		{"an index twice", func(a *archive, d ocispec.Descriptor) { a.name(d); a.name(d) }, "is there twice"},
		{"a path out of the folder", func(a *archive, d ocispec.Descriptor) {
			a.name(d)
			a.files = append(a.files, file{name: "../x", text: "x"})
		}, "leaves the folder"},
		{"an absolute path", func(a *archive, d ocispec.Descriptor) {
			a.name(d)
			a.files = append(a.files, file{name: "/etc/x", text: "x"})
		}, "leaves the folder"},
		{"a link", func(a *archive, d ocispec.Descriptor) {
			a.name(d)
			a.files = append(a.files, file{name: "blobs/sha256/x", text: "/etc/passwd", kind: tar.TypeSymlink})
		}, "is neither a file nor a folder"},
		{"a manifest that is no JSON", func(a *archive, _ ocispec.Descriptor) { a.name(a.blob(ocispec.MediaTypeImageManifest, "<html>")) }, "cannot be read"},
		{"a large manifest", func(a *archive, _ ocispec.Descriptor) {
			a.name(a.blob(ocispec.MediaTypeImageManifest, strings.Repeat(" ", maxManifest+1)))
		}, "more than 4194304"},
		{"manifests too deep", func(a *archive, d ocispec.Descriptor) {
			for range maxDepth + 1 {
				d = a.index(d)
			}
			a.name(d)
		}, "levels deep"},
		{"many files", func(a *archive, d ocispec.Descriptor) {
			a.name(d)
			for i := range maxEntries {
				a.files = append(a.files, file{name: fmt.Sprint("x", i)})
			}
		}, "more than 4096 files"},
	} {
		a := &archive{}
		tc.change(a, a.image("linux", "amd64"))
		if _, err := open(t, a.bytes()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
		}
	}
	if _, err := Open(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "name the file manager_VERSION.oci.tar") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := open(t, bytes.Repeat([]byte("x"), 1024)); err == nil || !strings.Contains(err.Error(), "this is no tar archive") {
		t.Errorf("no archive: %v", err)
	}
	if _, err := open(t, sparse()); err == nil || !strings.Contains(err.Error(), "larger than the archive") {
		t.Errorf("a sparse file: %v", err)
	}
}

// sparse is an archive of one file, whose 1 GiB are not in the archive. The library reads such files and does not write them.
func sparse() []byte {
	records := "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n34 GNU.sparse.realsize=1073741824\n"
	var out bytes.Buffer
	for _, part := range []struct {
		kind byte
		text string
	}{{tar.TypeXHeader, records}, {tar.TypeReg, "0\n" + strings.Repeat("\x00", 510)}} {
		header := make([]byte, 512)
		copy(header, "x")
		copy(header[100:], "0000644\x000000000\x000000000\x00")
		copy(header[124:], fmt.Sprintf("%011o\x00%011o\x00        ", len(part.text), 0))
		header[156] = part.kind
		copy(header[257:], "ustar\x0000")
		sum := 0
		for _, b := range header {
			sum += int(b)
		}
		copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
		out.Write(header)
		out.WriteString(part.text + strings.Repeat("\x00", (512-len(part.text)%512)%512))
	}
	out.Write(make([]byte, 1024))
	return out.Bytes()
}

// FuzzOpen reads any bytes as an image.
func FuzzOpen(f *testing.F) {
	a := &archive{}
	a.name(a.index(a.image("linux", "amd64")))
	f.Add(a.bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		if l, err := open(t, text); err == nil && l.sizes[l.Root.Digest] != l.Root.Size {
			t.Errorf("the image %s is not in the archive", l.Root.Digest)
		}
	})
}
