package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"kudo.dev/kudo/pkg/text"
)

const (
	// maxConfig bounds the file with credentials, in bytes.
	maxConfig = 1 << 20
	// helperTimeout bounds the program that keeps credentials, and maxHelperOutput what it prints, in bytes.
	helperTimeout   = 10 * time.Second
	maxHelperOutput = 64 << 10
)

// helperPrefix is what the name of a program that keeps credentials begins with. A configuration of docker has the rest of the name, which
// helperName matches.
const helperPrefix = "docker-credential-"

var helperName = regexp.MustCompile(`^[a-z0-9-]+$`)

// dockerConfig is the part of a configuration of docker that names programs, which keep credentials.
type dockerConfig struct {
	// Helpers maps servers to the programs that keep their credentials.
	Helpers map[string]string `json:"credHelpers"`
	// Store is the program for all other servers.
	Store string `json:"credsStore"`
}

// findCredentials returns a function that finds the credentials of one host, or nil if there are none: those of the options, then those in
// the file, then those of the program that the file names for the host.
func findCredentials(o Options, host string) (auth.CredentialFunc, error) {
	if o.Username != "" || o.Token != "" {
		return auth.StaticCredential(host, auth.Credential{Username: o.Username, Password: o.Password, AccessToken: o.Token}), nil
	}
	file, err := configFile(o.ConfigFile)
	if err != nil {
		return nil, err
	}
	config, err := readConfig(file)
	if errors.Is(err, fs.ErrNotExist) && o.ConfigFile == "" {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the credentials of registries: %w", err)
	}
	store, err := credentials.NewFileStore(file)
	if err != nil {
		return nil, fmt.Errorf("read the credentials of registries in %s: %w", file, err)
	}
	return func(ctx context.Context, asked string) (auth.Credential, error) {
		if !strings.EqualFold(asked, host) {
			return auth.EmptyCredential, nil
		}
		server := credentials.ServerAddressFromHostname(asked)
		found, err := store.Get(ctx, server)
		if err == nil && found == auth.EmptyCredential {
			found, err = config.ask(ctx, server)
		}
		if err != nil {
			return auth.EmptyCredential, fmt.Errorf("find the credentials of %s in %s: %w", asked, file, err)
		}
		return found, nil
	}, nil
}

// configFile returns the file that was given, or that of docker.
func configFile(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	folder := os.Getenv("DOCKER_CONFIG")
	if folder == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		folder = filepath.Join(home, ".docker")
	}
	return filepath.Join(folder, "config.json"), nil
}

// readConfig reads a configuration file, and refuses one that is too large.
func readConfig(file string) (config dockerConfig, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return config, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfig {
		return config, fmt.Errorf("%s must be a regular file of at most %d bytes", file, maxConfig)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return config, err
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return config, fmt.Errorf("%s is no configuration of docker: %w", file, err)
	}
	return config, nil
}

// ask asks the program of a server for its credentials, by the protocol of docker. It refuses a program that is named by a path. The names
// for other servers do not matter.
func (c dockerConfig) ask(ctx context.Context, server string) (auth.Credential, error) {
	name := c.Store
	if own, is := c.Helpers[server]; is {
		name = own
	}
	if name == "" {
		return auth.EmptyCredential, nil
	}
	if !helperName.MatchString(name) {
		return auth.EmptyCredential, fmt.Errorf("the credential helper %s must consist of lower-case letters, digits and -: correct credHelpers "+
			"or credsStore", text.Quote(name, 100))
	}
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	name = helperPrefix + name
	var out bounded
	command := exec.CommandContext(ctx, name, "get")
	command.Stdin, command.Stdout, command.WaitDelay = strings.NewReader(server), &out, time.Second
	if err := command.Run(); err != nil {
		if strings.Contains(out.kept.String(), "credentials not found") {
			return auth.EmptyCredential, nil
		}
		// What the program prints may be secret.
		return auth.EmptyCredential, fmt.Errorf("run %s: %w: correct the program, or log in without it", name, err)
	}
	var answer struct{ Username, Secret string }
	if err := json.Unmarshal(out.kept.Bytes(), &answer); err != nil {
		return auth.EmptyCredential, fmt.Errorf("run %s: it prints no credentials in JSON: correct the program, or log in without it", name)
	}
	if answer.Username == "<token>" {
		return auth.Credential{RefreshToken: answer.Secret}, nil
	}
	return auth.Credential{Username: answer.Username, Password: answer.Secret}, nil
}

// bounded keeps what a program prints, and ends a program that prints too much.
type bounded struct{ kept bytes.Buffer } // not embedded: its ReadFrom would go around the bound

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > maxHelperOutput {
		return 0, fmt.Errorf("it prints more than %d bytes: %w", maxHelperOutput, io.ErrShortWrite)
	}
	return b.kept.Write(p)
}
