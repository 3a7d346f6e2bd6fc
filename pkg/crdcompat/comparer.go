package crdcompat

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Comparer judges changes of CustomResourceDefinitions, with the custom resources of the cluster. It implements share.CRDComparer.
type Comparer struct {
	client dynamic.Interface
	mapper meta.RESTMapper
	// describe returns the text of an error about custom resources that would break.
	describe func(Findings) string
}

// NewComparer returns a Comparer that reads custom resources with a client. Its errors count the custom resources that would break, and
// name none, since the reader of an error may have no right to list them.
func NewComparer(client dynamic.Interface, mapper meta.RESTMapper) *Comparer {
	return &Comparer{client, mapper, Findings.count}
}

// NewNamingComparer returns a Comparer whose errors name the custom resources that would break: its client must have the rights of
// the reader of the errors.
func NewNamingComparer(client dynamic.Interface, mapper meta.RESTMapper) *Comparer {
	return &Comparer{client, mapper, Findings.String}
}

// CheckUpdate implements share.CRDComparer.
func (c *Comparer) CheckUpdate(ctx context.Context, live, wanted *unstructured.Unstructured) error {
	_, err := c.Judge(ctx, live, wanted)
	return err
}

// Judge returns what CheckUpdate goes by, without safe changes, and its error. It reads no custom resource if the definition alone is not
// safe.
func (c *Comparer) Judge(ctx context.Context, live, wanted *unstructured.Unstructured) (Comparison, error) {
	old, next, err := parsePair(live, wanted)
	if err != nil {
		return Comparison{}, err
	}
	result := Comparison{Name: old.Name, Change: Kept, BreakingChanges: Compare(old, next)}
	if err := c.verdict(result, old); err != nil {
		return result, err
	}
	if result.Objects, err = c.validate(ctx, old, next); err != nil {
		return result, err
	}
	return result, c.verdict(result, old)
}

// Objects checks the custom resources against a new definition, whether or not the definition alone is safe.
func (c *Comparer) Objects(ctx context.Context, live, wanted *unstructured.Unstructured) (*Findings, error) {
	old, next, err := parsePair(live, wanted)
	if err != nil {
		return nil, err
	}
	return c.validate(ctx, old, next)
}

// parsePair parses the definition of the cluster and the one that is to replace it.
func parsePair(live, wanted *unstructured.Unstructured) (old, next *apiextensionsv1.CustomResourceDefinition, err error) {
	old, next = &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	if err = cmp.Or(convert(live.Object, old), convert(wanted.Object, next)); err != nil {
		return nil, nil, fmt.Errorf("CustomResourceDefinition %s: %w", live.GetName(), err)
	}
	return old, next, nil
}

func (c *Comparer) validate(ctx context.Context, old, next *apiextensionsv1.CustomResourceDefinition) (*Findings, error) {
	findings, err := Validate(ctx, old, next, c)
	if err != nil {
		return nil, fmt.Errorf("check whether the objects of CustomResourceDefinition %s would stay valid: %w", old.Name, err)
	}
	return &findings, nil
}

// verdict returns why a change is not safe: by the definition alone, or else by the custom resources, if they were read; nil if it is.
func (c *Comparer) verdict(result Comparison, old *apiextensionsv1.CustomResourceDefinition) error {
	if versions := versionsToMigrate(result.BreakingChanges, old); versions != nil {
		return &MigrationError{Definition: old.Name, Versions: versions}
	}
	var parts []string
	for n, b := range result.BreakingChanges {
		if n == maxBreakingChanges {
			parts = append(parts, fmt.Sprintf("and %d more", len(result.BreakingChanges)-n))
			break
		}
		part := strings.TrimSpace(b.Version + " " + b.Path + ": " + b.Message)
		if b.Rule == RuleServedVersion { // the package need not change
			part += ": " + b.Remedy
		}
		parts = append(parts, part)
	}
	switch {
	case len(parts) > 0:
		return &UnsafeError{strings.Join(parts, "; ")}
	case result.Objects != nil && !result.Objects.Safe():
		return &UnsafeError{strings.TrimSpace(c.describe(*result.Objects))}
	}
	return nil
}

// maxBreakingChanges is how many breaking changes an error names.
const maxBreakingChanges = 100

// UnsafeError says what the change of a CustomResourceDefinition would break.
type UnsafeError struct{ Breaks string }

// Error implements error.
func (e *UnsafeError) Error() string { return "the change is not safe: " + e.Breaks }

// MigrationError says that nothing but objects that are stored in older versions keeps a change from being safe.
type MigrationError struct {
	Definition string
	// Versions are those that the change removes.
	Versions []string
}

// Error implements error.
func (e *MigrationError) Error() string {
	return fmt.Sprintf("the change is not safe: objects of CustomResourceDefinition %s may be stored in version %s, which it removes: %s",
		e.Definition, strings.Join(e.Versions, ", "), remedy(RuleStoredVersion))
}

// StoredVersions returns the versions that the change removes.
func (e *MigrationError) StoredVersions() []string { return e.Versions }

// versionsToMigrate returns the versions that can be removed once no object is stored in them; nil if more than that is wrong. The storage
// version itself is stored for as long as it is that.
func versionsToMigrate(breaches BreakingChanges, old *apiextensionsv1.CustomResourceDefinition) (versions []string) {
	storage := storageVersions(old)
	for _, b := range breaches {
		if b.Rule != RuleStoredVersion || b.Version == storage {
			return nil
		}
		versions = append(versions, b.Version)
	}
	return versions
}

// IsSuperset implements share.CRDComparer.
func (c *Comparer) IsSuperset(live, wanted *unstructured.Unstructured) bool {
	old, next := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(wanted.Object, old) != nil ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, next) != nil {
		return false
	}
	return Compare(old, next).Safe()
}

// List implements Lister.
func (c *Comparer) List(ctx context.Context, kind schema.GroupVersionKind, limit int64,
	token string) (*unstructured.UnstructuredList, error) {
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	return c.client.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: limit, Continue: token})
}
