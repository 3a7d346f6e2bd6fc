package crdtarball

import (
	"context"
	"crypto/tls"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Keys of a Secret that a source names.
const (
	proxyUsernameKey = "proxyUsername"
	proxyPasswordKey = "proxyPassword"
	tokenKey         = "token"
)

// credentials are what a Secret holds for a source.
type credentials struct {
	username, password, token    string
	proxyUsername, proxyPassword string
	certificate                  *tls.Certificate
	// docker is the text of a pull secret.
	docker []byte
}

// readCredentials reads the Secret that a source names; without one, there are no credentials.
func readCredentials(ctx context.Context, secrets Secrets, namespace string, ref *v1beta1.SecretReference) (credentials, error) {
	if ref == nil {
		return credentials{}, nil
	}
	if secrets == nil {
		return credentials{}, fail(ReasonCredentials, "the Secret %s/%s is needed, but this command cannot read Secrets", namespace, ref.Name)
	}
	secret, err := secrets.Secret(ctx, namespace, ref.Name)
	if err != nil {
		return credentials{}, unreadable(err, "Secret", namespace, ref.Name)
	}
	c := credentials{
		username: string(secret.Data[corev1.BasicAuthUsernameKey]), password: string(secret.Data[corev1.BasicAuthPasswordKey]),
		token: string(secret.Data[tokenKey]), docker: secret.Data[corev1.DockerConfigJsonKey],
		proxyUsername: string(secret.Data[proxyUsernameKey]), proxyPassword: string(secret.Data[proxyPasswordKey]),
	}
	certificate, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(certificate) > 0 || len(key) > 0 {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return credentials{}, fail(ReasonCredentials, "the Secret %s/%s: tls.crt and tls.key are no matching certificate and key in PEM",
				namespace, ref.Name)
		}
		c.certificate = &pair
	}
	switch {
	case c.token != "" && c.username != "":
		return credentials{}, fail(ReasonCredentials, "the Secret %s/%s has both username and token: remove one of them", namespace, ref.Name)
	case c.token == "" && c.username == "" && c.certificate == nil && c.proxyUsername == "" && len(c.docker) == 0:
		return credentials{}, fail(ReasonCredentials, "the Secret %s/%s has none of the keys username with password, token, tls.crt with "+
			"tls.key, proxyUsername with proxyPassword, .dockerconfigjson", namespace, ref.Name)
	}
	return c, nil
}

// unreadable says that an object of the cluster cannot be read.
func unreadable(err error, kind, namespace, name string) *Error {
	e := fail(ReasonCredentials, "reading the %s %s/%s: %w", kind, namespace, name, err)
	if apierrors.IsNotFound(err) {
		e = fail(ReasonCredentials, "the %s %s/%s does not exist: create it in that namespace: %w", kind, namespace, name, err)
	}
	e.Temporary = !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err)
	return e
}
