package trust

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
)

const (
	issuer   = "https://pipelines.example.org"
	releaser = "https://example.org/kudo/release.yaml@refs/heads/main"
)

// isRefused reports whether an error refuses a signature for a reason.
func isRefused(err error, reason Reason) bool {
	refused := new(RefusedError)
	return errors.As(err, &refused) && refused.Reason == reason
}

// authorities are a certificate authority, a log and a timestamp authority.
type authorities struct {
	*ca.VirtualSigstore
	t testing.TB
}

func newAuthorities(t testing.TB) authorities {
	t.Helper()
	made, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return authorities{made, t}
}

// trustedRoot returns the trusted root in JSON, as an administrator gets it.
func (a authorities) trustedRoot(change func(*root.TrustedRoot) *root.TrustedRoot) string {
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

// attest returns a bundle of a text that a subject has signed.
func (a authorities) attest(subject, issuer, text string) *protobundle.Bundle {
	a.t.Helper()
	entity, err := a.AttestAtTime(subject, issuer, []byte(text), time.Now().Add(5*time.Minute), true)
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
	return &protobundle.Bundle{MediaType: BundleType, VerificationMaterial: material, Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
		Payload: []byte(text), PayloadType: payloadType, Signatures: []*protodsse.Signature{{Sig: signature.Signature()}}}}}
}

func encode(t testing.TB, b *protobundle.Bundle) []byte {
	t.Helper()
	text, err := protojson.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func statementText(t testing.TB, p Package) string {
	t.Helper()
	text, err := Statement(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (a authorities) authority(t testing.TB, issuer, subject string) Authority {
	t.Helper()
	identity, err := NewIdentity(issuer, subject, []byte(a.trustedRoot(nil)))
	if err != nil {
		t.Fatal(err)
	}
	return Authority{Name: "ci", Identity: identity}
}

// TestIdentity checks S19: a certificate of the right subject and issuer, an entry of a log and a timestamp of the given root are needed, all
// of this very signature, and nothing is a pattern.
func TestIdentity(t *testing.T) {
	mine, others := newAuthorities(t), newAuthorities(t)
	text := statementText(t, wanted())
	good, again, foreign := mine.attest(releaser, issuer, text), mine.attest(releaser, issuer, text), others.attest(releaser, issuer, text)
	renamed := wanted()
	renamed.Name = "etcd"
	change := func(f func(*protobundle.Bundle)) []byte {
		b := proto.Clone(good).(*protobundle.Bundle)
		f(b)
		return encode(t, b)
	}
	key := newP256(t)
	for _, tc := range []struct {
		reason    string
		bundle    []byte
		authority Authority
		want      Reason
		text      string
	}{
		{"signed by the identity", encode(t, good), mine.authority(t, issuer, releaser), Verified, ""},
		{"a subject with a suffix", encode(t, mine.attest(releaser+"2", issuer, text)), mine.authority(t, issuer, releaser), WrongKey, "identity"},
		{"a subject with a prefix", encode(t, mine.attest("https://evil.example.org/?"+releaser, issuer, text)), mine.authority(t, issuer, releaser), WrongKey, "identity"},
		{"a subject in another letter case", encode(t, mine.attest(strings.ToUpper(releaser), issuer, text)), mine.authority(t, issuer, releaser), WrongKey, "identity"},
		{"another issuer", encode(t, mine.attest(releaser, "https://evil.example.org", text)), mine.authority(t, issuer, releaser), WrongKey, "identity"},
		{"a pattern for a subject", encode(t, good), mine.authority(t, issuer, ".*"), WrongKey, "identity"},
		{"a pattern for an issuer", encode(t, good), mine.authority(t, "https://.*", releaser), WrongKey, "identity"},
		{"authorities that are not trusted", encode(t, foreign), mine.authority(t, issuer, releaser), WrongKey, "log inclusion"},
		{"the entry of another signature in the log", change(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries = again.VerificationMaterial.TlogEntries
		}), mine.authority(t, issuer, releaser), WrongKey, "log inclusion"},
		{"the timestamp of another signature", change(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TimestampVerificationData = again.VerificationMaterial.TimestampVerificationData
		}), mine.authority(t, issuer, releaser), WrongKey, "timestamps"},
		{"the timestamp of an authority that is not trusted", change(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TimestampVerificationData = foreign.VerificationMaterial.TimestampVerificationData
		}), mine.authority(t, issuer, releaser), WrongKey, "timestamps"},
		{"the certificate of another signature", change(func(b *protobundle.Bundle) {
			b.VerificationMaterial.Content = again.VerificationMaterial.Content
		}), mine.authority(t, issuer, releaser), WrongKey, "certificate"},
		{"no entry of a log", change(func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries = nil }), mine.authority(t, issuer, releaser), WrongType, "no entry of a log"},
		{"no timestamp", change(func(b *protobundle.Bundle) { b.VerificationMaterial.TimestampVerificationData = nil }), mine.authority(t, issuer, releaser), WrongType, "no timestamp"},
		{"another statement under the signature", change(func(b *protobundle.Bundle) {
			b.GetDsseEnvelope().Payload = []byte(statementText(t, renamed))
		}), mine.authority(t, issuer, releaser), WrongKey, "log inclusion"},
		{"another package", encode(t, mine.attest(releaser, issuer, statementText(t, renamed))), mine.authority(t, issuer, releaser), NameDiffers, "the signature is for etcd"},
		{"another type of statement", encode(t, mine.attest(releaser, issuer, strings.Replace(text, PredicateType, "https://spdx.dev/Document", 1))), mine.authority(t, issuer, releaser), WrongType, "https://spdx.dev/Document"},
		{"a key where an identity is wanted", sign(t, wanted(), key), mine.authority(t, issuer, releaser), WrongType, "not signed with a certificate"},
		{"a certificate where a key is wanted", encode(t, good), authority(key), WrongType, "not signed with a key"},
	} {
		err := Verify(tc.bundle, wanted(), tc.authority, time.Now())
		refused := &RefusedError{Reason: Verified}
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if refused.Reason != tc.want || !strings.Contains(refused.Message, tc.text) {
			t.Errorf("%s: %s: %v, want %q", tc.reason, refused.Reason, err, tc.text)
		}
	}
}

