package trust

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// TarballPredicateType says that a statement is a signature of a tarball of CustomResourceDefinitions.
const TarballPredicateType = "https://kudo.dev/signature/crds/v1"

// subjectTarball is the name of the only subject of such a statement.
const subjectTarball = "tarball"

// Tarball is a tarball of CustomResourceDefinitions that an Instance names, so that no signature of its package covers it.
type Tarball struct {
	// Name is that of the field in messages.
	Name string
	// Digest of the file, or of its manifest in a registry, sha256:<hex>.
	Digest string
	// Signatures are bundles in JSON, which anybody may have put there.
	Signatures []string
}

// SignTarball returns a bundle that vouches for a tarball of a digest. The signature is verified before it is returned, since a program may
// have made it.
func SignTarball(ctx context.Context, digest string, by *Signer) ([]byte, error) {
	payload, err := json.Marshal(statement{Type: statementType, PredicateType: TarballPredicateType,
		Subject: []subject{newSubject(subjectTarball, digest)}, Predicate: struct{}{}})
	if err != nil {
		return nil, fmt.Errorf("encode the statement: %w", err)
	}
	return signPayload(ctx, payload, payloadType, by, func(bundle []byte) error {
		return VerifyTarball(bundle, digest, Authority{Name: "the public key of the signer", Key: by.Public}, time.Time{})
	})
}

// VerifyTarball returns nil if a bundle vouches for a tarball of a digest by an authority at a time; else the error is a *RefusedError.
func VerifyTarball(data []byte, digest string, authority Authority, now time.Time) error {
	const what = "a tarball of CustomResourceDefinitions"
	said, err := verifyBundle(data, what, authority)
	if err != nil {
		return err
	}
	if err := checkType(said.Statement, TarballPredicateType, what); err != nil {
		return err
	}
	subjects := said.GetSubject()
	if len(subjects) != 1 || subjects[0].GetName() != subjectTarball || len(said.GetPredicate().GetFields()) > 0 {
		return refuse(WrongType, "the signature must name one %s, and say no more of it", subjectTarball)
	}
	is, err := subjectDigest(subjects[0])
	if err != nil {
		return err
	}
	if is != digest {
		return refuse(ContentDiffers, "the tarball is %s, and the signature of %s is for %s", digest, authority.Name, is)
	}
	if authority.isExpired(said.signed, now) {
		return authority.expired()
	}
	return nil
}

// verifyTarball returns nil if enough authorities vouch for the tarball that an Instance names, or if it names none, and when the first of
// these authorities ends.
func (p Policy) verifyTarball(t *Tarball, now time.Time) (until time.Time, refusal *RefusedError) {
	if t == nil {
		return until, nil
	}
	var names []string
	for _, authority := range p.Authorities {
		for _, bundle := range t.Signatures[:min(len(t.Signatures), MaxBundles)] {
			if VerifyTarball([]byte(bundle), t.Digest, authority, now) == nil {
				names = append(names, authority.Name)
				if authority.Key != nil {
					until = ends(until, authority.NotAfter)
				}
				break
			}
		}
	}
	if len(names) >= p.threshold {
		return until, nil
	}
	is := "is not signed by an authority that it lists"
	if len(names) > 0 {
		is = "is signed by " + strings.Join(names, ", ") + " alone"
	}
	return until, refuse(CRDTarballNotPinned, "PackagePolicy %s: %s, %s, %s: it requires %s, in spec.crdTarballSignatures; kubectl kudo "+
		"package sign --crds makes them", p.Name, t.Name, t.Digest, is, p.wanted())
}
