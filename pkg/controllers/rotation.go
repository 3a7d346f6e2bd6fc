package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// rotatorManager is the manager as cert-controller gets it. cert-controller writes the CA into every webhook
// configuration at each start and again after each change, also if the configuration holds it already.
type rotatorManager struct{ manager.Manager }

// GetClient implements cluster.Cluster.
func (m rotatorManager) GetClient() client.Client {
	return skipUnchangedClient{m.Manager.GetClient(), m.GetAPIReader()}
}

// skipUnchangedClient is a client that sends an update of a webhook configuration only if it would change something.
type skipUnchangedClient struct {
	client.Client
	// live reads the configuration, since the cache may not show yet what another client has just changed.
	live client.Reader
}

// Update implements client.Writer.
func (c skipUnchangedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	wanted, is := obj.(*unstructured.Unstructured)
	if !is {
		return c.Client.Update(ctx, obj, opts...) // the Secret, which is updated only when it is made anew
	}
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(wanted.GroupVersionKind())
	// If the configuration cannot be read, the update is sent: its error says what to do.
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(wanted), now); err == nil && equality.Semantic.DeepEqual(now.Object, wanted.Object) {
		return nil
	}
	return c.Client.Update(ctx, wanted, opts...)
}
