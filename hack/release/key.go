package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/google/shlex"
	"github.com/youmark/pkcs8"
	"golang.org/x/term"
)

// passwordVariable is the environment variable with the password of the private key.
const passwordVariable = "SIGN_PASSWORD"

// newKey says how to make a key that a release can be signed with.
const newKey = "make a key by openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -aes256 -out FILE"

// keyFlags say what signs a release.
type keyFlags struct {
	// private is a file with a private key.
	private string
	// signer is a program with its arguments, and public a file with its public key.
	signer, public string
	// password returns the password of an encrypted key.
	password func(file string) ([]byte, error)
}

// read returns the key that the flags name, or nil if they name none.
func (f keyFlags) read() (*key, error) {
	switch {
	case f.private != "" && (f.signer != "" || f.public != ""):
		return nil, errors.New("-sign-key cannot be used with -signer and -signer-key: give the file of a private key, or a program that has one")
	case f.private != "":
		return f.readPrivate()
	case f.signer != "" && f.public == "":
		return nil, errors.New("-signer needs -signer-key: name the file with the public key of the program, in PEM; a release cannot be " +
			"verified without it")
	case f.signer == "" && f.public != "":
		return nil, errors.New("-signer-key needs -signer: name the program that signs with this key; a second machine takes the public key " +
			"from SECURITY.md")
	case f.signer == "":
		return nil, nil
	}
	return f.readSigner()
}

func (f keyFlags) readPrivate() (*key, error) {
	text, err := os.ReadFile(f.private)
	if err != nil {
		return nil, fmt.Errorf("-sign-key: %w", err)
	}
	private, err := f.parsePrivate(text)
	if err != nil {
		return nil, fmt.Errorf("-sign-key %s: %w", f.private, err)
	}
	k, err := newPublicKey(private.Public())
	if err != nil {
		return nil, fmt.Errorf("-sign-key %s: %w", f.private, err)
	}
	k.sign = func(message []byte) ([]byte, error) {
		if k.hash != 0 {
			h := k.hash.New()
			_, _ = h.Write(message)
			message = h.Sum(nil)
		}
		return private.Sign(rand.Reader, message, k.hash)
	}
	return k, nil
}

func (f keyFlags) parsePrivate(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("there is no key in PEM: %s", newKey)
	}
	var parsed any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		if parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
			return nil, fmt.Errorf("%w: %s", err, newKey)
		}
	case "ENCRYPTED PRIVATE KEY":
		password, err := f.password(f.private)
		if err != nil {
			return nil, err
		}
		if parsed, err = pkcs8.ParsePKCS8PrivateKey(block.Bytes, password); err != nil {
			return nil, fmt.Errorf("the key cannot be decrypted: check the password, or encrypt the key by openssl pkcs8 -topk8 (%w)", err)
		}
	default:
		return nil, fmt.Errorf("%s is not PKCS#8: convert the key by openssl pkcs8 -topk8 -in FILE -out NEW, or %s", block.Type, newKey)
	}
	private, is := parsed.(crypto.Signer)
	if !is {
		return nil, fmt.Errorf("a key of type %T cannot sign: %s", parsed, newKey)
	}
	return private, nil
}

// readPassword returns the password from the environment, else from the terminal. Programs that this one runs do not get it.
func readPassword(file string) ([]byte, error) {
	if password := os.Getenv(passwordVariable); password != "" {
		return []byte(password), os.Unsetenv(passwordVariable)
	}
	terminal := int(os.Stdin.Fd())
	if !term.IsTerminal(terminal) {
		return nil, fmt.Errorf("the key is encrypted: put its password into the environment variable %s, or run make on a terminal",
			passwordVariable)
	}
	fmt.Fprintf(os.Stderr, "password of %s: ", file)
	defer fmt.Fprintln(os.Stderr)
	return term.ReadPassword(terminal)
}

