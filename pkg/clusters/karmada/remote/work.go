package remote

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// WorkKind is the kind of what Karmada writes into one cluster.
var WorkKind = schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"}

// WorkNamespace returns the namespace of the hub that has the Works of a cluster.
func WorkNamespace(cluster string) string { return "karmada-es-" + cluster }

// pageSize is how many Works a request lists: they hold the objects themselves.
const pageSize = 50

// FindWork returns the name of the Work that carries an Instance to a cluster, or "" if the hub has none. It returns the error of the list,
// such as a right that the user lacks.
func FindWork(ctx context.Context, hub client.Reader, instance *v1beta1.Instance, cluster string) (string, error) {
	for next := ""; ; {
		works := &unstructured.UnstructuredList{}
		works.SetGroupVersionKind(WorkKind.GroupVersion().WithKind(WorkKind.Kind + "List"))
		err := hub.List(ctx, works, client.InNamespace(WorkNamespace(cluster)), client.Limit(pageSize), client.Continue(next))
		if err != nil {
			return "", fmt.Errorf("list the Works of cluster %s: %w", cluster, err)
		}
		for n := range works.Items {
			if carries(&works.Items[n], instance) {
				return works.Items[n].GetName(), nil
			}
		}
		if next = works.GetContinue(); next == "" {
			return "", nil
		}
	}
}

// HasWork reports whether the hub has a Work of a name for a cluster. Karmada deletes the Work of a deleted Instance when the cluster has
// accepted the deletion.
func HasWork(ctx context.Context, hub client.Reader, cluster, name string) (bool, error) {
	work := &metav1.PartialObjectMetadata{}
	work.SetGroupVersionKind(WorkKind)
	err := hub.Get(ctx, types.NamespacedName{Namespace: WorkNamespace(cluster), Name: name}, work)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read Work %s of cluster %s: %w", name, cluster, err)
	}
	return true, nil
}

// carries reports whether a Work has an Instance, by its uid: another Instance may have got its name since.
func carries(work *unstructured.Unstructured, instance *v1beta1.Instance) bool {
	manifests, _, err := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
	if err != nil {
		return false
	}
	for _, m := range manifests {
		content, isObject := m.(map[string]any)
		if !isObject {
			continue
		}
		object := unstructured.Unstructured{Object: content}
		if object.GroupVersionKind().Group == v1beta1.GroupVersion.Group && object.GetKind() == "Instance" &&
			object.GetNamespace() == instance.Namespace && object.GetName() == instance.Name {
			uid := object.GetAnnotations()[v1beta1.KarmadaUIDAnnotation]
			return uid == "" || uid == string(instance.UID)
		}
	}
	return false
}
