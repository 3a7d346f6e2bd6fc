package apply

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/install"
)

// TestKubeconfig: an external manager has the rights of its ServiceAccount, and no more.
func TestKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, install.Kubeconfig(context.Background(), cluster, rest.CopyConfig(cluster.Config), install.DefaultNamespace, install.ServiceAccount, path))
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("it holds a token, and others may read it: %v", info.Mode())
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	if config.Host != cluster.Config.Host || config.BearerToken == "" || config.Insecure || len(config.CertData) != 0 || len(config.KeyData) != 0 {
		t.Errorf("server %s, token %v, insecure %v, certificate of the administrator %v", config.Host, config.BearerToken != "", config.Insecure, len(config.CertData) != 0)
	}
	c, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	must(t, err)
	review := &authenticationv1.SelfSubjectReview{}
	must(t, c.Create(context.Background(), review))
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:kudo-system:kudo-manager"; got != want {
		t.Errorf("it is the user %s, want %s", got, want)
	}
}
