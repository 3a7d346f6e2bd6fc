package repository

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/registry"
)

// SignaturesSuffix is what the name of the file with the signatures of an archive has behind that of the archive.
const SignaturesSuffix = ".sigstore.json"

const (
	// maxSignatures bounds the signatures of a package that are read.
	maxSignatures = 16
	// maxAttempts bounds how often a signature is added again that another writer has removed from the list.
	maxAttempts = 3
)

// Signatures returns the signatures of a package that was pulled. They are as they were found: nothing is verified. What cannot be read is
// left out with a warning, since others may add to a registry as well.
func (s *Remote) Signatures(ctx context.Context, p *Pulled) ([][]byte, error) {
	at, known := s.resolved[resolvedKey(p.Reference, Versions{})]
	if !known {
		return nil, fmt.Errorf("%s was not pulled", p.Reference)
	}
	return s.readSignatures(ctx, at, p.Descriptor())
}

func (s *Remote) readSignatures(ctx context.Context, at resolved, subject ocispec.Descriptor) ([][]byte, error) {
	found, cut, err := at.store.Referrers(ctx, subject, artifact.MaybeSignature)
	if err != nil {
		return nil, wrapReference(at.Reference, err)
	}
	if cut {
		s.warn("%s: too much refers to it: %d manifests that may be signatures are looked at, and others are not: delete those that are none",
			at.Reference, len(found))
	}
	var out [][]byte
	for _, d := range found {
		bundle, err := readSignature(ctx, at.store, d, subject)
		switch {
		case errors.Is(err, artifact.ErrNoSignature):
		case err != nil && ctx.Err() != nil:
			return nil, wrapReference(at.Reference, err)
		case err != nil:
			s.warn("a signature of %s is left out: %v", at.Reference, err)
		case len(out) == maxSignatures:
			s.warn("%s has more than %d signatures: the others are left out", at.Reference, maxSignatures)
			return out, nil
		default:
			out = append(out, bundle)
		}
	}
	return out, nil
}

func readSignature(ctx context.Context, from store, d, subject ocispec.Descriptor) ([]byte, error) {
	read, manifest, err := from.Manifest(ctx, d.Digest.String(), artifact.MaxManifest)
	if err != nil {
		return nil, err
	}
	if read.MediaType != ocispec.MediaTypeImageManifest {
		return nil, artifact.ErrNoSignature
	}
	layer, err := artifact.ParseSignature(manifest, subject.Digest)
	if err != nil {
		return nil, err
	}
	bundle, err := from.Blob(ctx, layer)
	if err == nil && !json.Valid(bundle) {
		return nil, errors.New("it is no JSON")
	}
	return bundle, err
}

// Attach adds signatures to a package that was pushed, or is there; those that it has are left as they are. Adding to a registry without
// the API of referrers replaces a list, so that two writers can remove one another's: what was added is read again, and added again if it
// is not there.
func (s *Remote) Attach(ctx context.Context, to Reference, subject ocispec.Descriptor, bundles [][]byte, predicateType string) error {
	if len(bundles) == 0 {
		return nil
	}
	for range maxAttempts {
		there, err := s.artifacts(to, nil) // a new one, since it remembers which way lists are kept
		if err != nil {
			return err
		}
		has, err := s.readSignatures(ctx, resolved{to, there}, subject)
		if err != nil {
			return err
		}
		missing := slices.DeleteFunc(slices.Clone(bundles), func(b []byte) bool {
			return slices.ContainsFunc(has, func(is []byte) bool { return bytes.Equal(is, b) })
		})
		if len(missing) == 0 {
			return nil
		}
		if len(has)+len(missing) > maxSignatures {
			return fmt.Errorf("%s would have more than %d signatures: delete those that no longer count", to, maxSignatures)
		}
		for _, bundle := range missing {
			if err := attach(ctx, there, subject, bundle, predicateType); err != nil {
				return wrapReference(to, err)
			}
		}
	}
	return fmt.Errorf("%s: the registry does not list the signature that was pushed: try again when no other client adds signatures", to)
}

func attach(ctx context.Context, to store, subject ocispec.Descriptor, bundle []byte, predicateType string) error {
	signature, err := artifact.NewSignature(subject, bundle, predicateType)
	if err != nil {
		return err
	}
	blobs := []registry.Blob{{Descriptor: signature.ConfigDescriptor(), Data: signature.Config},
		{Descriptor: signature.BundleDescriptor(), Data: signature.Bundle}}
	return to.Push(ctx, registry.Blob{Descriptor: signature.Descriptor(), Data: signature.Manifest}, blobs, "")
}

// ReadSignatures returns the signatures in the file beside an archive, one a line; none if there is no file.
func ReadSignatures(archive string) ([][]byte, error) {
	data, err := readBounded(archive+SignaturesSuffix, maxSignatures*(artifact.MaxSignature+1))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the signatures of %s: %w", archive, err)
	}
	var out [][]byte
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			out = append(out, line)
		}
	}
	if len(out) > maxSignatures {
		return nil, fmt.Errorf("%s has more than %d signatures, one a line: delete those that no longer count", archive+SignaturesSuffix,
			maxSignatures)
	}
	return out, nil
}

// FormatSignatures returns the content of a file that ReadSignatures reads.
func FormatSignatures(bundles [][]byte) ([]byte, error) {
	if len(bundles) > maxSignatures {
		return nil, fmt.Errorf("they would be more than %d: delete those that no longer count", maxSignatures)
	}
	var out bytes.Buffer
	for _, b := range bundles { // those of other tools may have line breaks
		if err := json.Compact(&out, b); err != nil {
			return nil, fmt.Errorf("a signature is no JSON: %w", err)
		}
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// Signatures returns the signatures of the package, as they were found: none if it lies in the archive of another one.
func (f *Found) Signatures(ctx context.Context) ([][]byte, error) {
	if f.signatures == nil {
		return nil, nil
	}
	return f.signatures(ctx)
}

// Manifest returns the digest of the manifest of the package, or "" if it is not from a registry or a folder in OCI layout.
func (f *Found) Manifest() string {
	if f.signatures == nil || f.source.Base == "" {
		return ""
	}
	return f.source.Digest.String()
}

// provenance says where the package was found, and holds as many of its signatures as an OperatorVersion may have. It returns nil for
// what has neither. Paths of this disk do not leave it.
func (f *Found) provenance(ctx context.Context) (*v1beta1.Provenance, error) {
	out := &v1beta1.Provenance{Manifest: f.Manifest()}
	if out.Manifest != "" && !f.source.IsFolder() {
		out.Source = f.source.String()
	}
	bundles, err := f.Signatures(ctx)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", f.Package.Operator.Name, err)
	}
	for _, b := range bundles {
		if len(b) <= v1beta1.MaxSignatureBytes && len(out.Signatures) < v1beta1.MaxSignatures {
			out.Signatures = append(out.Signatures, string(b))
		}
	}
	if out.Manifest == "" && len(out.Signatures) == 0 {
		return nil, nil
	}
	return out, nil
}
