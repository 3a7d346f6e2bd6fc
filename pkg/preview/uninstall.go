package preview

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans/trigger"
)

// Why objects stay when an Instance is deleted.
const (
	// StaysClusterScoped is for objects that are in no namespace.
	StaysClusterScoped = "it is cluster-scoped and others may use it"
	// StaysKept is for objects that are annotated to be kept.
	StaysKept = "it is annotated to be kept: an Instance of the same name takes it over"
	// StaysUnowned is for claims that StatefulSets have made.
	StaysUnowned = "it holds data, and no Instance owns it: an Instance of the same name uses it again"
	// staysOwned is for objects that have other owners, too.
	staysOwned = "%s %s owns it, too"
)

// claims is the kind that holds data.
var claims = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")

// Uninstall returns what the deletion of an Instance would do: its cleanup plan, what would be deleted with it, and what would stay. The
// version is the one that its cleanup plan is of; nil if it does not exist.
func Uninstall(ctx context.Context, o Options, instance *v1beta1.Instance, version *v1beta1.OperatorVersion) (*Preview, error) {
	if version == nil {
		version = &v1beta1.OperatorVersion{}
	}
	c := newComputation(o, Edit{Verb: "uninstall", Before: instance, After: instance, Version: version})
	if err := c.uninstall(ctx); err != nil {
		return nil, err
	}
	c.collect()
	return c.out, c.out.seal()
}

func (c *computation) uninstall(ctx context.Context) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	c.out.Refused = nil // a spec that cannot be acted upon does not hold up a deletion
	if err := c.load(ctx); err != nil {
		return err
	}
	if _, defined := c.version.Spec.Plans[v1beta1.CleanupPlan]; defined {
		cleanup := trigger.Decision{Start: &trigger.Request{Plan: v1beta1.CleanupPlan, Cause: "uninstall"}, Baseline: c.instance.Status.Baseline}
		if err := c.follow(ctx, cleanup); err != nil {
			return err
		}
	}
	return c.release(ctx)
}

// release lets the garbage collector delete what the Instance alone owns.
func (c *computation) release(ctx context.Context) error {
	left := c.inventory
	ours := metav1.ListOptions{LabelSelector: c.ours().String()}
	mapping, err := c.Client.RESTMapper().RESTMapping(claims.GroupKind(), claims.Version)
	if err != nil {
		return err
	}
	list, err := c.Dynamic.Resource(mapping.Resource).Namespace(c.instance.Namespace).List(ctx, ours)
	if err != nil {
		c.unknown("which PersistentVolumeClaims would go or stay: %s", err)
	} else {
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(claims)
			left[apply.IDOf(&list.Items[i])] = apply.Record{UID: list.Items[i].GetUID()}
		}
	}
	for _, id := range sortedIDs(left) {
		if err := c.releaseObject(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// releaseObject decides what becomes of an object:
//
//	cluster-scoped                          stays
//	annotated to be kept                    stays
//	owned by the Instance alone             is deleted
//	owned by the Instance and others        stays
//	a claim without an owner                stays
//	owned by others                         is theirs
func (c *computation) releaseObject(ctx context.Context, id apply.ID) error {
	if id.Namespace == "" {
		c.stays(id, StaysClusterScoped)
		return nil
	}
	live, err := c.readNow(ctx, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		c.at(id, "").unknown = err.Error()
		return nil
	case live == nil:
		return nil
	case v1beta1.IsKept(live.GetAnnotations()):
		c.stays(id, StaysKept)
	case v1beta1.HasOwner(live, c.instance.UID):
		if others := v1beta1.OtherOwners(live, c.instance.UID); len(others) > 0 {
			c.stays(id, fmt.Sprintf(staysOwned, others[0].Kind, others[0].Name))
			return nil
		}
		c.at(id, "").released = true
		if id.GroupVersionKind == claims {
			c.warn("%s would be deleted with its data: --keep-claims would keep it", id)
		}
	case id.GroupVersionKind == claims && len(live.GetOwnerReferences()) == 0:
		c.stays(id, StaysUnowned)
	}
	return nil
}

// readNow reads an object as the plans of the preview would leave it; nil if there is none.
func (c *computation) readNow(ctx context.Context, id apply.ID) (*unstructured.Unstructured, error) {
	engine, err := c.engine.Resource(id.Object())
	if err != nil {
		return nil, err
	}
	return apply.GetOrNil(ctx, engine, id.Name)
}

func (c *computation) stays(id apply.ID, why string) {
	c.out.Stays = append(c.out.Stays, Stay{Object: id.String(), Why: why})
}
