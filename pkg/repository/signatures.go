package repository

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/artifact"
	"kudo.dev/kudo/pkg/registry"
)

// SignaturesSuffix is what the name of the file with the signatures of an archive has behind that of the archive.
const SignaturesSuffix = ".sigstore.json"

const (
	// maxSignatures bounds the signatures of a package that are read.
	maxSignatures = 16
	// signaturesTimeout bounds all requests for the signatures of a package, which can be hundreds of two minutes each. All signatures that
	// are read have a megabyte: that is enough for a slow link, and users do not take the command for one that hangs.
	signaturesTimeout = 30 * time.Second
	// maxAttempts bounds how often a signature is added again that another writer has removed from the list.
	maxAttempts = 3
)

// Signatures are those of a package, as they were found: nothing is verified.
type Signatures struct {
	Bundles [][]byte
	// Warnings say what is left out, and what can be done. They do not name the package.
	Warnings []string
}

func (s *Signatures) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// Signatures returns the signatures of a package that was pulled. What cannot be read is left out with a warning, since others may add to a
// registry as well. The error says why not all were read; those that were are returned, too.
func (s *Remote) Signatures(ctx context.Context, p *Pulled) (Signatures, error) {
	return s.SignaturesUntil(ctx, p, func([]byte) bool { return false })
}

// SignaturesUntil is Signatures, which ends with the first signature that is enough: so what others have added behind it is not read.
func (s *Remote) SignaturesUntil(ctx context.Context, p *Pulled, enough func(bundle []byte) bool) (Signatures, error) {
	at, known := s.resolved[resolvedKey(p.Reference, Versions{})]
	if !known {
		return Signatures{}, fmt.Errorf("%s was not pulled", p.Reference)
	}
	return readSignatures(ctx, at, p.Descriptor(), enough)
}

// readSignatures reads the signatures of a package in a store, within signaturesTimeout.
func readSignatures(ctx context.Context, at resolved, subject ocispec.Descriptor, enough func([]byte) bool) (Signatures, error) {
	bounded, cancel := context.WithTimeout(ctx, signaturesTimeout)
	defer cancel()
	var out Signatures
	err := out.read(bounded, at.store, subject, enough)
	if err == nil {
		return out, nil
	}
	if ctx.Err() == nil && bounded.Err() != nil {
		err = fmt.Errorf("only %d signatures could be read in %s: try again, or delete what refers to the package and is no signature",
			len(out.Bundles), signaturesTimeout)
	}
	return out, wrapReference(at.Reference, err)
}

// read adds the signatures of a package in a store.
func (s *Signatures) read(ctx context.Context, from store, subject ocispec.Descriptor, enough func([]byte) bool) error {
	listed, cut, err := from.Referrers(ctx, subject, artifact.MaybeSignature)
	if cut {
		s.warn("too much refers to it: %d manifests that may be signatures are looked at, and others are not: delete those that are none",
			len(listed))
	}
	for _, d := range listed {
		bundle, failed := readSignature(ctx, from, d, subject)
		switch {
		case errors.Is(failed, artifact.ErrNoSignature):
		case failed != nil && ctx.Err() != nil:
			return failed
		case failed != nil:
			s.warn("a signature is left out: %v", failed)
		case len(s.Bundles) == maxSignatures:
			s.warn("it has more than %d signatures: the others are left out: delete those that no longer count", maxSignatures)
			return err
		default:
			if s.Bundles = append(s.Bundles, bundle); enough(bundle) {
				return nil
			}
		}
	}
	return err
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
		has, err := readSignatures(ctx, resolved{to, there}, subject, func([]byte) bool { return false })
		if err != nil {
			return err
		}
		missing := slices.DeleteFunc(slices.Clone(bundles), func(b []byte) bool {
			return slices.ContainsFunc(has.Bundles, func(is []byte) bool { return bytes.Equal(is, b) })
		})
		if len(missing) == 0 {
			return nil
		}
		if len(has.Bundles)+len(missing) > maxSignatures {
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
	out, err := readLines(archive + SignaturesSuffix)
	if err != nil {
		return nil, fmt.Errorf("read the signatures of %s: %w: delete %s, or replace it by that of the publisher", archive, err,
			archive+SignaturesSuffix)
	}
	return out, nil
}

// maxSignatureFile bounds a file of signatures, in bytes.
const maxSignatureFile = maxSignatures * (artifact.MaxSignature + 1)

// readLines returns the signatures in a file, one a line; none if there is no file.
func readLines(file string) ([][]byte, error) {
	data, err := readBounded(file, maxSignatureFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseLines(data)
}

// parseLines returns the signatures in the content of a file, one a line.
func parseLines(data []byte) (out [][]byte, err error) {
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			return nil, fmt.Errorf("line %d is no JSON", number)
		}
		if out = append(out, line); len(out) > maxSignatures {
			return nil, fmt.Errorf("there are more than %d, one a line", maxSignatures)
		}
	}
	return out, nil
}

