package install

import (
	"context"
	"fmt"

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
	out := clientcmdapi.NewConfig()
	out.Clusters["kudo"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, InsecureSkipTLSVerify: config.Insecure}
	out.AuthInfos["kudo"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	out.Contexts["kudo"] = &clientcmdapi.Context{Cluster: "kudo", AuthInfo: "kudo", Namespace: namespace}
	out.CurrentContext = "kudo"
	if err := clientcmd.WriteToFile(*out, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
