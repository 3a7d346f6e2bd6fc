package controllers

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"kudo.dev/kudo/pkg/atomicfile"
)

// onlySecret keeps all Secrets but the webhooks' out of the manager's cache.
func onlySecret(namespace string) cache.ByObject {
	return cache.ByObject{Namespaces: map[string]cache.Config{
		namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", WebhookSecret)},
	}}
}

// allReplicas runs on all managers, not only on the leader.
type allReplicas struct{ manager.Runnable }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (allReplicas) NeedLeaderElection() bool { return false }

// instanceValidation is the configuration of the webhook that checks Instances.
const instanceValidation = "kudo-manager-instance-validation-webhook-config"

// certificateName returns the name that the certificate of the webhooks must have: that of the host by which the API server reaches a
// manager outside of its cluster, as kubectl kudo init has written it, or that of the Service. The certificate always has localhost.
func certificateName(ctx context.Context, live client.Reader, service string) (string, error) {
	hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := live.Get(ctx, client.ObjectKey{Name: instanceValidation}, hooks)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read the host of the webhooks: %w", err)
	}
	for _, hook := range hooks.Webhooks {
		if hook.ClientConfig.URL == nil {
			continue
		}
		if u, err := url.Parse(*hook.ClientConfig.URL); err == nil && u.Hostname() != "localhost" && net.ParseIP(u.Hostname()) == nil {
			return u.Hostname(), nil
		}
	}
	return service, nil
}

// certFiles writes the certificate from the Secret to files whenever it changes.
type certFiles struct {
	cache cache.Cache
	dir   string
	// written is closed once the certificate and its key are in the folder, or nil if cert-controller reports that.
	written chan struct{}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*certFiles) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (c *certFiles) Start(ctx context.Context) error {
	informer, err := c.cache.GetInformer(ctx, &corev1.Secret{})
	if err != nil {
		return err
	}
	write := func(item any) {
		if secret, ok := item.(*corev1.Secret); ok {
			if err := c.write(secret); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "cannot write the webhooks' certificate", "folder", c.dir)
			}
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: write, UpdateFunc: func(_, item any) { write(item) }})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (c *certFiles) write(s *corev1.Secret) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"ca.crt", "tls.key", "tls.crt"} {
		content := s.Data[name]
		if len(content) == 0 {
			continue
		}
		if err := atomicfile.Write(filepath.Join(c.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	if c.written != nil && len(s.Data["tls.key"]) > 0 && len(s.Data["tls.crt"]) > 0 {
		close(c.written)
		c.written = nil
	}
	return nil
}
