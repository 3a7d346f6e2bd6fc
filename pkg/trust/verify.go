package trust

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	in_toto "github.com/in-toto/attestation/go/v1"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"

	"kudo.dev/kudo/pkg/text"
)

// The bounds of signatures: the bytes of a bundle, and how many bundles of a package are looked at.
const (
	MaxBundle  = 64 << 10
	MaxBundles = 16
)

// maxShown bounds what messages quote of a bundle, in bytes.
const maxShown = 128

// Reason says in one word why a package is not verified, or that it is.
type Reason string

// The reasons of a verdict.
const (
	Verified       Reason = "Verified"
	NoSignature    Reason = "NoSignature"
	WrongKey       Reason = "WrongKey"
	WrongType      Reason = "WrongType"
	ContentDiffers Reason = "ContentDiffers"
	NameDiffers    Reason = "NameDiffers"
	Expired        Reason = "Expired"
)

// RefusedError says why a bundle does not vouch for a package.
type RefusedError struct {
	Reason  Reason
	Message string
	// Hint is the name of the key that the bundle claims to be signed by, if the reason is WrongKey.
	Hint string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Message }

func refuse(reason Reason, format string, args ...any) *RefusedError {
	return &RefusedError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Authority is whose signatures count. It has either a key or an identity.
type Authority struct {
	Name     string
	Key      *PublicKey
	Identity *Identity
	// NotAfter is when the authority ends; zero is never. A signature with a key has no time that can be trusted, so that all signatures
	// of the authority end then. Those of an identity count if they were made before.
	NotAfter time.Time
}

// signer names the key or the identity of the authority.
func (a Authority) signer() string {
	if a.Identity != nil {
		return a.Identity.String()
	}
	return "key " + a.Key.Hint()
}

// IsExpired reports whether the authority has ended.
func (a Authority) IsExpired(now time.Time) bool {
	return !a.NotAfter.IsZero() && !now.Before(a.NotAfter)
}

// Verify returns nil if a bundle vouches for a package by an authority at a time; else the error is a *RefusedError. The library verifies
// the signature. It takes any statement over a digest, messages without a statement, subjects of any name, and keys that have ended: these
// holes are closed here.
func Verify(data []byte, wanted Package, authority Authority, now time.Time) error {
	said, err := verifyBundle(data, "a package", authority)
	if err != nil {
		return err
	}
	if err := checkStatement(said.Statement, wanted, authority.Name); err != nil {
		return err
	}
	if authority.isExpired(said.signed, now) {
		return authority.expired()
	}
	return nil
}

// CheckStatement compares the statement of a bundle with a package. The error is a *RefusedError. CheckStatement does not verify the
// signature.
func CheckStatement(data []byte, wanted Package) error {
	parsed, err := parse(data, nil)
	if err != nil {
		return refuse(WrongType, "%s", quote(text.OneLine(err.Error())))
	}
	said, err := statementOf(parsed)
	if err != nil {
		return refuse(WrongType, "%s", quote(text.OneLine(err.Error())))
	}
	return checkStatement(said, wanted, "the bundle")
}

// signedStatement is a statement, and when it was signed; that is zero for a statement that is signed with a key.
type signedStatement struct {
	*in_toto.Statement
	signed time.Time
}

// verifyBundle returns the statement of a bundle that the key or the identity of an authority verifies. What the statement says is not
// looked at.
func verifyBundle(data []byte, what string, authority Authority) (*signedStatement, error) {
	check := checkKeyMaterial
	if authority.Identity != nil {
		check = authority.Identity.checkMaterial
	}
	parsed, err := parse(data, check)
	if err != nil {
		return nil, refuse(WrongType, "the bundle is no signature of %s: %s", what, text.Truncate(text.OneLine(err.Error()), maxShown))
	}
	if authority.Identity != nil {
		said, err := authority.Identity.verify(parsed)
		if err != nil {
			return nil, refuse(WrongKey, "the bundle is not signed by %s, as %s is: %s", authority.signer(), authority.Name, quote(err.Error()))
		}
		return said, nil
	}
	said, err := verifySignature(parsed, authority.Key)
	if err != nil {
		hint := parsed.GetVerificationMaterial().GetPublicKey().GetHint()
		return nil, &RefusedError{Reason: WrongKey, Hint: hint, Message: fmt.Sprintf("the bundle says that it is signed by key %s, and key %s "+
			"of %s does not verify it", quote(hint), authority.Key.Hint(), authority.Name)}
	}
	return &signedStatement{Statement: said}, nil
}

// checkType refuses a statement of another type than the wanted one.
func checkType(said *in_toto.Statement, wanted, what string) error {
	switch {
	case said.GetType() != statementType:
		return refuse(WrongType, "the bundle is a statement in the format %s, which is not known", quote(said.GetType()))
	case said.GetPredicateType() != wanted:
		return refuse(WrongType, "the bundle is a statement of type %s, which is no signature of %s", quote(said.GetPredicateType()), what)
	}
	return nil
}

// subjectDigest returns the digest of a subject, sha256:<hex>.
func subjectDigest(s *in_toto.ResourceDescriptor) (string, error) {
	encoded := s.GetDigest()["sha256"]
	if sum, err := hex.DecodeString(encoded); err != nil || len(sum) != 32 || len(s.GetDigest()) != 1 || hex.EncodeToString(sum) != encoded {
		return "", refuse(WrongType, "subject %s of the signature has no digest of sha256 alone", quote(s.GetName()))
	}
	return digestPrefix + encoded, nil
}

// parse reads a bundle with a statement. What it is signed with is checked by check, unless that is nil.
func parse(data []byte, check func(*protobundle.VerificationMaterial) error) (*protobundle.Bundle, error) {
	if len(data) > MaxBundle {
		return nil, fmt.Errorf("it has %d bytes, more than the %d allowed", len(data), MaxBundle)
	}
	b := &protobundle.Bundle{}
	if err := protojson.Unmarshal(data, b); err != nil {
		return nil, err
	}
	envelope := b.GetDsseEnvelope()
	switch {
	case b.GetMediaType() != BundleType:
		return nil, fmt.Errorf("its type is %q", b.GetMediaType())
	case envelope == nil:
		return nil, errors.New("it holds no statement")
	case envelope.GetPayloadType() != payloadType:
		return nil, fmt.Errorf("its payload is of type %q", envelope.GetPayloadType())
	case len(envelope.GetSignatures()) != 1:
		return nil, fmt.Errorf("it has %d signatures: a bundle has one", len(envelope.GetSignatures()))
	}
	if check != nil {
		if err := check(b.GetVerificationMaterial()); err != nil {
			return nil, err
		}
	}
	_, err := statementOf(b)
	return b, err
}

// statementOf returns the statement of a bundle, whoever has signed it.
func statementOf(b *protobundle.Bundle) (*in_toto.Statement, error) {
	said := &in_toto.Statement{}
	if err := protojson.Unmarshal(b.GetDsseEnvelope().GetPayload(), said); err != nil {
		return nil, fmt.Errorf("its statement cannot be read: %w", err)
	}
	return said, nil
}

// checkKeyMaterial refuses a bundle that has more than a key: a log entry, a timestamp or a certificate that is not verified must not look
// as if it were.
func checkKeyMaterial(material *protobundle.VerificationMaterial) error {
	switch {
	case material.GetPublicKey() == nil:
		return errors.New("it is not signed with a key")
	case len(material.GetTlogEntries()) > 0 || material.GetTimestampVerificationData() != nil:
		return errors.New("it has log entries or timestamps, which are not verified with a key")
	}
	return nil
}

// verifySignature returns the statement of a bundle that a key verifies. The key is tried whatever the hint in the bundle says.
func verifySignature(parsed *protobundle.Bundle, key *PublicKey) (*in_toto.Statement, error) {
	entity, err := bundle.NewBundle(parsed)
	if err != nil {
		return nil, err
	}
	verifier, err := signature.LoadVerifier(key.key, key.hash)
	if err != nil {
		return nil, err
	}
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
	})
	// The library would take the time of its own clock; Verify compares that which it is given.
	v, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps())
	if err != nil {
		return nil, err
	}
	result, err := v.Verify(entity, verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithKey()))
	if err != nil {
		return nil, err
	}
	if result.Statement == nil {
		return nil, errors.New("there is no statement")
	}
	return result.Statement, nil
}

