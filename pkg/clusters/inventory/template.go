package inventory

import (
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
)

// PlacedLabel is on each object that a hub has placed on a cluster; its value is the uid of the hub's namespace kube-system.
const PlacedLabel = "kudo.dev/placed"

// resources of the objects that are placed, by kind.
var resources = map[string]schema.GroupVersionResource{
	"Instance":        v1beta1.GroupVersion.WithResource("instances"),
	"Operator":        v1beta1.GroupVersion.WithResource("operators"),
	"OperatorVersion": v1beta1.GroupVersion.WithResource("operatorversions"),
	"Secret":          corev1.SchemeGroupVersion.WithResource("secrets"),
	"ConfigMap":       corev1.SchemeGroupVersion.WithResource("configmaps"),
}

// namespaceResource is that of namespaces, which are created and never changed.
var namespaceResource = corev1.SchemeGroupVersion.WithResource("namespaces")

// copyOf returns what a cluster gets of an Instance: spec with the parameters of the cluster and its share, and in the same object the
// template that spec comes from and the one that may be acted upon.
func copyOf(instance *v1beta1.Instance, target clusters.Target, hub types.UID) (*unstructured.Unstructured, error) {
	placed := &v1beta1.Instance{Spec: *instance.Spec.DeepCopy()}
	placed.Labels, placed.Annotations = placedMeta(instance, hub)
	placed.Annotations[v1beta1.TemplateAnnotation] = instance.Template()
	if target.Released != "" {
		placed.Annotations[v1beta1.ReleasedAnnotation] = target.Released
	}
	if placed.Spec.Parameters == nil {
		placed.Spec.Parameters = map[string]string{}
	}
	maps.Copy(placed.Spec.Parameters, target.Parameters)
	if p := instance.Spec.Placement; p != nil && p.Divide != "" && target.Share != nil {
		placed.Spec.Parameters[p.Divide] = strconv.FormatInt(*target.Share, 10)
	}
	return applied(placed, "Instance", instance)
}

// dependencyOf returns what a cluster gets of an object that an Instance needs.
func dependencyOf(obj client.Object, kind string, hub types.UID) (*unstructured.Unstructured, error) {
	placed := obj.DeepCopyObject().(client.Object)
	labels, annotations := placedMeta(obj, hub)
	placed.SetLabels(labels)
	placed.SetAnnotations(annotations)
	return applied(placed, kind, obj)
}

// placedMeta returns the labels and annotations that a copy has. Those annotations that only mean something on the hub are not among them:
// all of kudo, and what kubectl keeps.
func placedMeta(obj client.Object, hub types.UID) (labels, annotations map[string]string) {
	labels, annotations = map[string]string{}, map[string]string{}
	maps.Copy(labels, obj.GetLabels())
	labels[PlacedLabel] = string(hub)
	for key, value := range obj.GetAnnotations() {
		if domain, _, _ := strings.Cut(key, "/"); domain != v1beta1.GroupVersion.Group && key != corev1.LastAppliedConfigAnnotation {
			annotations[key] = value
		}
	}
	return labels, annotations
}

// applied returns the body of a server-side apply: no status, no null, and no metadata but name, namespace, labels and annotations.
func applied(placed client.Object, kind string, of metav1.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(placed)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	delete(content, "metadata")
	dropNulls(content)
	out := &unstructured.Unstructured{Object: content}
	out.SetAPIVersion(resources[kind].GroupVersion().String())
	out.SetKind(kind)
	out.SetNamespace(of.GetNamespace())
	out.SetName(of.GetName())
	out.SetLabels(placed.GetLabels())
	if annotations := placed.GetAnnotations(); len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	return out, nil
}

// dropNulls deletes the keys without a value, which an apply would claim.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == nil {
				delete(v, key)
				continue
			}
			dropNulls(inner)
		}
	case []any:
		for _, inner := range v {
			dropNulls(inner)
		}
	}
}
