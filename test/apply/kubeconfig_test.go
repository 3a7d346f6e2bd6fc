package apply

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/test/env"
)

var _ = It("An external manager has the rights of its ServiceAccount, and no more", func() {
	t := GinkgoTB()
	account := client.ObjectKey{Namespace: kudoinit.DefaultNamespace, Name: kudoinit.ServiceAccount}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ends, err := kudoinit.Kubeconfig(context.Background(), cluster, rest.CopyConfig(cluster.Config), account, path, kudoinit.DefaultTokenDuration)
	env.Must(t, err)
	if left := time.Until(ends); left < 23*time.Hour || left > 25*time.Hour {
		t.Errorf("T37: the token is good for %s, not a day", left)
	}
	for _, name := range []string{path, kudoinit.TokenFile(path)} {
		info, err := os.Stat(name)
		env.Must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("others may read %s: %v", name, info.Mode())
		}
	}
	first, err := os.ReadFile(kudoinit.TokenFile(path))
	env.Must(t, err)
	_, err = kudoinit.RenewToken(context.Background(), cluster, account, kudoinit.TokenFile(path), kudoinit.MaxTokenDuration)
	env.Must(t, err)
	second, err := os.ReadFile(kudoinit.TokenFile(path))
	env.Must(t, err)
	if len(second) == 0 || string(first) == string(second) {
		t.Error("T37: the token was not renewed")
	}
	for _, wrong := range []time.Duration{0, time.Minute, kudoinit.MaxTokenDuration + time.Second} {
		if _, err := kudoinit.RenewToken(context.Background(), cluster, account, kudoinit.TokenFile(path), wrong); err == nil {
			t.Errorf("a token for %s is refused", wrong)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	env.Must(t, err)
	if config.Host != cluster.Config.Host || config.BearerToken != string(second) || config.BearerTokenFile != kudoinit.TokenFile(path) || config.Insecure || len(config.CertData) != 0 || len(config.KeyData) != 0 {
		t.Errorf("server %s, token %v, insecure %v, certificate of the administrator %v", config.Host, config.BearerToken != "", config.Insecure, len(config.CertData) != 0)
	}
	c, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	env.Must(t, err)
	review := &authenticationv1.SelfSubjectReview{}
	env.Must(t, c.Create(context.Background(), review))
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:kudo-system:kudo-manager"; got != want {
		t.Errorf("it is the user %s, want %s", got, want)
	}
})