// checkStatement compares what an authority has signed with a package.
func checkStatement(said *in_toto.Statement, wanted Package, authority string) error {
	if err := checkType(said, PredicateType, "a package"); err != nil {
		return err
	}
	is := Package{}
	fields := said.GetPredicate().GetFields()
	for name, value := range map[string]*string{"name": &is.Name, "appVersion": &is.AppVersion, "operatorVersion": &is.OperatorVersion} {
		*value = fields[name].GetStringValue()
		delete(fields, name)
	}
	if is.Name != wanted.Name || is.AppVersion != wanted.AppVersion || is.OperatorVersion != wanted.OperatorVersion {
		return refuse(NameDiffers, "the signature is for %s, and this is %s", quote(is.String()), quote(wanted.String()))
	}
	for name := range fields {
		return refuse(WrongType, "the signature says %s of the package, which this version of kudo does not know: use a newer one", quote(name))
	}
	return checkSubjects(said.GetSubject(), wanted, authority)
}

// checkSubjects compares the digests that were signed with those of a package: content is the last subject. The one before it is the file
// that the package was signed in. It is compared if there is a file.
func checkSubjects(subjects []*in_toto.ResourceDescriptor, wanted Package, authority string) error {
	if len(subjects) == 0 || len(subjects) > 2 {
		return refuse(WrongType, "the signature has %d subjects: it must name a manifest or an archive, and a content", len(subjects))
	}
	digests := make([]string, len(subjects))
	for i, s := range subjects {
		var err error
		if digests[i], err = subjectDigest(s); err != nil {
			return err
		}
	}
	last := len(subjects) - 1
	if name := subjects[last].GetName(); name != subjectContent {
		return refuse(WrongType, "the last subject of the signature is %s: it must be %s", quote(name), subjectContent)
	}
	if digests[last] != wanted.Content {
		return refuse(ContentDiffers, "the content is %s, and the signature of %s is for %s: it was changed after it was signed", wanted.Content,
			authority, digests[last])
	}
	if last == 0 {
		if len(wanted.Digests) > 0 {
			return refuse(WrongType, "the signature names the content alone, as one that was made in a cluster, and no file of the package")
		}
		return nil
	}
	name := subjects[0].GetName()
	if name != SubjectManifest && name != SubjectArchive {
		return refuse(WrongType, "the first subject of the signature is %s: it must be %s or %s", quote(name), SubjectManifest, SubjectArchive)
	}
	if wanted.Revoked[digests[0]] {
		return refuse(Revoked, "the signature of %s is for %s %s, which is revoked", authority, name, digests[0])
	}
	if len(wanted.Digests) > 0 && wanted.Digests[name] != digests[0] {
		return refuse(ContentDiffers, "the %s is %s, and the signature of %s is for %s: it was changed after it was signed", name,
			wanted.Digests[name], authority, digests[0])
	}
	return nil
}

func quote(s string) string { return text.Plain(s, maxShown) }
