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
		return known.RESTMapping, nil
	}
	served, err := m.RESTMapper.RESTMapping(kind, versions...)
	if !meta.IsNoMatchError(err) {
		return served, err
	}
	for _, change := range m.cluster.Changes() {
		if change.Before != nil || change.After == nil || change.ID.GroupKind() != definitionKind {
			continue // objects of a definition that exists may exist, too
		}
		if mapping := apply.MappingOf(change.After, kind, versions...); mapping != nil {
			m.cluster.define(&defined{definition: change.ID, RESTMapping: mapping})
			return mapping, nil
		}
	}
	return nil, err
}

// Defines reports whether a definition that the writes create or change serves the kind and the version of an object.
func (c *Cluster) Defines(id apply.ID) bool {
	return slices.ContainsFunc(c.Changes(), func(change Change) bool {
		return change.After != nil && change.ID.GroupKind() == definitionKind &&
			(change.Before == nil || !equality.Semantic.DeepEqual(change.Before.Object["spec"], change.After.Object["spec"])) &&
			apply.MappingOf(change.After, id.GroupKind(), id.Version) != nil
	})
}

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// defined is a kind that the writes define, and that the API server does not serve.
type defined struct {
	*meta.RESTMapping
	definition apply.ID
	// admission is that of a content of the definition, of.
	admission *crdcompat.Admission
	of        *unstructured.Unstructured
}

// define notes a kind that the API server does not serve.
func (c *Cluster) define(d *defined) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.defined[d.Resource] = d
}

// isServed reports whether the definition of a kind still serves it.
func (c *Cluster) isServed(d *defined) bool {
	change, _ := c.Find(d.definition)
	return change.After != nil && apply.MappingOf(change.After, d.GroupVersionKind.GroupKind(), d.GroupVersionKind.Version) != nil
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
	admission, err := crdcompat.NewAdmission(change.After, d.GroupVersionKind.Version)
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
		if d.GroupVersionKind.GroupKind() == kind && (len(versions) == 0 || slices.Contains(versions, d.GroupVersionKind.Version)) {
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
		return d.GroupVersionKind, nil
	}
	return c.mapper.KindFor(resource)
}
