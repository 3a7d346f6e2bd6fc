package enhance

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// ownLabels and ownAnnotations are what Enhance puts into the metadata of templates.
var (
	ownLabels      = []string{v1beta1.HeritageLabel, v1beta1.OperatorLabel, v1beta1.InstanceLabel}
	ownAnnotations = []string{v1beta1.OperatorVersionAnnotation, v1beta1.DependenciesHashAnnotation}
)

// noDependencies is the value of WithheldAnnotation for pods that read neither ConfigMaps nor Secrets.
const noDependencies = "none"

// LacksMetadata reports whether a live object has a pod template, and none of kudo's metadata in it. The label heritage does not count:
// other tools use it, too.
func LacksMetadata(live *unstructured.Unstructured) bool {
	template, ok, err := podTemplate(live)
	if err != nil || !ok {
		return false
	}
	labels, annotations := stringsOf(template, "labels"), stringsOf(template, "annotations")
	for _, key := range ownLabels[1:] {
		if _, has := labels[key]; has {
			return false
		}
	}
	for _, key := range ownAnnotations {
		if _, has := annotations[key]; has {
			return false
		}
	}
	return true
}

// WithoutTemplateMetadata returns a copy of an enhanced object whose pod template has, of what Enhance puts there, no more than the live
// object has. WithheldAnnotation of the copy holds the dependencies hash instead.
func WithoutTemplateMetadata(object, live *unstructured.Unstructured) *unstructured.Unstructured {
	out := object.DeepCopy()
	template, ok, err := podTemplate(out)
	former, found, errLive := podTemplate(live)
	if err != nil || errLive != nil || !ok || !found {
		return out
	}
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1beta1.WithheldAnnotation] = dependenciesHash(template)
	restore(template, "labels", ownLabels, stringsOf(former, "labels"))
	restore(template, "annotations", ownAnnotations, nil)
	out.SetAnnotations(annotations)
	return out
}

// WithheldHash returns what WithheldAnnotation is to hold for an enhanced object.
func WithheldHash(object *unstructured.Unstructured) string {
	template, ok, err := podTemplate(object)
	if err != nil || !ok {
		return ""
	}
	return dependenciesHash(template)
}

// SamePods reports whether two states of an object have the same pod template.
func SamePods(a, b *unstructured.Unstructured) bool {
	one, ok, err := podTemplate(a)
	other, found, errOther := podTemplate(b)
	return err == nil && errOther == nil && ok && found && equality.Semantic.DeepEqual(one.fields, other.fields)
}

// WithoutClaimMetadata returns a StatefulSet whose claim templates have, of what Enhance puts there, no more than those of the live one,
// if these have none of it: claim templates cannot be changed. The result is the object itself if there is nothing to withhold.
func WithoutClaimMetadata(object, live *unstructured.Unstructured) *unstructured.Unstructured {
	former := map[string]node{}
	for _, claim := range claimTemplates(live) {
		if _, labeled := stringsOf(claim, "labels")[v1beta1.InstanceLabel]; !labeled {
			former[claimName(claim)] = claim
		}
	}
	if len(former) == 0 {
		return object
	}
	out := object.DeepCopy()
	for _, claim := range claimTemplates(out) {
		if known, found := former[claimName(claim)]; found {
			restore(claim, "labels", ownLabels, stringsOf(known, "labels"))
		}
	}
	return out
}

// claimTemplates returns the claim templates of a StatefulSet, and none for other kinds.
func claimTemplates(object *unstructured.Unstructured) []node {
	if object.GroupVersionKind().GroupKind() != statefulSetKind {
		return nil
	}
	spec, err := rootOf(object).child("spec", refuse)
	if err != nil {
		return nil
	}
	claims, err := spec.list("volumeClaimTemplates")
	if err != nil {
		return nil
	}
	return claims
}

func claimName(claim node) string {
	name, _, _ := unstructured.NestedString(claim.fields, "metadata", "name")
	return name
}

func dependenciesHash(template node) string {
	if hash := stringsOf(template, "annotations")[v1beta1.DependenciesHashAnnotation]; hash != "" {
		return hash
	}
	return noDependencies
}

// stringsOf returns the labels or annotations of a template.
func stringsOf(template node, field string) map[string]string {
	values, _, _ := unstructured.NestedStringMap(template.fields, "metadata", field)
	return values
}

// restore gives keys of the labels or annotations of a template the values that they had, and removes those that had none. What is empty
// then goes, too.
func restore(template node, field string, keys []string, former map[string]string) {
	values := maps.Clone(stringsOf(template, field))
	for _, key := range keys {
		delete(values, key)
		if value, had := former[key]; had {
			values[key] = value
		}
	}
	metadata, err := template.child("metadata", refuse)
	if err != nil {
		return
	}
	if len(values) > 0 {
		_ = unstructured.SetNestedStringMap(metadata.fields, values, field) // a map of texts in a map
		return
	}
	if delete(metadata.fields, field); len(metadata.fields) == 0 {
		delete(template.fields, "metadata")
	}
}
