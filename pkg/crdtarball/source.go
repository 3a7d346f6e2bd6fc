package crdtarball

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Source is a place that a tarball comes from. Making one touches neither network nor cluster; Fetch does.
type Source interface {
	// Identity is what the cache knows the tarball by: a URL, without proxy and credentials. Two sources of one identity
	// give the same tarball.
	Identity() string
	// Pin is the SHA-256 in hex that the tarball must have; empty if any will do.
	Pin() string
	// Access names what else decides whether a fetch succeeds, such as the Secret and the proxy. Fetches of the same
	// identity, pin and access at the same time are made one. It is not stored.
	Access() string
	// Fetch makes one attempt to write the tarball to a target. If validators are given and the tarball is still the one
	// that they came with, it writes nothing and says so. Errors are *Error.
	Fetch(ctx context.Context, to Target, known Validators) (Fetched, error)
}

// addressed is a Source whose identity names its content by digest, so that what the cache has of it is the right one.
type addressed interface {
	Source
	// addressed does nothing.
	addressed()
}

// Target takes a tarball.
type Target interface {
	io.Writer
	// Expect is told the size in bytes before the first byte, if the source knows it. Its error ends the fetch.
	Expect(size int64) error
}

// Validators tell one version of a tarball from another, by which a source can be asked for a newer one only.
type Validators struct {
	// ETag as the source gave it (RFC 9110, section 8.8.3).
	ETag string `json:"etag,omitempty"`
	// LastModified as the source gave it (RFC 9110, section 8.8.2).
	LastModified string `json:"lastModified,omitempty"`
}

// Fetched is the outcome of a fetch.
type Fetched struct {
	// NotModified tells that nothing was written, as the tarball is still the known one.
	NotModified bool
	// Validators of what was written.
	Validators Validators
}

// Secrets reads Secrets. A missing one is the API machinery's NotFound error.
type Secrets interface {
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// ConfigMaps reads ConfigMaps. A missing one is the API machinery's NotFound error.
type ConfigMaps interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
}

// Access is what sources reach networks by.
type Access struct {
	// Secrets and ConfigMaps of the cluster; without them, sources that need them are refused.
	Secrets    Secrets
	ConfigMaps ConfigMaps
	// Hosts that may be asked. The zero value allows none.
	Hosts Hosts
	// InsideHosts are those that the administrator has named, in the form of Hosts.Names: only these may have loopback or
	// private addresses. Link-local addresses, and those of clouds' services, no host may have.
	InsideHosts []string
	// TokenRealms are hosts, in the form of Hosts.Names, that get the credentials of a registry whose answer names them as
	// its realm. Without, a registry's credentials go to the registry only.
	TokenRealms []string
	// Proxy for sources that name none, such as http.ProxyFromEnvironment; nil means none.
	Proxy func(*http.Request) (*url.URL, error)
	// Resolver of host names; nil means the system's.
	Resolver *net.Resolver
	// Timeout is how long a source may be silent: while it is dialed, before it answers, and between two blocks of
	// bytes. 0 means 30 s.
	Timeout time.Duration
	// Clock tells how far a date in Retry-After is; nil means the real one.
	Clock clock.PassiveClock
}

func (a Access) now() time.Time {
	if a.Clock == nil {
		return time.Now()
	}
	return a.Clock.Now()
}

func (a Access) timeout() time.Duration {
	if a.Timeout <= 0 {
		return 30 * time.Second
	}
	return a.Timeout
}

// Hosts are hosts that may be asked.
type Hosts struct {
	// Any allows all hosts.
	Any bool
	// Names of hosts: `example.org` (any port), `example.org:8443`, or `*.example.org` (any host below it).
	Names []string
}

