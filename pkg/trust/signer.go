package trust

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/google/shlex"
	"github.com/youmark/pkcs8"

	"kudo.dev/kudo/pkg/processgroup"
)

const (
	// maxSignature bounds what a program may return as a signature, in bytes. The largest one of the keys here has 104.
	maxSignature = 1 << 10
	// signerTimeout bounds how long a program may take, which may ask its user to touch a token.
	signerTimeout = 2 * time.Minute
)

// Signer signs packages with one key.
type Signer struct {
	// Public is the key that verifies the signatures.
	Public *PublicKey
	sign   func(ctx context.Context, message []byte) ([]byte, error)
}

// ParsePrivateKey reads a private key, PKCS#8 in PEM. The password is asked for if the key is encrypted.
func ParsePrivateKey(text []byte, password func() ([]byte, error)) (*Signer, error) {
	block, err := onlyBlock(text)
	if err != nil {
		return nil, err
	}
	var parsed any
	switch block.Type {
	case "PRIVATE KEY":
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		var secret []byte
		if secret, err = password(); err != nil {
			return nil, err
		}
		if parsed, err = pkcs8.ParsePKCS8PrivateKey(block.Bytes, secret); err != nil {
			err = fmt.Errorf("the key cannot be decrypted: check the password, or encrypt the key by openssl pkcs8 -topk8 (%w)", err)
		}
	default:
		err = fmt.Errorf("%.40q is not PKCS#8: convert the key by openssl pkcs8 -topk8 -in FILE -out NEW, or %s", block.Type, newKey)
	}
	if err != nil {
		return nil, err
	}
	private, is := parsed.(crypto.Signer)
	if !is {
		return nil, fmt.Errorf("a key of type %T cannot sign: %s", parsed, newKey)
	}
	public, err := NewPublicKey(private.Public())
	if err != nil {
		return nil, err
	}
	return &Signer{Public: public, sign: func(_ context.Context, message []byte) ([]byte, error) {
		if public.hash != 0 {
			h := public.hash.New()
			_, _ = h.Write(message)
			message = h.Sum(nil)
		}
		return private.Sign(rand.Reader, message, public.hash)
	}}, nil
}

// NewProgram returns a signer that runs a program, given as for a shell: it gets the message on its standard input, and writes the
// signature, in ASN.1 for ECDSA. What it says on its standard error goes to messages.
func NewProgram(command string, public *PublicKey, messages io.Writer) (*Signer, error) {
	words, err := shlex.Split(command)
	if err != nil || len(words) == 0 {
		return nil, fmt.Errorf("%q is no command: name a program with its arguments, as for a shell", command)
	}
	return &Signer{Public: public, sign: func(ctx context.Context, message []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, signerTimeout)
		defer cancel()
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		processgroup.Set(cmd)
		cmd.Cancel = func() error { return processgroup.Kill(cmd.Process.Pid) }
		out := &limited{left: maxSignature, exceeded: cancel}
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(message), out, messages, time.Second
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("run %s: %w", words[0], err)
		}
		return out.data, nil
	}}, nil
}

// limited is a writer that takes a number of bytes.
type limited struct {
	// data is no embedded buffer, since io.Copy would read into that without Write.
	data []byte
	left int
	// exceeded ends the program that writes more.
	exceeded func()
}

// Write implements io.Writer.
func (l *limited) Write(data []byte) (int, error) {
	if l.left -= len(data); l.left < 0 {
		l.exceeded()
		return 0, fmt.Errorf("it has written more than the %d bytes that a signature may have", maxSignature)
	}
	l.data = append(l.data, data...)
	return len(data), nil
}
