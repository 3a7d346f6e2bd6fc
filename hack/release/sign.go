package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"
)

// statementMediaType is the type of an in-toto statement in an envelope.
const statementMediaType = "application/vnd.in-toto+json"

// signFiles writes the bundles of the checksums and of the provenance. The checksums are about all other files; the bundles are not
// among them, since most algorithms make another signature each time.
func (r *release) signFiles() error {
	if r.signing == nil {
		fmt.Fprintln(os.Stderr, "the release is complete but for its signatures: give SIGN_KEY, or SIGNER with SIGNER_KEY, to sign it")
		return nil
	}
	for _, name := range []string{"SHA256SUMS", "provenance.json"} {
		data, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		var content sign.Content = &sign.PlainData{Data: data}
		if name == "provenance.json" {
			name, content = "provenance", &sign.DSSEData{Data: data, PayloadType: statementMediaType}
		}
		bundle, err := r.signing.bundle(content)
		if err != nil {
			return fmt.Errorf("sign %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(r.out, name+".sigstore.json"), bundle, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// bundle returns a Sigstore bundle of the content.
func (k *key) bundle(content sign.Content) ([]byte, error) {
	made, err := sign.Bundle(content, k, sign.BundleOptions{})
	if err != nil {
		return nil, err
	}
	return protojson.Marshal(made)
}

// SignData implements sign.Keypair. It returns the signature of data, which the public key has verified, and the digest that a bundle
// names.
func (k *key) SignData(_ context.Context, data []byte) ([]byte, []byte, error) {
	made, err := k.sign(data)
	if err != nil {
		return nil, nil, err
	}
	verifier, err := signature.LoadDefaultVerifier(k.public)
	if err != nil {
		return nil, nil, err
	}
	if err := verifier.VerifySignature(bytes.NewReader(made), bytes.NewReader(data)); err != nil {
		return nil, nil, fmt.Errorf("the public key does not verify the signature: name the key of the program by -signer-key; the program "+
			"must write the bytes of a signature of its standard input, in ASN.1 for ECDSA (%w)", err)
	}
	hash := cmp.Or(k.hash, crypto.SHA256).New()
	_, _ = hash.Write(data)
	return made, hash.Sum(nil), nil
}

// GetHashAlgorithm implements sign.Keypair. The digest of a message that Ed25519 signs as a whole is SHA-256.
func (k *key) GetHashAlgorithm() common.HashAlgorithm {
	if k.hash == crypto.SHA384 {
		return common.HashAlgorithm_SHA2_384
	}
	return common.HashAlgorithm_SHA2_256
}

// GetSigningAlgorithm implements sign.Keypair.
func (k *key) GetSigningAlgorithm() common.PublicKeyDetails {
	switch k.hash {
	case crypto.SHA256:
		return common.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
	case crypto.SHA384:
		return common.PublicKeyDetails_PKIX_ECDSA_P384_SHA_384
	}
	return common.PublicKeyDetails_PKIX_ED25519
}

// GetHint implements sign.Keypair.
func (k *key) GetHint() []byte {
	sum := sha256.Sum256(k.der)
	return []byte(base64.StdEncoding.EncodeToString(sum[:]))
}

// GetKeyAlgorithm implements sign.Keypair.
func (k *key) GetKeyAlgorithm() string {
	if k.hash == 0 {
		return "ED25519"
	}
	return "ECDSA"
}

// GetPublicKey implements sign.Keypair.
func (k *key) GetPublicKey() crypto.PublicKey { return k.public }

// GetPublicKeyPem implements sign.Keypair.
func (k *key) GetPublicKeyPem() (string, error) { return string(k.pem()), nil }