// Allows reports whether a URL's host may be asked.
func (h Hosts) Allows(u *url.URL) bool {
	if h.Any {
		return true
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	for _, name := range h.Names {
		name = strings.ToLower(strings.TrimSpace(name))
		if below, ok := strings.CutPrefix(name, "*."); ok {
			if strings.HasSuffix(host, "."+below) {
				return true
			}
			continue
		}
		if name != "" && (name == host || name == strings.ToLower(u.Host) || name == net.JoinHostPort(host, port(u))) {
			return true
		}
	}
	return false
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// NewSource makes the source of a crdTarball whose templates are resolved (RenderTarball). The namespace is that of the
// object that holds it, and of the Secrets and ConfigMaps that it names. Errors are *Error with ReasonSpec or
// ReasonRefused.
func NewSource(tarball v1beta1.CRDTarball, namespace string, access Access) (Source, error) {
	set := 0
	for _, is := range []bool{tarball.HTTPSource != nil, tarball.OCISource != nil, tarball.ConfigMapSource != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return nil, fail(ReasonSpec, "crdTarball has %d sources: exactly one of httpSource, ociSource and configMapSource must be set", set)
	}
	if err := checkDigest(tarball); err != nil {
		return nil, err
	}
	switch {
	case tarball.HTTPSource != nil:
		return newHTTPSource(*tarball.HTTPSource, namespace, access)
	case tarball.OCISource != nil:
		return newOCISource(*tarball.OCISource, namespace, access)
	}
	return newConfigMapSource(*tarball.ConfigMapSource, namespace, access)
}

// checkDigest wants a digest of what anybody may change on its way, as with http, or where it is kept, as in a ConfigMap.
// What https brings is remembered when it is used first.
func checkDigest(tarball v1beta1.CRDTarball) error {
	switch source, parts := tarball.HTTPSource, tarball.ConfigMapSource; {
	case source != nil && source.SHA256 == "" && strings.HasPrefix(strings.ToLower(source.URL), "http://"):
		return fail(ReasonSpec, "spec.crdTarball.httpSource.sha256 is required: what http transfers can be changed on the way; set it, or "+
			"use https")
	case parts != nil && parts.SHA256 == "":
		return fail(ReasonSpec, "spec.crdTarball.configMapSource.sha256 is required: whoever may write a ConfigMap could change the tarball")
	}
	return nil
}

// CheckIdentity refuses what can be the identity of no source. Errors are *Error with ReasonSpec.
func CheckIdentity(identity string) error {
	scheme, rest, _ := strings.Cut(identity, "://")
	switch scheme {
	case "oci":
		_, err := newOCISource(v1beta1.OCISource{Ref: rest}, "", Access{})
		return err
	case "configmap":
		if namespace, names, _ := strings.Cut(rest, "/"); namespace == "" || names == "" {
			return fail(ReasonSpec, "%s must be configmap://<namespace>/<name>[:<key>],…", quoteShort(identity))
		}
		return nil
	}
	_, err := parseURL("the URL", identity)
	return err
}

// accessKey joins what decides whether a fetch succeeds.
func accessKey(namespace string, secret *v1beta1.SecretReference, proxy string, ca []byte, hosts Hosts) string {
	name := ""
	if secret != nil {
		name = namespace + "/" + secret.Name
	}
	return fmt.Sprintf("%q %q %q %v %q", name, proxy, ca, hosts.Any, hosts.Names)
}

// HostsOf are the hosts that a crdTarball names, with their ports, as far as its templates do not decide them.
func HostsOf(tarball v1beta1.CRDTarball) []string {
	switch {
	case tarball.HTTPSource != nil:
		u, err := url.Parse(tarball.HTTPSource.URL)
		if err != nil || u.Host == "" || strings.ContainsAny(u.Host, "{}") {
			return nil
		}
		return []string{net.JoinHostPort(u.Hostname(), port(u))}
	case tarball.OCISource != nil:
		host, _, _ := strings.Cut(tarball.OCISource.Ref, "/")
		if strings.ContainsAny(host, "{}") {
			return nil
		}
		u := &url.URL{Scheme: "https", Host: host}
		return []string{net.JoinHostPort(u.Hostname(), port(u))}
	}
	return nil
}
