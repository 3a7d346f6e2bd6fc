package testsuite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Cluster is a connection to a cluster.
type Cluster struct {
	// Kubeconfig is its file, for commands.
	Kubeconfig string
	client     dynamic.Interface
	mapper     meta.RESTMapper
	// kinds lists what leftovers are searched for among.
	kinds func() ([]servedKind, error)
}

// Connect returns a connection to the cluster of a kubeconfig.
func Connect(kubeconfig string) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, http)
	if err != nil {
		return nil, err
	}
	kinds := func() ([]servedKind, error) { return servedKinds(d) }
	return &Cluster{Kubeconfig: kubeconfig, client: client, mapper: mapper, kinds: kinds}, nil
}

// resource returns the client of an object's kind, in the given namespace if the object names none.
func (c *Cluster) resource(obj *unstructured.Unstructured, namespace string) (dynamic.ResourceInterface, error) {
	gvk := obj.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return c.client.Resource(mapping.Resource), nil
	}
	if obj.GetNamespace() != "" {
		namespace = obj.GetNamespace()
	}
	return c.client.Resource(mapping.Resource).Namespace(namespace), nil
}

// apply sends an object that exists as a JSON merge patch, so that absent fields stay, and creates it otherwise. A kind
// whose CRD was made a moment ago is waited for. What was created is returned.
func (c *Cluster) apply(ctx context.Context, obj *unstructured.Unstructured,
	namespace string) (created *unstructured.Unstructured, err error) {
	var resource dynamic.ResourceInterface
	err = retryTransient(ctx, meta.IsNoMatchError, func() (err error) {
		resource, err = c.resource(obj, namespace)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", title(obj), err)
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	patch := func() error {
		_, err := resource.Patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
		return err
	}
	if obj.GetName() != "" {
		err = patch()
	}
	if obj.GetName() == "" || apierrors.IsNotFound(err) {
		err = retryTransient(ctx, unfinished, func() (err error) {
			created, err = create(ctx, resource, obj.DeepCopy())
			return err
		})
		if apierrors.IsAlreadyExists(err) && obj.GetName() != "" {
			created, err = nil, patch()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", title(obj), err)
	}
	return created, nil
}

// createTimeout bounds a single creation.
const createTimeout = 30 * time.Second

// create creates an object. Who interrupts the run does not interrupt the request: what it has made could not be deleted
// without its answer.
func create(ctx context.Context, resource dynamic.ResourceInterface, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	return resource.Create(ctx, obj, metav1.CreateOptions{})
}

// unfinished reports whether a create failed since the namespace, its ServiceAccount or the kind is only being made.
func unfinished(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "serviceaccount")
}

// patience is how long a transient error is waited for.
const patience = 10 * time.Second

// retryTransient tries again while an error is transient.
func retryTransient(ctx context.Context, passes func(error) bool, try func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil || !passes(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Setup applies the objects of a file, or of a folder and those in it, and waits until CRDs are served.
func (c *Cluster) Setup(ctx context.Context, path, namespace string) error {
	return c.setup(ctx, path, namespace, func(*unstructured.Unstructured) bool { return true })
}

// SetupCRDs does the same with CRDs only.
func (c *Cluster) SetupCRDs(ctx context.Context, path string) error {
	return c.setup(ctx, path, "", isCRD)
}

func isCRD(obj *unstructured.Unstructured) bool { return obj.GetKind() == "CustomResourceDefinition" }

func (c *Cluster) setup(ctx context.Context, path, namespace string, wanted func(*unstructured.Unstructured) bool) error {
	objs, err := manifests(path)
	if err != nil {
		return err
	}
	for _, obj := range objs {
		if !wanted(obj) {
			continue
		}
		if _, err := c.apply(ctx, obj, namespace); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !isCRD(obj) {
			continue
		}
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
		err := retryTransient(ctx, meta.IsNoMatchError, func() error {
			_, err := c.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %s is not served: %w", path, title(obj), err)
		}
	}
	return nil
}

// remove deletes the objects that a target names, and waits until they no longer exist.
func (c *Cluster) remove(ctx context.Context, t Target, namespace string, timeout time.Duration) error {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": t.APIVersion, "kind": t.Kind}}
	obj.SetNamespace(t.Namespace)
	resource, err := c.resource(obj, namespace)
	if err != nil {
		return fmt.Errorf("delete %s: %w", t, err)
	}
	options := metav1.ListOptions{FieldSelector: "metadata.name=" + t.Name}
	if t.Name == "" {
		options = metav1.ListOptions{LabelSelector: labels.SelectorFromSet(t.Labels).String()}
	}
	list, err := resource.List(ctx, options)
	if err != nil {
		return fmt.Errorf("delete %s: %w", t, err)
	}
	background := metav1.DeletePropagationBackground
	for _, item := range list.Items {
		err := resource.Delete(ctx, item.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", t.Kind, item.GetName(), err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for i := range list.Items {
		if err := waitUntilDeleted(ctx, resource, &list.Items[i]); err != nil {
			return fmt.Errorf("delete %s %s: still exists after %s: %w", t.Kind, list.Items[i].GetName(), timeout, err)
		}
	}
	return nil
}

// String names what a target stands for.
func (t Target) String() string {
	if t.Name == "" {
		return fmt.Sprintf("%s with labels %v", t.Kind, t.Labels)
	}
	return t.Kind + " " + t.Name
}

// waitUntilDeleted waits until an object no longer exists; another object of its name does not count. An API server that fails is
// asked again.
func waitUntilDeleted(ctx context.Context, resource dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
	by := "metadata.name=" + obj.GetName()
	last := fmt.Errorf("finalizers %v", obj.GetFinalizers())
	for {
		list, err := resource.List(ctx, metav1.ListOptions{FieldSelector: by})
		if err == nil {
			if len(list.Items) == 0 || list.Items[0].GetUID() != obj.GetUID() {
				return nil
			}
			last = fmt.Errorf("finalizers %v", list.Items[0].GetFinalizers())
			if deleted(ctx, resource, metav1.ListOptions{FieldSelector: by, ResourceVersion: list.GetResourceVersion()}) {
				return nil
			}
		}
		if ctx.Err() != nil {
			return last
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// deleted watches until an object is deleted, or the watch ends.
func deleted(ctx context.Context, resource dynamic.ResourceInterface, options metav1.ListOptions) bool {
	events, err := resource.Watch(ctx, options)
	if err != nil {
		return false
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if e.Type == watch.Deleted {
			return true
		}
	}
	return false
}
