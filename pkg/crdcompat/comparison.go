package crdcompat

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// What happens to a definition between two sets.
const (
	Added   = "added"
	Removed = "removed" // kudo deletes no definition because a package does not name it any more
	Kept    = "kept"
)

// Definitions are CustomResourceDefinitions by name.
type Definitions map[string]*apiextensionsv1.CustomResourceDefinition

// Comparison is what two sets of definitions say of one definition.
type Comparison struct {
	Name string `json:"name"`
	// Change is one of Added, Removed and Kept.
	Change          string          `json:"change"`
	BreakingChanges BreakingChanges `json:"breakingChanges"`
	SafeChanges     []Change        `json:"safeChanges"`
	// Objects is nil unless the objects of a cluster were checked.
	Objects *Findings `json:"objects,omitempty"`
}

// Safe reports whether the definition can be replaced without breaking clients and the objects that were checked.
func (c Comparison) Safe() bool {
	return c.BreakingChanges.Safe() && (c.Objects == nil || c.Objects.Safe())
}

// CompareAll compares the definitions of equal names, in the order of names.
func CompareAll(old, new Definitions) []Comparison {
	names := map[string]bool{}
	for name := range old {
		names[name] = true
	}
	for name := range new {
		names[name] = true
	}
	all := []Comparison{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c := Comparison{Name: name, Change: Kept, BreakingChanges: BreakingChanges{}, SafeChanges: []Change{}}
		switch {
		case old[name] == nil:
			c.Change = Added
		case new[name] == nil:
			c.Change = Removed
		default:
			breaking, safe := Diff(old[name], new[name])
			c.BreakingChanges, c.SafeChanges = append(c.BreakingChanges, breaking...), append(c.SafeChanges, safe...)
		}
		all = append(all, c)
	}
	return all
}

// ValidateLive checks the objects of a cluster against a new definition, as Validate does. It returns nil if the cluster does not
// have the definition.
func ValidateLive(ctx context.Context, c ctrlclient.Reader, new *apiextensionsv1.CustomResourceDefinition) (*Findings, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := c.Get(ctx, ctrlclient.ObjectKey{Name: new.Name}, object); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	live := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, live); err != nil {
		return nil, fmt.Errorf("the CustomResourceDefinition %s of the cluster cannot be read: %w", new.Name, err)
	}
	found, err := Validate(ctx, live, new, objectLister{c})
	if err != nil {
		return nil, err
	}
	return &found, nil
}

// objectLister reads custom resources by a client.
type objectLister struct{ reader ctrlclient.Reader }

// List implements Lister.
func (l objectLister) List(ctx context.Context, kind schema.GroupVersionKind, limit int64,
	token string) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list, l.reader.List(ctx, list, ctrlclient.Limit(limit), ctrlclient.Continue(token))
}
