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
	crdKind       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
	claimKind     = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

// needsGuardOwner reports whether the garbage collector must never collect objects of the kind.
func needsGuardOwner(gk schema.GroupKind) bool {
	return gk == crdKind || gk == namespaceKind || gk == claimKind
}

// guardOwner is a second owner that is never deleted, the Namespace kube-system: with it, the garbage collector never collects a guarded
// object, whatever happens to its other owners. A finalizer on the owner does not prevent this: a foreground deletion of an owner deletes
// the owned objects while the owner still has its finalizer.
type guardOwner struct {
	reader client.Reader
	mu     sync.Mutex
	owner  *metav1.OwnerReference
}

const guardian = metav1.NamespaceSystem

func guards(o metav1.OwnerReference) bool {
	return o.APIVersion == "v1" && o.Kind == "Namespace" && o.Name == guardian
}

// add appends the guard to the owners of an object of a guarded kind.
func (g *guardOwner) add(ctx context.Context, obj *unstructured.Unstructured,
	owners []metav1.OwnerReference) ([]metav1.OwnerReference, error) {
	if !needsGuardOwner(obj.GroupVersionKind().GroupKind()) {
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
			return nil, fmt.Errorf("read Namespace %s, the guard owner: %w", guardian, err)
		}
		g.owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: guardian, UID: namespace.UID}
	}
	return append(owners, *g.owner), nil
}
