package dryrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
)

// Client returns the client whose writes are dry runs. It applies, patches and deletes, and refuses other writes.
func (c *Cluster) Client() dynamic.Interface { return dryClient{c} }

type dryClient struct{ *Cluster }

// Resource implements dynamic.Interface.
func (c dryClient) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return resource{ResourceInterface: c.client.Resource(gvr), Cluster: c.Cluster, gvr: gvr}
}

// resource is a resource, in a namespace if it has one. What it does not define, such as List, reads the cluster as it is.
type resource struct {
	dynamic.ResourceInterface
	*Cluster
	gvr       schema.GroupVersionResource
	namespace string
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (r resource) Namespace(namespace string) dynamic.ResourceInterface {
	r.ResourceInterface, r.namespace = r.client.Resource(r.gvr).Namespace(namespace), namespace
	return r
}

// known returns what is known of an object. Its mutex is locked; the caller unlocks it.
func (r resource) known(name string) (*object, error) {
	kind, err := r.kindFor(r.gvr)
	if err != nil {
		return nil, err
	}
	o := r.object(key{r.gvr, r.namespace, name}, apply.ID{GroupVersionKind: kind,
		NamespacedName: types.NamespacedName{Namespace: r.namespace, Name: name}}, true)
	o.mu.Lock()
	return o, nil
}

// Get implements dynamic.ResourceInterface: each object is read once.
func (r resource) Get(ctx context.Context, name string, o metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error) {
	if len(subresources) > 0 {
		return nil, r.unsupported("get", name)
	}
	obj, err := r.known(name)
	if err != nil {
		return nil, err
	}
	defer obj.mu.Unlock()
	if err := r.read(ctx, obj, o); err != nil {
		return nil, err
	}
	if obj.now == nil {
		return nil, r.notFound(name)
	}
	return obj.now.DeepCopy(), nil
}

// read asks the cluster for an object that is not known yet.
func (r resource) read(ctx context.Context, obj *object, o metav1.GetOptions) error {
	if obj.known {
		return nil
	}
	if r.definedKind(r.gvr) != nil {
		obj.known = true // there can be none yet
		return nil
	}
	live, err := r.ResourceInterface.Get(ctx, obj.id.Name, o)
	if err != nil && !apierror.IsObjectNotFound(err) {
		return err
	}
	obj.known = true
	if err == nil {
		obj.before, obj.now = live, live
	}
	return nil
}

// Apply implements dynamic.ResourceInterface. What is known spares the request:
//
//	it is a dry run of the caller                     the answer of the API server, which is not shown to later reads, and is kept
//	the object exists, and the body only creates      a conflict, as the API server would answer
//	it is as a write has left it, with the same body  as that write has left it
//	it was deleted by a write, or created anew since  the body, since the API server would compare it with what it still has
//	a dry run of the caller was the same, but for     the answer that was kept, with the metadata of the body
//	kudo's own metadata
//	else                                              the answer of a dry run
func (r resource) Apply(ctx context.Context, name string, body *unstructured.Unstructured, o metav1.ApplyOptions,
	subresources ...string) (*unstructured.Unstructured, error) {
	if len(subresources) > 0 {
		return nil, r.unsupported("apply", name)
	}
	obj, err := r.known(name)
	if err != nil {
		return nil, err
	}
	defer obj.mu.Unlock()
	form := apply.Body(body)
	switch {
	case len(o.DryRun) > 0:
		return r.ask(ctx, obj, body, o)
	case obj.now != nil && body.GetResourceVersion() == apply.NoResourceVersion:
		return nil, apierrors.NewConflict(r.gvr.GroupResource(), name, fmt.Errorf("it exists"))
	}
	if now := obj.foresee(form, o); now != nil {
		obj.now, obj.body = now, form
		return now.DeepCopy(), nil
	}
	sent := body.DeepCopy()
	if obj.known && obj.before == nil { // only the writes have created it
		sent.SetResourceVersion(apply.NoResourceVersion)
		sent.SetUID("")
	}
	o.DryRun = []string{metav1.DryRunAll}
	written, err := r.send(ctx, obj, sent, o)
	if err != nil {
		if !obj.forget(err) && !apierrors.IsConflict(err) {
			obj.refused = form
		}
		return nil, err
	}
	if !obj.known && body.GetResourceVersion() != apply.NoResourceVersion {
		if err := r.read(ctx, obj, metav1.GetOptions{}); err != nil { // for what was there before
			return nil, err
		}
	}
	if obj.before != nil && written.GetResourceVersion() != obj.before.GetResourceVersion() { // another client has written it since
		obj.known = false
		if err := r.read(ctx, obj, metav1.GetOptions{}); err != nil {
			return nil, err
		}
	}
	if obj.now != nil {
		written.SetUID(obj.now.GetUID())
	}
	obj.known, obj.now, obj.body = true, usable(written), form
	return obj.now.DeepCopy(), nil
}

// foresee returns what a write of a form leaves, if that is known without a request; nil if it is not.
func (o *object) foresee(form *unstructured.Unstructured, how metav1.ApplyOptions) *unstructured.Unstructured {
	switch {
	case o.now != nil && sameForm(form, o.body):
		return o.now
	case o.known && o.before != nil && (o.now == nil || o.recreated):
		o.recreated = true
		return o.recreate(form)
	case o.known && o.now == o.before && o.answer.isFor(form, how):
		return usable(o.answer.withMetadata(form))
	}
	return nil
}

// answer is what the API server has answered to a dry run of the caller.
type answer struct {
	form    *unstructured.Unstructured
	options metav1.ApplyOptions
	written *unstructured.Unstructured
}

// ask sends a dry run of the caller, unless the same was asked before.
func (r resource) ask(ctx context.Context, obj *object, body *unstructured.Unstructured, o metav1.ApplyOptions) (*unstructured.Unstructured,
	error) {
	form := apply.Body(body)
	if obj.answer.hasOptions(o) && equality.Semantic.DeepEqual(form, obj.answer.form) {
		return obj.answer.written.DeepCopy(), nil
	}
	written, err := r.send(ctx, obj, body, o)
	if err != nil {
		obj.forget(err)
		return nil, err
	}
	obj.answer = &answer{form, o, written.DeepCopy()}
	return written, nil
}

// busyBackoff are the pauses after which a dry run is sent again: 3 seconds in all.
var busyBackoff = wait.Backoff{Steps: 7, Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1}

// send applies a body. While other clients write the object, the API server gives up and asks for another attempt.
func (r resource) send(ctx context.Context, obj *object, body *unstructured.Unstructured,
	o metav1.ApplyOptions) (written *unstructured.Unstructured, err error) {
	if r.local || r.definedKind(r.gvr) != nil {
		return r.applyLocally(ctx, obj, body, o)
	}
	if obj.before != nil && obj.now != obj.before { // the object is not read again, whoever else writes it
		body = body.DeepCopy()
		body.SetResourceVersion("")
	}
	err = retry.OnError(busyBackoff, apierrors.IsServerTimeout, func() error {
		written, err = r.ResourceInterface.Apply(ctx, body.GetName(), body, o)
		return err
	})
	return written, err
}

// isFor reports whether a write of a form has the same answer, but for kudo's own metadata.
func (a *answer) isFor(form *unstructured.Unstructured, o metav1.ApplyOptions) bool {
	return a.hasOptions(o) && equality.Semantic.DeepEqual(withoutOwnMetadata(form), withoutOwnMetadata(a.form))
}

// hasOptions reports whether there is an answer to a dry run of the same field manager.
func (a *answer) hasOptions(o metav1.ApplyOptions) bool {
	return a != nil && a.options.FieldManager == o.FieldManager && a.options.Force == o.Force
}

// withMetadata returns the answer with the labels, annotations and owners of a form.
func (a *answer) withMetadata(form *unstructured.Unstructured) *unstructured.Unstructured {
	out := a.written.DeepCopy()
	if own := form.GetLabels(); len(own) > 0 {
		out.SetLabels(labels.Merge(out.GetLabels(), own))
	}
	if own := form.GetAnnotations(); len(own) > 0 {
		out.SetAnnotations(labels.Merge(out.GetAnnotations(), own))
	}
	owners := out.GetOwnerReferences()
	for _, own := range form.GetOwnerReferences() {
		owners = append(slices.DeleteFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == own.UID }), own)
	}
	if len(owners) > 0 {
		out.SetOwnerReferences(owners)
	}
	return out
}

