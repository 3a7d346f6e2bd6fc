package preview

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/dryrun"
)

// Basis is the state of an object that a preview was decided from. It is no part of the digest: what is decided is.
type Basis struct {
	Object          string    `json:"object"`
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// noteBasis fills in what the preview was decided from, of children, too: the Instance, its OperatorVersions, and the objects that the
// plans have read.
func (p *Preview) noteBasis(edit Edit, former []*v1beta1.OperatorVersion, cluster *dryrun.Cluster) {
	add := func(name string, o client.Object) {
		if o.GetResourceVersion() != "" { // what comes with the edit has none
			p.Basis = append(p.Basis, Basis{name, o.GetUID(), o.GetResourceVersion()})
		}
	}
	if edit.Before != nil {
		add(instanceID(edit.Before), edit.Before)
	}
	versions := append(slices.Clone(former), edit.Version)
	if edit.Old != nil {
		versions = append(versions, edit.Old)
	}
	for _, version := range versions {
		id := apply.ID{GroupVersionKind: v1beta1.GroupVersion.WithKind("OperatorVersion"), NamespacedName: client.ObjectKeyFromObject(version)}
		add(id.String(), version)
	}
	for _, change := range cluster.Changes() {
		if change.Before != nil {
			add(change.ID.String(), change.Before)
		}
	}
	slices.SortFunc(p.Basis, func(a, b Basis) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.UID, b.UID), cmp.Compare(a.ResourceVersion, b.ResourceVersion))
	})
	p.Basis = slices.Compact(p.Basis)
}

func instanceID(i *v1beta1.Instance) string {
	id := apply.ID{GroupVersionKind: v1beta1.GroupVersion.WithKind("Instance"), NamespacedName: client.ObjectKeyFromObject(i)}
	return id.String()
}
