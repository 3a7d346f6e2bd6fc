package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
)

// readers is how many objects of an inventory are read at a time.
const readers = 8

// Effects are what the deletion of an Instance does to its objects. They are read before anything is written.
type Effects struct {
	// Deleted are the names of what is deleted with the Instance, but for claims.
	Deleted []string
	// Warnings name the claims that are deleted with their data, and what is not known.
	Warnings []string
	// Stays are the objects that nothing deletes later, and Shared those that other owners or holders keep.
	Stays, Shared []KeptObject
	// Accounts are the objects of accounts that are deleted with the Instance. No inventory names them. AccountsUnread is set if some could
	// not be read, and may be deleted.
	Accounts       []AccountObject
	AccountsUnread bool
	// patches keep objects that the garbage collector would delete.
	patches []keepPatch
}

// AccountObject is an object of the account of an Instance.
type AccountObject struct {
	schema.GroupVersionKind
	Name string
	UID  types.UID
}

// KeptObject is an object that stays when an Instance is deleted, and why.
type KeptObject struct {
	Kind      schema.GroupKind
	Name, Why string
	// IsHeld is set if others hold the object: it is needed.
	IsHeld bool
}

// keepPatch is a live object that is kept, and the Instance that is deleted.
type keepPatch struct {
	live     client.Object
	instance *v1beta1.Instance
}

// keep annotates what is to be kept and takes the Instance off its owners, in one write for each object: the manager would do so later than
// the garbage collector deletes the object.
func (e *Effects) keep(ctx context.Context, c client.Client) error {
	for _, p := range e.patches {
		if err := p.write(ctx, c); err != nil {
			return fmt.Errorf("keep %s %s/%s, instance %s is not deleted: %w", cmp.Or(p.live.GetObjectKind().GroupVersionKind().Kind,
				claimKind.Kind), p.live.GetNamespace(), p.live.GetName(), p.instance.Name, err)
		}
	}
	return nil
}

// write keeps the object. After a conflict, it reads the object again and repeats the write.
func (p keepPatch) write(ctx context.Context, c client.Client) error {
	live := p.live
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		patch := v1beta1.KeepPatch(live, p.instance.UID)
		if patch == nil {
			return nil
		}
		conflict := c.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch))
		if !apierrors.IsConflict(conflict) {
			return conflict
		}
		now, err := p.readAgain(ctx, c)
		if err != nil {
			return err
		}
		live = now
		return conflict
	})
}

// readAgain returns the object as it is now. It is an error if the object does not stay any more as the command has printed.
func (p keepPatch) readAgain(ctx context.Context, c client.Client) (client.Object, error) {
	kind, err := c.GroupVersionKindFor(p.live)
	if err != nil {
		return nil, err
	}
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(kind)
	if err := c.Get(ctx, client.ObjectKeyFromObject(p.live), now); err != nil {
		return nil, err
	}
	others := v1beta1.OtherOwners(now, p.instance.UID)
	switch {
	case now.UID != p.live.GetUID():
		return nil, errors.New("another object has its name now: try again")
	case v1beta1.IsKept(p.live.GetAnnotations()) && !v1beta1.IsKept(now.Annotations):
		return nil, fmt.Errorf("its annotation %s was removed: try again", v1beta1.KeepAnnotation)
	case kind.GroupKind() == claimKind && len(others) > 0:
		return nil, fmt.Errorf("%s %s owns it now, too: try again", others[0].Kind, others[0].Name)
	}
	return now, nil
}

// Effects returns what the deletion of Instances does. The first is the one that is deleted, the others are its children. What the user
// may not read is left out.
func (u Uninstall) Effects(ctx context.Context, c client.Client, config *rest.Config, all []*v1beta1.Instance) (*Effects, error) {
	engine, err := NewSharing(config, c)
	if err != nil {
		return nil, err
	}
	h := holders{Engine: engine, deleted: map[types.UID]string{}}
	for _, i := range all {
		h.deleted[i.UID] = runner.Manager(i.Namespace, i.Name)
	}
	out := &Effects{}
	if err := u.addClaims(ctx, c, all, out); err != nil {
		return nil, err
	}
	for n, i := range all {
		if n > 0 {
			out.Deleted = append(out.Deleted, "instance "+i.Name)
		}
		out.addInventory(ctx, c, i, h)
		if err := out.addDefinitions(ctx, c, h, i); err != nil {
			out.Warnings = append(out.Warnings, fmt.Sprintf("what becomes of the CustomResourceDefinitions of instance %s/%s is not known: %s",
				i.Namespace, i.Name, err))
		}
	}
	return out, nil
}

// holders names those who hold objects besides the Instances that are deleted, which are given with their field managers.
type holders struct {
	*share.Engine
	deleted map[types.UID]string
}

