package enhance

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// hasher puts the dependencies hash on pod templates. For each ConfigMap and Secret that the pods read:
//
//	in the task   live   annotation             what is hashed
//	-----------   ----   --------------------   ---------------------------------------------
//	any           any    skip-hash-calculation  nothing: 16 zero bytes
//	yes           any                           the object of the task, enhanced
//	no            yes    last-applied, fresh    the object in the annotation
//	no            yes                           the live object
//	no            no                            nothing: 16 zero bytes
//
// sanitize makes the middle three give the same bytes for the same content. MD5 is part of the recipe that KUDO's
// packages and suites know; nothing rests on its strength. Of a Secret it would let people try out guesses who may read
// Deployments: there a keyed digest takes its place. The hash that KUDO has written stays as long as it is right: another
// one would restart the pods, and hide nothing that was not seen before.
type hasher struct {
	objects   []*unstructured.Unstructured
	namespace string
	lookup    Lookup
	live      func(object *unstructured.Unstructured) (*unstructured.Unstructured, error)
	keyed     digester
}

// digester is a digest of the text of a dependency.
type digester func(text []byte) ([md5.Size]byte, error)

type dependency struct {
	kind schema.GroupVersionKind
	name string
}

// setHash writes the hash of what an object's pods depend on. Without dependencies nothing is written.
func (h hasher) setHash(object *unstructured.Unstructured) error {
	template, ok, err := podTemplate(object)
	if err != nil || !ok {
		return err
	}
	dependencies, err := dependenciesOf(template)
	if err != nil || len(dependencies) == 0 {
		return err
	}
	hash, err := h.hash(object, dependencies, h.keyed)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(dependencies, func(d dependency) bool { return d.kind == secretKind }) {
		if hash, err = h.keepFormer(object, dependencies, hash); err != nil {
			return err
		}
	}
	metadata, err := template.child("metadata", create)
	if err != nil {
		return err
	}
	return metadata.setStrings("annotations", map[string]string{v1beta1.DependenciesHashAnnotation: hash})
}

// hash returns the hash of dependencies, those on Secrets by a digester.
func (h hasher) hash(object *unstructured.Unstructured, dependencies []dependency, secrets digester) (string, error) {
	var digests []byte
	for _, d := range dependencies {
		digest, err := h.digest(d, secrets)
		if err != nil {
			return "", fmt.Errorf("hashing %s %s, which %s depends on: %w", d.kind.Kind, d.name, describe(object), err)
		}
		digests = append(digests, digest[:]...)
	}
	sum := md5.Sum(digests)
	return hex.EncodeToString(sum[:]), nil
}

// keepFormer returns the hash that the live object has, if it is that of KUDO for the dependencies as they are, and hash otherwise.
func (h hasher) keepFormer(object *unstructured.Unstructured, dependencies []dependency, hash string) (string, error) {
	if h.live == nil {
		return hash, nil
	}
	live, err := h.live(object)
	if err != nil || live == nil {
		return hash, err
	}
	template, ok, err := podTemplate(live)
	if err != nil || !ok {
		return hash, nil // another object is there, and applying says so
	}
	annotations, _, _ := unstructured.NestedStringMap(template.fields, "metadata", "annotations")
	former := annotations[v1beta1.DependenciesHashAnnotation]
	if former == "" || former == hash {
		return hash, nil
	}
	unkeyed, err := h.hash(object, dependencies, func(text []byte) ([md5.Size]byte, error) { return md5.Sum(text), nil })
	if err != nil || unkeyed != former {
		return hash, err
	}
	return former, nil
}

// dependenciesOf lists what the recipe counts: image pull secrets, and volumes made from a ConfigMap or a Secret.
// Environment and projected volumes do not count. All are of group "" and version v1, and in one namespace, so that
// the recipe's order by group, kind, version, namespace and name is that by kind and name.
func dependenciesOf(template node) ([]dependency, error) {
	if template.fields["spec"] == nil {
		return nil, nil
	}
	spec, err := template.child("spec", refuse)
	if err != nil {
		return nil, err
	}
	pullSecrets, err := spec.list("imagePullSecrets")
	if err != nil {
		return nil, err
	}
	var found []dependency
	for _, reference := range pullSecrets {
		name, err := reference.text("name")
		if err != nil {
			return nil, err
		}
		found = append(found, dependency{secretKind, name})
	}
	volumes, err := spec.list("volumes")
	if err != nil {
		return nil, err
	}
	for _, volume := range volumes {
		ofVolume, err := dependenciesOfVolume(volume)
		if err != nil {
			return nil, err
		}
		found = append(found, ofVolume...)
	}
	found = slices.DeleteFunc(found, func(d dependency) bool { return d.name == "" })
	slices.SortFunc(found, func(a, b dependency) int {
		return cmp.Or(cmp.Compare(a.kind.Kind, b.kind.Kind), cmp.Compare(a.name, b.name))
	})
	return found, nil
}

