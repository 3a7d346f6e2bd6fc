package crdcompat

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Comparer judges changes of CustomResourceDefinitions, with the custom resources of the cluster. It implements share.CRDComparer.
type Comparer struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

// NewComparer returns a Comparer that reads custom resources with a client.
func NewComparer(client dynamic.Interface, mapper meta.RESTMapper) *Comparer {
	return &Comparer{client, mapper}
}

// CheckUpdate implements share.CRDComparer.
func (c *Comparer) CheckUpdate(ctx context.Context, live, wanted *unstructured.Unstructured) error {
	old, next := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	for _, pair := range []struct {
		from *unstructured.Unstructured
		to   *apiextensionsv1.CustomResourceDefinition
	}{{live, old}, {wanted, next}} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pair.from.Object, pair.to); err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: %w", live.GetName(), err)
		}
	}
	if breaches := Compare(old, next); !breaches.Safe() {
		var parts []string
		for _, b := range breaches {
			parts = append(parts, strings.TrimSpace(b.Version+" "+b.Path+": "+b.Message))
		}
		return fmt.Errorf("the change is not safe: %s", strings.Join(parts, "; "))
	}
	findings, err := Validate(ctx, old, next, c)
	if err != nil {
		return fmt.Errorf("check whether the objects of CustomResourceDefinition %s would stay valid: %w", live.GetName(), err)
	}
	if !findings.Safe() {
		return fmt.Errorf("the change is not safe: %s", strings.TrimSpace(findings.String()))
	}
	return nil
}

// IsSuperset implements share.CRDComparer.
func (c *Comparer) IsSuperset(live, wanted *unstructured.Unstructured) bool {
	old, next := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(wanted.Object, old) != nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, next) != nil {
		return false
	}
	return Compare(old, next).Safe()
}

// List implements Lister.
func (c *Comparer) List(ctx context.Context, kind schema.GroupVersionKind, limit int64,
	token string) (*unstructured.UnstructuredList, error) {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	return c.client.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: limit, Continue: token})
}
