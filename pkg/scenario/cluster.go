package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	return &Cluster{Kubeconfig: kubeconfig, client: client, mapper: mapper}, nil
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
// whose CRD was made a moment ago is waited for.
func (c *Cluster) apply(ctx context.Context, obj *unstructured.Unstructured, namespace string) error {
	var resource dynamic.ResourceInterface
	err := patiently(ctx, meta.IsNoMatchError, func() (err error) {
		resource, err = c.resource(obj, namespace)
		return err
	})
	if err != nil {
		return fmt.Errorf("apply %s: %w", title(obj), err)
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	if obj.GetName() != "" {
		_, err = resource.Patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
	}
	if obj.GetName() == "" || apierrors.IsNotFound(err) {
		err = patiently(ctx, apierrors.IsNotFound, func() error {
			_, err := resource.Create(ctx, obj.DeepCopy(), metav1.CreateOptions{})
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("apply %s: %w", title(obj), err)
	}
	return nil
}

// patience is how long an error that passes by itself is waited for.
const patience = 10 * time.Second

// patiently tries again while an error may pass.
func patiently(ctx context.Context, passes func(error) bool, try func() error) error {
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

// Setup applies the objects of a file or folder, and waits until its CRDs are served.
func (c *Cluster) Setup(ctx context.Context, path, namespace string) error {
	objs, err := Objects(path)
	if err != nil {
		return err
	}
	for _, obj := range objs {
		if err := c.apply(ctx, obj, namespace); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if obj.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
		err := patiently(ctx, meta.IsNoMatchError, func() error {
			_, err := c.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %s is not served: %w", path, title(obj), err)
		}
	}
	return nil
}

// remove deletes what a target names, and waits until it is gone.
func (c *Cluster) remove(ctx context.Context, t Target, namespace string, timeout time.Duration) error {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": t.APIVersion, "kind": t.Kind}}
	obj.SetNamespace(t.Namespace)
	resource, err := c.resource(obj, namespace)
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", t.Kind, t.Name, err)
	}
	background := metav1.DeletePropagationBackground
	names := []string{t.Name}
	if t.Name == "" {
		list, err := resource.List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(t.Labels).String()})
		if err != nil {
			return fmt.Errorf("delete %s with labels %v: %w", t.Kind, t.Labels, err)
		}
		names = nil
		for _, item := range list.Items {
			names = append(names, item.GetName())
		}
	}
	for _, name := range names {
		err := resource.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", t.Kind, name, err)
		}
	}
	for _, name := range names {
		if err := gone(ctx, resource, name, timeout); err != nil {
			return fmt.Errorf("delete %s %s: %w", t.Kind, name, err)
		}
	}
	return nil
}

// gone waits until an object is gone.
func gone(ctx context.Context, resource dynamic.ResourceInterface, name string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		list, err := resource.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			return fmt.Errorf("is not gone after %s: %w", timeout, err)
		}
		if len(list.Items) == 0 {
			return nil
		}
		events, err := resource.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			return err
		}
		for e := range events.ResultChan() {
			if e.Type == "DELETED" {
				events.Stop()
				return nil
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("is not gone after %s: finalizers %v", timeout, list.Items[0].GetFinalizers())
		}
	}
}
