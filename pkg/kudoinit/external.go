package kudoinit

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ServiceAccount is the account that the manager runs under.
const ServiceAccount = "kudo-manager"

// Kubeconfig writes a kubeconfig to a file, with which a manager outside of the cluster has the rights of the
// ServiceAccount, and no more. Its token is in a file beside it (TokenFile). It returns when the token ends.
func Kubeconfig(ctx context.Context, c client.Client, config *rest.Config, account types.NamespacedName, path string,
	duration time.Duration) (time.Time, error) {
	ends, err := RenewToken(ctx, c, account, TokenFile(path), duration)
	if err != nil {
		return ends, err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return ends, err
	}
	own := rest.AnonymousClientConfig(config)
	own.CAFile, own.BearerTokenFile = "", filepath.Base(TokenFile(path)) // the certificate was loaded
	out, err := KubeconfigOf(own, account.Namespace)
	if err != nil {
		return ends, err
	}
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		return ends, fmt.Errorf("write %s: %w", path, err)
	}
	return ends, nil
}

// KubeconfigOf returns a kubeconfig of a rest.Config, which flags, files and the environment have determined, so that other programs use
// the same cluster as the same user.
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
