package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Baseline makes the digests that an Instance's baseline keeps of the values of its parameters. Equal values of two
// Instances, or of two parameters, have digests that differ.
type Baseline struct {
	Ring *Ring
	// Owner is the uid of the Instance.
	Owner string
}

const baselinePurpose = "baseline"

// Of returns the digest of a parameter's value.
func (b Baseline) Of(name, value string) string {
	return b.Ring.Digest(baselinePurpose, b.Owner, name, value)
}

// Same reports whether a digest is that of a parameter's value.
func (b Baseline) Same(name, digest, value string) bool {
	if IDOf(digest) == "" {
		return digest == KeyedByUID(b.Owner)(value)
	}
	return b.Ring.Fits(digest, baselinePurpose, b.Owner, name, value)
}

// Knows reports whether it can be determined what a digest is of.
func (b Baseline) Knows(digest string) bool {
	return digest != "" && (IDOf(digest) == "" || b.Ring.Knows(digest))
}

// KeyedByUID makes the digests of before there were keys: whoever can read the uid can try out guesses. They are read, and
// not written any more.
func KeyedByUID(uid string) func(value string) string {
	return func(value string) string {
		mac := hmac.New(sha256.New, []byte(uid))
		mac.Write([]byte(value))
		return hex.EncodeToString(mac.Sum(nil)[:12])
	}
}