// maxSignature bounds what a program may return as a signature, in bytes. The largest one of the keys below has 104.
const maxSignature = 1 << 10

func (f keyFlags) readSigner() (*key, error) {
	command, err := shlex.Split(f.signer)
	if err != nil || len(command) == 0 {
		return nil, fmt.Errorf("-signer %q: name a program with its arguments, as for a shell", f.signer)
	}
	text, err := os.ReadFile(f.public)
	if err != nil {
		return nil, fmt.Errorf("-signer-key: %w", err)
	}
	k, err := parsePublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("-signer-key %s: %w", f.public, err)
	}
	k.sign = func(message []byte) ([]byte, error) {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdin, cmd.Stderr = bytes.NewReader(message), os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("-signer: %w", err)
		}
		made, err := io.ReadAll(io.LimitReader(out, maxSignature))
		_, _ = io.Copy(io.Discard, out)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			return nil, fmt.Errorf("-signer %s: %w", command[0], err)
		}
		return made, nil
	}
	return k, nil
}

// key signs a release, and is what the release is verified with. It implements sign.Keypair.
type key struct {
	public crypto.PublicKey
	// der is the public key as in PEM.
	der []byte
	// hash is what the algorithm signs the digest of; 0 if it signs the message.
	hash crypto.Hash
	// sign returns the signature of a message, or nil if only the public key is known.
	sign func(message []byte) ([]byte, error)
}

// newPublicKey refuses keys of other algorithms than ECDSA with P-256 or P-384, and Ed25519.
func newPublicKey(public crypto.PublicKey) (*key, error) {
	k := &key{public: public}
	switch p := public.(type) {
	case *ecdsa.PublicKey:
		switch p.Curve {
		case elliptic.P256():
			k.hash = crypto.SHA256
		case elliptic.P384():
			k.hash = crypto.SHA384
		default:
			return nil, fmt.Errorf("the curve %s is refused, only P-256 and P-384 are taken: %s", p.Curve.Params().Name, newKey)
		}
	case ed25519.PublicKey:
	case *rsa.PublicKey:
		return nil, fmt.Errorf("an RSA key is refused, only ECDSA and Ed25519 are taken: %s", newKey)
	default:
		return nil, fmt.Errorf("a key of type %T is refused, only ECDSA and Ed25519 are taken: %s", public, newKey)
	}
	var err error
	k.der, err = x509.MarshalPKIXPublicKey(public)
	return k, err
}

// parsePublicKey returns the first public key of a text, which may have other text around it.
func parsePublicKey(text []byte) (*key, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errors.New("there is no PUBLIC KEY in PEM: write one by openssl pkey -in PRIVATE -pubout -out FILE")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: write the public key by openssl pkey -in PRIVATE -pubout -out FILE", err)
	}
	return newPublicKey(public)
}

// text returns the public key in one line, as the linker takes it.
func (k *key) text() string { return base64.StdEncoding.EncodeToString(k.der) }

func (k *key) pem() []byte { return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: k.der}) }

// chooseKey determines the public key of the release, which is linked into the command line. It is the key in SECURITY.md of the commit, so
// that a second machine finds the same one without the private key, and a release must be signed with it. A snapshot may be signed with any
// key.
func (r *release) chooseKey(security []byte, snapshot bool) error {
	var documented *key
	if bytes.Contains(security, []byte("-----BEGIN ")) {
		var err error
		if documented, err = parsePublicKey(security); err != nil {
			return fmt.Errorf("SECURITY.md: %w", err)
		}
	}
	switch {
	case r.signing == nil:
		r.public = documented
		return nil
	case !snapshot && (documented == nil || !bytes.Equal(documented.der, r.signing.der)):
		return fmt.Errorf("the public key of the signature is not the first one in SECURITY.md, so that users cannot verify the release: put "+
			"it there, commit, and tag that commit:\n%s", r.signing.pem())
	}
	r.public = r.signing
	return nil
}