// signaturesBeside reads the signatures in the file beside an archive of a repository, from the first of its addresses that has one; none
// if there is no file.
func (s *Remote) signaturesBeside(ctx context.Context, r Repository, archive []*url.URL) (Signatures, error) {
	o, err := s.connect(r)
	if err != nil {
		return Signatures{}, err
	}
	var failed error
	for _, u := range archive {
		at := beside(u)
		data, err := s.signatureFile(ctx, o.client, at)
		if isAbsent(err) {
			continue
		}
		var bundles [][]byte
		if err == nil {
			if bundles, err = parseLines(data); err == nil {
				return Signatures{Bundles: bundles}, nil
			}
			err = fmt.Errorf("%s: %w", redactURL(at), err)
		}
		failed = errors.Join(failed, err)
	}
	return Signatures{}, failed
}

// beside returns the address of the file with the signatures of a file.
func beside(file *url.URL) *url.URL {
	at := *file
	at.Path += SignaturesSuffix
	if at.RawPath != "" {
		at.RawPath += SignaturesSuffix
	}
	return &at
}

// signatureFile fetches a file of signatures within signaturesTimeout. A host that does not answer in time is not asked again: an
// installation may have 200 packages.
func (s *Remote) signatureFile(ctx context.Context, client *Client, at *url.URL) ([]byte, error) {
	late := &FetchError{redactURL(at), fmt.Errorf("there was no answer for signatures within %s: try again", s.signaturesTimeout)}
	if s.silent[origin(at)] {
		return nil, late
	}
	bounded, cancel := context.WithTimeout(ctx, s.signaturesTimeout)
	defer cancel()
	data, _, err := client.get(bounded, at, maxSignatureFile, true, validators{})
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		s.silent[origin(at)] = true
		return nil, late
	}
	return data, err
}

// isAbsent reports whether an error says that there is no file. Some servers answer 403 to who may not list the folder.
func isAbsent(err error) bool {
	var status *statusError
	return errors.Is(err, fs.ErrNotExist) || errors.As(err, &status) &&
		(status.code == http.StatusNotFound || status.code == http.StatusGone || status.code == http.StatusForbidden)
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

// Signatures returns the signatures of the package: none if it lies in the archive of another one. The error says why not all were read;
// those that were are returned, too.
func (f *Found) Signatures(ctx context.Context) (Signatures, error) {
	if f.signatures == nil {
		return Signatures{}, nil
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

// setProvenance says in a package where it was found, and adds as many of its signatures as an OperatorVersion may have; nothing to one
// that has neither. What is left out becomes a warning of the package: it can be installed where no signature is required. Paths of this
// disk do not leave it.
func (f *Found) setProvenance(ctx context.Context, pkg *operators.Package) error {
	out := &v1beta1.Provenance{Manifest: f.Manifest()}
	if out.Manifest != "" && !f.source.IsFolder() {
		out.Source = f.source.String()
	}
	found, err := f.Signatures(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("package %s: %w", f.Package.Operator.Name, err)
	}
	if err != nil {
		found.warn("not all of its signatures were read, and spec.provenance gets %d: %v", len(found.Bundles), err)
	}
	out.Signatures = found.fitting()
	for _, w := range found.Warnings {
		pkg.Warnings = append(pkg.Warnings, operators.Warning{Message: w})
	}
	if out.Manifest != "" || len(out.Signatures) > 0 {
		pkg.Provenance = out
	}
	return nil
}

// fitting returns the signatures that an OperatorVersion may have, and warns of the others.
func (s *Signatures) fitting() (out []string) {
	large, more := 0, 0
	for _, b := range s.Bundles {
		switch {
		case len(b) > v1beta1.MaxSignatureBytes:
			large++
		case len(out) == v1beta1.MaxSignatures:
			more++
		default:
			out = append(out, string(b))
		}
	}
	if large > 0 {
		s.warn("spec.provenance takes signatures of at most %d bytes, and leaves out %d of %d: if they are required, ask the publisher for "+
			"smaller ones", v1beta1.MaxSignatureBytes, large, len(s.Bundles))
	}
	if more > 0 {
		s.warn("spec.provenance takes %d signatures, and leaves out %d of %d: if they are required, delete those that no longer count where the "+
			"package is from, and install it again", v1beta1.MaxSignatures, more, len(s.Bundles))
	}
	return out
}
