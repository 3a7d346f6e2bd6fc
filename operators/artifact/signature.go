package artifact

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// SignatureType is the artifact type of a manifest that refers to a package and holds a signature, a Sigstore bundle.
const SignatureType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// MaxSignature bounds a signature, in bytes.
const MaxSignature = 64 << 10

// Keys of annotations of the manifest of a signature, which tools show.
const (
	bundleContentKey = "dev.sigstore.bundle.content"
	predicateTypeKey = "dev.sigstore.bundle.predicateType"
)

// Signature is a signature as a registry has it.
type Signature struct{ Manifest, Config, Bundle []byte }

// NewSignature returns the artifact of a signature of a package, by the descriptor of the manifest of the package.
func NewSignature(subject ocispec.Descriptor, bundle []byte, predicateType string) (*Signature, error) {
	if len(bundle) > MaxSignature {
		return nil, fmt.Errorf("the signature has %d bytes, more than the %d allowed", len(bundle), MaxSignature)
	}
	empty := ocispec.DescriptorEmptyJSON
	config := empty.Data
	empty.Data = nil
	manifest, err := encode(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: SignatureType,
		Config:      empty,
		Layers:      []ocispec.Descriptor{{MediaType: SignatureType, Digest: digest.FromBytes(bundle), Size: int64(len(bundle))}},
		Subject:     &ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size},
		Annotations: map[string]string{bundleContentKey: "dsse-envelope", predicateTypeKey: predicateType},
	})
	return &Signature{Manifest: manifest, Config: config, Bundle: bundle}, err
}

// Descriptor describes the manifest.
func (s *Signature) Descriptor() ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: SignatureType, Digest: digest.FromBytes(s.Manifest),
		Size: int64(len(s.Manifest))}
}

// ConfigDescriptor describes the config, which is empty.
func (s *Signature) ConfigDescriptor() ocispec.Descriptor {
	d := ocispec.DescriptorEmptyJSON
	d.Data = nil
	return d
}

// BundleDescriptor describes the bundle.
func (s *Signature) BundleDescriptor() ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: SignatureType, Digest: digest.FromBytes(s.Bundle), Size: int64(len(s.Bundle))}
}

// MaybeSignature reports whether a descriptor that is listed among what refers to a package can be that of a signature. Registries report
// no type, or that of the config, in place of the type that the manifest has: ParseSignature decides.
func MaybeSignature(d ocispec.Descriptor) bool {
	switch d.ArtifactType {
	case SignatureType, "", ocispec.MediaTypeEmptyJSON:
		return d.MediaType == ocispec.MediaTypeImageManifest && d.Digest.Validate() == nil
	}
	return false
}

// ErrNoSignature is the error of a manifest that is something else than a signature, such as a list of what is in a package.
var ErrNoSignature = errors.New("it is no signature")

// ParseSignature returns the descriptor of the bundle in the manifest of a signature. The manifest must refer to the subject: what a
// registry lists is trusted for nothing. The error is ErrNoSignature if it is not that of a signature of the subject.
func ParseSignature(manifest []byte, subject digest.Digest) (ocispec.Descriptor, error) {
	var m ocispec.Manifest
	if len(manifest) > MaxManifest {
		return ocispec.Descriptor{}, fmt.Errorf("the manifest of the signature has %d bytes, more than the %d allowed", len(manifest),
			MaxManifest)
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("the manifest of the signature cannot be read: %w", err)
	}
	if m.ArtifactType != SignatureType || m.Subject == nil || m.Subject.Digest != subject || len(m.Layers) != 1 {
		return ocispec.Descriptor{}, ErrNoSignature
	}
	if err := checkDescriptor(m.Layers[0], SignatureType, MaxSignature); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("layer of the signature: %w", err)
	}
	return m.Layers[0], nil
}
