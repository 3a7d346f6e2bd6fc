package preview

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/dryrun"
)

// Basis is the state of an object that a preview was decided from. The digest covers what was decided, and no Basis.
type Basis struct {
	Object          string    `json:"object"`
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// RecordReads returns a client that notes what it reads, for the basis of a preview. What a command reads with it before the preview, such
// as settings and explore rules, is named, too.
func RecordReads(c client.Client) client.Client { return recordReads(c) }

func recordReads(c client.Client) *basisClient {
	if recorder, ok := c.(*basisClient); ok {
		return recorder
	}
	return &basisClient{Client: c}
}

// basisClient notes what it reads.
type basisClient struct {
	client.Client
	mu    sync.Mutex
	found []Basis
}

// Get implements client.Client.
func (c *basisClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, into, o...); err != nil {
		return err
	}
	return c.note(into)
}

// List implements client.Client.
func (c *basisClient) List(ctx context.Context, into client.ObjectList, o ...client.ListOption) error {
	if err := c.Client.List(ctx, into, o...); err != nil {
		return err
	}
	return meta.EachListItem(into, func(item runtime.Object) error {
		if one, ok := item.(client.Object); ok {
			return c.note(one)
		}
		return nil
	})
}

func (c *basisClient) note(o client.Object) error {
	if o.GetResourceVersion() == "" { // an object that only the edit has, and not the cluster
		return nil
	}
	kind, err := c.GroupVersionKindFor(o)
	if err != nil {
		return err
	}
	id := apply.ID{GroupVersionKind: kind, NamespacedName: client.ObjectKeyFromObject(o)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = append(c.found, Basis{id.String(), o.GetUID(), o.GetResourceVersion()})
	return nil
}

// list returns what the edit was made from, what was read since, and the objects of the plans, of children, too.
func (c *basisClient) list(edit Edit, changes []dryrun.Change) ([]Basis, error) {
	var given []client.Object
	if edit.Before != nil {
		given = append(given, edit.Before)
	}
	for _, version := range []*v1beta1.OperatorVersion{edit.Version, edit.Old} {
		if version != nil {
			given = append(given, version)
		}
	}
	for _, change := range changes {
		if change.Before != nil {
			given = append(given, change.Before)
		}
	}
	for _, o := range given {
		if err := c.note(o); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	out := slices.Clone(c.found)
	c.mu.Unlock()
	slices.SortFunc(out, func(a, b Basis) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.UID, b.UID), cmp.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	return slices.Compact(out), nil
}