func dependenciesOfVolume(volume node) ([]dependency, error) {
	var found []dependency
	for _, source := range []struct {
		field, name string
		kind        schema.GroupVersionKind
	}{
		{"configMap", "name", configMapKind},
		{"secret", "secretName", secretKind},
	} {
		if volume.fields[source.field] == nil {
			continue
		}
		fields, err := volume.child(source.field, refuse)
		if err != nil {
			return nil, err
		}
		name, err := fields.text(source.name)
		if err != nil {
			return nil, err
		}
		found = append(found, dependency{source.kind, name})
	}
	return found, nil
}

// digest is the digest of one dependency, zero if it is not there or says that it does not count.
func (h hasher) digest(d dependency, secrets digester) ([md5.Size]byte, error) {
	object := h.inTask(d)
	if object == nil && h.lookup != nil {
		live, err := h.lookup(d.kind, h.namespace, d.name)
		if err != nil {
			return [md5.Size]byte{}, fmt.Errorf("getting it: %w", err)
		}
		object = live
	}
	if object == nil {
		return [md5.Size]byte{}, nil
	}
	text, err := hashed(object)
	if err != nil {
		return [md5.Size]byte{}, err
	}
	switch {
	case text == nil:
		return [md5.Size]byte{}, nil
	case d.kind != secretKind:
		return md5.Sum(text), nil
	case secrets == nil:
		return [md5.Size]byte{}, errors.New("there is no key for the digests of Secrets")
	}
	return secrets(text)
}

// hashed returns what the hash covers of a ConfigMap or Secret; nil if it is to be left out.
func hashed(object *unstructured.Unstructured) ([]byte, error) {
	if _, skip := object.GetAnnotations()[v1beta1.SkipHashAnnotation]; skip {
		return nil, nil
	}
	return dump(lastApplied(object))
}

// SameDependency reports whether the hash of what pods depend on is the same for two states of a ConfigMap or Secret.
func SameDependency(a, b *unstructured.Unstructured) bool {
	first, errA := hashed(a)
	second, errB := hashed(b)
	return errA == nil && errB == nil && bytes.Equal(first, second)
}

// inTask returns the object of the task, the last one if it is rendered twice: that is the one that stays.
func (h hasher) inTask(d dependency) *unstructured.Unstructured {
	for _, object := range slices.Backward(h.objects) {
		if object.GroupVersionKind() == d.kind && object.GetName() == d.name && object.GetNamespace() == h.namespace {
			return object
		}
	}
	return nil
}

// lastApplied returns the object that KUDO says it applied, else the object itself. KUDO wrote the run's uid into
// both; if they differ, kudo has written the object since and the annotation is out of date.
func lastApplied(object *unstructured.Unstructured) *unstructured.Unstructured {
	text, ok := object.GetAnnotations()[v1beta1.LastAppliedAnnotation]
	if !ok {
		return object
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil || fields == nil {
		return object
	}
	applied := &unstructured.Unstructured{Object: fields}
	if applied.GetAnnotations()[v1beta1.PlanUIDAnnotation] != object.GetAnnotations()[v1beta1.PlanUIDAnnotation] {
		return object
	}
	return applied
}

// Dependency names a ConfigMap or Secret that pods read.
type Dependency struct{ Kind, Name string }

// Dependencies lists the ConfigMaps and Secrets that Enhance looks up for the pod template of an object, unless the task
// has them itself. An object that cannot be enhanced gives a *MalformedError.
func Dependencies(object *unstructured.Unstructured) ([]Dependency, error) {
	template, ok, err := podTemplate(object)
	if err != nil || !ok {
		return nil, err
	}
	found, err := dependenciesOf(template)
	var out []Dependency
	for _, d := range found {
		out = append(out, Dependency{d.kind.Kind, d.name})
	}
	return out, err
}
