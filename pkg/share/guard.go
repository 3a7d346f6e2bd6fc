package share

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kinds whose deletion takes more along than themselves.
var (
	definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	space      = schema.GroupKind{Kind: "Namespace"}
	claim      = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

// guarded tells whether the garbage collector must never collect objects of the kind.
func guarded(gk schema.GroupKind) bool { return gk == definition || gk == space || gk == claim }

// guard is a second owner that never goes, the Namespace kube-system: with it, the garbage collector never collects a
// guarded object, whatever happens to its other owners. Finalizers alone do not stop it: a foreground deletion of the
// owner deletes what it owns while the owner's finalizer still stands.
type guard struct {
	reader client.Reader
	mu     sync.Mutex
	owner  *metav1.OwnerReference
}

const guardian = metav1.NamespaceSystem

func guards(o metav1.OwnerReference) bool {
	return o.APIVersion == "v1" && o.Kind == "Namespace" && o.Name == guardian
}

// add appends the guard to the owners of an object of a guarded kind.
func (g *guard) add(ctx context.Context, obj *unstructured.Unstructured, owners []metav1.OwnerReference) ([]metav1.OwnerReference, error) {
	if !guarded(obj.GroupVersionKind().GroupKind()) {
		return owners, nil
	}
	for _, owner := range owners {
		if guards(owner) {
			return owners, nil
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owner == nil {
		namespace := &corev1.Namespace{}
		if err := g.reader.Get(ctx, types.NamespacedName{Name: guardian}, namespace); err != nil {
			return nil, fmt.Errorf("namespace %s, which guards what must not be collected: %w", guardian, err)
		}
		g.owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: guardian, UID: namespace.UID}
	}
	return append(owners, *g.owner), nil
}
