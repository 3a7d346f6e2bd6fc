package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans/trigger"
)

// Why objects stay when an Instance is deleted.
const (
	// staysClusterScoped is for objects that are in no namespace.
	staysClusterScoped = "it is cluster-scoped and others may use it"
	// StaysKept is for objects that are annotated to be kept.
	StaysKept = "it is annotated to be kept: an Instance of the same name takes it over"
	// StaysUnowned is for claims that StatefulSets have made.
	StaysUnowned = "it holds data, and no Instance owns it: an Instance of the same name uses it again"
)

// maxHolders is how many holders of an object are named.
const maxHolders = 10

// StayOfHeld returns the Stay of an object that others may hold. unread is why its holders are not known; nil if they are.
func StayOfHeld(id apply.ID, holders []string, unread error) Stay {
	out := Stay{Object: id.String(), Holders: holders}
	var parts []string
	if id.Namespace == "" {
		parts = append(parts, staysClusterScoped)
	}
	switch {
	case unread != nil:
		parts = append(parts, "who else holds it is not known: "+unread.Error())
	case len(holders) > 0:
		verb := map[bool]string{true: "holds", false: "hold"}[len(holders) == 1]
		parts = append(parts, fmt.Sprintf("%s %s it, too", text.List(holders, maxHolders), verb))
	}
	out.Why = text.Plain(strings.Join(parts, "; "), maxWhy)
	return out
}

// claims is the kind that holds data.
var claims = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")

// Uninstall returns what the deletion of an Instance would do: its cleanup plan, what would be deleted with it, and what would stay. The
// version is the one that its cleanup plan is of; nil if it does not exist. keepsClaims is set if the command annotates all claims to be
// kept.
func Uninstall(ctx context.Context, o Options, instance *v1beta1.Instance, version *v1beta1.OperatorVersion,
	keepsClaims bool) (*Preview, error) {
	c := newComputation(o, uninstallEdit(instance, version))
	c.keepsClaims = keepsClaims
	if err := c.uninstall(ctx); err != nil {
		return nil, err
	}
	return c.result(ctx)
}

func uninstallEdit(instance *v1beta1.Instance, version *v1beta1.OperatorVersion) Edit {
	return Edit{Verb: "uninstall", Before: instance, After: instance, Version: cmp.Or(version, &v1beta1.OperatorVersion{})}
}

func (c *computation) uninstall(ctx context.Context) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	c.deleted[c.instance.UID] = runner.Manager(c.instance.Namespace, c.instance.Name)
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
	return errors.Join(c.releaseAllDefinitions(ctx), c.release(ctx))
}

// release previews what the garbage collector deletes with the Instance, and what it leaves.
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
	var first, later []apply.ID
	for _, id := range sortedIDs(left) {
		if id.GroupVersionKind == claims { // their owners come first
			later = append(later, id)
		} else {
			first = append(first, id)
		}
	}
	for _, id := range slices.Concat(first, later) {
		live, err := c.readNow(ctx, id)
		if err := c.releaseObject(ctx, id, live, err); err != nil {
			return err
		}
	}
	if err := releaseAccount(ctx, c); err != nil {
		return err
	}
	return c.releaseChildren(ctx)
}

// releaseAccount releases the ServiceAccount that a command has made for the Instance, with its roles and bindings. One of these that
// cannot be read is unknown if the spec names that ServiceAccount.
func releaseAccount(ctx context.Context, c *computation) error {
	account := rights.AccountOf(c.instance)
	for _, obj := range account.Own() {
		id := apply.ID{GroupVersionKind: obj.GetObjectKind().GroupVersionKind(), NamespacedName: client.ObjectKeyFromObject(obj)}
		live, err := c.readNow(ctx, id)
		if live == nil && err == nil || !account.IsDeletedWith(c.instance, live, err) {
			continue
		}
		if err := c.releaseObject(ctx, id, live, err); err != nil {
			return err
		}
	}
	return nil
}

// releaseChildren previews what is deleted with each Instance that is deleted with this one.
func (c *computation) releaseChildren(ctx context.Context) error {
	for _, id := range c.order {
		if !c.touched[id].released || id.GroupKind() != instances {
			continue
		}
		live, err := c.readNow(ctx, id)
		if err != nil || live == nil {
			continue // it is unknown, or the cleanup plan has deleted it
		}
		instance, err := toInstance(live)
		if err != nil {
			return err
		}
		if err := c.previewDeletion(ctx, id, instance); err != nil {
			return err
		}
	}
	return c.previewChildren(ctx) // what the cleanup plan does to others
}

