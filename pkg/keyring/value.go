package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

// sealedPrefix stands before a sealed value.
const sealedPrefix = "aes-256-gcm:"

// block is what values are padded to, in bytes: their length tells less of them.
const block = 64

var encoding = base64.RawStdEncoding

// Encrypt seals a value, `aes-256-gcm:<id>.<base64>`, for whom and what the context says: it cannot be opened for any other.
func (r *Ring) Encrypt(random io.Reader, value string, context ...string) (string, error) {
	if r == nil {
		return "", errors.New("there is no history key")
	}
	box, err := r.keys[r.current].box()
	if err != nil {
		return "", err
	}
	nonce := make([]byte, box.NonceSize())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return "", err
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(len(value)))
	plain = append(plain, value...)
	plain = append(plain, make([]byte, (block-len(plain)%block)%block)...)
	return sealedPrefix + r.current + "." + encoding.EncodeToString(box.Seal(nonce, nonce, plain, join(context))), nil
}

// Decrypt opens a sealed value. An error says nothing of what is in it.
func (r *Ring) Decrypt(text string, context ...string) (string, error) {
	unknown := errors.New("the value was not sealed by this kudo")
	body, sealed := strings.CutPrefix(text, sealedPrefix)
	id, body, _ := strings.Cut(body, ".")
	known := r.key(id)
	if known == nil || !sealed {
		return "", unknown
	}
	box, err := known.box()
	if err != nil {
		return "", err
	}
	packed, err := encoding.DecodeString(body)
	if err != nil || len(packed) < box.NonceSize() {
		return "", unknown
	}
	plain, err := box.Open(nil, packed[:box.NonceSize()], packed[box.NonceSize():], join(context))
	if err != nil || len(plain) < 8 {
		return "", unknown
	}
	length := binary.BigEndian.Uint64(plain)
	if length > uint64(len(plain)-8) {
		return "", unknown
	}
	return string(plain[8 : 8+length]), nil
}

func (k *key) box() (cipher.AEAD, error) {
	code, err := aes.NewCipher(k.values)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(code)
}
