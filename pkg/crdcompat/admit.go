package crdcompat

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Admission admits objects by one version of a definition that the API server does not serve yet, as the API server would. It asks no
// webhook.
type Admission struct {
	check *checker
	// hasStatus is set if status is a subresource, which other writes do not change.
	hasStatus bool
	// defaultBytes is how long the defaults of the schema are in all.
	defaultBytes int
}

// maxDefaults bounds how many bytes the defaults of an object may take if each of its values had all of them.
const maxDefaults = 256 << 20

// NewAdmission returns the admission of a version of a definition. An error says that the API server would refuse the definition, or does
// not serve the version.
func NewAdmission(definition *unstructured.Unstructured, version string) (*Admission, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, crd); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", definition.GetName(), err)
	}
	found := find(crd, version)
	if found == nil || !found.Served {
		return nil, fmt.Errorf("CustomResourceDefinition %s: spec.versions does not serve %s", crd.Name, version)
	}
	check, err := newChecker(crd, found, true)
	if err != nil {
		return nil, err
	}
	return &Admission{check, found.Subresources != nil && found.Subresources.Status != nil, defaultBytes(check.structural)}, nil
}

// Admit returns an object as the API server would store it, with its defaults, and which of its fields are left out. old is
// what it replaces, or nil if it is new. An error of apierrors.IsInvalid says why the API server would refuse the object;
// any other, that this is not known.
func (a *Admission) Admit(ctx context.Context, object, old *unstructured.Unstructured) (stored *unstructured.Unstructured, lost []string,
	err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if a.defaultBytes*countValues(object.Object) > maxDefaults {
		return nil, nil, errors.New("the object is too large to be checked here: its definition has defaults for each of its values")
	}
	invalid := func(errs field.ErrorList) error {
		return apierrors.NewInvalid(object.GroupVersionKind().GroupKind(), object.GetName(), errs)
	}
	for _, problem := range validation.IsDNS1123Subdomain(object.GetName()) {
		return nil, nil, invalid(field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), object.GetName(), problem)})
	}
	stored = object.DeepCopy()
	if a.hasStatus {
		delete(stored.Object, "status")
	}
	lost, failed := a.check.normalize(stored.Object)
	if failed != nil {
		return nil, nil, invalid(field.ErrorList{failed})
	}
	var before any // not a map that is nil
	if old != nil {
		before = old.Object
	}
	if errs := a.check.invalid(ctx, stored.Object, before); len(errs) > 0 {
		return nil, nil, invalid(errs)
	}
	return stored, lost, nil
}

// defaultBytes is how long the defaults of a schema are in all.
func defaultBytes(s *structuralschema.Structural) int {
	if s == nil {
		return 0
	}
	n := 0
	if s.Default.Object != nil {
		text, err := json.Marshal(s.Default.Object)
		if err != nil {
			return maxDefaults
		}
		n = len(text)
	}
	for name := range s.Properties {
		property := s.Properties[name]
		n += defaultBytes(&property)
	}
	if s.AdditionalProperties != nil {
		n += defaultBytes(s.AdditionalProperties.Structural)
	}
	return n + defaultBytes(s.Items)
}

func countValues(value any) int {
	n := 1
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			n += countValues(child)
		}
	case []any:
		for _, child := range v {
			n += countValues(child)
		}
	}
	return n
}
