package apply

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"k8s.io/apimachinery/pkg/api/meta"

	"kudo.dev/kudo/pkg/apierror"
)

// objectScope is where objects of one kind are looked for together.
type objectScope struct {
	schema.GroupVersionKind
	namespace string
}

// Preflight looks for objects that must not be written, before anything is: foreign ones, and ones of unknown kinds. It
// returns what it found, or nil if the apply may continue. One object alone needs no look: its create-only apply is the guard;
// and what the inventory has with a uid was ours.
func (e *Engine) Preflight(ctx context.Context, objs []*unstructured.Unstructured, o Options) ChangeSet {
	definitions := Definitions(objs)
	missing := map[objectScope][]int{}
	var refused ChangeSet
	refuse := func(c *Change) {
		if c != nil {
			refused = append(refused, *c)
		}
	}
	for i, obj := range objs {
		if _, err := e.Resource(obj); err != nil {
			if !DefinedIn(definitions, obj) {
				c := Change{ID: IDOf(obj)}.fail(ctx, e, obj, err)
				refuse(&c)
			}
			continue
		}
		live, _ := e.mirror.Get(IDOf(obj))
		if live != nil {
			refuse(e.check(ctx, obj, live, o))
		} else if o.Known[IDOf(obj)].UID == "" {
			at := objectScope{obj.GroupVersionKind(), obj.GetNamespace()}
			missing[at] = append(missing[at], i)
		}
	}
	if len(objs) < 2 || refused != nil {
		return refused
	}
	var mu sync.Mutex
	var places errgroup.Group
	places.SetLimit(Writers)
	for at, indices := range missing {
		places.Go(func() error {
			found, err := e.existing(ctx, at, objs, indices)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				c := Change{ID: IDOf(objs[indices[0]])}.fail(ctx, e, objs[indices[0]], err)
				refuse(&c)
			}
			for i, live := range found {
				refuse(e.check(ctx, objs[i], live, o))
			}
			return nil
		})
	}
	_ = places.Wait() // what went wrong is among the refused
	return refused
}

// check returns the refusal of a foreign object, or nil. A refusal is final, and what the mirror and lists show may be
// old: so the object is read again before.
func (e *Engine) check(ctx context.Context, obj, live *unstructured.Unstructured, o Options) *Change {
	foreign := func() (bool, string) {
		if live == nil || live.GetDeletionTimestamp() != nil {
			return false, ""
		}
		claim, owner := o.Claim(ctx, live)
		return claim == Foreign, owner
	}
	if is, _ := foreign(); !is {
		return nil
	}
	c := Change{ID: IDOf(obj)}
	resource, err := e.Resource(obj)
	if err == nil {
		live, err = GetOrNil(ctx, resource, obj.GetName())
	}
	if err != nil {
		c = c.fail(ctx, e, obj, err)
		return &c
	}
	is, owner := foreign()
	if !is {
		return nil
	}
	c = c.fail(ctx, e, obj, newCollision(live, owner))
	return &c
}

// DefinedIn reports whether one of the definitions defines the object's kind, which the cluster may not serve yet.
func DefinedIn(definitions []*unstructured.Unstructured, obj *unstructured.Unstructured) bool {
	for _, crd := range definitions {
		if defines(crd, obj.GroupVersionKind().GroupKind()) {
			return true
		}
	}
	return false
}

