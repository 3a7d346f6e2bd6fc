// Package artifact is the format of a package in a registry of OCI artifacts: one manifest, a config that describes the package, and one
// layer, the archive. What comes from a registry is hostile: all of it is bounded, and compared with the package.
package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/text"
)

// The types of a package and its parts.
const (
	Type       = "application/vnd.dev.kudo.package.v1"
	ConfigType = "application/vnd.dev.kudo.package.config.v1+json"
	LayerType  = "application/vnd.dev.kudo.package.content.v1.tar+gzip"
)

// The bounds of a manifest and a config in bytes. Those of the layer are the limits of archives.
const (
	MaxManifest = 256 << 10
	MaxConfig   = 64 << 10
)

// maxShown bounds what messages quote of a package, in bytes.
const maxShown = 64

// Artifact is a package as a registry has it, byte for byte.
type Artifact struct {
	Manifest, Config, Archive []byte
	// Package is what the archive holds.
	Package *operators.Package
}

// New returns the artifact of an archive. The same archive and time give the same bytes. The time is left out if it is zero.
func New(packed []byte, created time.Time) (*Artifact, error) {
	pkg, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	tag, err := TagOf(pkg)
	if err != nil {
		return nil, err
	}
	if v := pkg.Operator.OperatorVersion; !isComplete(v) {
		return nil, fmt.Errorf("operatorVersion %s cannot be the tag of a version: write all three parts, such as 1.0.0", text.Quote(v, maxShown))
	}
	config, err := encodeConfig(pkg)
	if err != nil {
		return nil, err
	}
	if len(config) > MaxConfig {
		return nil, fmt.Errorf("what describes the package has %d bytes, more than the %d allowed: shorten the description or the list of "+
			"maintainers", len(config), MaxConfig)
	}
	manifest := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: Type,
		Config:      ocispec.Descriptor{MediaType: ConfigType, Digest: digest.FromBytes(config), Size: int64(len(config))},
		Layers:      []ocispec.Descriptor{{MediaType: LayerType, Digest: digest.FromBytes(packed), Size: int64(len(packed))}},
		Annotations: annotations(pkg, tag),
	}
	if !created.IsZero() {
		manifest.Annotations[ocispec.AnnotationCreated] = created.UTC().Format(time.RFC3339)
	}
	encoded, err := encode(manifest)
	if err != nil {
		return nil, err
	}
	if len(encoded) > MaxManifest {
		return nil, fmt.Errorf("the manifest has %d bytes, more than the %d allowed: shorten the description", len(encoded), MaxManifest)
	}
	return &Artifact{Manifest: encoded, Config: config, Archive: packed, Package: pkg}, nil
}

// Descriptor describes the manifest.
func (a *Artifact) Descriptor() ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: Type, Digest: digest.FromBytes(a.Manifest),
		Size: int64(len(a.Manifest))}
}

// Tag returns the tag of the version of the package.
func (a *Artifact) Tag() string {
	return Tag(a.Package.Operator.AppVersion, a.Package.Operator.OperatorVersion)
}

// unpack reads the package of an archive.
func unpack(packed []byte) (*operators.Package, error) {
	if limit := archive.DefaultLimits().Compressed; int64(len(packed)) > limit {
		return nil, fmt.Errorf("the archive has %d bytes, more than the %d allowed", len(packed), limit)
	}
	files, err := archive.Read(bytes.NewReader(packed), archive.DefaultLimits())
	if err != nil {
		return nil, err
	}
	pkg, err := operators.Read(files)
	if err != nil {
		return nil, err
	}
	// The names become parts of references and names of files.
	return pkg, pkg.ValidateNames().Err()
}

