package act

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/share"
)

// Uninstall deletes an Instance, after its cleanup plan.
type Uninstall struct {
	Instance *v1beta1.Instance
	// KeepClaims is set if the PersistentVolumeClaims of the Instance are to stay.
	KeepClaims bool
}

// Preview asks the cluster what the deletion would do.
func (u Uninstall) Preview(ctx context.Context, p *Previewer) (*preview.Preview, error) {
	return p.uninstall(ctx, u.Instance, u.KeepClaims)
}

// Delete deletes the Instance, and keeps before what is to be kept. If it is locked, the Instance must be as it was read when that begins.
// A deletion that is refused keeps nothing: it is tried by a dry run first, where something is to be kept.
func (u Uninstall) Delete(ctx context.Context, c client.Client, effects *Effects, locked bool) error {
	uid := u.Instance.UID
	background, only := client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid}
	if locked {
		only.ResourceVersion = &u.Instance.ResourceVersion
	}
	if len(effects.patches) > 0 {
		if err := u.explain(c.Delete(ctx, u.Instance, background, only, client.DryRunAll)); err != nil {
			return err
		}
		if err := effects.keep(ctx, c); err != nil {
			return err
		}
		only.ResourceVersion = nil // a refusal now would leave what is kept without its owner
	}
	return u.explain(c.Delete(ctx, u.Instance, background, only))
}

// explain names the Instance in an error of its deletion.
func (u Uninstall) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("instance %s/%s: %w", u.Instance.Namespace, u.Instance.Name, err)
}

// Command implements Action.
func (u Uninstall) Command() string {
	if u.KeepClaims {
		return commandOf("uninstall", u.Instance, "--keep-claims")
	}
	return commandOf("uninstall", u.Instance)
}

// NewSharing returns what looks at shared objects on behalf of the user. It writes nothing.
func NewSharing(config *rest.Config, c client.Client) (*share.Engine, error) {
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds := apply.NewKinds(c.RESTMapper(), disco, dyn)
	return share.New(share.Options{Objects: apply.New(dyn, meta, kinds, nil, nil), Kinds: kinds, Reader: c, Clock: clock.RealClock{}}), nil
}

// maxGenerations is how many generations of children an Instance has at most, with some to spare.
const maxGenerations = 10

// WithChildren lists an Instance and those that are deleted with it.
func WithChildren(ctx context.Context, c client.Client, instance *v1beta1.Instance) ([]*v1beta1.Instance, error) {
	list := &v1beta1.InstanceList{}
	if err := c.List(ctx, list, client.InNamespace(instance.Namespace)); err != nil {
		return []*v1beta1.Instance{instance}, fmt.Errorf("list Instances: %w", err)
	}
	out := []*v1beta1.Instance{instance}
	for from, generation := 0, 0; from < len(out) && generation < maxGenerations; generation++ {
		parents := out[from:]
		from = len(out)
		isChild := func(i *v1beta1.Instance) bool {
			return slices.ContainsFunc(parents, func(parent *v1beta1.Instance) bool { return v1beta1.HasOwner(i, parent.UID) })
		}
		for i := range list.Items {
			if child := &list.Items[i]; isChild(child) && !hasOtherOwner(child, out) && !isAmong(child.UID, out) {
				out = append(out, child)
			}
		}
	}
	return out, nil
}

// hasOtherOwner reports whether an owner of an Instance is none of those that are deleted: the Instance stays.
func hasOtherOwner(i *v1beta1.Instance, deleted []*v1beta1.Instance) bool {
	return slices.ContainsFunc(i.OwnerReferences, func(owner metav1.OwnerReference) bool { return !isAmong(owner.UID, deleted) })
}

func isAmong(uid types.UID, all []*v1beta1.Instance) bool {
	return slices.ContainsFunc(all, func(i *v1beta1.Instance) bool { return i.UID == uid })
}