// releaseObject decides what becomes of an object, which was read, or could not be:
//
//	cluster-scoped                          stays
//	annotated to be kept                    stays
//	owned by the Instance alone             is deleted
//	owned by the Instance and others        stays
//	a claim, and the command keeps claims   stays
//	a claim of a workload that is deleted   is deleted
//	a claim without an owner                stays
//	owned by others                         is not mentioned
func (c *computation) releaseObject(ctx context.Context, id apply.ID, live *unstructured.Unstructured, err error) error {
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case id.Namespace == "" && meta.IsNoMatchError(err): // its kind was deleted, and the object with it
		return nil
	case id.Namespace == "" && (err != nil || live != nil):
		c.held = append(c.held, heldObject{id, live, err})
	case err != nil:
		c.at(id, "").unknown = err.Error()
		return nil
	case live == nil:
		return nil
	case v1beta1.IsKept(live.GetAnnotations()), id.GroupVersionKind == claims && c.keepsClaims:
		c.stays(id, StaysKept)
	case v1beta1.HasOwner(live, c.instance.UID):
		if len(v1beta1.OtherOwners(live, c.instance.UID)) > 0 {
			c.held = append(c.held, heldObject{id, live, nil})
			return nil
		}
		c.released(id, live)
	case id.GroupVersionKind == claims && c.isReleased(live.GetOwnerReferences()):
		c.released(id, live)
	case id.GroupVersionKind == claims && len(live.GetOwnerReferences()) == 0:
		c.stays(id, StaysUnowned)
	}
	return nil
}

// released notes an object that is deleted with the Instance.
func (c *computation) released(id apply.ID, live *unstructured.Unstructured) {
	c.at(id, "").released = true
	c.releasedUIDs = append(c.releasedUIDs, live.GetUID())
	if id.GroupKind() == instances {
		c.deleted[live.GetUID()] = runner.Manager(id.Namespace, id.Name)
	}
	if id.GroupVersionKind == claims {
		c.warn("%s would be deleted with its data: --keep-claims would keep it", id)
	}
}

// isReleased reports whether all owners of an object, and at least one, are deleted with the Instance.
func (c *computation) isReleased(owners []metav1.OwnerReference) bool {
	stays := func(o metav1.OwnerReference) bool { return !slices.Contains(c.releasedUIDs, o.UID) }
	return len(owners) > 0 && !slices.ContainsFunc(owners, stays)
}

// readNow reads an object as the plans of the preview would leave it; nil if there is none.
func (c *computation) readNow(ctx context.Context, id apply.ID) (*unstructured.Unstructured, error) {
	engine, err := c.engine.Resource(id.Object())
	if err != nil {
		return nil, err
	}
	return apply.GetOrNil(ctx, engine, id.Name)
}

// heldObject is an object that stays and that others may hold, or why it could not be read.
type heldObject struct {
	id     apply.ID
	live   *unstructured.Unstructured
	unread error
}

// settleHeld releases the objects whose holders are all Instances that are deleted, in the previews of children, too. An Instance that is
// released in this way releases what it holds itself; settleHeld repeats until nothing more is released.
func settleHeld(ctx context.Context, root *computation) error {
	for again := true; again; {
		again = false
		for _, c := range family(root) {
			released, err := c.releaseHeld(ctx)
			if err != nil {
				return err
			}
			again = again || released
		}
	}
	return nil
}

// family lists a computation and all below it.
func family(c *computation) []*computation {
	out := []*computation{c}
	for _, child := range c.children {
		out = append(out, family(child)...)
	}
	return out
}

// releaseHeld releases the objects whose other holders are all deleted, and reports whether there were any. An object that several deleted
// Instances hold is listed once.
func (c *computation) releaseHeld(ctx context.Context) (bool, error) {
	var stay, released []heldObject
	for _, o := range c.held {
		if o.isReleased(c.deleted) {
			released = append(released, o)
		} else {
			stay = append(stay, o)
		}
	}
	c.held = stay
	for _, o := range released {
		if c.listed[o.live.GetUID()] {
			continue
		}
		c.listed[o.live.GetUID()] = true
		c.released(o.id, o.live)
		c.noteObjects(ctx, []apply.ID{o.id})
		if o.id.GroupKind() != instances {
			continue
		}
		instance, err := toInstance(o.live)
		if err != nil {
			return false, err
		}
		if err := c.previewDeletion(ctx, o.id, instance); err != nil {
			return false, err
		}
	}
	return len(released) > 0, nil
}

// isReleased reports whether Instances that are deleted are the only owners of an object: it is deleted with them.
func (o heldObject) isReleased(deleted map[types.UID]string) bool {
	stays := func(owner metav1.OwnerReference) bool { return deleted[owner.UID] == "" }
	return o.id.Namespace != "" && !slices.ContainsFunc(o.live.GetOwnerReferences(), stays)
}

// noteHeld notes objects that stay, with those who hold them, but for the Instances that are deleted.
func (p *Preview) noteHeld(ctx context.Context, engine *share.Engine, held []heldObject, deleted map[types.UID]string) {
	for _, o := range held {
		var holders []string
		if o.unread == nil {
			holders = engine.OtherHolders(ctx, o.live, deleted)
		}
		p.Stays = append(p.Stays, StayOfHeld(o.id, holders, o.unread))
	}
	slices.SortStableFunc(p.Stays, func(a, b Stay) int { return strings.Compare(a.Object, b.Object) })
}
