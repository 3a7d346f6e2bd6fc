package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
)

// Scheme is what a reference to a repository begins with.
const Scheme = "oci://"

const (
	// answerTimeout bounds how long a registry takes for an answer, which includes the time to store what was sent.
	answerTimeout = 5 * time.Minute
	// connectTimeout bounds a handshake.
	connectTimeout = 30 * time.Second
	// helperTimeout bounds the program that keeps credentials.
	helperTimeout = 10 * time.Second
	// maxHeader bounds the headers of an answer, in bytes.
	maxHeader = 64 << 10
	// maxConfig bounds the file with credentials, in bytes.
	maxConfig = 1 << 20
)

// Options say how a registry is reached.
type Options struct {
	// ConfigFile is a configuration file of docker, with credentials. If it is empty, it is config.json in $DOCKER_CONFIG or ~/.docker,
	// if that exists.
	ConfigFile string
	// TokenHosts are hosts, with their ports, that issue the tokens of the registry, and get its credentials.
	TokenHosts []string
	// CAs are certificates in PEM that are trusted instead of those of the system.
	CAs []byte
	// PlainHTTP is set if the registry is asked without TLS. Then no credentials are sent.
	PlainHTTP bool
	// UserAgent names the client.
	UserAgent string
}

// NewRepository returns a client of a repository, for a reference such as oci://registry.example.org/kudo/manager:v0.2.0.
func NewRepository(reference string, o Options) (*remote.Repository, error) {
	name, is := strings.CutPrefix(reference, Scheme)
	if !is {
		return nil, fmt.Errorf("%q must begin with %s", reference, Scheme)
	}
	repository, err := remote.NewRepository(name)
	if err != nil {
		return nil, fmt.Errorf("%q is no reference such as oci://registry.example.org/kudo/manager:v0.2.0: %w", reference, err)
	}
	origin := &url.URL{Scheme: "https", Host: repository.Reference.Host()}
	client := &auth.Client{Cache: auth.NewCache(), Header: http.Header{"User-Agent": {o.UserAgent}}}
	if o.PlainHTTP {
		repository.PlainHTTP, origin.Scheme = true, "http"
	} else if client.Credential, err = findCredentials(o.ConfigFile, origin.Host); err != nil {
		return nil, err
	}
	transport, err := newTransport(o.CAs)
	if err != nil {
		return nil, err
	}
	client.Client = &http.Client{Transport: &Guard{
		Origin: origin, Anonymous: true, Transport: transport, Remedy: "give --token-host",
		TokenHosts: func(u *url.URL) bool {
			return slices.ContainsFunc(o.TokenHosts, func(host string) bool { return strings.EqualFold(host, u.Host) })
		},
	}}
	repository.Client = client
	return repository, nil
}

func newTransport(cas []byte) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(cas) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(cas) {
			return nil, errors.New("there is no certificate in PEM")
		}
	}
	return &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: answerTimeout, MaxResponseHeaderBytes: maxHeader}, nil
}

// helper is what docker calls a program that keeps credentials, without its prefix docker-credential-.
var helper = regexp.MustCompile(`^[a-z0-9-]+$`)

// findCredentials returns a function that finds the credentials of one host, as docker does.
func findCredentials(file, host string) (auth.CredentialFunc, error) {
	given := file != ""
	if !given {
		folder := os.Getenv("DOCKER_CONFIG")
		if folder == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, err
			}
			folder = filepath.Join(home, ".docker")
		}
		file = filepath.Join(folder, "config.json")
	}
	if err := checkConfig(file); errors.Is(err, fs.ErrNotExist) && !given {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the credentials of registries: %w", err)
	}
	store, err := credentials.NewStore(file, credentials.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the credentials of registries in %s: %w", file, err)
	}
	find := credentials.Credential(store)
	return func(ctx context.Context, asked string) (auth.Credential, error) {
		if !strings.EqualFold(asked, host) {
			return auth.EmptyCredential, nil
		}
		ctx, cancel := context.WithTimeout(ctx, helperTimeout)
		defer cancel()
		found, err := find(ctx, asked)
		if err != nil {
			return auth.EmptyCredential, fmt.Errorf("find the credentials of %s in %s: %w", asked, file, err)
		}
		return found, nil
	}, nil
}

// checkConfig refuses a configuration file that is too large, or that names a program by a path.
func checkConfig(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxConfig {
		return fmt.Errorf("%s must be a regular file of at most %d bytes", file, maxConfig)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var config struct {
		Helpers map[string]string `json:"credHelpers"`
		Store   string            `json:"credsStore"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("%s is no configuration of docker: %w", file, err)
	}
	names := []string{}
	for _, name := range config.Helpers {
		names = append(names, name)
	}
	if config.Store != "" {
		names = append(names, config.Store)
	}
	for _, name := range names {
		if !helper.MatchString(name) {
			return fmt.Errorf("%s: the credential helper %q must consist of lower-case letters, digits and -", file, name)
		}
	}
	return nil
}
