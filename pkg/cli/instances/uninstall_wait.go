package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/text"
)

const (
	// slowDeletion is how long the garbage collector may take before the command prints what it waits for, and deletes the objects that the
	// garbage collector has not asked to delete. It learns only every 30 seconds of kinds that are new, such as Instance after kubectl kudo
	// init.
	slowDeletion = 2 * time.Second
	// slowInterval is the time between two attempts to delete such objects.
	slowInterval = 5 * time.Second
	// sweepTime is how long the objects that still exist are listed after a wait has ended.
	sweepTime = 10 * time.Second
)

// dependents are the objects that the garbage collector deletes with an Instance and its children.
type dependents struct {
	env       *command.Env
	client    client.WithWatch
	namespace string
	// owners are the names of the Instances.
	owners map[types.UID]string
	kinds  sets.Set[schema.GroupVersionKind]
	// accounts are the objects of the accounts of the Instances. accountsUnread is set if some could not be read, and may be deleted.
	accounts       []act.AccountObject
	accountsUnread bool
	// absent are the owners that do not exist any more.
	absent sets.Set[types.UID]
	// slow fires when the deletion is slow, and again while it is.
	slow *time.Timer
	// interval is the time between two attempts to delete objects.
	interval time.Duration
}

func newDependents(env *command.Env, c client.WithWatch, all []*v1beta1.Instance, effects *act.Effects) *dependents {
	d := &dependents{env: env, client: c, owners: map[types.UID]string{}, kinds: sets.New[schema.GroupVersionKind](),
		accounts: effects.Accounts, accountsUnread: effects.AccountsUnread,
		absent: sets.New[types.UID](), interval: slowInterval}
	for _, i := range all {
		d.namespace = i.Namespace
		d.add(i)
	}
	return d
}

// add adds the kinds of the objects that an Instance has made.
func (d *dependents) add(i *v1beta1.Instance) {
	d.owners[i.UID] = i.Name
	for _, r := range i.Status.Resources {
		if r.Namespace == i.Namespace {
			d.kinds.Insert(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
		}
	}
}

// until wraps a condition of the Instance, whose cleanup plan may make objects of other kinds.
func (d *dependents) until(over command.InstanceCondition) command.InstanceCondition {
	return func(i *v1beta1.Instance) (bool, error) {
		if i != nil && d.isOwner(i.UID) {
			d.add(i)
		}
		return over(i)
	}
}

// wait returns when the garbage collector has deleted all dependents, or with an error that names the rest when the context ends. complete
// is false if the deletion of some kinds of objects is not known.
func (d *dependents) wait(ctx context.Context, instance *v1beta1.Instance, limit time.Duration) (complete bool, err error) {
	d.slow = time.NewTimer(slowDeletion)
	defer d.slow.Stop()
	complete = !d.accountsUnread
	for _, q := range d.queries() {
		err := d.waitFor(ctx, q)
		switch {
		case err == nil:
		case errors.Is(ctx.Err(), context.Canceled):
			return false, command.Interrupted("the instance is deleted, and the deletion of its objects continues: kubectl get " + d.arguments(q))
		case ctx.Err() != nil:
			err := d.timeout(context.WithoutCancel(ctx), instance, limit)
			return err == nil, err
		case apierrors.IsForbidden(err):
			d.env.Warnf("whether %s is not known: %s", q.deletion(), err)
			complete = false
		default:
			return false, fmt.Errorf("wait for the deletion of %s of instance %s/%s: %w", q, d.namespace, instance.Name, err)
		}
	}
	return complete, nil
}

// list returns the dependents of a query that exist, by uid, and the resourceVersion of the list.
func (d *dependents) list(ctx context.Context, q query) (map[types.UID]*metav1.PartialObjectMetadata, string, error) {
	list := metadataList(q.GroupVersionKind)
	err := d.client.List(ctx, list, d.options(q))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, "", nil // the kind is not served any more
	}
	out := map[types.UID]*metav1.PartialObjectMetadata{}
	for i := range list.Items {
		if q.has(&list.Items[i]) && d.has(&list.Items[i]) {
			out[list.Items[i].UID] = &list.Items[i]
		}
	}
	return out, list.ResourceVersion, err
}

func metadataList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

func (d *dependents) isOwner(uid types.UID) bool {
	_, is := d.owners[uid]
	return is
}

// has reports whether the garbage collector is going to delete an object: all its owners, and at least one, are Instances that are deleted.
func (d *dependents) has(o metav1.Object) bool {
	stays := func(owner metav1.OwnerReference) bool { return !d.isOwner(owner.UID) }
	return len(o.GetOwnerReferences()) > 0 && !slices.ContainsFunc(o.GetOwnerReferences(), stays)
}

