package kudoinit

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Authorities returns the certificates by which the API server trusts kudo's webhooks, or nil if there are no webhooks. It needs the right
// to get the ValidatingWebhookConfiguration, and reads no Secret.
func Authorities(ctx context.Context, c client.Client) ([]*x509.Certificate, error) {
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	found, err := getIfPresent(ctx, c, config, "", validating)
	if err != nil || !found || len(config.Webhooks) == 0 {
		return nil, err
	}
	var out []*x509.Certificate
	for rest := config.Webhooks[0].ClientConfig.CABundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out, nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("caBundle of ValidatingWebhookConfiguration %s: %w", validating, err)
		}
		out = append(out, certificate)
	}
}
