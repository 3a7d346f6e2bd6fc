package kudoinit

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// renewalWarning is how long before its expiry a certificate should have been renewed.
const renewalWarning = 7 * 24 * time.Hour

// webhooks checks their certificate, and asks for what they answer to.
func (i *inspection) webhooks(ctx context.Context) []Finding {
	if i.live.External && i.live.WebhookURL == "" {
		return []Finding{{"webhooks", Warning, "none are installed, as with an external manager without --webhook-url: wrong specs are found " +
			"by the manager, not refused", "kubectl kudo init"}}
	}
	return []Finding{i.certificate(ctx), i.probeWebhook(ctx)}
}

func (i *inspection) certificate(ctx context.Context) Finding {
	found := Finding{Check: "certificate of the webhooks", State: OK}
	fail := func(format string, args ...any) Finding {
		found.State, found.Message = Failed, fmt.Sprintf(format, args...)
		found.Remedy = fmt.Sprintf("kubectl delete secret %s -n %s, "+again+", and the manager fills in another one", webhookSecret,
			i.live.Namespace)
		if i.live.CertManager {
			found.Remedy = fmt.Sprintf("kubectl describe certificate %s -n %s", certificate, i.live.Namespace)
		}
		return found
	}
	secret := &corev1.Secret{}
	there, err := getIfPresent(ctx, i.client, secret, i.live.Namespace, webhookSecret)
	switch {
	case err != nil:
		return fail("%v", err)
	case !there:
		return fail("secret %s is missing", webhookSecret)
	}
	block, _ := pem.Decode(secret.Data["tls.crt"])
	if block == nil {
		return fail("secret %s has no certificate in tls.crt: has the manager been running?", webhookSecret)
	}
	serving, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return fail("tls.crt of secret %s: %v", webhookSecret, err)
	}
	bundles, err := i.bundles(ctx)
	if err != nil {
		return fail("%v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		if err := i.trusted(serving, bundles[name]); err != nil {
			return fail("webhook %s: %v", name, err)
		}
	}
	found.Message = "valid until " + serving.NotAfter.UTC().Format(time.RFC3339)
	if i.clock.Now().Add(renewalWarning).After(serving.NotAfter) {
		fail("ends on %s, and should have been renewed by now", serving.NotAfter.UTC().Format(time.RFC3339))
		found.State = Warning
	}
	return found
}

// trusted verifies the certificate as the apiserver does.
func (i *inspection) trusted(serving *x509.Certificate, bundle []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return fmt.Errorf("caBundle holds no certificate, so that the apiserver cannot trust the webhooks")
	}
	name := fmt.Sprintf("kudo-controller-manager-service.%s.svc", i.live.Namespace)
	if u, err := url.Parse(i.live.WebhookURL); err == nil && i.live.WebhookURL != "" {
		name = u.Hostname()
	}
	_, err := serving.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: i.clock.Now()})
	return err
}

// bundles are the certificates that the apiserver trusts, by webhook.
func (i *inspection) bundles(ctx context.Context) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, wanted := range i.wanted {
		if !isWebhook(wanted) {
			continue
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(wanted.GroupVersionKind())
		there, err := getIfPresent(ctx, i.client, live, "", wanted.GetName())
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, fmt.Errorf("%s is missing", lowerKind(wanted))
		}
		hooks, _, _ := unstructured.NestedSlice(live.Object, "webhooks")
		for _, item := range hooks {
			hook, _ := item.(map[string]any)
			text, _, _ := unstructured.NestedString(hook, "clientConfig", "caBundle")
			name, _ := hook["name"].(string)
			if out[name], err = base64.StdEncoding.DecodeString(text); err != nil {
				return nil, fmt.Errorf("caBundle of webhook %s: %w", name, err)
			}
		}
	}
	return out, nil
}

func isWebhook(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "MutatingWebhookConfiguration" || obj.GetKind() == "ValidatingWebhookConfiguration"
}

// probeWebhook creates an Instance of an absent OperatorVersion by a dry run; a webhook that answers warns of the absence.
func (i *inspection) probeWebhook(ctx context.Context) Finding {
	found := Finding{Check: "webhooks answer", State: OK}
	fail := func(state State, format string, args ...any) Finding {
		found.State, found.Message = state, fmt.Sprintf(format, args...)
		found.Remedy = "see that the manager runs, and that the apiserver reaches it on port 9443"
		return found
	}
	if !i.served("Instance") {
		return fail(Failed, "Instance is not served, so that it cannot be tried")
	}
	heard := &listener{text: "kudo-init-probe"}
	config := rest.CopyConfig(i.config)
	config.WarningHandler = heard
	c, err := client.New(config, client.Options{Scheme: i.client.Scheme(), Mapper: i.client.RESTMapper()})
	if err != nil {
		return fail(Failed, "%v", err)
	}
	instance := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kudo-init-probe"}}
	instance.Spec.OperatorVersion.Name = "kudo-init-probe"
	if err := c.Create(ctx, instance, client.DryRunAll); err != nil {
		return fail(Failed, "an Instance cannot be created: %v", err)
	}
	if !heard.heard.Load() {
		return fail(Warning, "they do not: wrong specs are found by the manager, not refused")
	}
	return found
}

// listener listens for a warning with a text.
type listener struct {
	text  string
	heard atomic.Bool
}

// HandleWarningHeader implements rest.WarningHandler.
func (l *listener) HandleWarningHeader(_ int, _ string, text string) {
	if strings.Contains(text, l.text) {
		l.heard.Store(true)
	}
}
