package registry

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// Scheme is what a reference to a repository begins with.
const Scheme = "oci://"

const (
	// answerTimeout bounds how long a registry takes for an answer, which includes the time to store what was sent.
	answerTimeout = 5 * time.Minute
	// handshakeTimeout bounds a TLS handshake.
	handshakeTimeout = 30 * time.Second
	// maxHeader bounds the headers of an answer, in bytes.
	maxHeader = 64 << 10
)

// Options say how a registry is reached.
type Options struct {
	// ConfigFile is a configuration file of docker, with credentials. If it is empty, it is config.json in $DOCKER_CONFIG or ~/.docker,
	// if that exists.
	ConfigFile string
	// TokenHosts are hosts, with their ports, that issue the tokens of the registry, and get its credentials.
	TokenHosts []string
	// Username and Password, or Token, are the credentials of the registry; if they are empty, those of ConfigFile are taken.
	Username, Password, Token string
	// Roots are the certificates that are trusted; if they are nil, those of the system are.
	Roots *x509.CertPool
	// PlainHTTP is set if the registry is asked without TLS. Then no credentials are sent.
	PlainHTTP bool
	// UserAgent names the client.
	UserAgent string
}

// CheckReference refuses what cannot be a reference such as oci://registry.example.org/kudo/postgres:1.0.0, without asking a registry.
func CheckReference(reference string) error {
	_, err := parse(reference)
	return err
}

func parse(reference string) (*remote.Repository, error) {
	name, is := strings.CutPrefix(reference, Scheme)
	if !is {
		return nil, fmt.Errorf("%q must begin with %s", reference, Scheme)
	}
	repository, err := remote.NewRepository(name)
	if err != nil {
		return nil, fmt.Errorf("%q is no reference such as oci://registry.example.org/kudo/manager:v0.2.0: %w", reference, err)
	}
	return repository, nil
}

// NewRepository returns a client of a repository, for a reference such as oci://registry.example.org/kudo/manager:v0.2.0.
func NewRepository(reference string, o Options) (*remote.Repository, error) {
	repository, err := parse(reference)
	if err != nil {
		return nil, err
	}
	origin := &url.URL{Scheme: "https", Host: repository.Reference.Host()}
	client := &auth.Client{Cache: auth.NewCache(), Header: http.Header{"User-Agent": {o.UserAgent}}}
	if o.PlainHTTP {
		repository.PlainHTTP, origin.Scheme = true, "http"
	} else if client.Credential, err = findCredentials(o, origin.Host); err != nil {
		return nil, err
	}
	client.Client = &http.Client{Transport: &Guard{
		Origin: origin, Anonymous: true, Transport: newTransport(o), Remedy: "give --token-host",
		TokenHosts: func(u *url.URL) bool {
			return slices.ContainsFunc(o.TokenHosts, func(host string) bool { return strings.EqualFold(host, u.Host) })
		},
	}}
	repository.Client = client
	return repository, nil
}

func newTransport(o Options) *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
		TLSHandshakeTimeout: handshakeTimeout, ResponseHeaderTimeout: answerTimeout, MaxResponseHeaderBytes: maxHeader}
}
