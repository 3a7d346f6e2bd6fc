package inventory

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"
)

// AccessError says why a cluster cannot be reached with what stands on the hub. It is not tried again before something changes.
type AccessError struct {
	// Object, Field and Problem say where what is wrong, and Remedy what to do.
	Object, Field, Problem, Remedy string
}

func (e *AccessError) Error() string {
	where := e.Object
	if e.Field != "" {
		where += ": " + e.Field
	}
	return where + ": " + e.Problem + ": " + e.Remedy
}

// secretData reads the data of a Secret in the manager's namespace.
type secretData func(ctx context.Context, name string) (map[string][]byte, error)

// configOf returns how to reach the cluster of a profile: by the first of the providers that the profile offers, and else by the built-in
// one. Server, authority and proxy come from the profile. What the profile would add to a command is ignored. An *AccessError names what is
// wrong.
func (a access) configOf(ctx context.Context, profile *ClusterProfile) (*rest.Config, error) {
	object := "ClusterProfile " + profile.key().String()
	offered, provider, field := a.choose(profile)
	if offered == nil {
		return nil, &AccessError{object, "status.accessProviders", "offers no provider that this manager has",
			"offer " + a.names() + ", or name a provider of the profile in --clusterprofile-provider-file"}
	}
	config, err := clusterConfig(object, field+".cluster", offered.Cluster)
	if err != nil {
		return nil, err
	}
	if provider == nil {
		if err := a.fromSecret(ctx, object, field, offered.Cluster, config); err != nil {
			return nil, err
		}
		return config, nil
	}
	exec := provider.Exec
	if raw := offered.Cluster.extension(execExtension); len(raw) > 0 {
		exec.Config = &runtime.Unknown{Raw: raw, ContentType: runtime.ContentTypeJSON}
	}
	config.ExecProvider = &exec
	return config, nil
}

// access has what gives credentials.
type access struct {
	providers Providers
	namespace string
	secret    secretData
}

// choose returns the way to the cluster, its provider, which is nil for the built-in one, and the field of the profile that offers it.
func (a access) choose(profile *ClusterProfile) (*AccessProvider, *Provider, string) {
	list, field := profile.Status.AccessProviders, "status.accessProviders"
	if len(list) == 0 {
		list, field = profile.Status.CredentialProviders, "status.credentialProviders"
	}
	find := func(name string) (*AccessProvider, string) {
		for i := range list {
			if list[i].Name == name {
				return &list[i], fmt.Sprintf("%s[%d]", field, i)
			}
		}
		return nil, ""
	}
	for i := range a.providers {
		if offered, at := find(a.providers[i].Name); offered != nil {
			return offered, &a.providers[i], at
		}
	}
	offered, at := find(SecretProvider)
	return offered, nil, at
}

func (a access) names() string {
	var names []string
	for _, p := range a.providers {
		names = append(names, p.Name)
	}
	return strings.Join(append(names, SecretProvider), " or ")
}

// clusterConfig returns the address of a profile's cluster, and by which authority it is known.
func clusterConfig(object, field string, c Cluster) (*rest.Config, error) {
	refuse := func(name, problem, remedy string) error {
		return &AccessError{object, field + "." + name, problem, remedy}
	}
	switch {
	case c.InsecureSkipTLSVerify:
		return nil, refuse("insecure-skip-tls-verify", "would let anyone answer for the cluster", "set certificate-authority-data instead")
	case c.CertificateAuthority != "":
		return nil, refuse("certificate-authority", "is a file, which the manager does not read", "set certificate-authority-data instead")
	}
	if problem := badServer(c.Server); problem != "" {
		return nil, refuse("server", problem, "set an address such as https://host:6443")
	}
	if problem := badAuthority(c.CertificateAuthorityData); problem != "" {
		return nil, refuse("certificate-authority-data", problem, "set certificates in PEM")
	}
	config := &rest.Config{Host: c.Server, DisableCompression: c.DisableCompression}
	config.TLSClientConfig = rest.TLSClientConfig{ServerName: c.TLSServerName, CAData: c.CertificateAuthorityData}
	if c.ProxyURL != "" {
		proxy, err := url.Parse(c.ProxyURL)
		if err != nil || proxy.Host == "" || proxy.Scheme != "http" && proxy.Scheme != "https" && proxy.Scheme != "socks5" {
			return nil, refuse("proxy-url", "is no address of a proxy", "set one that begins with http, https or socks5, or none")
		}
		config.Proxy = http.ProxyURL(proxy)
	}
	return config, nil
}

// badServer says what is wrong with the address of an API server, or returns "".
func badServer(server string) string {
	u, err := url.Parse(server)
	switch {
	case server == "":
		return "is missing"
	case err != nil:
		return "is no URL"
	case u.Scheme == "http":
		return "is plain http, so that anyone on the way could read the credentials"
	case u.Scheme != "https" || u.Hostname() == "":
		return "is no https URL with a host"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return "has more than a host, a port and a path"
	}
	return ""
}

// badAuthority says what is wrong with certificates of an authority, or returns "". None is right.
func badAuthority(pem []byte) string {
	if len(pem) > 0 && !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return "holds no certificate"
	}
	return ""
}

// fromSecret adds the credentials of the Secret that a profile names.
func (a access) fromSecret(ctx context.Context, object, field string, c Cluster, config *rest.Config) error {
	field += ".cluster.extensions[" + execExtension + "]"
	named := struct {
		SecretName string `json:"secretName"`
	}{}
	raw := c.extension(execExtension)
	if len(raw) == 0 {
		return &AccessError{object, field, "is missing", "add one with secretName, a Secret of namespace " + a.namespace}
	}
	if strict, err := kjson.UnmarshalStrict(raw, &named); err != nil || len(strict) > 0 {
		problem := fmt.Sprint("is no object with secretName alone: ", firstOf(err, strict))
		return &AccessError{object, field, problem, "let it have secretName only"}
	}
	if named.SecretName == "" {
		return &AccessError{object, field + ".secretName", "is missing", "name a Secret of namespace " + a.namespace}
	}
	data, err := a.secret(ctx, named.SecretName)
	if err != nil {
		return fmt.Errorf("%s: %s.secretName: read Secret %s/%s: %w", object, field, a.namespace, named.SecretName, err)
	}
	return credentials("Secret "+a.namespace+"/"+named.SecretName, data, c, config)
}

func firstOf(err error, strict []error) error {
	if err == nil && len(strict) > 0 {
		return strict[0]
	}
	return err
}