func (h holders) stay(ctx context.Context, live *metav1.PartialObjectMetadata, r v1beta1.ResourceStatus) preview.Stay {
	return preview.StayOfHeld(idOf(r), h.OtherHolders(ctx, live, h.deleted), nil)
}

func idOf(r v1beta1.ResourceStatus) apply.ID {
	return apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind),
		NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
}

// addInventory adds the objects of the inventory of an Instance but for claims, in its order, and then those of its account. What cannot be
// read is left out if it is in a namespace.
func (e *Effects) addInventory(ctx context.Context, c client.Client, i *v1beta1.Instance, h holders) {
	resources := slices.DeleteFunc(slices.Clone(i.Status.Resources), func(r v1beta1.ResourceStatus) bool {
		return r.Namespace != "" && (kindOf(r) == claimKind || !v1beta1.CanBeKept(kindOf(r)))
	})
	account := resourcesOfAccount(i)
	live, errs := readResources(ctx, c, slices.Concat(resources, account))
	for n, r := range resources {
		switch err := errs[n]; {
		case r.Namespace == "":
			e.addClusterScoped(ctx, r, &live[n], err, h)
		case err == nil:
			e.addObject(ctx, i, r, &live[n], h)
		}
	}
	for n, r := range account {
		at := len(resources) + n
		e.addAccountObject(ctx, i, r, &live[at], errs[at], h)
	}
}

