package dryrun

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// Metadata returns a client of metadata that shows what the writes would leave, by its Get and its List.
func (c *Cluster) Metadata(reads metadata.Interface) metadata.Interface {
	return metadataClient{reads, c}
}

type metadataClient struct {
	metadata.Interface
	cluster *Cluster
}

// Resource implements metadata.Interface.
func (m metadataClient) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	getter := m.Interface.Resource(gvr)
	return metadataResource{ResourceInterface: getter, getter: getter, cluster: m.cluster, gvr: gvr}
}

// metadataResource is a resource, in a namespace if it has one.
type metadataResource struct {
	metadata.ResourceInterface
	getter    metadata.Getter
	cluster   *Cluster
	gvr       schema.GroupVersionResource
	namespace string
}

// Namespace implements metadata.Getter.
func (r metadataResource) Namespace(namespace string) metadata.ResourceInterface {
	r.ResourceInterface, r.namespace = r.getter.Namespace(namespace), namespace
	return r
}

// Get implements metadata.ResourceInterface.
func (r metadataResource) Get(ctx context.Context, name string, o metav1.GetOptions,
	subresources ...string) (*metav1.PartialObjectMetadata, error) {
	now, known := r.cluster.now(key{r.gvr, r.namespace, name})
	switch {
	case !known && r.cluster.definedKind(r.gvr) == nil:
		return r.ResourceInterface.Get(ctx, name, o, subresources...)
	case now == nil:
		return nil, apierrors.NewNotFound(r.gvr.GroupResource(), name)
	}
	return toMetadata(now)
}

// List implements metadata.ResourceInterface.
func (r metadataResource) List(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list, err := r.listRemaining(ctx, o)
	if err != nil || list.Continue != "" { // what was created follows on the last page
		return list, err
	}
	selector, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, err
	}
	for _, obj := range r.cluster.created(r.gvr, r.namespace) {
		if !selector.Matches(labels.Set(obj.GetLabels())) {
			continue
		}
		item, err := toMetadata(obj)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *item)
	}
	return list, nil
}

// listRemaining returns a page of the objects that the writes have not deleted. If the writes have deleted each object of the page, it
// returns the next page: callers take an empty page for the end of the list.
func (r metadataResource) listRemaining(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if r.cluster.definedKind(r.gvr) != nil {
		return &metav1.PartialObjectMetadataList{}, nil
	}
	for {
		list, err := r.ResourceInterface.List(ctx, o)
		if err != nil {
			return nil, err
		}
		list.Items = slices.DeleteFunc(list.Items, func(item metav1.PartialObjectMetadata) bool {
			now, known := r.cluster.now(key{r.gvr, item.Namespace, item.Name})
			return known && now == nil
		})
		if len(list.Items) > 0 || list.Continue == "" {
			return list, nil
		}
		o.Continue = list.Continue
	}
}

func toMetadata(obj *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	out := &metav1.PartialObjectMetadata{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"apiVersion": obj.GetAPIVersion(),
		"kind": obj.GetKind(), "metadata": obj.Object["metadata"]}, out)
}

// now returns an object as the writes would leave it, nil if it does not exist, and whether that is known.
func (c *Cluster) now(k key) (*unstructured.Unstructured, bool) {
	c.mu.Lock()
	o := c.objects[k]
	c.mu.Unlock()
	if o == nil {
		return nil, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now, o.known
}

// created lists the objects of a resource that only the writes would create.
func (c *Cluster) created(gvr schema.GroupVersionResource, namespace string) []*unstructured.Unstructured {
	var all []*object
	c.mu.Lock()
	for k, o := range c.objects {
		if k.GroupVersionResource == gvr && k.namespace == namespace {
			all = append(all, o)
		}
	}
	c.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, o := range all {
		o.mu.Lock()
		if o.known && o.before == nil && o.now != nil {
			out = append(out, o.now)
		}
		o.mu.Unlock()
	}
	return out
}