// withoutOwnMetadata returns a form without the owners, labels and annotations that kudo writes.
func withoutOwnMetadata(form *unstructured.Unstructured) *unstructured.Unstructured {
	out := form.DeepCopy()
	out.SetLabels(withoutOwn(out.GetLabels()))
	out.SetAnnotations(withoutOwn(out.GetAnnotations()))
	out.SetOwnerReferences(nil)
	return out
}

// withoutOwn drops the keys that kudo writes. It returns nil if there are no others.
func withoutOwn(values map[string]string) map[string]string {
	maps.DeleteFunc(values, func(key, _ string) bool { return v1beta1.IsOwnKey(key) })
	if len(values) == 0 {
		return nil
	}
	return values
}

// sameForm reports whether two bodies differ in nothing but what every run writes anew.
func sameForm(a, b *unstructured.Unstructured) bool {
	if b == nil {
		return false
	}
	first, ok := apply.Digest(a)
	second, _ := apply.Digest(b)
	return ok && first == second
}

// usable sets the condition without which the engine does not write what follows: no dry run establishes a definition.
func usable(written *unstructured.Unstructured) *unstructured.Unstructured {
	if written.GroupVersionKind().GroupKind() == definitionKind {
		established := []any{map[string]any{"type": "Established", "status": "True"}}
		if err := unstructured.SetNestedSlice(written.Object, established, "status", "conditions"); err != nil {
			return written // its status is no map: the engine says so
		}
	}
	return written
}

