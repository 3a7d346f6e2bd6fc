package karmada

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// WebhookKind is the kind of the configurations of webhooks, of APIVersion.
	WebhookKind = "ResourceInterpreterWebhookConfiguration"
	// webhookName is that of the one webhook of each configuration: Karmada wants a fully qualified name.
	webhookName = "explore.kudo.dev"
	// timeoutSeconds is how long Karmada waits for an answer: its own default. It takes 1 to 30.
	timeoutSeconds = 10
)

// Endpoint is where Karmada reaches the webhook of a hub: by a URL or by a Service. Make it by NewURL or NewService.
type Endpoint struct {
	url     string
	service map[string]any
	// CABundle has certificates of authorities in PEM format. One of them has signed the webhook's certificate. If CABundle is empty,
	// Karmada trusts the authorities of its system.
	CABundle []byte
}

// NewURL returns the endpoint at a path below a URL, such as https://hub.example.org:9443.
func NewURL(address, path string) (*Endpoint, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("the URL must be like https://hub.example.org:9443") // the text may have a password
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(address, "#"):
		return nil, errors.New("the URL must have no user, query or fragment: Karmada refuses it")
	}
	return &Endpoint{url: strings.TrimRight(u.String(), "/") + path}, nil
}

// NewService returns the endpoint at a path of a Service, which is named by NAMESPACE/NAME or NAMESPACE/NAME:PORT. The default port is 443.
func NewService(name, path string) (*Endpoint, error) {
	namespace, rest, found := strings.Cut(name, "/")
	service, portText, hasPort := strings.Cut(rest, ":")
	port := int64(443)
	var err error
	if hasPort {
		port, err = strconv.ParseInt(portText, 10, 32)
	}
	named := found && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1035Label(service)) == 0
	if !named || err != nil || port < 1 || port > 65535 {
		return nil, fmt.Errorf("service %q must be NAMESPACE/NAME or NAMESPACE/NAME:PORT", name)
	}
	return &Endpoint{service: map[string]any{"namespace": namespace, "name": service, "port": port, "path": path}}, nil
}

// CheckBundle refuses what is no list of certificates in PEM format.
func CheckBundle(bundle []byte) error {
	found := 0
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("it has a block %q: it must have certificates only", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("read certificate %d: %w", found+1, err)
		}
		found++
	}
	if found == 0 {
		return errors.New("it has no certificate in PEM format")
	}
	return nil
}

// clientConfig returns how Karmada reaches the endpoint: by one of url and service, since Karmada refuses both.
func (e *Endpoint) clientConfig() map[string]any {
	out := map[string]any{}
	if e.service != nil {
		out["service"] = e.service
	} else {
		out["url"] = e.url
	}
	if len(e.CABundle) > 0 {
		out["caBundle"] = base64.StdEncoding.EncodeToString(e.CABundle)
	}
	return out
}

// webhookConfiguration returns the webhook for what Karmada asks the hub about a kind. Nothing in it is a wildcard, so that Karmada answers
// other kinds and operations as before.
func (k *kind) webhookConfiguration(endpoint *Endpoint) map[string]any {
	group, version, found := strings.Cut(k.apiVersion, "/")
	if !found {
		group, version = "", k.apiVersion
	}
	var operations []any
	for _, operation := range slices.Sorted(slices.Values(k.asked)) {
		operations = append(operations, operation)
	}
	return map[string]any{
		"apiVersion": APIVersion, "kind": WebhookKind, "metadata": map[string]any{"name": k.name},
		"webhooks": []any{map[string]any{
			"name": webhookName, "clientConfig": endpoint.clientConfig(), "timeoutSeconds": int64(timeoutSeconds),
			"interpreterContextVersions": []any{"v1alpha1"},
			"rules": []any{map[string]any{
				"operations": operations, "apiGroups": []any{group}, "apiVersions": []any{version}, "kinds": []any{k.kind},
			}},
		}},
	}
}
