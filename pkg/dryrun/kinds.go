package dryrun

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/crdcompat"
)

// Mapper returns a mapper that knows the kinds of the cluster as the writes would leave it: those that are served, and those of
// CustomResourceDefinitions that the writes create.
func (c *Cluster) Mapper() meta.RESTMapper { return mapper{c.mapper, c} }

type mapper struct {
	meta.RESTMapper
	cluster *Cluster
}

// RESTMapping implements meta.RESTMapper.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if known := m.cluster.findDefined(kind, versions); known != nil && m.cluster.isServed(known) {
		return known.mapping(), nil
	}
	served, err := m.RESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) {
		return served, err
	}
	for _, change := range m.cluster.Changes() {
		if change.Before != nil || change.After == nil || change.ID.GroupKind() != definitionKind {
			continue // objects of a definition that exists may exist, too
		}
		if defined := newDefined(change.After, kind, versions); defined != nil {
			defined.definition = change.ID
			m.cluster.define(defined)
			return defined.mapping(), nil
		}
	}
	return nil, err
}

// Defines reports whether a definition that the writes create or change serves the kind and the version of an object.
func (c *Cluster) Defines(id apply.ID) bool {
	return slices.ContainsFunc(c.Changes(), func(change Change) bool {
		return change.After != nil && change.ID.GroupKind() == definitionKind &&
			(change.Before == nil || !equality.Semantic.DeepEqual(change.Before.Object["spec"], change.After.Object["spec"])) &&
			newDefined(change.After, id.GroupKind(), []string{id.Version}) != nil
	})
}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// defined is a kind that the writes define, and that the API server does not serve.
type defined struct {
	definition apply.ID
	kind       schema.GroupVersionKind
	resource   schema.GroupVersionResource
	scope      meta.RESTScope

	// admission is that of a content of the definition, of.
	admission *crdcompat.Admission
	of        *unstructured.Unstructured
}

// newDefined returns a kind by its definition, in the first of the versions that is served, or in any if none is named; nil
// if the definition is of another kind or serves none.
func newDefined(definition *unstructured.Unstructured, kind schema.GroupKind, versions []string) *defined {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(definition.Object, append([]string{"spec"}, fields...)...)
		return value
	}
	if text("group") != kind.Group || text("names", "kind") != kind.Kind {
		return nil
	}
	list, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, item := range list {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] != true || len(versions) > 0 && !slices.Contains(versions, name) {
			continue
		}
		gv := schema.GroupVersion{Group: kind.Group, Version: name}
		out := &defined{kind: gv.WithKind(kind.Kind), resource: gv.WithResource(text("names", "plural")), scope: meta.RESTScopeNamespace}
		if text("scope") == "Cluster" {
			out.scope = meta.RESTScopeRoot
		}
		return out
	}
	return nil
}

func (d *defined) mapping() *meta.RESTMapping {
	return &meta.RESTMapping{Resource: d.resource, GroupVersionKind: d.kind, Scope: d.scope}
}

// define notes a kind that the API server does not serve.
func (c *Cluster) define(d *defined) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.defined[d.resource] = d
}

// isServed reports whether the definition of a kind still serves it.
func (c *Cluster) isServed(d *defined) bool {
	change, _ := c.Find(d.definition)
	return change.After != nil && newDefined(change.After, d.kind.GroupKind(), []string{d.kind.Version}) != nil
}

// admission returns the admission of a kind by its definition as the writes have left it.
func (c *Cluster) admission(d *defined) (*crdcompat.Admission, error) {
	change, _ := c.Find(d.definition)
	if change.After == nil {
		return nil, fmt.Errorf("%s does not exist any more", d.definition)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.of == change.After {
		return d.admission, nil
	}
	admission, err := crdcompat.NewAdmission(change.After, d.kind.Version)
	if err == nil {
		d.admission, d.of = admission, change.After
	}
	return admission, err
}

// findDefined returns a kind that was found to be defined by the writes alone; nil if there is none.
func (c *Cluster) findDefined(kind schema.GroupKind, versions []string) *defined {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.defined {
		if d.kind.GroupKind() == kind && (len(versions) == 0 || slices.Contains(versions, d.kind.Version)) {
			return d
		}
	}
	return nil
}

// IsDefined reports whether the kind of an object is defined by the writes alone, so that the object was checked in the process.
func (c *Cluster) IsDefined(id apply.ID) bool {
	return c.findDefined(id.GroupKind(), []string{id.Version}) != nil
}

// definedKind returns the kind of a resource that only the writes define, or nil if the API server serves it.
func (c *Cluster) definedKind(resource schema.GroupVersionResource) *defined {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.defined[resource]
}

// kindFor returns the kind of a resource.
func (c *Cluster) kindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	if d := c.definedKind(resource); d != nil {
		return d.kind, nil
	}
	return c.mapper.KindFor(resource)
}
