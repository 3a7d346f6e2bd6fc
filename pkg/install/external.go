package install

import (
	"context"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ServiceAccount is the account that the manager runs under.
const ServiceAccount = "kudo-manager"

// tokenSeconds is how long the token of an external manager is asked to hold: a year.
const tokenSeconds = 365 * 24 * 3600

// Kubeconfig writes a kubeconfig to a file, with which a manager outside of the cluster has the rights of the
// ServiceAccount, and no more.
func Kubeconfig(ctx context.Context, c client.Client, config *rest.Config, namespace, name, path string) error {
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = namespace, name
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(tokenSeconds))}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return err
	}
	own := rest.AnonymousClientConfig(config)
	own.CAFile, own.BearerToken = "", request.Status.Token // the certificate was loaded
	out, err := KubeconfigOf(own, namespace)
	if err != nil {
		return err
	}
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// KubeconfigOf is a kubeconfig that says what flags, files and surroundings have come to, so that other programs work on
// the same cluster, as the same user.
func KubeconfigOf(c *rest.Config, namespace string) (*clientcmdapi.Config, error) {
	server, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, err
	}
	cluster := &clientcmdapi.Cluster{
		Server: server.String(), TLSServerName: c.ServerName, InsecureSkipTLSVerify: c.Insecure, CertificateAuthority: c.CAFile,
		CertificateAuthorityData: c.CAData, DisableCompression: c.DisableCompression,
	}
	if c.Proxy != nil {
		proxy, err := c.Proxy(&http.Request{URL: server})
		if err != nil {
			return nil, err
		}
		if proxy != nil {
			cluster.ProxyURL = proxy.String()
		}
	}
	user := &clientcmdapi.AuthInfo{
		ClientCertificate: c.CertFile, ClientCertificateData: c.CertData, ClientKey: c.KeyFile, ClientKeyData: c.KeyData,
		Token: c.BearerToken, TokenFile: c.BearerTokenFile, Username: c.Username, Password: c.Password,
		Impersonate: c.Impersonate.UserName, ImpersonateUID: c.Impersonate.UID, ImpersonateGroups: c.Impersonate.Groups,
		ImpersonateUserExtra: c.Impersonate.Extra, AuthProvider: c.AuthProvider, Exec: c.ExecProvider,
	}
	const name = "kudo"
	out := clientcmdapi.NewConfig()
	out.Clusters[name], out.AuthInfos[name], out.CurrentContext = cluster, user, name
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	return out, nil
}
