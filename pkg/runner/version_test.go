package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestVersionsShareByWholeDigest (T31): parsed versions are shared by the whole SHA-256. If half of it were the key, an author could make
// two contents with one key: one for review, and another that the Instances of other namespaces run.
func TestVersionsShareByWholeDigest(t *testing.T) {
	versions := NewVersions()
	spec := func(text string) *v1beta1.OperatorVersionSpec {
		return &v1beta1.OperatorVersionSpec{Templates: map[string]string{"a.yaml": text}}
	}
	first, err := versions.ForSpec(spec("a"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(spec("a"))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(text); first.Hash != hex.EncodeToString(sum[:]) {
		t.Errorf("the hash is %s, not the whole SHA-256 of the content", first.Hash)
	}
	for _, tc := range []struct {
		reason string
		spec   *v1beta1.OperatorVersionSpec
		same   bool
	}{
		{"equal contents are parsed once, whoever holds them", spec("a"), true},
		{"other contents are others", spec("b"), false},
	} {
		got, err := versions.ForSpec(tc.spec)
		if err != nil || (got == first) != tc.same {
			t.Errorf("%s: same %t, %v", tc.reason, got == first, err)
		}
	}
	// An entry that has only the first half of the hash in common is no hit: the key is all of it.
	versions.content[first.Hash[:16]] = &ParsedVersion{Hash: "forged"}
	if got, err := versions.ForSpec(spec("a")); err != nil || got != first {
		t.Errorf("a part of the hash finds a version: %+v, %v", got, err)
	}
}
