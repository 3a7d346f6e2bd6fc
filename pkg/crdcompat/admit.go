package crdcompat

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Admit returns a new object as the API server would store it by a definition that it does not serve yet: pruned, and with defaults. An
// error of apierrors.IsInvalid says why the API server would refuse the object; any other, that the definition cannot be used. Webhooks are
// not asked.
func Admit(ctx context.Context, definition, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, crd); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", definition.GetName(), err)
	}
	kind := object.GroupVersionKind()
	version := find(crd, kind.Version)
	if version == nil || !version.Served {
		return nil, fmt.Errorf("CustomResourceDefinition %s: spec.versions does not serve %s", crd.Name, kind.Version)
	}
	check, err := newChecker(crd, version)
	if err != nil {
		return nil, err
	}
	out := object.DeepCopy()
	if _, err := check.normalize(out.Object); err != nil {
		return nil, apierrors.NewInvalid(kind.GroupKind(), object.GetName(), field.ErrorList{err})
	}
	if errs := check.invalid(ctx, out.Object); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind.GroupKind(), object.GetName(), errs)
	}
	return out, nil
}
