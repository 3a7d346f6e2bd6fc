package rights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// Continue is the remedy of a change that fails before its end.
const Continue = "the same command continues from there"

// ungiven is the remedy of rights that the API server does not let a user give.
const ungiven = "you cannot give what you may not do yourself: ask an administrator of the namespace to run the same command, or to " +
	"apply what kubectl kudo package rights PACKAGE -o yaml prints"

// Change is what is to be done so that an account has its rights.
type Change struct {
	*Account
	// Steps are the writes, in their order.
	Steps []Step
	// Added and Removed are the rules that the Role gets and loses; of a new Role, Added are all.
	Added, Removed []rbacv1.PolicyRule
	// IsNew is set if there is no Role yet.
	IsNew bool
	// IsForeign is set if the ServiceAccount is one that no command has made.
	IsForeign bool

	// uid of the Instance; empty if it is not there yet.
	uid types.UID
	// owned are the objects that are deleted with the Instance.
	owned []client.Object
}

// Step writes one object: as a new one, or as a patch of a live one.
type Step struct {
	Object client.Object
	patch  client.Patch
}

// IsPatch reports whether the object exists, and is changed.
func (s Step) IsPatch() bool { return s.patch != nil }

// String returns kind, namespace and name of the object.
func (s Step) String() string {
	return fmt.Sprintf("%s %s/%s", s.Object.GetObjectKind().GroupVersionKind().Kind, s.Object.GetNamespace(), s.Object.GetName())
}

func (s Step) write(ctx context.Context, c client.Client, dry bool) error {
	object := s.Object.DeepCopyObject().(client.Object)
	if s.patch != nil {
		var options []client.PatchOption
		if dry {
			options = append(options, client.DryRunAll)
		}
		return c.Patch(ctx, object, s.patch, options...)
	}
	var options []client.CreateOption
	if dry {
		options = append(options, client.DryRunAll)
	}
	return c.Create(ctx, object, options...)
}

// CompareAccount compares what is there with what the plans of an Instance need. It writes nothing. manager is the ServiceAccount of the
// manager, which acts as the account.
func CompareAccount(ctx context.Context, c client.Client, instance *v1beta1.Instance, needed *Rights,
	manager types.NamespacedName) (*Change, error) {
	a := NewAccount(instance.Namespace, instance.Name, instance.Spec.ServiceAccountName, needed.Rules)
	a.Manager = manager
	change := &Change{Account: a, uid: instance.UID}
	for _, review := range []func(context.Context, client.Client, *v1beta1.Instance) error{change.reviewServiceAccount, change.reviewRole,
		change.reviewBinding, change.reviewRunAs} {
		if err := review(ctx, c, instance); err != nil {
			return nil, err
		}
	}
	return change, nil
}

// readLive reads the live object into one of its type.
func (ch *Change) readLive(ctx context.Context, c client.Client, want, live client.Object) (found bool, err error) {
	err = c.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err):
		ch.Steps = append(ch.Steps, Step{Object: want})
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", Step{Object: want}, err)
	}
	if live.GetDeletionTimestamp() != nil {
		return false, fmt.Errorf("%s is being deleted: run the same command again after its deletion", Step{Object: want})
	}
	live.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
	return true, nil
}

func (ch *Change) isOurs(live client.Object) bool {
	return live.GetLabels()[v1beta1.InstanceLabel] == ch.Instance
}

// isStale reports whether an object of ours has an owner that is another Instance: one of the same name that was deleted,
// with which the garbage collector deletes the object.
func (ch *Change) isStale(live client.Object) bool {
	return ch.isOurs(live) && slices.ContainsFunc(live.GetOwnerReferences(), ch.isOther)
}

func (ch *Change) isOther(o metav1.OwnerReference) bool {
	return v1beta1.OwnedBy(o, "Instance") && o.UID != ch.uid
}

