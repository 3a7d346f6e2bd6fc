package instances

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/text"
)

// keptObject is an object that stays when an Instance is deleted, and why.
type keptObject struct {
	kind      schema.GroupKind
	name, why string
}

// printRemainder lists the objects that stay, and how they are deleted.
func printRemainder(env *command.Env, namespace string, kept []keptObject) {
	var names []string
	for _, k := range kept {
		env.Printf("%s %s stays, since %s", strings.ToLower(k.kind.Kind), k.name, k.why)
		resource := k.kind
		resource.Kind = strings.ToLower(resource.Kind)
		names = append(names, text.ShellQuote(resource.String()+"/"+k.name))
	}
	if len(names) > 0 {
		env.Printf("delete what is not needed any more: kubectl delete -n %s %s", namespace, strings.Join(names, " "))
	}
}

// keepOrWarn returns what stays when Instances are deleted. It takes them off the owners of what is annotated to be kept, annotates the
// claims that would go, if the user wants to keep them, and warns of them otherwise. What the user may not read is left out.
func (o *uninstallOptions) keepOrWarn(ctx context.Context, c client.Client, all []*v1beta1.Instance) ([]keptObject, error) {
	var out []keptObject
	for _, i := range all {
		for _, r := range i.Status.Resources {
			switch {
			case r.Namespace == "":
				out = append(out, keptObject{kindOf(r), r.Name, preview.StaysClusterScoped})
			case r.Kind != "PersistentVolumeClaim":
				kept, err := o.keepAnnotated(ctx, c, i, r)
				if err != nil {
					return nil, err
				}
				if kept {
					out = append(out, keptObject{kindOf(r), r.Name, preview.StaysKept})
				}
			}
		}
		claims, err := o.keepClaimsOf(ctx, c, i)
		if err != nil {
			return nil, err
		}
		out = append(out, claims...)
	}
	return out, nil
}

func kindOf(r v1beta1.ResourceStatus) schema.GroupKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
}

var claimKind = schema.GroupKind{Kind: "PersistentVolumeClaim"}

// maxGenerations is how many generations of children an Instance has at most, with some to spare.
const maxGenerations = 10

// withChildren lists an Instance and those that are deleted with it.
func withChildren(ctx context.Context, c client.Client, instance *v1beta1.Instance) ([]*v1beta1.Instance, error) {
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

// keepAnnotated reports whether an object of the inventory is annotated to be kept, and takes the Instance off its owners if it is one.
func (o *uninstallOptions) keepAnnotated(ctx context.Context, c client.Client, instance *v1beta1.Instance,
	r v1beta1.ResourceStatus) (bool, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
	if !v1beta1.CanBeKept(live.GroupVersionKind().GroupKind()) {
		return false, nil
	}
	err := c.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, live)
	if err != nil || !v1beta1.IsKept(live.Annotations) {
		return false, nil
	}
	return true, keep(ctx, c, live, instance)
}

// keepClaimsOf returns the claims of an Instance that stay, and keeps or warns of the others.
func (o *uninstallOptions) keepClaimsOf(ctx context.Context, c client.Client, instance *v1beta1.Instance) (out []keptObject, err error) {
	claims := &corev1.PersistentVolumeClaimList{}
	err = c.List(ctx, claims, client.InNamespace(instance.Namespace),
		client.MatchingLabels{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: instance.Name})
	if err != nil && o.keepClaims {
		return nil, fmt.Errorf("list PersistentVolumeClaims, instance %s/%s is not deleted: %w", instance.Namespace, instance.Name, err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		others := v1beta1.OtherOwners(claim, instance.UID)
		switch {
		case len(others) > 0 && o.keepClaims: // whoever has set this owner sets it again
			return nil, fmt.Errorf("PersistentVolumeClaim %s/%s would be deleted with %s %s, instance %s is not deleted: set "+
				"persistentVolumeClaimRetentionPolicy.whenDeleted of a StatefulSet to Retain, or take the owner off the claim, first",
				claim.Namespace, claim.Name, others[0].Kind, others[0].Name, instance.Name)
		case len(others) > 0:
			o.env.Warnf("persistentvolumeclaim %s/%s is deleted with its data if %s %s is deleted", claim.Namespace, claim.Name, others[0].Kind,
				others[0].Name)
		case v1beta1.IsKept(claim.Annotations), o.keepClaims && len(claim.OwnerReferences) > 0:
			if err := keep(ctx, c, claim, instance); err != nil {
				return nil, err
			}
			out = append(out, keptObject{claimKind, claim.Name, preview.StaysKept})
		case len(claim.OwnerReferences) == 0:
			out = append(out, keptObject{claimKind, claim.Name, preview.StaysUnowned})
		default:
			o.env.Warnf("persistentvolumeclaim %s/%s is deleted with its data: --keep-claims would keep it", claim.Namespace, claim.Name)
		}
	}
	return out, nil
}

// keep annotates an object and takes an Instance off its owners, in one write: the manager would do so later than the garbage collector
// deletes the object.
func keep(ctx context.Context, c client.Client, o client.Object, instance *v1beta1.Instance) error {
	patch := v1beta1.KeepPatch(o, instance.UID)
	if patch == nil {
		return nil
	}
	if err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("keep %s %s/%s, instance %s is not deleted: %w", cmp.Or(o.GetObjectKind().GroupVersionKind().Kind,
			"PersistentVolumeClaim"), o.GetNamespace(), o.GetName(), instance.Name, err)
	}
	return nil
}
