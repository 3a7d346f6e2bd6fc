package kudoinit

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// countedObjects is how many objects of a definition are counted.
const countedObjects = 500

// count says how many objects a definition of kudo's has, and reports whether it has any, or may have.
func (r *Remover) count(ctx context.Context, definition *unstructured.Unstructured) (held string, some bool) {
	n, what := 0, ""
	switch definition.GetName() {
	case instancesCRD:
		n, what = len(r.held.instances), "Instances"
	case "installations.kudo.dev":
		n, what = len(r.held.installations), "Installations"
	case "operatorversions.kudo.dev":
		n, what = len(r.held.versions), "OperatorVersions"
	default:
		return r.countOther(ctx, definition)
	}
	return fmt.Sprintf("%d %s", n, what), n > 0
}

// countOther lists the objects of a definition in the first version that is served.
func (r *Remover) countOther(ctx context.Context, definition *unstructured.Unstructured) (held string, some bool) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, crd) != nil {
		return "all objects of its kind", true
	}
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
	if at < 0 {
		return "all objects of its kind", true
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[at].Name,
		Kind: crd.Spec.Names.ListKind})
	if err := r.Client.List(ctx, list, client.Limit(countedObjects)); err != nil {
		return fmt.Sprintf("all %s, which cannot be listed: %s", crd.Spec.Names.Kind, err), true
	}
	number := strconv.Itoa(len(list.Items))
	if list.Continue != "" {
		number = "more than " + number
	}
	return fmt.Sprintf("%s objects of kind %s", number, crd.Spec.Names.Kind), len(list.Items) > 0
}
