package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"kudo.dev/kudo/pkg/apierror"
)

// Exists reports whether an object exists, or one that the selector matches if the ID has no name. It reads metadata only, as the user of
// the engine, and never the mirror. An error means that this is not known: a kind that is not served, or a right that the user lacks.
func (e *Engine) Exists(ctx context.Context, id ID, selector labels.Selector) (bool, error) {
	mapping, err := e.mapper.RESTMapping(id.GroupKind(), id.Version)
	if err != nil {
		return false, err
	}
	for _, segment := range []string{id.Namespace, id.Name} {
		if problems := rest.IsValidPathSegmentName(segment); len(problems) > 0 {
			return false, fmt.Errorf("%.64q %s", segment, problems[0])
		}
	}
	var resource metadata.ResourceInterface = e.own.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if id.Namespace == "" {
			return false, fmt.Errorf("%s has a namespace: name it in the reference", id.Kind)
		}
		resource = e.own.Resource(mapping.Resource).Namespace(id.Namespace)
	}
	if id.Name == "" {
		list, err := resource.List(ctx, metav1.ListOptions{LabelSelector: selector.String(), Limit: 1})
		return err == nil && len(list.Items) > 0, err
	}
	_, err = resource.Get(ctx, id.Name, metav1.GetOptions{})
	return err == nil, apierror.IgnoreObjectNotFound(err)
}
