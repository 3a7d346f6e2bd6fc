package act

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
)

// ForgetCluster gives up the copy of an Instance in a cluster that is to lose it and cannot be reached.
type ForgetCluster struct {
	Instance *v1beta1.Instance
	Cluster  string
}

// Change implements Edit.
func (f ForgetCluster) Change(context.Context, client.Client) (Change, error) {
	i := f.Instance
	if err := checkTemplate(i); err != nil {
		return Change{}, err
	}
	isMember := func(m v1beta1.MemberStatus) bool { return m.Cluster == f.Cluster }
	switch {
	case !slices.ContainsFunc(i.Status.Members, isMember):
		return Change{}, fmt.Errorf("instance %s/%s has no copy in cluster %s that the hub knows of: kubectl kudo placement show lists those "+
			"that have one", i.Namespace, i.Name, f.Cluster)
	case i.DeletionTimestamp == nil && i.IsPlacedOn(f.Cluster):
		where := "spec.placement.clusters"
		if d := i.Spec.Placement.Decision; d != nil {
			where = "the decision " + d.Name
		}
		return Change{}, fmt.Errorf("instance %s/%s is placed on cluster %s: take the cluster out of %s first", i.Namespace,
			i.Name, f.Cluster, where)
	}
	return Change{Verb: "is not waited for in cluster " + f.Cluster + " any more: what is left there, delete there", Apply: f.Apply}, nil
}

// Apply edits an Instance.
func (f ForgetCluster) Apply(i *v1beta1.Instance) {
	names := strings.FieldsFunc(i.Annotations[v1beta1.ForgetAnnotation], func(r rune) bool { return r == ',' })
	if !slices.Contains(names, f.Cluster) {
		names = append(names, f.Cluster)
	}
	metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1beta1.ForgetAnnotation, strings.Join(names, ","))
}

// Preview implements Edit.
func (f ForgetCluster) Preview(ctx context.Context, p *Previewer, change Change) (*preview.Preview, error) {
	return p.Instance(ctx, "forget", f.Instance, change.Apply)
}

// Command implements Action.
func (f ForgetCluster) Command() string {
	return commandOf("placement forget", f.Instance) + " --cluster " + f.Cluster
}
