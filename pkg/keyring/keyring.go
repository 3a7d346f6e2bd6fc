// Package keyring seals what kudo keeps outside of its own namespace, and makes digests of secret values: without the
// key, no reader of a digest can test guesses of the value.
package keyring

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// SecretName is the name of the Secret, in kudo's namespace, that holds the keys.
const SecretName = "kudo-history-key"

// size of a key, in bytes.
const size = 32

// currentEntry names, in the Secret, the key that new seals are made with.
const currentEntry = "current"

// pattern of the ids of keys: numbers, which grow with each rotation.
var pattern = regexp.MustCompile(`^[1-9][0-9]{0,8}$`)

// Ring holds the keys by id. All methods work on a nil Ring, which knows no key.
type Ring struct {
	current, oldest string
	keys            map[string]*key
}

// key is what is derived from one entry of the Secret: no key serves two purposes.
type key struct{ seal, values, digest []byte }

// Parse reads the data of the Secret.
func Parse(data map[string][]byte) (*Ring, error) {
	current := string(data[currentEntry])
	if !pattern.MatchString(current) {
		return nil, errors.New("current must name one of the keys, by its number")
	}
	ring := &Ring{current: current, keys: map[string]*key{}}
	for id, secret := range data {
		if id == currentEntry {
			continue
		}
		if !pattern.MatchString(id) || len(secret) != size {
			return nil, fmt.Errorf("entry %q must be a number, with %d bytes", id, size)
		}
		derived, err := derive(secret)
		if err != nil {
			return nil, err
		}
		ring.keys[id] = derived
	}
	if ring.keys[current] == nil {
		return nil, fmt.Errorf("current names key %s, and there is no entry %s", current, current)
	}
	ring.oldest = IDs(data)[0]
	return ring, nil
}

func derive(secret []byte) (*key, error) {
	out := &key{}
	for purpose, into := range map[string]*[]byte{"kudo/1 seal": &out.seal, "kudo/1 values": &out.values, "kudo/1 digest": &out.digest} {
		text, err := hkdf.Key(sha256.New, secret, nil, purpose, size)
		if err != nil {
			return nil, err
		}
		*into = text
	}
	return out, nil
}

// IDs lists the ids of the keys in the data of the Secret, oldest first.
func IDs(data map[string][]byte) []string {
	ids := slices.DeleteFunc(slices.Collect(maps.Keys(data)), func(id string) bool { return !pattern.MatchString(id) })
	slices.SortFunc(ids, func(a, b string) int { return number(a) - number(b) })
	return ids
}

func number(id string) int {
	n, _ := strconv.Atoi(id) // the pattern has been checked
	return n
}

// Rotate returns the data of the Secret with a new key as the current one; without data, with a first key. The keys that
// drop names are left out.
func Rotate(data map[string][]byte, random io.Reader, drop ...string) (map[string][]byte, error) {
	next := 1
	if ids := IDs(data); len(ids) > 0 {
		next = number(ids[len(ids)-1]) + 1
	}
	id := strconv.Itoa(next)
	if !pattern.MatchString(id) {
		return nil, fmt.Errorf("there is no id after %d", next-1)
	}
	out := map[string][]byte{currentEntry: []byte(id), id: make([]byte, size)}
	if _, err := io.ReadFull(random, out[id]); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	for _, old := range IDs(data) {
		if !slices.Contains(drop, old) {
			out[old] = data[old]
		}
	}
	return out, nil
}

// Current returns the id of the key that new seals are made with; "" without keys.
func (r *Ring) Current() string {
	if r == nil {
		return ""
	}
	return r.current
}

func (r *Ring) key(id string) *key {
	if r == nil {
		return nil
	}
	return r.keys[id]
}

// Knows reports whether the key that a seal or a digest names is there.
func (r *Ring) Knows(text string) bool { return r.Has(IDOf(text)) }

// Has reports whether a key is there.
func (r *Ring) Has(id string) bool { return r.key(id) != nil }

// IDOf returns the id of the key that a seal or a digest was made with; "" if it names none.
func IDOf(text string) string {
	id, _, found := strings.Cut(text, ".")
	if !found || !pattern.MatchString(id) {
		return ""
	}
	return id
}

// Seal returns the seal of parts, `<id>.<HMAC-SHA256>`; "" without keys.
func (r *Ring) Seal(parts ...string) string {
	if r == nil {
		return ""
	}
	return r.current + "." + hex.EncodeToString(mac(r.keys[r.current].seal, parts))
}

// Sealed reports whether a seal is that of the parts.
func (r *Ring) Sealed(seal string, parts ...string) bool {
	id, sum, _ := strings.Cut(seal, ".")
	known := r.key(id)
	got, err := hex.DecodeString(sum)
	return known != nil && err == nil && hmac.Equal(got, mac(known.seal, parts))
}

// digestSize is how many bytes of an HMAC make a digest.
const digestSize = 16

// Digest returns a digest of parts, `<id>.<hex>`, by which it can be found out later whether they have changed; "" without
// keys.
func (r *Ring) Digest(parts ...string) string {
	if r == nil {
		return ""
	}
	return r.current + "." + hex.EncodeToString(mac(r.keys[r.current].digest, parts)[:digestSize])
}

// Fits reports whether a digest is that of the parts. One whose key is not known fits nothing.
func (r *Ring) Fits(digest string, parts ...string) bool {
	id, sum, _ := strings.Cut(digest, ".")
	known := r.key(id)
	got, err := hex.DecodeString(sum)
	return known != nil && err == nil && hmac.Equal(got, mac(known.digest, parts)[:digestSize])
}

// Sum returns a digest that names no key. It is made with the oldest one, so that a rotation does not change it before that
// key is dropped.
func (r *Ring) Sum(parts ...string) (sum [digestSize]byte, err error) {
	if r == nil {
		return sum, errors.New("there is no history key")
	}
	return [digestSize]byte(mac(r.keys[r.oldest].digest, parts)), nil
}

// mac is the HMAC of parts, with their lengths in front, so that no two lists of parts give the same text.
func mac(key []byte, parts []string) []byte {
	sum := hmac.New(sha256.New, key)
	sum.Write(join(parts))
	return sum.Sum(nil)
}

func join(parts []string) []byte {
	var out []byte
	for _, part := range parts {
		out = binary.BigEndian.AppendUint64(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out
}
