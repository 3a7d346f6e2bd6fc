package repository

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"kudo.dev/kudo/pkg/trust"
)

func newIndexSigner(t *testing.T) *trust.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := trust.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// TestSignedIndex shows S36: of a repository with a key, only an index is taken that the key has signed, that has not ended, and that is not
// older than the newest one that was seen.
func TestSignedIndex(t *testing.T) {
	signer, other, now := newIndexSigner(t), newIndexSigner(t), time.Unix(1_000_000, 0)
	index := []byte("apiVersion: v1\nentries:\n  web:\n  - {name: web, operatorVersion: 1.0.0, urls: [web.tgz]}\n")
	older := []byte(strings.Replace(string(index), "1.0.0", "0.9.0", 1))
	signed := func(text []byte, sequence int64, by *trust.Signer) string {
		bundle, err := trust.SignIndex(t.Context(), trust.Index{Digest: "sha256:" + digestOf(text), Sequence: sequence, Expires: now.Add(time.Hour)}, by)
		if err != nil {
			t.Fatal(err)
		}
		return string(bundle) + "\n"
	}
	var text, signatures string
	s := serve(t, false, nil)
	s.spoil = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, SignaturesSuffix) && signatures == "":
			w.WriteHeader(http.StatusNotFound)
		case strings.HasSuffix(r.URL.Path, SignaturesSuffix):
			_, _ = w.Write([]byte(signatures))
		default:
			_, _ = w.Write([]byte(text))
		}
		return true
	}
	home := configured(t, Repository{Name: "r", URL: s.URL + "/repo", Key: string(signer.Public.PEM())})
	for _, tc := range []struct {
		reason     string
		text       []byte
		signatures string
		after      time.Duration
		want       string
	}{
		{"no signature", index, "", 0, "the index is not signed, and the repository was added with key"},
		{"an empty file", index, "\n", 0, "the file of its signatures is empty"},
		{"no JSON", index, "<html>", 0, "line 1 is no JSON"},
		{"the signature of another key", index, signed(index, 5, other), 0, "does not verify it"},
		{"an index that was changed", older, signed(index, 5, signer), 0, "it was changed after it was signed"},
		{"a signature that has ended", index, signed(index, 5, signer), 2 * time.Hour, "the signature of the index ended on 1970-01-12"},
		{"the first one", index, signed(index, 5, signer), 0, ""},
		{"the same again", index, signed(index, 5, signer), 0, ""},
		{"beside the signature of another key", index, signed(index, 9, other) + signed(index, 6, signer), 0, ""},
		{"an older one", older, signed(older, 5, signer), 0, "the index has sequence 5, and 6 was seen before"},
		{"an older one with a newer signature", older, signed(older, 7, signer), 0, ""},
	} {
		text, signatures = string(tc.text), tc.signatures
		source := NewRemote(home, 0, nil)
		source.clock = testclock.NewFakePassiveClock(now.Add(tc.after))
		r, err := source.Repository("")
		if err != nil {
			t.Fatal(err)
		}
		x, err := source.Index(t.Context(), r)
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "repository r: ")) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if err == nil && len(x.Names()) != 1 {
			t.Errorf("%s: the index has %v", tc.reason, x.Names())
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
	r := Repository{Name: "r", URL: s.URL + "/repo", Key: string(signer.Public.PEM())}
	if err := os.WriteFile(home.sequenceFile(r), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := home.noteSequence(t.Context(), r, 100); err == nil || !strings.Contains(err.Error(), home.sequenceFile(r)+" is damaged") {
		t.Errorf("a file that is damaged: %v", err)
	}
}

// TestRepositoryKey checks that a repository is refused with a key that is none, and a registry with any.
func TestRepositoryKey(t *testing.T) {
	key := string(newIndexSigner(t).Public.PEM())
	for reason, tc := range map[string]struct {
		r    Repository
		want string
	}{
		"a key":                  {Repository{Name: "a", URL: "https://h", Key: key}, ""},
		"text that is no key":    {Repository{Name: "a", URL: "https://h", Key: "x"}, "key of repository a: "},
		"a registry":             {Repository{Name: "a", URL: "oci://h/p", Key: key}, "repository a: a registry has no index"},
		"a folder in OCI layout": {Repository{Name: "a", URL: "layout:/x", Key: key}, "repository a: a registry has no index"},
	} {
		if err := tc.r.Validate(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", reason, err, tc.want)
		}
	}
}
