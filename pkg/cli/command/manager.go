package command

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// namedClient names the command in its writes of Instances, by their field manager, so that the history can name it (P28).
type namedClient struct {
	client.WithWatch
	manager client.FieldOwner
}

// nameClient returns a client that names a command, such as "kubectl kudo plan retry". Without a command, it returns the client.
func nameClient(c client.WithWatch, command string) client.WithWatch {
	if command == "" {
		return c
	}
	words := strings.ReplaceAll(strings.TrimPrefix(command, "kubectl kudo "), " ", "/")
	return namedClient{c, client.FieldOwner(v1beta1.CommandManagerPrefix + words)}
}

// Create implements client.Client.
func (c namedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if _, is := obj.(*v1beta1.Instance); is {
		opts = append([]client.CreateOption{c.manager}, opts...)
	}
	return c.WithWatch.Create(ctx, obj, opts...)
}

// Patch implements client.Client.
func (c namedClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if _, is := obj.(*v1beta1.Instance); is {
		opts = append([]client.PatchOption{c.manager}, opts...)
	}
	return c.WithWatch.Patch(ctx, obj, patch, opts...)
}
