package enhance

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

var (
	instanceKind    = schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "Instance"}
	statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	configMapKind   = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secretKind      = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
)

// templatePath returns the path to the pod template of a kind, nil for kinds that have none. Any version of a kind
// counts. A CronJob's own spec.template is not touched: server-side apply refuses a path that the schema lacks.
func templatePath(kind schema.GroupKind) []string {
	switch kind {
	case statefulSetKind,
		schema.GroupKind{Group: "apps", Kind: "Deployment"},
		schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"},
		schema.GroupKind{Kind: "ReplicationController"},
		schema.GroupKind{Group: "batch", Kind: "Job"}:
		return []string{"spec", "template"}
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return []string{"spec", "jobTemplate", "spec", "template"}
	default:
		return nil
	}
}

// podTemplate returns the pod template of an object; ok is false for kinds that have none.
func podTemplate(object *unstructured.Unstructured) (template node, ok bool, err error) {
	path := templatePath(object.GroupVersionKind().GroupKind())
	if path == nil {
		return node{}, false, nil
	}
	template = rootOf(object)
	for _, field := range path {
		if template, err = template.child(field, refuse); err != nil {
			return node{}, false, err
		}
	}
	return template, true, nil
}

func enhanceTemplates(object *unstructured.Unstructured, ctx Context) error {
	template, ok, err := podTemplate(object)
	if err != nil || !ok {
		return err
	}
	metadata, err := template.child("metadata", create)
	if err != nil {
		return err
	}
	if err := metadata.setStrings("labels", ctx.labelsOfPods(object)); err != nil {
		return err
	}
	version := map[string]string{v1beta1.OperatorVersionAnnotation: ctx.OperatorVersion}
	if err := metadata.setStrings("annotations", version); err != nil {
		return err
	}
	if object.GroupVersionKind().GroupKind() != statefulSetKind {
		return nil
	}
	return enhanceClaims(object, ctx)
}

// labelsOfPods are kudo's labels without those that the object's own selector wants to have another value: it would select none of its
// pods, and charts of Helm use the label heritage, too.
func (c Context) labelsOfPods(object *unstructured.Unstructured) map[string]string {
	selector, _, _ := unstructured.NestedMap(object.Object, "spec", "selector", "matchLabels")
	labels := c.labels()
	maps.DeleteFunc(labels, func(key, value string) bool {
		selected, selects := selector[key]
		return selects && selected != value
	})
	return labels
}

// enhanceClaims labels the claims that a StatefulSet makes, so that an Instance's volumes can be found.
func enhanceClaims(object *unstructured.Unstructured, ctx Context) error {
	spec, err := rootOf(object).child("spec", refuse)
	if err != nil {
		return err
	}
	claims, err := spec.list("volumeClaimTemplates")
	if err != nil {
		return err
	}
	for _, claim := range claims {
		metadata, err := claim.child("metadata", create)
		if err != nil {
			return err
		}
		if err := metadata.setStrings("labels", ctx.labels()); err != nil {
			return err
		}
	}
	return nil
}
