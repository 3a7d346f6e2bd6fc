package trust

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/test/sigstore"
)

var update = flag.Bool("update", false, "make the stored bundle of an identity anew")

const (
	issuer   = "https://pipelines.example.org"
	releaser = "https://example.org/kudo/release.yaml@refs/heads/main"
)

// isRefused reports whether an error refuses a signature for a reason.
func isRefused(err error, reason Reason) bool {
	refused := new(RefusedError)
	return errors.As(err, &refused) && refused.Reason == reason
}

func statementText(t testing.TB, p Package) string {
	t.Helper()
	text, err := Statement(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// byIdentity returns an authority whose signatures an identity makes.
func byIdentity(t testing.TB, a sigstore.Authorities, issuer, subject string) Authority {
	t.Helper()
	identity, err := NewIdentity(issuer, subject, []byte(a.TrustedRoot(nil)))
	if err != nil {
		t.Fatal(err)
	}
	return Authority{Name: "ci", Identity: identity}
}

// TestIdentity checks S19: a certificate of the right subject and issuer, an entry of a log and a timestamp of the given root are needed, all
// of this very signature, and nothing is a pattern.
func TestIdentity(t *testing.T) {
	mine, others := sigstore.New(t), sigstore.New(t)
	text := statementText(t, wanted())
	good, again, foreign := mine.Attest(releaser, issuer, text), mine.Attest(releaser, issuer, text), others.Attest(releaser, issuer, text)
	renamed := wanted()
	renamed.Name = "etcd"
	change := func(f func(*protobundle.Bundle)) []byte {
		b := proto.Clone(good).(*protobundle.Bundle)
		f(b)
		return sigstore.Encode(t, b)
	}
	key := newP256(t)
	for _, tc := range []struct {
		reason    string
		bundle    []byte
		authority Authority
		want      Reason
		text      string
	}{
		{"signed by the identity", sigstore.Encode(t, good), byIdentity(t, mine, issuer, releaser), Verified, ""},
		{"a subject with a suffix", sigstore.Encode(t, mine.Attest(releaser+"2", issuer, text)), byIdentity(t, mine, issuer, releaser), WrongKey, "identity"},
		{"a subject with a prefix", sigstore.Encode(t, mine.Attest("https://evil.example.org/?"+releaser, issuer, text)), byIdentity(t, mine, issuer, releaser), WrongKey, "identity"},
		{"a subject in another letter case", sigstore.Encode(t, mine.Attest(strings.ToUpper(releaser), issuer, text)), byIdentity(t, mine, issuer, releaser), WrongKey, "identity"},
		{"another issuer", sigstore.Encode(t, mine.Attest(releaser, "https://evil.example.org", text)), byIdentity(t, mine, issuer, releaser), WrongKey, "identity"},
		{"a pattern for a subject", sigstore.Encode(t, good), byIdentity(t, mine, issuer, ".*"), WrongKey, "identity"},
		{"a pattern for an issuer", sigstore.Encode(t, good), byIdentity(t, mine, "https://.*", releaser), WrongKey, "identity"},
		{"authorities that are not trusted", sigstore.Encode(t, foreign), byIdentity(t, mine, issuer, releaser), WrongKey, "log inclusion"},
		{"the entry of another signature in the log", change(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries = again.VerificationMaterial.TlogEntries
		}), byIdentity(t, mine, issuer, releaser), WrongKey, "log inclusion"},
		{"the timestamp of another signature", change(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TimestampVerificationData = again.VerificationMaterial.TimestampVerificationData
		}), byIdentity(t, mine, issuer, releaser), WrongKey, "timestamps"},
		{"the timestamp of an authority that is not trusted", change(func(b *protobundle.Bundle) {
			b.VerificationMaterial.TimestampVerificationData = foreign.VerificationMaterial.TimestampVerificationData
		}), byIdentity(t, mine, issuer, releaser), WrongKey, "timestamps"},
		{"the certificate of another signature", change(func(b *protobundle.Bundle) {
			b.VerificationMaterial.Content = again.VerificationMaterial.Content
		}), byIdentity(t, mine, issuer, releaser), WrongKey, "certificate"},
		{"no entry of a log", change(func(b *protobundle.Bundle) { b.VerificationMaterial.TlogEntries = nil }), byIdentity(t, mine, issuer, releaser), WrongType, "no entry of a log"},
		{"no timestamp", change(func(b *protobundle.Bundle) { b.VerificationMaterial.TimestampVerificationData = nil }), byIdentity(t, mine, issuer, releaser), WrongType, "no timestamp"},
		{"another statement under the signature", change(func(b *protobundle.Bundle) {
			b.GetDsseEnvelope().Payload = []byte(statementText(t, renamed))
		}), byIdentity(t, mine, issuer, releaser), WrongKey, "log inclusion"},
		{"another package", sigstore.Encode(t, mine.Attest(releaser, issuer, statementText(t, renamed))), byIdentity(t, mine, issuer, releaser), NameDiffers, "the signature is for etcd"},
		{"another type of statement", sigstore.Encode(t, mine.Attest(releaser, issuer, strings.Replace(text, PredicateType, "https://spdx.dev/Document", 1))), byIdentity(t, mine, issuer, releaser), WrongType, "https://spdx.dev/Document"},
		{"a key where an identity is wanted", sign(t, wanted(), key), byIdentity(t, mine, issuer, releaser), WrongType, "not signed with a certificate"},
		{"a certificate where a key is wanted", sigstore.Encode(t, good), authority(key), WrongType, "not signed with a key"},
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
	mine := sigstore.New(t)
	bundle, by := sigstore.Encode(t, mine.Attest(releaser, issuer, statementText(t, wanted()))), byIdentity(t, mine, issuer, releaser)
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
	mine := sigstore.New(t)
	object := func(change func(*configv1alpha1.PolicyAuthority)) *configv1alpha1.PackagePolicy {
		p := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: "production"}}
		p.Spec.Action = configv1alpha1.RequireSignatures
		a := configv1alpha1.PolicyAuthority{Name: "ci", Keyless: &configv1alpha1.AuthorityIdentity{Issuer: issuer, Subject: releaser, TrustedRoot: mine.TrustedRoot(nil)}}
		if change != nil {
			change(&a)
		}
		p.Spec.Authorities = append(p.Spec.Authorities, a)
		return p
	}
	candidate := Candidate{Package: inCluster(), Signatures: []string{string(sigstore.Encode(t, mine.Attest(releaser, issuer, statementText(t, inCluster()))))}}
	stranger := candidate
	stranger.Signatures = []string{string(sigstore.Encode(t, mine.Attest("mallory@example.org", issuer, statementText(t, inCluster()))))}
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
			a.Keyless.TrustedRoot = mine.TrustedRoot(func(r *root.TrustedRoot) *root.TrustedRoot {
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

// TestCheckStatement checks that a bundle is taken for one of a package by its statement alone, whoever has signed it.
func TestCheckStatement(t *testing.T) {
	mine, key := sigstore.New(t), newP256(t)
	other := wanted()
	other.Content = digestOf("9")
	for _, tc := range []struct {
		reason string
		bundle []byte
		want   Reason
	}{
		{"by a key", sign(t, wanted(), key), ""},
		{"by an identity", sigstore.Encode(t, mine.Attest(releaser, issuer, statementText(t, wanted()))), ""},
		{"another content", sign(t, other, key), ContentDiffers},
		{"a list of what is in it", signText(t, strings.Replace(statementText(t, wanted()), PredicateType, "https://spdx.dev/Document", 1), payloadType, key), WrongType},
		{"no statement", signText(t, "hello", payloadType, key), WrongType},
		{"no bundle", []byte("{}"), WrongType},
		{"no JSON", []byte("hello"), WrongType},
	} {
		err := CheckStatement(tc.bundle, wanted())
		if (err == nil) != (tc.want == "") || err != nil && !isRefused(err, tc.want) {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// stored returns a bundle of wanted that was kept, and its authority: a fuzzer has several processes, which must have the same keys. With
// -update, both are made anew.
func stored(t testing.TB) ([]byte, Authority) {
	t.Helper()
	const bundleFile, rootFile = "testdata/identity/bundle.json", "testdata/identity/root.json"
	if *update {
		mine := sigstore.New(t)
		for file, text := range map[string][]byte{rootFile: []byte(mine.TrustedRoot(nil)),
			bundleFile: sigstore.Encode(t, mine.Attest(releaser, issuer, statementText(t, wanted())))} {
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(file string) []byte {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	identity, err := NewIdentity(issuer, releaser, read(rootFile))
	if err != nil {
		t.Fatal(err)
	}
	return read(bundleFile), Authority{Name: "ci", Identity: identity}
}

// TestStoredIdentity checks S30: what an identity has signed is verified years later, though its certificate has ended.
func TestStoredIdentity(t *testing.T) {
	bundle, by := stored(t)
	if err := Verify(bundle, wanted(), by, time.Now().AddDate(50, 0, 0)); err != nil {
		t.Error(err)
	}
}

// FuzzIdentity checks that no bundle with another statement than the one that was signed is verified.
func FuzzIdentity(f *testing.F) {
	good, by := stored(f)
	f.Add(good)
	f.Add([]byte(`{"mediaType":"` + BundleType + `"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := Verify(data, wanted(), by, now); err != nil {
			return
		}
		var one, other protobundle.Bundle
		if protojson.Unmarshal(data, &one) != nil || protojson.Unmarshal(good, &other) != nil ||
			!bytes.Equal(one.GetDsseEnvelope().GetPayload(), other.GetDsseEnvelope().GetPayload()) {
			t.Errorf("another bundle is verified:\n%s", data)
		}
	})
}