func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("encode the artifact: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// annotations are what registries display of a package.
func annotations(pkg *operators.Package, tag string) map[string]string {
	out := map[string]string{ocispec.AnnotationTitle: pkg.Operator.Name, ocispec.AnnotationVersion: tag}
	if pkg.Operator.Description != "" {
		out[ocispec.AnnotationDescription] = pkg.Operator.Description
	}
	if pkg.Operator.URL != "" {
		out[ocispec.AnnotationURL] = pkg.Operator.URL
	}
	return out
}

// Manifest is the manifest of a package, whose parts were not fetched.
type Manifest struct {
	Config, Layer ocispec.Descriptor
	// Annotations are those that describe the package, and others.
	Annotations map[string]string
	text        []byte
}

// ParseManifest reads a manifest, and refuses all that is not that of one package: another type, an index of manifests, further layers,
// content that is elsewhere, and digests of other algorithms.
func ParseManifest(data []byte, mediaType string) (*Manifest, error) {
	if len(data) > MaxManifest {
		return nil, fmt.Errorf("the manifest has %d bytes, more than the %d allowed", len(data), MaxManifest)
	}
	var m ocispec.Manifest
	if mediaType != ocispec.MediaTypeImageManifest {
		return nil, &TypeError{mediaType}
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("the manifest cannot be read: %w", err)
	}
	switch {
	case m.MediaType != "" && m.MediaType != mediaType:
		return nil, &TypeError{m.MediaType}
	case m.ArtifactType != Type:
		if m.ArtifactType == "" {
			return nil, &TypeError{m.Config.MediaType}
		}
		return nil, &TypeError{m.ArtifactType}
	case len(m.Layers) != 1:
		return nil, fmt.Errorf("the manifest has %d layers: a package has one", len(m.Layers))
	case m.Subject != nil:
		return nil, errors.New("the manifest refers to another one: a package stands for itself")
	}
	if err := checkDescriptor(m.Config, ConfigType, MaxConfig); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	if err := checkDescriptor(m.Layers[0], LayerType, archive.DefaultLimits().Compressed); err != nil {
		return nil, fmt.Errorf("layer: %w", err)
	}
	return &Manifest{Config: m.Config, Layer: m.Layers[0], Annotations: m.Annotations, text: data}, nil
}

// TypeError says that what a registry has is not a package. Its text follows the reference.
type TypeError struct{ Type string }

// Error implements error.
func (e *TypeError) Error() string {
	if e.Type == "" {
		return "is no package: it has no type"
	}
	return "is no package: its type is " + text.Truncate(text.OneLine(e.Type), 128)
}

// ContentError says that what a registry has is not the package that a reference names. Its text follows the reference.
type ContentError struct{ Holds string }

// Error implements error.
func (e *ContentError) Error() string { return "holds " + e.Holds }

func checkDescriptor(d ocispec.Descriptor, mediaType string, limit int64) error {
	switch {
	case d.MediaType != mediaType:
		return &TypeError{d.MediaType}
	case d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256:
		return fmt.Errorf("the digest %q is no sha256 digest", text.Truncate(string(d.Digest), 100))
	case len(d.URLs) > 0:
		return errors.New("the content is at other URLs: it must be in the registry")
	case d.Size <= 0 || d.Size > limit:
		return fmt.Errorf("the size of %d bytes is not between 1 and %d", d.Size, limit)
	case d.Data != nil && (int64(len(d.Data)) != d.Size || digest.FromBytes(d.Data) != d.Digest):
		return errors.New("the embedded data is not what the digest says")
	}
	return nil
}

// Assemble returns the artifact of a manifest and its parts, which have the digests of the manifest. What the config and the annotations
// say must be true of the package.
func (m *Manifest) Assemble(config, packed []byte) (*Artifact, error) {
	for _, part := range []struct {
		name string
		want ocispec.Descriptor
		data []byte
	}{{"config", m.Config, config}, {"layer", m.Layer, packed}} {
		if int64(len(part.data)) != part.want.Size || digest.FromBytes(part.data) != part.want.Digest {
			return nil, fmt.Errorf("%s: the content is not what the digest %s says", part.name, part.want.Digest)
		}
	}
	pkg, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	if err := compareConfig(config, pkg); err != nil {
		return nil, err
	}
	want := annotations(pkg, Tag(pkg.Operator.AppVersion, pkg.Operator.OperatorVersion))
	// A description may be left out, and may not differ.
	for _, key := range []string{ocispec.AnnotationTitle, ocispec.AnnotationVersion, ocispec.AnnotationDescription, ocispec.AnnotationURL} {
		if said, is := m.Annotations[key]; is && said != want[key] {
			return nil, fmt.Errorf("the annotation %s says %s, and the package %s", key, text.Quote(said, maxShown), text.Quote(want[key], maxShown))
		}
	}
	return &Artifact{Manifest: m.text, Config: config, Archive: packed, Package: pkg}, nil
}
