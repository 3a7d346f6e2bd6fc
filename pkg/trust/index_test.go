package trust

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// signedIndex is an index that a key signs.
func signedIndex() Index {
	return Index{Digest: digestOf("a"), Sequence: 7, Expires: now.Add(24 * time.Hour)}
}

// TestIndex shows S36: what a key has signed of an index is read back until it expires, and nothing else is taken for it.
func TestIndex(t *testing.T) {
	key, other := newP256(t), newP256(t)
	made, err := SignIndex(t.Context(), signedIndex(), key)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := VerifyIndex(made, digestOf("a"), key.Public, now); err != nil || got != signedIndex() {
		t.Errorf("%+v, %v", got, err)
	}
	statementOf := func(change func(*statement)) []byte {
		s := statement{Type: statementType, PredicateType: IndexPredicateType, Subject: []subject{newSubject(subjectIndex, digestOf("a"))},
			Predicate: map[string]any{"sequence": 7, "expires": "2026-06-02T12:00:00Z"}}
		change(&s)
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return signText(t, string(text), payloadType, key)
	}
	predicate := func(fields map[string]any) func(*statement) { return func(s *statement) { s.Predicate = fields } }
	for _, tc := range []struct {
		reason string
		bundle []byte
		key    *PublicKey
		digest string
		at     time.Time
		want   Reason
	}{
		{"another key", made, other.Public, digestOf("a"), now, WrongKey},
		{"another index", made, key.Public, digestOf("b"), now, ContentDiffers},
		{"at its end", made, key.Public, digestOf("a"), now.Add(24 * time.Hour), Expired},
		{"no bundle", []byte("{}"), key.Public, digestOf("a"), now, WrongType},
		{"the signature of a package", sign(t, wanted(), key), key.Public, digestOf("a"), now, WrongType},
		{"a statement of another format", statementOf(func(s *statement) { s.Type = "x" }), key.Public, digestOf("a"), now, WrongType},
		{"another file of the name", statementOf(func(s *statement) { s.Subject[0].Name = "other.yaml" }), key.Public, digestOf("a"), now, WrongType},
		{"two files", statementOf(func(s *statement) { s.Subject = append(s.Subject, s.Subject[0]) }), key.Public, digestOf("a"), now, WrongType},
		{"no file", statementOf(func(s *statement) { s.Subject = nil }), key.Public, digestOf("a"), now, WrongType},
		{"a digest that is none", statementOf(func(s *statement) { s.Subject[0].Digest["sha256"] = "AA" }), key.Public, digestOf("a"), now, WrongType},
		{"no end", statementOf(predicate(map[string]any{"sequence": 7})), key.Public, digestOf("a"), now, WrongType},
		{"no sequence", statementOf(predicate(map[string]any{"expires": "2026-06-02T12:00:00Z"})), key.Public, digestOf("a"), now, WrongType},
		{"a part of a sequence", statementOf(predicate(map[string]any{"sequence": 1.5, "expires": "2026-06-02T12:00:00Z"})), key.Public, digestOf("a"), now, WrongType},
		{"a sequence of zero", statementOf(predicate(map[string]any{"sequence": 0, "expires": "2026-06-02T12:00:00Z"})), key.Public, digestOf("a"), now, WrongType},
		{"a sequence that no number has", statementOf(predicate(map[string]any{"sequence": 1e300, "expires": "2026-06-02T12:00:00Z"})), key.Public, digestOf("a"), now, WrongType},
		{"a field that is not known", statementOf(predicate(map[string]any{"sequence": 7, "expires": "2026-06-02T12:00:00Z", "only": "x"})), key.Public, digestOf("a"), now, WrongType},
	} {
		got, err := VerifyIndex(tc.bundle, tc.digest, tc.key, tc.at)
		refused := new(RefusedError)
		if !errors.As(err, &refused) || refused.Reason != tc.want || got != (Index{}) {
			t.Errorf("%s: %+v, %v, want %s", tc.reason, got, err, tc.want)
		}
	}
	if err := Verify(made, wanted(), authority(key), now); err == nil || !strings.Contains(err.Error(), "no signature of a package") {
		t.Errorf("the signature of an index is taken for that of a package: %v", err)
	}
}

// FuzzVerifyIndex: no bytes are taken for a signature of an index but those that the key has signed.
func FuzzVerifyIndex(f *testing.F) {
	key := newP256(f)
	made, err := SignIndex(f.Context(), signedIndex(), key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(made)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := VerifyIndex(data, digestOf("a"), key.Public, now); err == nil && got != signedIndex() {
			t.Errorf("%q is taken for %+v", data, got)
		}
	})
}
