// Package sigstore makes signatures by identities: it has a certificate authority, a log and a timestamp authority in memory.
package sigstore

import (
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"google.golang.org/protobuf/encoding/protojson"
)

// Authorities are a certificate authority, a log and a timestamp authority.
type Authorities struct {
	*ca.VirtualSigstore
	t testing.TB
}

// New makes authorities with keys of their own.
func New(t testing.TB) Authorities {
	t.Helper()
	made, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return Authorities{made, t}
}

// TrustedRoot returns the trusted root in JSON, as an administrator gets it. If change is not nil, it may replace the root.
func (a Authorities) TrustedRoot(change func(*root.TrustedRoot) *root.TrustedRoot) string {
	a.t.Helper()
	logs := map[string]*root.TransparencyLog{}
	for id, log := range a.RekorLogs() {
		raw, err := hex.DecodeString(id)
		if err != nil {
			a.t.Fatal(err)
		}
		log.ID = raw
		logs[id] = log
	}
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, a.FulcioCertificateAuthorities(), nil, a.TimestampingAuthorities(), logs)
	if err != nil {
		a.t.Fatal(err)
	}
	if change != nil {
		made = change(made)
	}
	text, err := json.Marshal(made)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(text)
}

// Attest returns a bundle of an in-toto statement that a subject of an issuer has signed.
func (a Authorities) Attest(subject, issuer, statement string) *protobundle.Bundle {
	a.t.Helper()
	entity, err := a.AttestAtTime(subject, issuer, []byte(statement), time.Now().Add(5*time.Minute), true)
	if err != nil {
		a.t.Fatal(err)
	}
	content, err := entity.VerificationContent()
	if err != nil {
		a.t.Fatal(err)
	}
	signature, err := entity.SignatureContent()
	if err != nil {
		a.t.Fatal(err)
	}
	entries, err := entity.TlogEntries()
	if err != nil {
		a.t.Fatal(err)
	}
	stamps, err := entity.Timestamps()
	if err != nil {
		a.t.Fatal(err)
	}
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_Certificate{
		Certificate: &protocommon.X509Certificate{RawBytes: content.Certificate().Raw}}, TimestampVerificationData: &protobundle.TimestampVerificationData{}}
	for _, e := range entries {
		entry := e.TransparencyLogEntry()
		entry.KindVersion = &protorekor.KindVersion{Kind: "dsse", Version: "0.0.1"}
		material.TlogEntries = append(material.TlogEntries, entry)
	}
	for _, s := range stamps {
		material.TimestampVerificationData.Rfc3161Timestamps = append(material.TimestampVerificationData.Rfc3161Timestamps,
			&protocommon.RFC3161SignedTimestamp{SignedTimestamp: s})
	}
	return &protobundle.Bundle{MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json", VerificationMaterial: material,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{Payload: []byte(statement),
			PayloadType: "application/vnd.in-toto+json", Signatures: []*protodsse.Signature{{Sig: signature.Signature()}}}}}
}

// Encode returns a bundle in JSON.
func Encode(t testing.TB, b *protobundle.Bundle) []byte {
	t.Helper()
	text, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