// waitFor returns when the dependents of a query are deleted.
func (d *dependents) waitFor(ctx context.Context, q query) error {
	for {
		rest, version, err := d.list(ctx, q)
		if err != nil || len(rest) == 0 {
			return err
		}
		if err := d.watch(ctx, q, rest, version); err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
	}
}

// watch returns when the objects of a query are deleted, or have another owner, or when the watch ends. While the
// deletion is slow, it prints what it waits for, and deletes what it may.
func (d *dependents) watch(ctx context.Context, q query, rest map[types.UID]*metav1.PartialObjectMetadata, version string) error {
	options := d.options(q)
	options.Raw = &metav1.ListOptions{ResourceVersion: version}
	events, err := d.client.Watch(ctx, metadataList(q.GroupVersionKind), options)
	if err != nil {
		return err
	}
	defer events.Stop()
	for len(rest) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.slow.C:
			d.env.Progressf("waiting for the deletion of %s", text.List(describeAll(q.GroupVersionKind, rest), 5))
			d.deleteAbandoned(ctx)
			d.slow.Reset(d.interval)
		case e, open := <-events.ResultChan():
			if !open {
				return nil
			}
			if e.Type == watch.Error {
				return apierrors.FromObject(e.Object)
			}
			o, err := meta.Accessor(e.Object)
			if err == nil && (e.Type == watch.Deleted || !d.has(o)) {
				delete(rest, o.GetUID())
			}
		}
	}
	return nil
}

// deleteAbandoned deletes objects of all queries as the garbage collector does: only if none of their owners exists
// any more. A child whose cleanup plan runs needs its objects. An object that has changed, or that the user may not
// list or delete, is left to the garbage collector.
func (d *dependents) deleteAbandoned(ctx context.Context) {
	for _, q := range d.queries() {
		rest, _, err := d.list(ctx, q)
		if err != nil {
			continue
		}
		for uid, o := range rest {
			if o.DeletionTimestamp == nil && d.isAbandoned(ctx, o) {
				o.SetGroupVersionKind(q.GroupVersionKind)
				_ = d.client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground),
					client.Preconditions{UID: &uid, ResourceVersion: &o.ResourceVersion})
			}
		}
	}
}

// isAbandoned reports whether no owner of a dependent exists any more.
func (d *dependents) isAbandoned(ctx context.Context, o *metav1.PartialObjectMetadata) bool {
	return !slices.ContainsFunc(o.OwnerReferences, func(owner metav1.OwnerReference) bool { return !d.isAbsent(ctx, owner.UID) })
}

// isAbsent reports whether an owner does not exist any more. A uid that was absent once does not come back.
func (d *dependents) isAbsent(ctx context.Context, uid types.UID) bool {
	if !d.absent.Has(uid) {
		live := &v1beta1.Instance{}
		err := d.client.Get(ctx, types.NamespacedName{Namespace: d.namespace, Name: d.owners[uid]}, live)
		if !apierror.IsObjectNotFound(err) && (err != nil || live.UID == uid) {
			return false
		}
		d.absent.Insert(uid)
	}
	return true
}

// timeout returns an error that names the dependents that still exist, and what keeps them. It returns nil if none does at the last look.
func (d *dependents) timeout(ctx context.Context, instance *v1beta1.Instance, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	var names []string
	for _, q := range d.queries() {
		rest, _, err := d.list(ctx, q)
		if err != nil {
			names = append(names, fmt.Sprintf("%s, which cannot be listed: %s", q, err))
		}
		names = append(names, describeAll(q.GroupVersionKind, rest)...)
	}
	if len(names) == 0 {
		return nil
	}
	return command.WithCode(command.ExitTimeout, fmt.Errorf("instance %s/%s is deleted, and after %s some of its objects are not: %s. An "+
		"object with a finalizer is deleted when the client that has set the finalizer removes it", d.namespace, instance.Name, limit,
		text.List(names, 10)))
}

// describeAll returns the names of objects with their finalizers, sorted.
func describeAll(kind schema.GroupVersionKind, all map[types.UID]*metav1.PartialObjectMetadata) []string {
	var out []string
	for _, o := range all {
		name := kind.Kind + " " + o.Namespace + "/" + o.Name
		switch {
		case len(o.Finalizers) > 0:
			name += " (finalizer " + strings.Join(o.Finalizers, ", ") + ")"
		case o.DeletionTimestamp == nil:
			name += " (the garbage collector has not deleted it yet)"
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
