package trust

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	in_toto "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"google.golang.org/protobuf/encoding/protojson"
)

// The types that a signature of a package has.
const (
	// BundleType is the media type of a Sigstore bundle, and the artifact type of the manifest that refers to a package in a registry.
	BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// PredicateType says that a statement is a signature of a package, and not, for example, a list of what is in it.
	PredicateType = "https://kudo.dev/signature/package/v1"
	payloadType   = "application/vnd.in-toto+json"
	statementType = in_toto.StatementTypeUri
)

// The names of subjects: the manifest in a registry, the file of the archive, and the content digest of the OperatorVersion.
const (
	SubjectManifest = "manifest"
	SubjectArchive  = "archive"
	subjectContent  = "content"
)

const digestPrefix = "sha256:"

// Package is what a signature vouches for.
type Package struct {
	Name, AppVersion, OperatorVersion string
	// Content is the content digest of the OperatorVersion, sha256:<hex>.
	Content string
	// Digests are those of the files that the package is in, by the names of subjects; empty for an OperatorVersion in a cluster, of
	// which there is no file. A signature that is made names the first of manifest and archive.
	Digests map[string]string
	// Revoked has the digests of files whose signatures do not count.
	Revoked map[string]bool
}

// String returns the package as messages name it.
func (p Package) String() string {
	if p.AppVersion == "" {
		return p.Name + " " + p.OperatorVersion
	}
	return p.Name + " " + p.AppVersion + "_" + p.OperatorVersion
}

// statement is an in-toto statement.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     any       `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	Name            string `json:"name"`
	AppVersion      string `json:"appVersion,omitempty"`
	OperatorVersion string `json:"operatorVersion"`
}

// newStatement returns what is signed. It names the manifest if that is known, else the archive, else the content alone.
func newStatement(p Package) statement {
	s := statement{Type: statementType, PredicateType: PredicateType, Predicate: predicate{p.Name, p.AppVersion, p.OperatorVersion}}
	for _, name := range []string{SubjectManifest, SubjectArchive} {
		if digest := p.Digests[name]; digest != "" {
			s.Subject = append(s.Subject, newSubject(name, digest))
			break
		}
	}
	s.Subject = append(s.Subject, newSubject(subjectContent, p.Content))
	return s
}

func newSubject(name, digest string) subject {
	return subject{name, map[string]string{"sha256": strings.TrimPrefix(digest, digestPrefix)}}
}

// Statement returns the in-toto statement that a signature of a package has, in JSON.
func Statement(p Package) ([]byte, error) {
	text, err := json.Marshal(newStatement(p))
	if err != nil {
		return nil, fmt.Errorf("encode the statement: %w", err)
	}
	return text, nil
}

// Sign returns a bundle that vouches for a package. The signature is verified before it is returned, since a program may have made it.
func Sign(ctx context.Context, p Package, by *Signer) ([]byte, error) {
	payload, err := Statement(p)
	if err != nil {
		return nil, err
	}
	return signPayload(ctx, payload, payloadType, by, func(bundle []byte) error {
		return Verify(bundle, p, Authority{Name: "the public key of the signer", Key: by.Public}, time.Time{})
	})
}

// signPayload returns a bundle of a payload, which check has accepted.
func signPayload(ctx context.Context, payload []byte, mediaType string, by *Signer, check func([]byte) error) ([]byte, error) {
	made, err := by.sign(ctx, dsse.PAE(mediaType, payload))
	if err != nil {
		return nil, err
	}
	hint := by.Public.Hint()
	encoded, err := protojson.Marshal(&protobundle.Bundle{
		MediaType: BundleType,
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: hint}}},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{Payload: payload, PayloadType: mediaType,
			Signatures: []*protodsse.Signature{{Sig: made}}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the bundle: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, encoded); err != nil { // protojson writes spaces at random
		return nil, fmt.Errorf("encode the bundle: %w", err)
	}
	if err := check(out.Bytes()); err != nil {
		return nil, fmt.Errorf("the public key does not verify the signature that was made: name the key of the program; the program must "+
			"write the bytes of a signature of its standard input, in ASN.1 for ECDSA (%w)", err)
	}
	return out.Bytes(), nil
}
