package loop

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Indexes are the indexes of one kind, by the names that lists use as fields. A function that maps an event to objects must use an index: a
// list of all objects for each of many watch events, such as those of the ServiceAccounts when the manager starts, takes longer than a
// cache may take to sync.
type Indexes map[string]client.IndexerFunc

// Add adds the indexes to the cache of a manager.
func (indexes Indexes) Add(mgr manager.Manager, kind client.Object) error {
	for name, valuesOf := range indexes {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), kind, name, valuesOf); err != nil {
			return err
		}
	}
	return nil
}