// readResources reads objects, several at a time. Each is read, or has an error.
func readResources(ctx context.Context, c client.Client, resources []v1beta1.ResourceStatus) ([]metav1.PartialObjectMetadata, []error) {
	live, errs := make([]metav1.PartialObjectMetadata, len(resources)), make([]error, len(resources))
	var group errgroup.Group
	group.SetLimit(readers)
	for n, r := range resources {
		live[n].SetGroupVersionKind(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
		group.Go(func() error {
			errs[n] = c.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, &live[n])
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return live, errs
}

// addClusterScoped adds an object of the inventory that is in no namespace, if it exists. The error is that of reading it.
func (e *Effects) addClusterScoped(ctx context.Context, r v1beta1.ResourceStatus, live *metav1.PartialObjectMetadata, err error,
	h holders) {
	var stay preview.Stay
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return
	case err != nil:
		stay = preview.StayOfHeld(idOf(r), nil, err)
	default:
		stay = h.stay(ctx, live, r)
	}
	e.Stays = append(e.Stays, KeptObject{kindOf(r), r.Name, stay.Why, len(stay.Holders) > 0})
}

// addObject adds a live object of the Instance that is no claim, and reports whether it is deleted.
func (e *Effects) addObject(ctx context.Context, i *v1beta1.Instance, r v1beta1.ResourceStatus, live *metav1.PartialObjectMetadata,
	h holders) bool {
	why := ""
	switch {
	case v1beta1.IsKept(live.Annotations):
		e.Stays = append(e.Stays, KeptObject{kindOf(r), r.Name, preview.StaysKept, false})
		e.patches = append(e.patches, keepPatch{live, i})
		return false
	case !v1beta1.HasOwner(live, i.UID):
		return false
	case len(v1beta1.OtherOwners(live, i.UID)) > 0:
		why = h.stay(ctx, live, r).Why
	}
	if why != "" {
		e.Shared = append(e.Shared, KeptObject{kindOf(r), r.Name, why, true})
		return false
	}
	e.Deleted = append(e.Deleted, strings.ToLower(r.Kind)+" "+r.Name)
	return true
}

// addClaims adds the claims of all Instances.
func (u Uninstall) addClaims(ctx context.Context, c client.Client, all []*v1beta1.Instance, e *Effects) error {
	root, byName := all[0], map[string]*v1beta1.Instance{}
	for _, i := range all {
		byName[i.Name] = i
	}
	claims := &corev1.PersistentVolumeClaimList{}
	theirs := client.MatchingLabelsSelector{Selector: SelectObjects(slices.Sorted(maps.Keys(byName)))}
	err := c.List(ctx, claims, client.InNamespace(root.Namespace), theirs)
	if err != nil && u.KeepClaims {
		return fmt.Errorf("list PersistentVolumeClaims, instance %s/%s is not deleted: %w", root.Namespace, root.Name, err)
	}
	for n := range claims.Items {
		claim := &claims.Items[n]
		i := byName[claim.Labels[v1beta1.InstanceLabel]]
		others := v1beta1.OtherOwners(claim, i.UID)
		switch {
		case len(others) > 0 && u.KeepClaims: // the controller that has set this owner sets it again
			return fmt.Errorf("PersistentVolumeClaim %s/%s would be deleted with %s %s, instance %s is not deleted: set "+
				"persistentVolumeClaimRetentionPolicy.whenDeleted of a StatefulSet to Retain, or take the owner off the claim, first",
				claim.Namespace, claim.Name, others[0].Kind, others[0].Name, i.Name)
		case len(others) > 0:
			e.Warnings = append(e.Warnings, fmt.Sprintf("%s is deleted with its data if %s %s is deleted", describeClaim(claim), others[0].Kind,
				others[0].Name))
		case v1beta1.IsKept(claim.Annotations), u.KeepClaims && len(claim.OwnerReferences) > 0:
			e.Stays = append(e.Stays, KeptObject{claimKind, claim.Name, preview.StaysKept, false})
			e.patches = append(e.patches, keepPatch{claim, i})
		case len(claim.OwnerReferences) == 0:
			e.Stays = append(e.Stays, KeptObject{claimKind, claim.Name, preview.StaysUnowned, false})
		default:
			e.Warnings = append(e.Warnings, describeClaim(claim)+" is deleted with its data: --keep-claims would keep it")
		}
	}
	return nil
}

// describeClaim names a claim, and how large its volume is, or what the claim asks for.
func describeClaim(claim *corev1.PersistentVolumeClaim) string {
	size, found := claim.Status.Capacity[corev1.ResourceStorage]
	if !found {
		size = claim.Spec.Resources.Requests[corev1.ResourceStorage]
	}
	name := fmt.Sprintf("persistentvolumeclaim %s/%s", claim.Namespace, claim.Name)
	if !size.IsZero() {
		name += " (" + size.String() + ")"
	}
	return name
}

// addDefinitions adds the CustomResourceDefinitions that an Instance holds by its CRD tarball, with the holders of those that stay.
func (e *Effects) addDefinitions(ctx context.Context, c client.Client, h holders, i *v1beta1.Instance) error {
	if i.Status.CRDs == nil {
		return nil
	}
	holder := &v1beta1.Installation{}
	err := c.Get(ctx, client.ObjectKey{Name: v1beta1.InstallationName(i.Namespace, i.Name, i.UID)}, holder)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	releases, err := h.Session(holder, share.Policy{}, holder.Status.Resources).Preview(ctx, false)
	if err != nil {
		return err
	}
	for _, r := range releases {
		switch {
		case r.Unknown != nil:
			return r.Unknown
		case r.Deleted:
			e.Deleted = append(e.Deleted, strings.ToLower(r.ID.Kind)+" "+r.ID.Name)
		default:
			why := r.Reason
			if r.Blocks {
				why = "it " + why
			}
			e.Shared = append(e.Shared, KeptObject{r.ID.GroupKind(), r.ID.Name, why, true})
		}
	}
	return nil
}

// resourcesOfAccount names what a command may have made for the account of an Instance, but for what the inventory names.
func resourcesOfAccount(i *v1beta1.Instance) []v1beta1.ResourceStatus {
	var out []v1beta1.ResourceStatus
	for _, obj := range rights.AccountOf(i).Own() {
		apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		r := v1beta1.ResourceStatus{APIVersion: apiVersion, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
		isSame := func(other v1beta1.ResourceStatus) bool { return idOf(other) == idOf(r) }
		if !slices.ContainsFunc(i.Status.Resources, isSame) {
			out = append(out, r)
		}
	}
	return out
}

// addAccountObject adds what becomes of an object of the account, which was read, or could not be. It warns of what is not known.
func (e *Effects) addAccountObject(ctx context.Context, i *v1beta1.Instance, r v1beta1.ResourceStatus, live *metav1.PartialObjectMetadata,
	err error, h holders) {
	switch {
	case apierrors.IsNotFound(err) || !rights.AccountOf(i).IsDeletedWith(i, live, err):
	case err != nil:
		e.AccountsUnread = true
		e.Warnings = append(e.Warnings, fmt.Sprintf("what becomes of %s is not known: %s", idOf(r), err))
	case e.addObject(ctx, i, r, live, h):
		kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
		e.Accounts = append(e.Accounts, AccountObject{kind, r.Name, live.UID})
	}
}

func kindOf(r v1beta1.ResourceStatus) schema.GroupKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
}

var claimKind = schema.GroupKind{Kind: "PersistentVolumeClaim"}

// SelectObjects selects the objects of Instances by the labels that plans set.
func SelectObjects(instances []string) labels.Selector {
	names, err := labels.NewRequirement(v1beta1.InstanceLabel, selection.In, instances)
	if err != nil { // names of Instances are values of labels
		return labels.Nothing()
	}
	return labels.SelectorFromSet(labels.Set{v1beta1.HeritageLabel: v1beta1.Heritage}).Add(*names)
}
