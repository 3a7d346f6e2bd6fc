package helmrelease

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/text"
)

// Annotations of Helm on hooks; a package has phases instead.
var hookAnnotations = []string{hookKey, hookWeightKey, hookPoliciesKey}

// definitions returns the CustomResourceDefinitions in the folder crds of a chart, which Helm creates before all else.
func (r *Release) definitions(b *budget) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	files := slices.Clone(r.Chart.Files)
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for _, file := range files {
		if !strings.HasPrefix(file.Name, "crds/") || !isYAML(file.Name) {
			continue
		}
		objs, err := b.parseObjects("file "+plain(file.Name), string(file.Data))
		if err != nil {
			return nil, err
		}
		out = append(out, objs...)
	}
	return out, nil
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".json")
}

// definedScopes are the kinds that CustomResourceDefinitions among objects define, and whether they are namespaced.
func definedScopes(objs []*unstructured.Unstructured) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, obj := range objs {
		if !isDefinition(obj) {
			continue
		}
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(obj.Object, "spec", "scope")
		out[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
	}
	return out
}

func isDefinition(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

func isSecret(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// describe names an object for people.
func describe(obj *unstructured.Unstructured) string {
	return plain(obj.GetKind()) + " " + plain(obj.GetName())
}

// plain bounds a text of a release that is printed.
func plain(s string) string { return text.Plain(s, maxShown) }

// maxShown is how many bytes of a name are shown.
const maxShown = 253