// change adds a patch that edits a live object, if it is to be edited or has a stale owner.
func (ch *Change) change(live client.Object, differs bool, edit func()) {
	if !differs && !ch.isStale(live) {
		return
	}
	patch := client.MergeFromWithOptions(live.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
	if differs {
		edit()
	}
	if ch.isOurs(live) {
		live.SetOwnerReferences(slices.DeleteFunc(live.GetOwnerReferences(), ch.isOther))
	}
	ch.Steps = append(ch.Steps, Step{live, patch})
}

// reviewServiceAccount takes an account that is there as it is.
func (ch *Change) reviewServiceAccount(ctx context.Context, c client.Client, _ *v1beta1.Instance) error {
	want, live := ch.ServiceAccount(), &corev1.ServiceAccount{}
	found, err := ch.readLive(ctx, c, want, live)
	if err != nil {
		return err
	}
	if !found || ch.isOurs(live) {
		ch.owned = append(ch.owned, want)
	}
	if found {
		ch.IsForeign = !ch.isOurs(live)
		ch.change(live, false, nil)
	}
	return nil
}

// reviewRole changes the rules of a Role that a command has made. While a plan runs or waits, none is taken away: it may be
// one of the version, or of the values, of before.
func (ch *Change) reviewRole(ctx context.Context, c client.Client, instance *v1beta1.Instance) error {
	want, live := ch.Role(), &rbacv1.Role{}
	ch.owned = append(ch.owned, want)
	found, err := ch.readLive(ctx, c, want, live)
	if err != nil {
		return err
	}
	if !found {
		ch.IsNew, ch.Added = true, ch.Rules
		return nil
	}
	if !ch.isOurs(live) {
		return fmt.Errorf("%s is there already, without the label %s=%s: it is not changed. Delete it, or choose another name for the Instance",
			Step{Object: want}, v1beta1.InstanceLabel, ch.Instance)
	}
	if status := instance.Status; plans.Running(status.PlanStatus) != "" || len(status.Queue) > 0 {
		want.Rules = Merge(want.Rules, live.Rules)
	}
	ch.Added, ch.Removed = Without(want.Rules, live.Rules), Without(live.Rules, want.Rules)
	ch.change(live, len(ch.Added)+len(ch.Removed) > 0, func() { live.Rules = want.Rules })
	return nil
}

func (ch *Change) reviewBinding(ctx context.Context, c client.Client, _ *v1beta1.Instance) error {
	want := ch.RoleBinding()
	ch.owned = append(ch.owned, want)
	return ch.reviewSubjects(ctx, c, want, true)
}

func (ch *Change) reviewRunAs(ctx context.Context, c client.Client, _ *v1beta1.Instance) error {
	return ch.reviewSubjects(ctx, c, ch.RunAsBinding(), false)
}

// reviewSubjects adds the subject of a binding. That of an Instance has one subject only: rights that are computed for one
// account are no other's.
func (ch *Change) reviewSubjects(ctx context.Context, c client.Client, want *rbacv1.RoleBinding, only bool) error {
	live := &rbacv1.RoleBinding{}
	found, err := ch.readLive(ctx, c, want, live)
	switch {
	case err != nil || !found:
		return err
	case live.RoleRef != want.RoleRef || only && !ch.isOurs(live):
		return fmt.Errorf("RoleBinding %s/%s is there already, and binds %s %s: it is not changed. Delete it, and run the same command again",
			live.Namespace, live.Name, live.RoleRef.Kind, live.RoleRef.Name)
	}
	differs := !slices.Contains(live.Subjects, want.Subjects[0]) || only && len(live.Subjects) > 1
	ch.change(live, differs, func() {
		if only {
			live.Subjects = nil
		}
		live.Subjects = append(live.Subjects, want.Subjects...)
	})
	return nil
}

// Try has the API server check by dry runs that the user may do the steps. It writes nothing. A binding cannot be tried before its Role
// is there: who may give the rules of the Role may bind it, if he may write bindings.
func (ch *Change) Try(ctx context.Context, c client.Client) error {
	for _, step := range ch.Steps {
		var err error
		if step.patch == nil && step.Object.GetName() == ch.RoleName() && step.Object.GetObjectKind().GroupVersionKind().Kind == "RoleBinding" {
			err = MayCreate(ctx, c, ch.Namespace, rbacv1.Resource("rolebindings"))
		} else {
			err = step.write(ctx, c, true)
		}
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("%s: %w\n%s", step, err, ungiven)
		}
		if err != nil && (!ch.isRunAs(step) || !isConcurrent(err)) {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

// Write does the steps, and calls report after each.
func (ch *Change) Write(ctx context.Context, c client.Client, report func(Step)) error {
	var done []string
	for _, step := range ch.Steps {
		err := step.write(ctx, c, false)
		if ch.isRunAs(step) && isConcurrent(err) {
			err = ch.writeRunAs(ctx, c)
		}
		if err != nil {
			before := "nothing was written"
			if len(done) > 0 {
				before = "written before: " + strings.Join(done, ", ")
			}
			return fmt.Errorf("%s: %w (%s; %s)", step, err, before, Continue)
		}
		done = append(done, step.String())
		report(step)
	}
	return nil
}

// isRunAs reports whether a step writes the binding that all Instances of the namespace share.
func (ch *Change) isRunAs(step Step) bool {
	return step.String() == Step{Object: ch.RunAsBinding()}.String()
}

// isConcurrent reports whether a write failed since another client has created or changed the object in the meantime.
func isConcurrent(err error) bool { return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) }

// writeRunAs writes the binding that all Instances of the namespace share, which another command has written in the meantime.
func (ch *Change) writeRunAs(ctx context.Context, c client.Client) error {
	return retry.OnError(retry.DefaultBackoff, isConcurrent, func() error {
		again := &Change{Account: ch.Account, uid: ch.uid}
		if err := again.reviewRunAs(ctx, c, nil); err != nil {
			return err
		}
		for _, step := range again.Steps {
			if err := step.write(ctx, c, false); err != nil {
				return err
			}
		}
		return nil
	})
}

// Own has the garbage collector delete the objects of the account after the Instance, which its finalizer holds until
// the cleanup plan has ended. An Instance that is being deleted gets none: where all that it owns is deleted first
// (--cascade=foreground), the cleanup plan would lose its account again. The errors name the objects that will stay.
func (ch *Change) Own(ctx context.Context, c client.Client, instance *v1beta1.Instance) (failures []error) {
	if instance.DeletionTimestamp != nil {
		return nil
	}
	owner := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: instance.Name, UID: instance.UID}
	for _, object := range ch.owned {
		live := object.DeepCopyObject().(client.Object)
		err := c.Get(ctx, client.ObjectKeyFromObject(object), live)
		if err == nil && !v1beta1.HasOwner(live, owner.UID) {
			patch := client.MergeFromWithOptions(live.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
			others := slices.DeleteFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return v1beta1.OwnedBy(o, "Instance") })
			live.SetOwnerReferences(append(others, owner))
			err = c.Patch(ctx, live, patch)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s will stay when instance %s/%s is deleted: %w", Step{Object: object}, instance.Namespace,
				instance.Name, err))
		}
	}
	return failures
}
