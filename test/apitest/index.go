package apitest

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// NewIndexedClient creates a client of objects of one kind that lists by an index only, as the maps from events to objects must: a list of
// all objects for each of as many events takes longer than a cache may take to sync.
func NewIndexedClient(kind client.Object, indexes map[string]client.IndexerFunc, objects ...client.Object) client.WithWatch {
	builder := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...)
	for name, valuesOf := range indexes {
		builder.WithIndex(kind, name, valuesOf)
	}
	return interceptor.NewClient(builder.Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if (&client.ListOptions{}).ApplyOptions(options).FieldSelector == nil {
				return errors.New("this client lists by an index only")
			}
			return c.List(ctx, list, options...)
		}})
}
