// Package dryrun shows what writes would do: a client of a cluster whose writes are dry runs, and whose reads show what these have
// answered, as if it had been written.
package dryrun

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/apply"
)

// Cluster is a cluster as writes would leave it. It is a client and a view for the engine of package apply. It changes nothing: each
// write is sent as a dry run, with the rights of the client, or is not sent at all (NewLocal). It may be used concurrently.
type Cluster struct {
	client dynamic.Interface
	mapper meta.RESTMapper
	// local is set if no write is sent.
	local bool
	// pruner drops fields that the schema lacks; nil unless local is set.
	pruner Pruner

	mu      sync.Mutex
	objects map[key]*object
	// order lists the objects in the order of their first use.
	order []*object
	// defined are the kinds that the writes define.
	defined map[schema.GroupVersionResource]*defined
}

// key names an object by its resource, as requests do.
type key struct {
	schema.GroupVersionResource
	namespace, name string
}

// object is what the Cluster knows of an object.
type object struct {
	// mu makes the requests for one object come one after the other.
	mu sync.Mutex
	id apply.ID
	// known is set once before and now are known.
	known bool
	// before is the object as the cluster has it, and now as the writes would leave it, or nil if it does not exist.
	before, now *unstructured.Unstructured
	// body is what the last write has sent, without what the API server keeps, or nil if there was none since the last deletion.
	body *unstructured.Unstructured
	// answer is that to the last dry run of the caller; nil if there was none.
	answer *answer
	// recreated is set if the object was deleted and written again.
	recreated bool
	// refused is what a write has sent that was refused, or nil if none was.
	refused *unstructured.Unstructured
	// lost are the fields that the last write has sent, and that the definition of a defined kind does not have.
	lost []string
}

// New returns a cluster that reads and asks with a client.
func New(client dynamic.Interface, mapper meta.RESTMapper) *Cluster {
	return &Cluster{client: client, mapper: mapper, objects: map[key]*object{}, defined: map[schema.GroupVersionResource]*defined{}}
}

// Change is what the writes would do to an object.
type Change struct {
	ID apply.ID
	// Before and After are the object before and after the writes, or nil if it does not exist.
	Before, After *unstructured.Unstructured
	// Recreated is set if the object would be deleted and written again.
	Recreated bool
	// Refused is what a write has sent that was refused, or nil if none was.
	Refused *unstructured.Unstructured
	// Body is what the last write has sent that was not refused, or nil if there was none.
	Body *unstructured.Unstructured
	// Lost are the fields of Body that are left out, since the definition that comes with the writes does not have them.
	Lost []string
}

// change returns what the writes would do to an object whose mutex is locked.
func (o *object) change() Change {
	return Change{ID: o.id, Before: o.before, After: o.now, Recreated: o.recreated, Refused: o.refused, Body: o.body, Lost: o.lost}
}

// created returns an object as a dry run would answer its creation, without what the API server adds.
func created(form *unstructured.Unstructured) *unstructured.Unstructured {
	out := form.DeepCopy()
	out.SetUID(types.UID(uuid.NewString()))
	return usable(out)
}

// recreate returns an object that a write creates after a deletion, or what a later write leaves of that.
func (o *object) recreate(form *unstructured.Unstructured) *unstructured.Unstructured {
	out := created(form)
	if o.now != nil {
		out.SetUID(o.now.GetUID())
	}
	return out
}

// forget makes the next read ask the cluster again if a write was refused since another client has written the object. It reports whether
// it does. It keeps what earlier writes of the preview have left: an object that was replaced since then stays unknown.
func (o *object) forget(err error) bool {
	if !apply.IsOutdated(err, o.before) || o.now != o.before {
		return false
	}
	o.known, o.before, o.now, o.answer = false, nil, nil, nil
	return true
}

