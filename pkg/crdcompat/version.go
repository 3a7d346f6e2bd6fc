package crdcompat

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// version compares a version of old with that of its name in new.
func (c *comparer) version(old, new *apiextensionsv1.CustomResourceDefinition, was apiextensionsv1.CustomResourceDefinitionVersion) {
	c.at = was.Name
	defer func() { c.at = "" }()
	is := find(new, was.Name)
	stored := was.Storage || slices.Contains(old.Status.StoredVersions, was.Name)
	if is == nil {
		if stored {
			c.breach("", RuleStoredVersion, "the version was removed; objects may be stored in it (status.storedVersions: %s)",
				show(old.Status.StoredVersions))
		}
		if was.Served {
			c.breach("", RuleServedVersion, "the version was served and was removed")
		}
		if !stored && !was.Served {
			c.allow("", "the version, neither served nor stored, was removed")
		}
		return
	}
	if was.Served != is.Served {
		c.decide(is.Served, "", RuleServedVersion, "served", was.Served, is.Served)
	}
	c.subresources(was.Subresources, is.Subresources)
	c.selectable(was.SelectableFields, is.SelectableFields)
	c.root(was.Schema, is.Schema)
	if a, b := restOfVersion(was), restOfVersion(*is); !equality.Semantic.DeepEqual(a, b) {
		c.decide(false, "", RuleUnrecognized, "the rest of the version", a, b)
	}
}

func restOfVersion(v apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.CustomResourceDefinitionVersion {
	v.Name, v.Served, v.Storage, v.Deprecated, v.DeprecationWarning = "", false, false, false, nil
	v.Schema, v.Subresources, v.AdditionalPrinterColumns, v.SelectableFields = nil, nil, nil, nil
	return v
}

func (c *comparer) subresources(old, new *apiextensionsv1.CustomResourceSubresources) {
	a, b := apiextensionsv1.CustomResourceSubresources{}, apiextensionsv1.CustomResourceSubresources{}
	if old != nil {
		a = *old
	}
	if new != nil {
		b = *new
	}
	if (a.Status == nil) != (b.Status == nil) {
		c.decide(false, "status", RuleSubresource, "the status subresource", present(a.Status != nil), present(b.Status != nil))
	}
	if !equality.Semantic.DeepEqual(a.Scale, b.Scale) {
		c.decide(false, "scale", RuleSubresource, "the scale subresource", a.Scale, b.Scale)
	}
	a.Status, a.Scale, b.Status, b.Scale = nil, nil, nil, nil
	if !equality.Semantic.DeepEqual(a, b) {
		c.decide(false, "", RuleUnrecognized, "other subresources", a, b)
	}
}

func present(is bool) string {
	if is {
		return "present"
	}
	return "absent"
}

func (c *comparer) selectable(old, new []apiextensionsv1.SelectableField) {
	paths := func(fields []apiextensionsv1.SelectableField) (out []string) {
		for _, f := range fields {
			out = append(out, f.JSONPath)
		}
		return out
	}
	a, b := paths(old), paths(new)
	for _, path := range missing(a, b) {
		c.breach(path, RuleSelectable, "the field could be selected by and cannot any more")
	}
	for _, path := range missing(b, a) {
		c.allow(path, "the field can be selected by")
	}
}

// addedVersion wants that objects can be read in a version that is new: nothing converts their fields without a webhook.
func (c *comparer) addedVersion(old, new *apiextensionsv1.CustomResourceDefinition, is apiextensionsv1.CustomResourceDefinitionVersion) {
	c.at = is.Name
	defer func() { c.at = "" }()
	if new.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		c.allow("", "the version is new, and a webhook converts")
		return
	}
	if was, breaches := firstNarrowing(old, &is); breaches != nil {
		first := sortBreaches(breaches)[0]
		c.breach(first.Path, RuleAddedVersion, "the version is new, nothing converts, and its schema is narrower than that of %s in %d "+
			"places; the first: %s: %s", was, len(breaches), first.Rule, first.Message)
		return
	}
	c.allow("", "the version is new")
}

// CheckStorage returns an error if objects lose fields when they are written in the storage version of a definition: nothing converts, and
// the schema of that version is narrower than that of another one in which objects may be stored.
func CheckStorage(crd *apiextensionsv1.CustomResourceDefinition) error {
	storage := find(crd, storageVersions(crd))
	if storage == nil || crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		return nil
	}
	was, breaches := firstNarrowing(crd, storage)
	if breaches == nil {
		return nil
	}
	first := sortBreaches(breaches)[0]
	return fmt.Errorf("the schema of the storage version %s is narrower than that of %s in %d places, so that objects would lose fields; the "+
		"first: %s: %s: %s: extend the schema, or add a conversion webhook", storage.Name, was, len(breaches), first.Path, first.Rule,
		first.Message)
}

// firstNarrowing returns the first version of old, other than the one given, in which objects may be stored that the given one does not
// take, and what it does not take; nil if it takes all of them.
func firstNarrowing(
	old *apiextensionsv1.CustomResourceDefinition, is *apiextensionsv1.CustomResourceDefinitionVersion,
) (string, BreakingChanges) {
	for _, was := range old.Spec.Versions {
		if was.Name == is.Name || !was.Storage && !slices.Contains(old.Status.StoredVersions, was.Name) {
			continue
		}
		within := &comparer{}
		within.root(was.Schema, is.Schema)
		if len(within.breaches) > 0 {
			return was.Name, within.breaches
		}
	}
	return "", nil
}

// root compares the schemas of a version.
func (c *comparer) root(old, new *apiextensionsv1.CustomResourceValidation) {
	var a, b *apiextensionsv1.JSONSchemaProps
	if old != nil {
		a = old.OpenAPIV3Schema
	}
	if new != nil {
		b = new.OpenAPIV3Schema
	}
	switch {
	case a == nil && b == nil:
	case a == nil || b == nil:
		c.decide(false, "", RuleType, "the schema", present(a != nil), present(b != nil))
	default:
		c.schema("", a, b)
	}
}