// TestIdentityExpires checks S30: what an identity has signed before its authority ended counts, and what it has signed later does not.
func TestIdentityExpires(t *testing.T) {
	mine := newAuthorities(t)
	bundle, by := encode(t, mine.attest(releaser, issuer, statementText(t, wanted()))), mine.authority(t, issuer, releaser)
	later := time.Now().AddDate(10, 0, 0)
	by.NotAfter = time.Now().Add(time.Hour)
	if err := Verify(bundle, wanted(), by, later); err != nil {
		t.Errorf("signed before the end: %v", err)
	}
	by.NotAfter = time.Now().Add(-time.Hour)
	if err := Verify(bundle, wanted(), by, later); !isRefused(err, Expired) {
		t.Errorf("signed after the end: %v", err)
	}
}

// TestIdentityPolicy checks S19 and S24: a policy names an identity in place of a key, and one that cannot be used refuses all.
func TestIdentityPolicy(t *testing.T) {
	mine := newAuthorities(t)
	object := func(change func(*configv1alpha1.PolicyAuthority)) *configv1alpha1.PackagePolicy {
		p := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "production"}}
		p.Spec.Action = configv1alpha1.RequireSignatures
		a := configv1alpha1.PolicyAuthority{Name: "ci", Keyless: &configv1alpha1.AuthorityIdentity{Issuer: issuer, Subject: releaser, TrustedRoot: mine.trustedRoot(nil)}}
		if change != nil {
			change(&a)
		}
		p.Spec.Authorities = append(p.Spec.Authorities, a)
		return p
	}
	candidate := Candidate{Package: inCluster(), Signatures: []string{string(encode(t, mine.attest(releaser, issuer, statementText(t, inCluster()))))}}
	stranger := candidate
	stranger.Signatures = []string{string(encode(t, mine.attest("mallory@example.org", issuer, statementText(t, inCluster()))))}
	key := newP256(t)
	twice := object(nil)
	twice.Spec.Authorities = append(twice.Spec.Authorities, twice.Spec.Authorities[0])
	twice.Spec.Authorities[1].Name = "again"
	for _, tc := range []struct {
		reason    string
		policy    *configv1alpha1.PackagePolicy
		candidate Candidate
		want      Reason
		text      string
	}{
		{"signed by the identity", object(nil), candidate, Verified, "PackagePolicy production: signed by ci"},
		{"signed by another one", object(nil), stranger, WrongKey, releaser + " of " + issuer},
		{"no subject", object(func(a *configv1alpha1.PolicyAuthority) { a.Keyless.Subject = "" }), candidate, PolicyInvalid, "spec.authorities[0].keyless: issuer and subject are needed"},
		{"no trusted root", object(func(a *configv1alpha1.PolicyAuthority) { a.Keyless.TrustedRoot = "{}" }), candidate, PolicyInvalid, "spec.authorities[0].keyless: it is no trusted root"},
		{"a root without timestamps", object(func(a *configv1alpha1.PolicyAuthority) {
			a.Keyless.TrustedRoot = mine.trustedRoot(func(r *root.TrustedRoot) *root.TrustedRoot {
				out, err := root.NewTrustedRoot(root.TrustedRootMediaType01, r.FulcioCertificateAuthorities(), nil, nil, r.RekorLogs())
				if err != nil {
					t.Fatal(err)
				}
				return out
			})
		}), candidate, PolicyInvalid, "the trusted root has no timestampAuthorities"},
		{"a root that is too large", object(func(a *configv1alpha1.PolicyAuthority) { a.Keyless.TrustedRoot = strings.Repeat(" ", 65<<10) }), candidate, PolicyInvalid, "more than the 65536 allowed"},
		{"a key and an identity", object(func(a *configv1alpha1.PolicyAuthority) {
			a.Key = &configv1alpha1.AuthorityKey{PublicKey: string(key.Public.PEM())}
		}), candidate, PolicyInvalid, "set either key or keyless"},
		{"neither", object(func(a *configv1alpha1.PolicyAuthority) { a.Keyless = nil }), candidate, PolicyInvalid, "set either key or keyless"},
		{"one identity as two authorities", twice, candidate, PolicyInvalid, "each authority needs its own"},
	} {
		v := Judge([]Policy{ParsePolicy(tc.policy)}, tc.candidate, true, time.Now())
		if v.Reason != tc.want || v.Allowed != (tc.want == Verified) || !strings.Contains(v.Message, tc.text) {
			t.Errorf("%s: %+v", tc.reason, v)
		}
		if !v.Until.IsZero() {
			t.Errorf("%s: the verdict ends by the time alone", tc.reason)
		}
	}
}
