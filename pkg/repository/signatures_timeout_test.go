package repository

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/artifact"
)

// slowStore is a store that lists signatures, and answers for none after the first until the request ends.
type slowStore struct {
	store
	signatures []*artifact.Signature
	asked      int
}

func (s *slowStore) Referrers(context.Context, ocispec.Descriptor, func(ocispec.Descriptor) bool) (out []ocispec.Descriptor, cut bool, err error) {
	for _, signature := range s.signatures {
		out = append(out, signature.Descriptor())
	}
	return out, false, nil
}

func (s *slowStore) Manifest(ctx context.Context, _ string, _ int64) (ocispec.Descriptor, []byte, error) {
	if s.asked++; s.asked > 1 {
		select {
		case <-ctx.Done():
			return ocispec.Descriptor{}, nil, ctx.Err()
		case <-time.After(20 * time.Second):
		}
	}
	signature := s.signatures[s.asked-1]
	return signature.Descriptor(), signature.Manifest, nil
}

func (s *slowStore) Blob(context.Context, ocispec.Descriptor) ([]byte, error) {
	return s.signatures[s.asked-1].Bundle, nil
}

// TestSignaturesTimeout checks S5: all requests for the signatures of a package have one bound of time. What was read before is returned with
// an error, which installation turns into a warning, but for one that the user ends.
func TestSignaturesTimeout(t *testing.T) {
	subject := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("x"), Size: 1}
	var signatures []*artifact.Signature
	for i := range 4 {
		signature, err := artifact.NewSignature(subject, fmt.Appendf(nil, `{"x":%d}`, i), predicateType)
		if err != nil {
			t.Fatal(err)
		}
		signatures = append(signatures, signature)
	}
	for _, tc := range []struct {
		reason  string
		enough  int
		after   time.Duration // after which the user ends the command
		took    time.Duration
		read    int
		want    string
		warning bool
	}{
		{"a registry that is slow", 4, time.Hour, signaturesTimeout, 2, "only 2 signatures could be read in 30s: try again", true},
		{"one that is enough before", 1, time.Hour, 0, 1, "", false},
		{"a user who ends the command", 4, time.Second, time.Second, 1, context.DeadlineExceeded.Error(), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tc.after)
			defer cancel()
			start, read := time.Now(), 0
			at := resolved{Reference{Base: "oci://example.org", Name: "web"}, &slowStore{signatures: signatures}}
			found, err := readSignatures(ctx, at, subject, func([]byte) bool { read++; return read == tc.enough })
			if took := time.Since(start); took != tc.took || len(found.Bundles) != tc.read || (err == nil) != (tc.want == "") ||
				err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %d signatures after %s, %v, want %d after %s, %q", tc.reason, len(found.Bundles), took, err, tc.read, tc.took, tc.want)
			}
			f := &Found{Package: &operators.Package{}, signatures: func(context.Context) (Signatures, error) { return found, err }}
			pkg := &operators.Package{}
			failed := f.setProvenance(ctx, pkg)
			if (failed != nil) != (ctx.Err() != nil) || (len(pkg.Warnings) > 0) != tc.warning {
				t.Errorf("%s: installation gets %v, warnings %q", tc.reason, failed, pkg.Warnings)
			}
			if failed == nil && len(pkg.Provenance.Signatures) != tc.read {
				t.Errorf("%s: provenance %v", tc.reason, pkg.Provenance)
			}
		})
	}
}
