package trust

import (
	"errors"
	"fmt"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// maxTrustedRoot bounds a trusted root, in bytes.
const maxTrustedRoot = 64 << 10

// timestampType is how the library names the time of a timestamp authority.
const timestampType = "TimestampAuthority"

// Identity is who signs with a short-lived certificate: the subject that an issuer has authenticated. A trusted root, which the user or the
// administrator gives, has the certificates of the authority, the log and the timestamp authority; none is fetched.
type Identity struct {
	// Issuer and Subject are compared as they are: there are no patterns.
	Issuer, Subject string
	root            *root.TrustedRoot
}

// NewIdentity returns an identity. The root is a trusted root of Sigstore in JSON.
func NewIdentity(issuer, subject string, trustedRoot []byte) (*Identity, error) {
	if issuer == "" || subject == "" {
		return nil, errors.New("issuer and subject are needed: they are compared with those in the certificate")
	}
	if len(trustedRoot) > maxTrustedRoot {
		return nil, fmt.Errorf("the trusted root has %d bytes, more than the %d allowed", len(trustedRoot), maxTrustedRoot)
	}
	parsed, err := root.NewTrustedRootFromJSON(trustedRoot)
	if err != nil {
		return nil, fmt.Errorf("it is no trusted root of Sigstore in JSON: %s", quote(err.Error()))
	}
	for _, part := range []struct {
		name  string
		count int
	}{
		{"certificateAuthorities", len(parsed.FulcioCertificateAuthorities())}, {"tlogs", len(parsed.RekorLogs())},
		{"timestampAuthorities", len(parsed.TimestampingAuthorities())},
	} {
		if part.count == 0 {
			return nil, fmt.Errorf("the trusted root has no %s: a signature needs a certificate, an entry of a log and a timestamp", part.name)
		}
	}
	return &Identity{Issuer: issuer, Subject: subject, root: parsed}, nil
}

// String returns the identity as messages name it.
func (i *Identity) String() string { return quote(i.Subject) + " of " + quote(i.Issuer) }

// checkMaterial refuses a bundle that is not signed with a certificate, or lacks what shows when it was signed.
func (i *Identity) checkMaterial(material *protobundle.VerificationMaterial) error {
	switch {
	case material.GetCertificate() == nil:
		return errors.New("it is not signed with a certificate")
	case len(material.GetTlogEntries()) == 0:
		return errors.New("it has no entry of a log")
	case len(material.GetTimestampVerificationData().GetRfc3161Timestamps()) == 0:
		return errors.New("it has no timestamp")
	}
	return nil
}

// verify returns what an identity has signed, and when at the latest. The certificate, the entry of the log and a timestamp must be those
// of the trusted root; if that has logs of certificates, the certificate must be in one.
func (i *Identity) verify(parsed *protobundle.Bundle) (*signedStatement, error) {
	entity, err := bundle.NewBundle(parsed)
	if err != nil {
		return nil, err
	}
	options := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithSignedTimestamps(1)}
	if len(i.root.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	v, err := verify.NewVerifier(i.root, options...)
	if err != nil {
		return nil, err
	}
	identity, err := verify.NewShortCertificateIdentity(i.Issuer, "", i.Subject, "")
	if err != nil {
		return nil, err
	}
	result, err := v.Verify(entity, verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithCertificateIdentity(identity)))
	if err != nil {
		return nil, err
	}
	if result.Statement == nil {
		return nil, errors.New("there is no statement")
	}
	out := &signedStatement{Statement: result.Statement}
	for _, stamp := range result.VerifiedTimestamps {
		if stamp.Type == timestampType && stamp.Timestamp.After(out.signed) {
			out.signed = stamp.Timestamp
		}
	}
	if out.signed.IsZero() {
		return nil, errors.New("no timestamp is verified")
	}
	return out, nil
}

// isExpired reports whether an authority has ended: for a key by now, since nothing shows when it was used, and for an identity by the time
// of the signature.
func (a Authority) isExpired(signed, now time.Time) bool {
	if a.Identity != nil {
		now = signed
	}
	return a.IsExpired(now)
}

// expired refuses a signature of an authority that has ended.
func (a Authority) expired() *RefusedError {
	by := "with a key"
	if a.Identity != nil {
		by = "by an identity"
	}
	return refuse(Expired, "authority %s ended on %s: sign again %s that is valid", a.Name, a.NotAfter.UTC().Format(time.DateOnly), by)
}
