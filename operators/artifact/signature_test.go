package artifact

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// TestSignature checks S13 and S17: a signature refers to its package, and what is no signature of it is not taken for one.
func TestSignature(t *testing.T) {
	subject := newArtifact(t).Descriptor()
	s, err := NewSignature(subject, []byte(`{"x":1}`), "https://example.org/signature")
	if err != nil {
		t.Fatal(err)
	}
	if s.Descriptor().Digest != digest.FromBytes(s.Manifest) || s.ConfigDescriptor().Digest != digest.FromBytes(s.Config) ||
		s.BundleDescriptor().Digest != digest.FromBytes(s.Bundle) || s.ConfigDescriptor().Size != int64(len(s.Config)) {
		t.Error("a descriptor is that of something else")
	}
	errAny := errors.New("any")
	for _, tc := range []struct {
		reason string
		change func(m *ocispec.Manifest)
		want   error
	}{
		{"a signature", func(*ocispec.Manifest) {}, nil},
		{"an SBOM", func(m *ocispec.Manifest) { m.ArtifactType = "application/spdx+json" }, ErrNoSignature},
		{"a signature of another package", func(m *ocispec.Manifest) { m.Subject.Digest = digest.FromString("x") }, ErrNoSignature},
		{"no subject", func(m *ocispec.Manifest) { m.Subject = nil }, ErrNoSignature},
		{"no layer", func(m *ocispec.Manifest) { m.Layers = nil }, ErrNoSignature},
		{"two layers", func(m *ocispec.Manifest) { m.Layers = append(m.Layers, m.Layers[0]) }, ErrNoSignature},
		{"a layer of another type", func(m *ocispec.Manifest) { m.Layers[0].MediaType = "text/plain" }, errAny},
		{"a huge layer (S5)", func(m *ocispec.Manifest) { m.Layers[0].Size = MaxSignature + 1 }, errAny},
		{"a negative size", func(m *ocispec.Manifest) { m.Layers[0].Size = -1 }, errAny},
		{"a foreign URL", func(m *ocispec.Manifest) { m.Layers[0].URLs = []string{"https://evil.example.org"} }, errAny},
		{"another algorithm", func(m *ocispec.Manifest) { m.Layers[0].Digest = digest.SHA512.FromString("x") }, errAny},
		{"a huge manifest (S5)", func(m *ocispec.Manifest) { m.Annotations["x"] = strings.Repeat("a", MaxManifest) }, errAny},
	} {
		var m ocispec.Manifest
		if err := json.Unmarshal(s.Manifest, &m); err != nil {
			t.Fatal(err)
		}
		tc.change(&m)
		encoded, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		layer, err := ParseSignature(encoded, subject.Digest)
		if (err == nil) != (tc.want == nil) || errors.Is(tc.want, ErrNoSignature) != errors.Is(err, ErrNoSignature) {
			t.Errorf("%s: %v, want %v", tc.reason, err, tc.want)
		}
		if err == nil && layer.Digest != digest.FromBytes(s.Bundle) {
			t.Errorf("%s: the bundle is %s", tc.reason, layer.Digest)
		}
	}
	if _, err := ParseSignature([]byte("["), subject.Digest); err == nil {
		t.Error("no JSON is taken")
	}
	if _, err := NewSignature(subject, make([]byte, MaxSignature+1), ""); err == nil {
		t.Error("a huge signature is taken")
	}
}

// TestMaybeSignature checks S13: which of the descriptors that a registry lists can be that of a signature.
func TestMaybeSignature(t *testing.T) {
	good := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: SignatureType, Digest: digest.FromString("x"), Size: 1}
	for _, tc := range []struct {
		reason string
		change func(d *ocispec.Descriptor)
		want   bool
	}{
		{"the type of signatures", func(*ocispec.Descriptor) {}, true},
		{"no type", func(d *ocispec.Descriptor) { d.ArtifactType = "" }, true},
		{"the type of the config of signatures", func(d *ocispec.Descriptor) { d.ArtifactType = "application/vnd.oci.empty.v1+json" }, true},
		{"another type", func(d *ocispec.Descriptor) { d.ArtifactType = "application/spdx+json" }, false},
		{"an index", func(d *ocispec.Descriptor) { d.MediaType = ocispec.MediaTypeImageIndex }, false},
		{"no digest", func(d *ocispec.Descriptor) { d.Digest = "../../x" }, false},
	} {
		d := good
		if tc.change(&d); MaybeSignature(d) != tc.want {
			t.Errorf("%s: %t, want %t", tc.reason, !tc.want, tc.want)
		}
	}
}

// FuzzParseSignature checks that what is taken is in bounds, whatever a registry says.
func FuzzParseSignature(f *testing.F) {
	subject := digest.FromString("x")
	s, err := NewSignature(ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: subject, Size: 1}, []byte(`{}`), "")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.Manifest)
	f.Add([]byte(`{"artifactType":"` + SignatureType + `","subject":{},"layers":[{"size":1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if d, err := ParseSignature(data, subject); err == nil && (d.Size <= 0 || d.Size > MaxSignature || d.Digest.Validate() != nil) {
			t.Errorf("%q gives %v", data, d)
		}
	})
}