// Patch implements dynamic.ResourceInterface.
func (r resource) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions,
	subresources ...string) (*unstructured.Unstructured, error) {
	obj, err := r.known(name)
	if err != nil {
		return nil, err
	}
	defer obj.mu.Unlock()
	if err := r.read(ctx, obj, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	if len(subresources) > 0 || obj.now == nil || obj.before == nil {
		return nil, r.unsupported("patch", name)
	}
	o.DryRun = []string{metav1.DryRunAll}
	var written *unstructured.Unstructured
	if r.local {
		written, err = patchLocally(obj.now, kind, data)
	} else {
		written, err = r.ResourceInterface.Patch(ctx, name, kind, data, o)
	}
	if err != nil {
		obj.forget(err)
		return nil, err
	}
	obj.now, obj.body = written, nil
	return written.DeepCopy(), nil
}

// Delete implements dynamic.ResourceInterface. What it deletes does not exist any more for later reads, whatever its finalizers.
func (r resource) Delete(ctx context.Context, name string, o metav1.DeleteOptions, subresources ...string) error {
	obj, err := r.known(name)
	if err != nil {
		return err
	}
	defer obj.mu.Unlock()
	if err := r.read(ctx, obj, metav1.GetOptions{}); err != nil {
		return err
	}
	switch {
	case len(subresources) > 0:
		return r.unsupported("delete", name)
	case obj.now == nil:
		return r.notFound(name)
	}
	if obj.before != nil && !obj.recreated && !r.local {
		o.DryRun = []string{metav1.DryRunAll}
		if err := r.ResourceInterface.Delete(ctx, name, o); err != nil {
			obj.forget(err)
			return err
		}
	}
	obj.now, obj.body = nil, nil
	return nil
}

func (r resource) notFound(name string) error {
	return apierrors.NewNotFound(r.gvr.GroupResource(), name)
}

func (r resource) unsupported(verb, name string) error {
	return fmt.Errorf("%s %s %s: not supported by dry runs", verb, r.gvr.Resource, name)
}

// Create implements dynamic.ResourceInterface; it is not supported.
func (r resource) Create(_ context.Context, obj *unstructured.Unstructured, _ metav1.CreateOptions,
	_ ...string) (*unstructured.Unstructured, error) {
	return nil, r.unsupported("create", obj.GetName())
}

// Update implements dynamic.ResourceInterface; it is not supported.
func (r resource) Update(_ context.Context, obj *unstructured.Unstructured, _ metav1.UpdateOptions,
	_ ...string) (*unstructured.Unstructured, error) {
	return nil, r.unsupported("update", obj.GetName())
}

// UpdateStatus implements dynamic.ResourceInterface; it is not supported.
func (r resource) UpdateStatus(_ context.Context, obj *unstructured.Unstructured,
	_ metav1.UpdateOptions) (*unstructured.Unstructured, error) {
	return nil, r.unsupported("update the status of", obj.GetName())
}

// ApplyStatus implements dynamic.ResourceInterface; it is not supported.
func (r resource) ApplyStatus(_ context.Context, name string, _ *unstructured.Unstructured,
	_ metav1.ApplyOptions) (*unstructured.Unstructured, error) {
	return nil, r.unsupported("apply the status of", name)
}

// DeleteCollection implements dynamic.ResourceInterface; it is not supported.
func (r resource) DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error {
	return r.unsupported("delete", "collections")
}

// Watch implements dynamic.ResourceInterface; it is not supported.
func (r resource) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, r.unsupported("watch", "objects")
}
