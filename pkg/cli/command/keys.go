package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"kudo.dev/kudo/pkg/trust"
)

// maxKeyFile bounds what is read of the file of a key, and of a password, in bytes.
const maxKeyFile = 16 << 10

// KeyFlags are the flags that say what signs a package, or an index.
type KeyFlags struct {
	env *Env
	// name is that of the flag of the private key.
	name string

	private, signer, public string
	passwordStdin           bool
}

// Add adds the flags. The name is that of the flag of the private key.
func (k *KeyFlags) Add(env *Env, flags *pflag.FlagSet, name string) {
	k.env, k.name = env, name
	flags.StringVar(&k.private, name, "", "sign with the private key in this file, PKCS#8 in PEM: ECDSA P-256 or P-384, or Ed25519")
	flags.StringVar(&k.signer, "signer", "", "sign with this command, which gets the bytes to sign on its standard input and writes the "+
		"signature")
	flags.StringVar(&k.public, "signer-key", "", "file with the public key of --signer, in PEM")
	flags.BoolVar(&k.passwordStdin, "password-stdin", false, "read the password of the private key from the standard input")
}

// IsSet reports whether the flags name a key.
func (k *KeyFlags) IsSet() bool {
	return k.private != "" || k.signer != "" || k.public != "" || k.passwordStdin
}

// Read returns the signer that the flags name.
func (k *KeyFlags) Read() (*trust.Signer, error) {
	switch {
	case k.private != "" && (k.signer != "" || k.public != ""):
		return nil, UsageError("--%s cannot be used with --signer and --signer-key: name the file of a private key, or a command that "+
			"has one", k.name)
	case k.private != "":
		return k.readPrivate()
	case k.signer == "":
		return nil, UsageError("name the file of a private key by --%s, or a command that signs by --signer", k.name)
	case k.public == "":
		return nil, UsageError("--signer needs --signer-key: name the file with the public key of the command, in PEM")
	case k.passwordStdin:
		return nil, UsageError("--password-stdin cannot be used with --signer: give the password to the command")
	}
	public, err := ReadPublicKey("--signer-key", k.public)
	if err != nil {
		return nil, err
	}
	signer, err := trust.NewProgram(k.signer, public, k.env.Err)
	if err != nil {
		return nil, UsageError("--signer: %w", err)
	}
	return signer, nil
}

func (k *KeyFlags) readPrivate() (*trust.Signer, error) {
	text, err := ReadBounded(k.private, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", k.name, err)
	}
	signer, err := trust.ParsePrivateKey(text, k.password)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", k.name, k.private, err)
	}
	return signer, nil
}

// password returns the password of the private key: from the standard input, or from the user.
func (k *KeyFlags) password() ([]byte, error) {
	if k.passwordStdin {
		text, err := io.ReadAll(io.LimitReader(k.env.In, maxKeyFile))
		if err != nil {
			return nil, fmt.Errorf("--password-stdin: %w", err)
		}
		return bytes.TrimRight(text, "\r\n"), nil
	}
	file, is := k.env.In.(*os.File)
	if !is || !term.IsTerminal(int(file.Fd())) {
		return nil, errors.New("the key is encrypted: give its password by --password-stdin, or run the command in a terminal")
	}
	if _, err := fmt.Fprintf(k.env.Err, "Password of %s: ", k.private); err != nil {
		return nil, err
	}
	defer k.env.Notef("")
	return term.ReadPassword(int(file.Fd()))
}

// ReadPublicKey reads a public key from the file of a flag.
func ReadPublicKey(flag, name string) (*trust.PublicKey, error) {
	text, err := ReadBounded(name, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	key, err := trust.ParsePublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, name, err)
	}
	return key, nil
}

// ReadBounded reads a file of at most a number of bytes.
func ReadBounded(name string, most int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than the %d bytes that it may have", name, most)
	}
	return data, err
}
