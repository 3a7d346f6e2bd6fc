package preview

import (
	"context"
	"maps"
	"regexp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var statefulSets = appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind()

// warnOfUsedClaims warns of PersistentVolumeClaims that exist and that the StatefulSets which the runs create would use, such as those of
// an earlier Instance of the name.
func (c *computation) warnOfUsedClaims(ctx context.Context) {
	created := map[string][]*unstructured.Unstructured{}
	for _, id := range c.order {
		change, known := c.cluster.Find(id)
		if known && id.GroupKind() == statefulSets && change.Before == nil && change.After != nil {
			created[id.Namespace] = append(created[id.Namespace], change.After)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(created)) {
		patterns := claimNames(created[namespace])
		if len(patterns) == 0 {
			continue
		}
		mapping, err := c.Client.RESTMapper().RESTMapping(claims.GroupKind(), claims.Version)
		if err != nil {
			return // a cluster without the kind has none
		}
		list, err := c.Metadata.Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			c.unknown("which PersistentVolumeClaims of namespace %s the StatefulSets would use: %s", namespace, err)
			continue
		}
		for i := range list.Items {
			for set, pattern := range patterns {
				if pattern.MatchString(list.Items[i].Name) {
					c.warn("PersistentVolumeClaim %s/%s exists: StatefulSet %s would use it, with the data that it holds", namespace,
						list.Items[i].Name, set)
				}
			}
		}
	}
}

// claimNames returns the patterns of the names that the claims of StatefulSets have, by the name of the StatefulSet.
func claimNames(sets []*unstructured.Unstructured) map[string]*regexp.Regexp {
	out := map[string]*regexp.Regexp{}
	for _, set := range sets {
		templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
		names := ""
		for _, template := range templates {
			fields, _ := template.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "metadata", "name")
			names += "|" + regexp.QuoteMeta(name)
		}
		if names != "" {
			out[set.GetName()] = regexp.MustCompile("^(" + names[1:] + ")-" + regexp.QuoteMeta(set.GetName()) + "-[0-9]+$")
		}
	}
	return out
}
