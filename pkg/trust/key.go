// Package trust makes signatures of packages and verifies them. It is the only package that knows the format of signatures.
package trust

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
)

// maxKey bounds the file of a key, in bytes.
const maxKey = 16 << 10

// newKey says how to make a key that a package can be signed with.
const newKey = "make a key by openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -aes256 -out FILE"

// PublicKey is a key that signatures are verified with: ECDSA with P-256 or P-384, or Ed25519.
type PublicKey struct {
	key crypto.PublicKey
	der []byte
	// hash is what the algorithm signs the digest of; 0 if it signs the message.
	hash crypto.Hash
}

// NewPublicKey refuses keys of other algorithms.
func NewPublicKey(key crypto.PublicKey) (*PublicKey, error) {
	k := &PublicKey{key: key}
	switch p := key.(type) {
	case *ecdsa.PublicKey:
		switch p.Curve {
		case elliptic.P256():
			k.hash = crypto.SHA256
		case elliptic.P384():
			k.hash = crypto.SHA384
		default:
			return nil, fmt.Errorf("the curve %s is not taken; use ECDSA P-256, P-384 or Ed25519", p.Curve.Params().Name)
		}
	case ed25519.PublicKey:
	case *rsa.PublicKey:
		return nil, errors.New("RSA keys are not taken; use ECDSA P-256, P-384 or Ed25519")
	default:
		return nil, fmt.Errorf("keys of type %T are not taken; use ECDSA P-256, P-384 or Ed25519", key)
	}
	var err error
	k.der, err = x509.MarshalPKIXPublicKey(key)
	return k, err
}

// ParsePublicKey reads a public key in PEM, with nothing but white space around it.
func ParsePublicKey(text []byte) (*PublicKey, error) {
	block, err := onlyBlock(text)
	if err != nil {
		return nil, err
	}
	if block.Type != "PUBLIC KEY" {
		return nil, fmt.Errorf("it is a %.40q and no PUBLIC KEY: write one by openssl pkey -in PRIVATE -pubout -out FILE", block.Type)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: write the public key by openssl pkey -in PRIVATE -pubout -out FILE", err)
	}
	return NewPublicKey(key)
}

// onlyBlock returns the block of a text in PEM. Text around it is refused, so that no second key is overlooked.
func onlyBlock(text []byte) (*pem.Block, error) {
	if len(text) > maxKey {
		return nil, fmt.Errorf("it has more than the %d bytes that a key may have", maxKey)
	}
	text = bytes.TrimSpace(text)
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("there is no key in PEM: " + newKey)
	case !bytes.HasPrefix(text, []byte("-----BEGIN ")) || len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("there is more in it than one key in PEM: remove what is around the key")
	}
	return block, nil
}

// Hint returns the name of the key: the SHA-256 of its bytes in base64.
func (k *PublicKey) Hint() string {
	sum := sha256.Sum256(k.der)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// PEM returns the key in PEM.
func (k *PublicKey) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.der})
}

// Equal reports whether two keys are the same.
func (k *PublicKey) Equal(other *PublicKey) bool { return bytes.Equal(k.der, other.der) }