// Changes returns all objects that were read or written, in the order of their first use.
func (c *Cluster) Changes() []Change {
	c.mu.Lock()
	all := slices.Clone(c.order)
	c.mu.Unlock()
	var out []Change
	for _, o := range all {
		o.mu.Lock()
		if o.known {
			out = append(out, o.change())
		}
		o.mu.Unlock()
	}
	return out
}

// Find returns what the writes would do to an object that was read or written, and whether it was.
func (c *Cluster) Find(id apply.ID) (Change, bool) {
	o := c.lookup(id, false)
	if o == nil {
		return Change{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.change(), o.known
}

// Load reads the objects of a kind in a namespace that a selector matches, by one LIST, so that none of them costs a request of its own.
func (c *Cluster) Load(ctx context.Context, kind schema.GroupVersionKind, namespace string, selector labels.Selector) error {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	list, err := namespaced(c.client, mapping, namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return err
	}
	for i := range list.Items {
		item := &list.Items[i]
		item.SetGroupVersionKind(kind) // items of a list need not say it
		o := c.lookup(apply.IDOf(item), true)
		o.mu.Lock()
		if !o.known {
			o.known, o.before, o.now = true, item, item
		}
		o.mu.Unlock()
	}
	return nil
}

func namespaced(client dynamic.Interface, mapping *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return client.Resource(mapping.Resource).Namespace(namespace)
	}
	return client.Resource(mapping.Resource)
}

// lookup returns what is known of an object, or nil if nothing is and it is not to be added, or if its kind is not served.
func (c *Cluster) lookup(id apply.ID, add bool) *object {
	mapping, err := c.Mapper().RESTMapping(id.GroupKind(), id.Version)
	if err != nil {
		return nil
	}
	return c.object(key{mapping.Resource, id.Namespace, id.Name}, id, add)
}

func (c *Cluster) object(k key, id apply.ID, add bool) *object {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.objects[k]
	if o == nil && add {
		o = &object{id: id}
		c.objects[k] = o
		c.order = append(c.order, o)
	}
	return o
}

// Watch implements apply.View. What Load has read, and what was written, is shown in any case.
func (c *Cluster) Watch(context.Context, ...schema.GroupVersionKind) {}

// Get implements apply.View.
func (c *Cluster) Get(id apply.ID) (live *unstructured.Unstructured, complete bool) {
	change, known := c.Find(id)
	if !known {
		return nil, false
	}
	return change.After, false
}

// RecordWrite implements apply.View: the client has recorded the write already.
func (c *Cluster) RecordWrite(*unstructured.Unstructured) {}

// UnobservedWrite implements share.View: Get shows all writes.
func (c *Cluster) UnobservedWrite(apply.ID) *unstructured.Unstructured { return nil }

// Digest implements apply.View: objects are shown with the fields that their managers own, from which the engine computes it.
func (c *Cluster) Digest(apply.ID, string) (digest string, known bool) { return "", false }

// Reader returns a reader that shows typed objects as the writes would leave them, and reads with a client what they do not touch.
func (c *Cluster) Reader(reads client.Client) client.Reader {
	return typedReader{Client: reads, cluster: c}
}

// Before returns a reader that shows typed objects as they are without the writes.
func (c *Cluster) Before(reads client.Client) client.Reader {
	return typedReader{Client: reads, cluster: c, before: true}
}

// typedReader lists the cluster as it is.
type typedReader struct {
	client.Client
	cluster *Cluster
	before  bool
}

// Get implements client.Reader.
func (r typedReader) Get(ctx context.Context, at client.ObjectKey, into client.Object, o ...client.GetOption) error {
	kind, err := r.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	change, written := r.cluster.Find(apply.ID{GroupVersionKind: kind, NamespacedName: at})
	shown := change.After
	if r.before {
		shown = change.Before
	}
	switch {
	case !written:
		return r.Client.Get(ctx, at, into, o...)
	case shown == nil:
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind)}, at.Name)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(shown.Object, into)
}
