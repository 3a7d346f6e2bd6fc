package keyring

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ringOf is a ring of some keys, the last one current.
func ringOf(t testing.TB, keys int) (*Ring, map[string][]byte) {
	t.Helper()
	var data map[string][]byte
	for range keys {
		var err error
		if data, err = Rotate(data, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	ring, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return ring, data
}

// TestParse is T24: what the Secret must hold.
func TestParse(t *testing.T) {
	good := strings.Repeat("k", size)
	for name, tc := range map[string]struct {
		reason string
		data   map[string]string
		want   string
	}{
		"Empty":      {"a Secret without keys is none", nil, "current must name one of the keys, by its number"},
		"NoCurrent":  {"which one is current is said", map[string]string{"1": good}, "current must name one of the keys, by its number"},
		"Missing":    {"current must be there", map[string]string{"current": "2", "1": good}, "current names key 2, and there is no entry 2"},
		"Short":      {"a short key is none", map[string]string{"current": "1", "1": "short"}, `entry "1" must be a number, with 32 bytes`},
		"Name":       {"ids grow, so they are numbers", map[string]string{"current": "1", "1": good, "x": good}, `entry "x" must be a number, with 32 bytes`},
		"LeadingNil": {"a key has one id", map[string]string{"current": "01", "01": good}, "current must name one of the keys, by its number"},
		"One":        {"one key suffices", map[string]string{"current": "1", "1": good}, ""},
	} {
		data := map[string][]byte{}
		for key, value := range tc.data {
			data[key] = []byte(value)
		}
		_, err := Parse(data)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
	}
}

// TestSeal is T25: a seal fits what it was made for, and nothing else, and T28: until its key is dropped.
func TestSeal(t *testing.T) {
	old, data := ringOf(t, 1)
	seal := old.Seal("ns", "x-1", "1")
	next, err := Rotate(data, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rotated, _ := Parse(next)
	dropped, err := Rotate(data, rand.Reader, IDs(data)...)
	if err != nil {
		t.Fatal(err)
	}
	leaked, _ := Parse(dropped)
	stranger, _ := ringOf(t, 1)
	for name, tc := range map[string]struct {
		reason string
		ring   *Ring
		seal   string
		parts  []string
		want   bool
	}{
		"Same":      {"it fits", old, seal, []string{"ns", "x-1", "1"}, true},
		"Rotated":   {"an old key verifies", rotated, seal, []string{"ns", "x-1", "1"}, true},
		"Dropped":   {"a dropped one does not", leaked, seal, []string{"ns", "x-1", "1"}, false},
		"Stranger":  {"another cluster's key of the same id", stranger, seal, []string{"ns", "x-1", "1"}, false},
		"Other":     {"another name", old, seal, []string{"ns", "x-2", "1"}, false},
		"Shifted":   {"lengths stand in front", old, seal, []string{"nsx", "-1", "1"}, false},
		"Fewer":     {"all parts count", old, seal, []string{"ns", "x-1"}, false},
		"Cut":       {"a shortened seal", old, seal[:len(seal)-2], []string{"ns", "x-1", "1"}, false},
		"WithoutID": {"no key is named", old, seal[2:], []string{"ns", "x-1", "1"}, false},
		"Empty":     {"no seal", old, "", []string{"ns", "x-1", "1"}, false},
		"EmptySum":  {"an empty sum", old, "1.", []string{"ns", "x-1", "1"}, false},
		"NoRing":    {"no key", nil, seal, []string{"ns", "x-1", "1"}, false},
		"Digest":    {"a digest is no seal", old, old.Digest("ns", "x-1", "1"), []string{"ns", "x-1", "1"}, false},
	} {
		if got := tc.ring.Sealed(tc.seal, tc.parts...); got != tc.want {
			t.Errorf("%s: %s: sealed %t, want %t", name, tc.reason, got, tc.want)
		}
	}
	if rotated.Current() != "2" || leaked.Current() != "2" || len(IDs(dropped)) != 1 {
		t.Errorf("a new key is current: %s, %s, %v", rotated.Current(), leaked.Current(), IDs(dropped))
	}
}

// TestDigests: T27 and T28.
func TestDigests(t *testing.T) {
	old, data := ringOf(t, 1)
	next, _ := Rotate(data, rand.Reader)
	rotated, _ := Parse(next)
	digest := old.Digest("uid", "PASSWORD", "secret")
	if !rotated.Fits(digest, "uid", "PASSWORD", "secret") || rotated.Fits(digest, "uid", "OTHER", "secret") || rotated.Digest("uid", "PASSWORD", "secret") == digest {
		t.Error("T28: digests of an old key still tell, and new ones are of the new key")
	}
	before, _ := old.Sum("a")
	after, _ := rotated.Sum("a")
	if before != after {
		t.Error("T28: what stands on pod templates does not change with a rotation")
	}
	var none *Ring
	if none.Digest("a") != "" || none.Fits("", "a") || none.Fits(digest, "uid") {
		t.Error("without a key nothing fits")
	}
	if _, err := none.Sum("a"); err == nil {
		t.Error("without a key there is no sum")
	}
}

// TestBaseline: rule 1 and T27, what a baseline keeps of a value; T29, what it kept before.
func TestBaseline(t *testing.T) {
	ring, _ := ringOf(t, 1)
	stranger, _ := ringOf(t, 1)
	a, b := Baseline{ring, "uid-a"}, Baseline{ring, "uid-b"}
	digest, old := a.Of("PASSWORD", "x"), KeyedByUID("uid-a")("x")
	for name, tc := range map[string]struct {
		reason string
		same   bool
		want   bool
	}{
		"Same":      {"the same value", a.Same("PASSWORD", digest, "x"), true},
		"Value":     {"another value", a.Same("PASSWORD", digest, "y"), false},
		"Parameter": {"whoever may set a parameter cannot try out guesses of another one", a.Same("USER", digest, "x"), false},
		"Instance":  {"nor of another Instance", b.Same("PASSWORD", digest, "x"), false},
		"Key":       {"another key", Baseline{stranger, "uid-a"}.Same("PASSWORD", digest, "x"), false},
		"NoKey":     {"no key", Baseline{nil, "uid-a"}.Same("PASSWORD", digest, "x"), false},
		"Old":       {"one of before there were keys", a.Same("PASSWORD", old, "x"), true},
		"OldOther":  {"which differs", a.Same("PASSWORD", old, "y"), false},
		"KnowsOld":  {"it can be determined", a.Knows(old), true},
		"Knows":     {"it can be determined", a.Knows(digest), true},
		"KnowsNot":  {"without the key it cannot", Baseline{nil, "uid-a"}.Knows(digest), false},
		"Empty":     {"nothing is of nothing", a.Knows(""), false},
	} {
		if tc.same != tc.want {
			t.Errorf("%s: %s: %t, want %t", name, tc.reason, tc.same, tc.want)
		}
	}
	if old == digest || strings.Contains(digest, old) || KeyedByUID("uid-a")("x") == KeyedByUID("uid-b")("x") {
		t.Error("T27: the digest can be made without the key")
	}
}

// TestValues is T27: a sealed value opens for its run and parameter only.
func TestValues(t *testing.T) {
	ring, _ := ringOf(t, 2)
	for _, value := range []string{"", "a", strings.Repeat("x", block-8), strings.Repeat("y", 100)} {
		sealed, err := ring.Encrypt(rand.Reader, value, "uid", "3", "PASSWORD")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ring.Decrypt(sealed, "uid", "3", "PASSWORD"); err != nil || got != value {
			t.Errorf("%d bytes: %d, %v", len(value), len(got), err)
		}
		for _, context := range [][]string{{"uid", "4", "PASSWORD"}, {"uid", "3", "USER"}, {"other", "3", "PASSWORD"}} {
			if _, err := ring.Decrypt(sealed, context...); err == nil {
				t.Errorf("it opens for %v", context)
			}
		}
		again, _ := ring.Encrypt(rand.Reader, value, "uid", "3", "PASSWORD")
		if again == sealed {
			t.Error("equal values are not seen to be equal")
		}
	}
	short, _ := ring.Encrypt(rand.Reader, "a", "x")
	long, _ := ring.Encrypt(rand.Reader, "a longer password", "x")
	if len(short) != len(long) {
		t.Error("lengths of passwords can be told")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1", "1", strings.Repeat("k", size))
	f.Add("current", "1", "")
	f.Fuzz(func(t *testing.T, current, id, key string) {
		ring, err := Parse(map[string][]byte{"current": []byte(current), id: []byte(key)})
		if err == nil && !ring.Sealed(ring.Seal("a"), "a") {
			t.Errorf("a ring %q that does not know its own seal", current)
		}
	})
}

// FuzzSealed: what is written by others is no seal, no digest and no value.
func FuzzSealed(f *testing.F) {
	ring, err := Parse(map[string][]byte{"current": []byte("1"), "1": []byte(strings.Repeat("k", size))})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("1.00")
	f.Add("aes-256-gcm:1.AAAA")
	f.Add(fmt.Sprintf("1.%064x", 0))
	f.Fuzz(func(t *testing.T, text string) {
		if ring.Sealed(text, "a", "b") && text != ring.Seal("a", "b") && !strings.EqualFold(text, ring.Seal("a", "b")) {
			t.Errorf("%q is a seal", text)
		}
		if _, err := ring.Decrypt(text, "a"); err == nil {
			t.Errorf("%q is a value", text)
		}
		ring.Fits(text, "a")
	})
}
