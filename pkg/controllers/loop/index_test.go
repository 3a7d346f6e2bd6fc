package loop

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// indexer is the part of a manager that keeps indexes. It refuses one of them.
type indexer struct {
	manager.Manager
	refused string
	values  map[string][]string
}

func (x *indexer) GetFieldIndexer() client.FieldIndexer { return x }

func (x *indexer) IndexField(_ context.Context, kind client.Object, name string, valuesOf client.IndexerFunc) error {
	if name == x.refused {
		return errors.New("there is an index of this name")
	}
	x.values[name] = valuesOf(kind)
	return nil
}

// TestIndexes: a manager gets all indexes of a kind, and the first that it refuses is an error.
func TestIndexes(t *testing.T) {
	constant := func(values ...string) client.IndexerFunc { return func(client.Object) []string { return values } }
	indexes := Indexes{"a": constant("1", "2"), "b": constant()}
	x := &indexer{values: map[string][]string{}}
	if err := indexes.Add(x, &v1beta1.Instance{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]string{"a": {"1", "2"}, "b": nil}, x.values); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	for _, name := range slices.Collect(maps.Keys(indexes)) {
		if err := indexes.Add(&indexer{refused: name, values: map[string][]string{}}, &v1beta1.Instance{}); err == nil {
			t.Errorf("the refusal of index %s is no error", name)
		}
	}
}
