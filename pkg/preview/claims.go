package preview

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/dryrun"
	"kudo.dev/kudo/pkg/storedversions"
)

var (
	statefulSets = appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind()
	namespaces   = schema.GroupKind{Kind: "Namespace"}
	instances    = v1beta1.GroupVersion.WithKind("Instance").GroupKind()
)

// claimPattern matches the names of the claims that a StatefulSet has.
type claimPattern struct {
	*regexp.Regexp
	// first is the number of the first replica, and replicas is how many there are.
	first, replicas int64
}

func (p claimPattern) matches(name string) bool {
	found := p.FindStringSubmatch(name)
	if found == nil {
		return false
	}
	number, err := strconv.ParseInt(found[2], 10, 64)
	return err == nil && number >= p.first && number < p.first+p.replicas
}

// claimNames returns the patterns of the claims of StatefulSets, by the name of the StatefulSet.
func claimNames(sets []*unstructured.Unstructured) map[string]claimPattern {
	out := map[string]claimPattern{}
	for _, set := range sets {
		templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
		var names []string
		for _, template := range templates {
			fields, _ := template.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "metadata", "name")
			names = append(names, regexp.QuoteMeta(name))
		}
		if len(names) == 0 {
			continue
		}
		claim := "^(" + strings.Join(names, "|") + ")-" + regexp.QuoteMeta(set.GetName()) + "-([0-9]+)$"
		p := claimPattern{Regexp: regexp.MustCompile(claim), replicas: 1}
		if replicas, found, _ := unstructured.NestedInt64(set.Object, "spec", "replicas"); found {
			p.replicas = replicas
		}
		p.first, _, _ = unstructured.NestedInt64(set.Object, "spec", "ordinals", "start")
		out[set.GetName()] = p
	}
	return out
}

// claimSize returns the size of the volume of a PersistentVolumeClaim, else the size that the claim requests; empty if neither is known.
func claimSize(claim *unstructured.Unstructured) string {
	if claim == nil {
		return ""
	}
	size, found, _ := unstructured.NestedString(claim.Object, "status", "capacity", "storage")
	if !found {
		size, _, _ = unstructured.NestedString(claim.Object, "spec", "resources", "requests", "storage")
	}
	return size
}

// noteLoss explains which data is lost with an object. If the object is deleted with its Instance, the preview lists its content, such as
// the claims of a StatefulSet, as objects of their own.
func (o *Object) noteLoss(change dryrun.Change, released bool) {
	explain := func(why string) { o.Why = strings.TrimPrefix(o.Why+"; "+why, "; ") }
	if size := claimSize(change.Before); o.isLostClaim() && size != "" {
		explain("with it a volume of " + size)
	}
	if why := lossOf(change); why != "" && !released && (o.isDeleted() || o.Effect == Modify) {
		o.Lost = true
		explain(why)
	}
}

// lossOf returns which data besides the object a write or a deletion of it destroys; empty if none. It does not check that such data
// exists.
func lossOf(change dryrun.Change) string {
	if change.Before == nil {
		return ""
	}
	deleted := change.After == nil || change.Recreated
	switch kind := change.ID.GroupKind(); {
	case deleted && kind == namespaces:
		return "all that it holds is deleted with it"
	case deleted && kind == storedversions.DefinitionKind:
		return "all objects of its kind are deleted with it"
	case kind == statefulSets && deletesClaims(change, deleted):
		return "its persistentVolumeClaimRetentionPolicy deletes claims, with their data"
	}
	return ""
}

// deletesClaims reports whether a StatefulSet has claims deleted when it is deleted, or when it is scaled down.
func deletesClaims(change dryrun.Change, deleted bool) bool {
	policy := func(set *unstructured.Unstructured, when string) bool {
		value, _, _ := unstructured.NestedString(set.Object, "spec", "persistentVolumeClaimRetentionPolicy", when)
		return value == string(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	}
	if deleted {
		return policy(change.Before, "whenDeleted")
	}
	return policy(change.After, "whenScaled") && podsOf(change.After) < podsOf(change.Before)
}

// warnOfUsedClaims warns of PersistentVolumeClaims that exist and that the StatefulSets which the runs create would use, such as those of
// an earlier Instance of the name.
func (r report) warnOfUsedClaims(ctx context.Context) {
	created := map[string][]*unstructured.Unstructured{}
	for _, id := range r.order {
		change, known := r.cluster.Find(id)
		if known && id.GroupKind() == statefulSets && change.Before == nil && change.After != nil {
			created[id.Namespace] = append(created[id.Namespace], change.After)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(created)) {
		patterns := claimNames(created[namespace])
		if len(patterns) == 0 {
			continue
		}
		mapping, err := r.mapper.RESTMapping(claims.GroupKind(), claims.Version)
		if err != nil {
			return // a cluster without the kind has none
		}
		list, err := r.metadata.Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			r.unknown("which PersistentVolumeClaims of namespace %s the StatefulSets would use: %s", namespace, err)
			continue
		}
		for i := range list.Items {
			for set, pattern := range patterns {
				if pattern.matches(list.Items[i].Name) {
					r.warn("PersistentVolumeClaim %s/%s exists: StatefulSet %s would use it, with the data that it holds", namespace,
						list.Items[i].Name, set)
				}
			}
		}
	}
}