// existing returns the metadata of those objects that are there: one GET for one object, one LIST for several, and no request for those
// whose names are known to be free.
func (e *Engine) existing(ctx context.Context, at objectScope, objs []*unstructured.Unstructured,
	indices []int) (map[int]*unstructured.Unstructured, error) {
	mapping, err := e.mapper.RESTMapping(at.GroupKind(), at.Version)
	if err != nil {
		return nil, err
	}
	if indices = e.withoutFree(mapping.Resource, objs, indices); len(indices) == 0 {
		return nil, nil
	}
	var resource metadata.ResourceInterface = e.metadata.Resource(mapping.Resource)
	if at.namespace != "" {
		resource = e.metadata.Resource(mapping.Resource).Namespace(at.namespace)
	}
	found := map[int]*unstructured.Unstructured{}
	if len(indices) == 1 {
		item, err := resource.Get(ctx, objs[indices[0]].GetName(), metav1.GetOptions{})
		if apierror.IsObjectNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		found[indices[0]] = partial(item, at)
		return found, nil
	}
	list, err := resource.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	byName := map[string]*metav1.PartialObjectMetadata{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	for _, i := range indices {
		if item := byName[objs[i].GetName()]; item != nil {
			found[i] = partial(item, at)
		}
	}
	return found, nil
}

// withoutFree leaves out the objects that do not exist: the mirror shows all that kudo has made, and not these, and their names show all
// others.
func (e *Engine) withoutFree(resource schema.GroupVersionResource, objs []*unstructured.Unstructured, indices []int) []int {
	names := e.names.look(resource)
	return slices.DeleteFunc(indices, func(i int) bool {
		id := IDOf(objs[i])
		free := names.isFree(id.NamespacedName)
		live, complete := e.mirror.Get(id)
		return free && complete && live == nil
	})
}

func partial(item *metav1.PartialObjectMetadata, at objectScope) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
	if err != nil {
		content = map[string]any{}
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(at.GroupVersionKind)
	return obj
}

// Existing returns an object that exists and that the options claim as ours, without a write: Live is nil if there is none. An object of
// another owner is a *CollisionError, and one that is being deleted a *WaitError.
func (e *Engine) Existing(ctx context.Context, id ID, o Options) (Change, error) {
	live, err := e.Live(ctx, id)
	if err != nil || live == nil {
		return Change{ID: id}, err
	}
	if live.GetDeletionTimestamp() != nil {
		return Change{ID: id}, &WaitError{fmt.Errorf("%s is being deleted%s", id, Finalizers(live))}
	}
	switch claim, owner := o.Claim(ctx, live); claim {
	case Foreign, Shared:
		return Change{ID: id}, newCollision(live, owner)
	case OwnerGone:
		return Change{ID: id}, waitForCollector(live, owner)
	}
	record, known := o.Known[id]
	if !known || record.UID != live.GetUID() {
		record = RecordOf(live, "")
		record.Fields = e.digest(live, o.Manager)
	}
	return Change{ID: id, Action: Unchanged, Live: live, Record: record}, nil
}

// waitForCollector returns the error for an object whose owner is deleted.
func waitForCollector(live *unstructured.Unstructured, owner string) error {
	return &WaitError{fmt.Errorf("%s belonged to %s, which is deleted: waiting for the garbage collector to delete the object", IDOf(live),
		owner)}
}

// Lookup reads an object for which templates have no part: from the mirror if it is whole there, else live. It returns
// nil if there is none.
func (e *Engine) Lookup(ctx context.Context, id ID) (*unstructured.Unstructured, error) {
	live, _ := e.mirror.Get(id)
	if live != nil && live.GetAnnotations()[TrimmedAnnotation] == "" {
		return live, nil
	}
	return e.Live(ctx, id)
}

// Live reads an object as it is in etcd now; it returns nil if there is none.
func (e *Engine) Live(ctx context.Context, id ID) (*unstructured.Unstructured, error) {
	resource, err := e.Resource(id.Object())
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return GetOrNil(ctx, resource, id.Name)
}

// List returns the metadata of the objects of a resource, as they are in etcd now: at most limit of them, from where the
// token of the page before points; the list holds the token of the next one.
func (e *Engine) List(ctx context.Context, resource schema.GroupVersionResource, namespace string, limit int64,
	token string) (*metav1.PartialObjectMetadataList, error) {
	return e.metadata.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: limit, Continue: token})
}

// ListContent lists objects of a namespace with their content, as the user of the engine. The options bound their number.
func (e *Engine) ListContent(ctx context.Context, resource schema.GroupVersionResource, namespace string,
	options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return e.client.Resource(resource).Namespace(namespace).List(ctx, options)
}
