package trust

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func digestOf(letter string) string { return "sha256:" + strings.Repeat(letter, 64) }

// wanted is the package that the tests sign.
func wanted() Package {
	return Package{Name: "postgres", AppVersion: "17.4.0", OperatorVersion: "1.0.0", Content: digestOf("a"),
		Digests: map[string]string{SubjectManifest: digestOf("b"), SubjectArchive: digestOf("c")}}
}

// private returns a private key in PEM.
func private(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func newECDSA(t testing.TB, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newSigner(t testing.TB, key crypto.Signer) *Signer {
	t.Helper()
	s, err := ParsePrivateKey(private(t, key), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newP256(t testing.TB) *Signer { t.Helper(); return newSigner(t, newECDSA(t, elliptic.P256())) }

func authority(s *Signer) Authority { return Authority{Name: "release-2026", Key: s.Public} }

func sign(t testing.TB, p Package, s *Signer) []byte {
	t.Helper()
	made, err := Sign(context.Background(), p, s)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// signText returns a bundle of any text.
func signText(t testing.TB, payload, mediaType string, s *Signer) []byte {
	t.Helper()
	made, err := signPayload(context.Background(), []byte(payload), mediaType, s, func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestSignAndVerify checks S17 and S18: each kind of key signs and verifies, and no other one of its kind does.
func TestSignAndVerify(t *testing.T) {
	for name, create := range map[string]func() crypto.Signer{
		"P-256": func() crypto.Signer { return newECDSA(t, elliptic.P256()) },
		"P-384": func() crypto.Signer { return newECDSA(t, elliptic.P384()) },
		"Ed25519": func() crypto.Signer {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			return key
		},
	} {
		s, other := newSigner(t, create()), newSigner(t, create())
		made := sign(t, wanted(), s)
		if len(made) > 2<<10 {
			t.Errorf("%s: the bundle has %d bytes", name, len(made))
		}
		if err := Verify(made, wanted(), authority(s), now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		refused := new(RefusedError)
		if err := Verify(made, wanted(), authority(other), now); !errors.As(err, &refused) || refused.Reason != WrongKey || refused.Hint != s.Public.Hint() {
			t.Errorf("%s: another key: %v", name, err)
		}
		parsed, err := ParsePublicKey(s.Public.PEM())
		if err != nil || !parsed.Equal(s.Public) || parsed.Hint() != s.Public.Hint() {
			t.Errorf("%s: the public key in PEM: %v", name, err)
		}
	}
}

// TestSubjects checks S17: which digests a signature names, and that all that are known are compared.
func TestSubjects(t *testing.T) {
	s := newP256(t)
	inCluster, inArchive := wanted(), wanted()
	inCluster.Digests = nil
	inArchive.Digests = map[string]string{SubjectArchive: digestOf("c")}
	otherManifest, otherArchive, both := wanted(), wanted(), wanted()
	otherManifest.Digests[SubjectManifest] = digestOf("d")
	otherArchive.Digests[SubjectArchive] = digestOf("d")
	for _, tc := range []struct {
		reason    string
		signed    Package
		presented Package
		want      Reason
	}{
		{"the manifest", both, both, ""},
		{"an archive that was pushed", inArchive, both, ""},
		{"a manifest, in the cluster", both, inCluster, ""},
		{"an archive, in the cluster", inArchive, inCluster, ""},
		{"content alone, in the cluster", inCluster, inCluster, ""},
		{"content alone, for a file", inCluster, both, WrongType},
		{"another manifest", both, otherManifest, ContentDiffers},
		{"another archive", inArchive, otherArchive, ContentDiffers},
		{"a manifest, for a file of which none is known", both, inArchive, ContentDiffers},
	} {
		err := Verify(sign(t, tc.signed, s), tc.presented, authority(s), now)
		refused := &RefusedError{}
		errors.As(err, &refused)
		if refused.Reason != tc.want {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestAttacks checks S20 and S5: bundles that the key has signed, and that are no signature of the package; and bundles that are malformed.
func TestAttacks(t *testing.T) {
	s := newP256(t)
	good := string(sign(t, wanted(), s))
	statement, err := json.Marshal(newStatement(wanted()))
	if err != nil {
		t.Fatal(err)
	}
	edit := func(old, replacement string) []byte {
		t.Helper()
		if !strings.Contains(string(statement), old) {
			t.Fatalf("there is no %q in %s", old, statement)
		}
		return signText(t, strings.Replace(string(statement), old, replacement, 1), payloadType, s)
	}
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	subjects := `[{"name":"manifest","digest":{"sha256":"` + b + `"}},{"name":"content","digest":{"sha256":"` + a + `"}}]`
	many := `[` + strings.Repeat(`{"name":"x","digest":{"sha256":"`+a+`"}},`, 300) + subjects[1:]
	for _, tc := range []struct {
		reason string
		bundle []byte
		want   Reason
		words  string
	}{
		{"a signature", []byte(good), "", ""},
		{"(b) an SBOM attestation over the same digests", edit(PredicateType, "https://spdx.dev/Document"), WrongType,
			"the bundle is a statement of type https://spdx.dev/Document, which is no signature of a package"},
		{"(b) a signature of an index", edit(PredicateType, "https://kudo.dev/signature/index/v1"), WrongType, "no signature of a package"},
		{"(b) a signature of CRDs", edit(PredicateType, "https://kudo.dev/signature/crds/v1"), WrongType, "no signature of a package"},
		{"another statement type", edit("Statement/v1", "Statement/v0.1"), WrongType, ""},
		{"(c) a message without a statement", signText(t, a, "text/plain", s), WrongType, `its payload is of type`},
		{"(c) a message signature", []byte(`{"mediaType":"` + BundleType + `","verificationMaterial":{"publicKey":{"hint":"x"}},"messageSignature":` +
			`{"messageDigest":{"algorithm":"SHA2_256","digest":"` + base64.StdEncoding.EncodeToString(make([]byte, 32)) + `"},"signature":"YQ=="}}`),
			WrongType, "holds no statement"},
		{"(d) subjects swapped", edit(subjects, `[{"name":"content","digest":{"sha256":"`+a+`"}},{"name":"manifest","digest":{"sha256":"`+b+`"}}]`), WrongType, "must be content"},
		{"(d) names swapped", edit(subjects, `[{"name":"content","digest":{"sha256":"`+b+`"}},{"name":"content","digest":{"sha256":"`+a+`"}}]`), WrongType, "the first subject"},
		{"(d) another name", edit(`"manifest"`, `"tarball"`), WrongType, "the first subject of the signature is tarball"},
		{"(d) content alone under another name", edit(subjects, `[{"name":"x","digest":{"sha256":"`+a+`"}}]`), WrongType, ""},
		{"no subject", edit(subjects, `[]`), WrongType, ""},
		{"three subjects", edit(subjects, `[{"name":"manifest","digest":{"sha256":"`+b+`"}},`+subjects[1:]), WrongType, "3 subjects"},
		{"many subjects", edit(subjects, many), WrongType, ""},
		{"another algorithm", edit(`"sha256":"`+a, `"sha512":"`+a), WrongType, "no digest of sha256"},
		{"a second algorithm", edit(`"sha256":"`+a+`"`, `"sha256":"`+a+`","sha512":"`+a+`"`), WrongType, "no digest of sha256 alone"},
		{"a digest in upper case", edit(a, strings.ToUpper(a)), WrongType, ""},
		{"a short digest", edit(a, a[:62]), WrongType, ""},
		{"another content", edit(a, strings.Repeat("e", 64)), ContentDiffers, "it was changed after it was signed"},
		{"another manifest", edit(b, strings.Repeat("e", 64)), ContentDiffers, "it was changed after it was signed"},
		{"another name", edit(`"postgres"`, `"etcd"`), NameDiffers, "the signature is for etcd 17.4.0_1.0.0, and this is postgres 17.4.0_1.0.0"},
		{"a name that begins alike", edit(`"postgres"`, `"postgres2"`), NameDiffers, ""},
		{"another version", edit(`"operatorVersion":"1.0.0"`, `"operatorVersion":"1.0.1"`), NameDiffers, ""},
		{"another appVersion", edit(`"appVersion":"17.4.0"`, `"appVersion":"17.5.0"`), NameDiffers, ""},
		{"no appVersion", edit(`"appVersion":"17.4.0",`, ``), NameDiffers, ""},
		{"a name that is no text", edit(`"postgres"`, `["postgres"]`), NameDiffers, ""},
		{"a claim that is not known", edit(`"name":"postgres"`, `"name":"postgres","revokes":"x"`), WrongType, "does not know"},
		{"a duplicate key in the predicate", edit(`"name":"postgres"`, `"name":"etcd","name":"postgres"`), WrongType, ""},
		{"a duplicate key in the statement", edit(`"predicateType"`, `"predicateType":"x","predicateType"`), WrongType, ""},
		{"a field of the statement that is not known", edit(`"predicateType"`, `"x":1,"predicateType"`), WrongType, ""},
		{"no statement", signText(t, "[]", payloadType, s), WrongType, ""},
		{"deep nesting", edit(`"name":"postgres"`, `"name":`+strings.Repeat("[", 11000)+strings.Repeat("]", 11000)), WrongType, ""},
		{"a huge bundle", []byte(good + strings.Repeat(" ", MaxBundle)), WrongType, "more than the 65536 allowed"},
		{"nothing", nil, WrongType, ""},
		{"null", []byte("null"), WrongType, ""},
		{"two bundles", []byte(good + good), WrongType, ""},
		{"another type of bundle", []byte(strings.Replace(good, "v0.3", "v0.4", 1)), WrongType, "its type is"},
		{"a duplicate key in the bundle", []byte(strings.Replace(good, `"mediaType"`, `"mediaType":"x","mediaType"`, 1)), WrongType, ""},
		{"a field that is not known", []byte(strings.Replace(good, `"mediaType"`, `"x":1,"mediaType"`, 1)), WrongType, ""},
		{"two signatures", []byte(strings.Replace(good, `"signatures":[`, `"signatures":[{"sig":"YQ=="},`, 1)), WrongType, "it has 2 signatures"},
		{"no signature", []byte(good[:strings.Index(good, `"signatures"`)] + `"signatures":[]}}`), WrongType, "it has 0 signatures"},
		{"a certificate in place of a key", []byte(strings.Replace(good, `"publicKey":{`, `"certificate":{"rawBytes":"YQ=="},"x":{`, 1)), WrongType, ""},
		{"a log entry", []byte(strings.Replace(good, `"verificationMaterial":{`, `"verificationMaterial":{"tlogEntries":[{"logIndex":"1"}],`, 1)), WrongType, "log entries"},
		{"a timestamp", []byte(strings.Replace(good, `"verificationMaterial":{`, `"verificationMaterial":{"timestampVerificationData":{"rfc3161Timestamps":[{"signedTimestamp":"YQ=="}]},`, 1)),
			WrongType, "timestamps"},
		{"another hint is no matter: the key is tried", []byte(strings.Replace(good, `"hint":"`, `"hint":"x`, 1)), "", ""},
	} {
		refused := &RefusedError{}
		if err := Verify(tc.bundle, wanted(), authority(s), now); err != nil && !errors.As(err, &refused) {
			t.Errorf("%s: the error %v has no reason", tc.reason, err)
		}
		if refused.Reason != tc.want || !strings.Contains(refused.Message, tc.words) {
			t.Errorf("%s: %s %s, want %q %q", tc.reason, refused.Reason, refused.Message, tc.want, tc.words)
		}
		if strings.ContainsAny(refused.Message, "\n\x1b") || len(refused.Message) > 600 {
			t.Errorf("%s: the message %q is not fit for a terminal", tc.reason, refused.Message)
		}
	}
}

// TestExpired checks S20 (a) and S30: a key that has ended verifies nothing.
func TestExpired(t *testing.T) {
	s := newP256(t)
	made := sign(t, wanted(), s)
	a := authority(s)
	a.NotAfter = now.Add(time.Second)
	if err := Verify(made, wanted(), a, now); err != nil {
		t.Error(err)
	}
	for _, at := range []time.Time{a.NotAfter, a.NotAfter.Add(time.Hour)} {
		refused := new(RefusedError)
		if err := Verify(made, wanted(), a, at); !errors.As(err, &refused) || refused.Reason != Expired ||
			refused.Message != "authority release-2026 ended on 2026-06-01: sign again with a key that is valid" {
			t.Errorf("at %s: %v", at, err)
		}
	}
}

// TestWrongAlgorithm checks that a signature with another hash than that of the key is refused.
func TestWrongAlgorithm(t *testing.T) {
	key := newECDSA(t, elliptic.P384())
	s := newSigner(t, key)
	payload, err := json.Marshal(newStatement(wanted()))
	if err != nil {
		t.Fatal(err)
	}
	weak := &Signer{Public: s.Public, sign: func(context.Context, []byte) ([]byte, error) {
		h := crypto.SHA256.New()
		_, _ = h.Write(dsse.PAE(payloadType, payload))
		return key.Sign(rand.Reader, h.Sum(nil), crypto.SHA256)
	}}
	refused := new(RefusedError)
	if err := Verify(signText(t, string(payload), payloadType, weak), wanted(), authority(s), now); !errors.As(err, &refused) || refused.Reason != WrongKey {
		t.Error(err)
	}
	if _, err := Sign(t.Context(), wanted(), weak); err == nil || !strings.Contains(err.Error(), "does not verify the signature that was made") {
		t.Error(err)
	}
}

// TestKeys checks S18: which keys are taken, in which form.
func TestKeys(t *testing.T) {
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public := func(key crypto.Signer) []byte {
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	good := public(newECDSA(t, elliptic.P256()))
	for _, tc := range []struct {
		reason, want string
		key          []byte
	}{
		{"a key", "", good},
		{"white space around it", "", []byte("\n" + string(good) + "\n\n")},
		{"RSA", "RSA keys are not taken; use ECDSA P-256, P-384 or Ed25519", public(large)},
		{"P-521", "the curve P-521 is not taken", public(newECDSA(t, elliptic.P521()))},
		{"P-224", "the curve P-224 is not taken", public(newECDSA(t, elliptic.P224()))},
		{"a private key", `it is a "PRIVATE KEY" and no PUBLIC KEY`, private(t, newECDSA(t, elliptic.P256()))},
		{"two keys", "there is more in it than one key", append(good, public(newECDSA(t, elliptic.P256()))...)},
		{"text before it", "there is more in it than one key", []byte("x\n" + string(good))},
		{"nothing", "there is no key in PEM", nil},
		{"a huge file", "more than the 16384 bytes", append(good, make([]byte, maxKey)...)},
		{"no key", "write the public key by openssl", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})},
	} {
		_, err := ParsePublicKey(tc.key)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
	for _, tc := range []struct {
		reason, want string
		key          []byte
	}{
		{"RSA", "RSA keys are not taken", private(t, large)},
		{"a public key", "is not PKCS#8", good},
		{"another format", "convert the key by openssl pkcs8", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("x")})},
		{"an encrypted key that is none", "check the password", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})},
		{"nothing", "there is no key in PEM", []byte("x")},
	} {
		if _, err := ParsePrivateKey(tc.key, func() ([]byte, error) { return []byte("x"), nil }); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// FuzzVerify checks that no bundle but one that the key has made vouches for a package, and that none breaks the reader.
func FuzzVerify(f *testing.F) {
	s := newP256(f)
	good := sign(f, wanted(), s)
	f.Add(good)
	f.Add([]byte(`{"mediaType":"` + BundleType + `","verificationMaterial":{"publicKey":{}},"dsseEnvelope":{}}`))
	f.Add([]byte(`{"mediaType":"` + BundleType + `","verificationMaterial":{"x509CertificateChain":{"certificates":[]}},"dsseEnvelope":{"payload":"","signatures":[{}]}}`))
	other := wanted()
	other.Content = digestOf("f")
	f.Fuzz(func(t *testing.T, data []byte) {
		err := Verify(data, other, authority(s), now)
		refused := new(RefusedError)
		if !errors.As(err, &refused) || refused.Reason == "" || refused.Message == "" {
			t.Fatalf("%q is not refused: %v", data, err)
		}
	})
}
