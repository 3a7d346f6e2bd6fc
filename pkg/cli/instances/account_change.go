package instances

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/plans"
)

// goOn is the remedy of whatever fails halfway.
const goOn = "the same command goes on from there"

// ungiven is the remedy of rights that the API server does not let a user give.
const ungiven = "you cannot give what you may not do yourself: ask an administrator of the namespace to run the same command, or to apply what kubectl kudo package rights PACKAGE -o yaml prints"

// accountChange is what is to be done so that an account has its rights.
type accountChange struct {
	*rights.Account
	// uid of the Instance; empty if it is not there yet.
	uid   types.UID
	steps []accountStep
	// added and removed are the rules that the Role gets and loses; of a new Role, added are all.
	added, removed []rbacv1.PolicyRule
	isNew          bool
	// isThere is set if the ServiceAccount is one that no command has made.
	isThere bool
	// owned are the objects that are deleted with the Instance.
	owned []client.Object
}

// accountStep writes one object: as a new one, or as a patch of a live one.
type accountStep struct {
	object client.Object
	patch  client.Patch
}

func (s accountStep) String() string {
	return fmt.Sprintf("%s %s/%s", s.object.GetObjectKind().GroupVersionKind().Kind, s.object.GetNamespace(), s.object.GetName())
}

func (s accountStep) write(ctx context.Context, c client.Client, dry bool) error {
	object := s.object.DeepCopyObject().(client.Object)
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

// giveRights shows what the plans of an Instance need, asks, and gives it to its account. Everything is checked before
// anything is written.
func giveRights(ctx context.Context, env *command.Env, c client.Client, instance *v1beta1.Instance, needed *rights.Rights, yes bool) (*accountChange, error) {
	change, err := reviewAccount(ctx, c, instance, needed)
	if err != nil {
		return nil, err
	}
	for _, note := range needed.Notes {
		env.Warnf("%s", command.QuoteControls(note))
	}
	if len(change.steps) == 0 {
		env.Printf("serviceaccount %s/%s has the rights that the plans need", change.Namespace, change.Name)
		return change, nil
	}
	if err := showChange(env, change); err != nil {
		return nil, err
	}
	if err := confirm(env, "Give these rights?", yes); err != nil {
		return nil, err
	}
	return change, writeAccount(ctx, env, c, change)
}

// showChange prints the rights that an account gets, or how they change.
func showChange(env *command.Env, change *accountChange) error {
	switch {
	case change.isNew:
		if change.isThere {
			env.Warnf("serviceaccount %s/%s is there already: whatever else uses it gets these rights too", change.Namespace, change.Name)
		}
		env.Printf("serviceaccount %s/%s gets these rights in namespace %s, and kudo acts as it when it runs the plans of instance %s:", change.Namespace, change.Name, change.Namespace, change.Instance)
		return env.PrintTable(command.RuleRows("", change.added))
	case len(change.added)+len(change.removed) == 0:
		return nil
	}
	env.Printf("the rights of serviceaccount %s/%s in namespace %s change:", change.Namespace, change.Name, change.Namespace)
	return env.PrintTable(append(command.RuleRows("- ", change.removed), command.RuleRows("+ ", change.added)...))
}

// reviewAccount compares what is there with what is needed, and checks by dry runs that this user may write it.
func reviewAccount(ctx context.Context, c client.Client, instance *v1beta1.Instance, needed *rights.Rights) (*accountChange, error) {
	change, err := compareAccount(ctx, c, instance, needed)
	if err != nil {
		return nil, err
	}
	return change, change.try(ctx, c)
}

// compareAccount compares what is there with what is needed.
func compareAccount(ctx context.Context, c client.Client, instance *v1beta1.Instance, needed *rights.Rights) (*accountChange, error) {
	a := rights.NewAccount(instance.Namespace, instance.Name, instance.Spec.ServiceAccountName, needed.Rules)
	a.Manager = kudoinit.ManagerAccount(ctx, c)
	change := &accountChange{Account: a, uid: instance.UID}
	for _, review := range []func(context.Context, client.Client, *v1beta1.Instance) error{change.reviewServiceAccount, change.reviewRole, change.reviewBinding, change.reviewRunAs} {
		if err := review(ctx, c, instance); err != nil {
			return nil, err
		}
	}
	return change, nil
}

// look reads the live object into one of its type.
func (ch *accountChange) look(ctx context.Context, c client.Client, want, live client.Object) (found bool, err error) {
	err = c.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err):
		ch.steps = append(ch.steps, accountStep{object: want})
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", accountStep{object: want}, err)
	}
	if live.GetDeletionTimestamp() != nil {
		return false, fmt.Errorf("%s is being deleted: run the same command again after its deletion", accountStep{object: want})
	}
	live.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
	return true, nil
}

func (ch *accountChange) isOurs(live client.Object) bool {
	return live.GetLabels()[v1beta1.InstanceLabel] == ch.Instance
}

// isStale reports whether an object of ours has an owner that is another Instance: one of the same name that was deleted,
// with which the garbage collector deletes the object.
func (ch *accountChange) isStale(live client.Object) bool {
	return ch.isOurs(live) && slices.ContainsFunc(live.GetOwnerReferences(), ch.isOther)
}

func (ch *accountChange) isOther(o metav1.OwnerReference) bool {
	return v1beta1.OwnedBy(o, "Instance") && o.UID != ch.uid
}

// change adds a patch that edits a live object, if it is to be edited or has a stale owner.
func (ch *accountChange) change(live client.Object, differs bool, edit func()) {
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
	ch.steps = append(ch.steps, accountStep{live, patch})
}

// reviewServiceAccount takes an account that is there as it is.
func (ch *accountChange) reviewServiceAccount(ctx context.Context, c client.Client, _ *v1beta1.Instance) error {
	want, live := ch.ServiceAccount(), &corev1.ServiceAccount{}
	found, err := ch.look(ctx, c, want, live)
	if err != nil {
		return err
	}
	if !found || ch.isOurs(live) {
		ch.owned = append(ch.owned, want)
	}
	if found {
		ch.isThere = !ch.isOurs(live)
		ch.change(live, false, nil)
	}
	return nil
}

// reviewRole changes the rules of a Role that a command has made. While a plan runs or waits, none is taken away: it may be
// one of the version, or of the values, of before.
func (ch *accountChange) reviewRole(ctx context.Context, c client.Client, instance *v1beta1.Instance) error {
	want, live := ch.Role(), &rbacv1.Role{}
	ch.owned = append(ch.owned, want)
	found, err := ch.look(ctx, c, want, live)
	if err != nil {
		return err
	}
	if !found {
		ch.isNew, ch.added = true, ch.Rules
		return nil
	}
	if !ch.isOurs(live) {
		return fmt.Errorf("%s is there already, without the label %s=%s: it is not changed. Delete it, or choose another name for the Instance", accountStep{object: want}, v1beta1.InstanceLabel, ch.Instance)
	}
	if status := instance.Status; plans.Running(status.PlanStatus) != "" || len(status.Queue) > 0 {
		want.Rules = rights.Merge(want.Rules, live.Rules)
	}
	ch.added, ch.removed = rights.Without(want.Rules, live.Rules), rights.Without(live.Rules, want.Rules)
	ch.change(live, len(ch.added)+len(ch.removed) > 0, func() { live.Rules = want.Rules })
	return nil
}

func (ch *accountChange) reviewBinding(ctx context.Context, c client.Client, _ *v1beta1.Instance) error {
	want := ch.RoleBinding()
	ch.owned = append(ch.owned, want)
	return ch.reviewSubjects(ctx, c, want, true)
}

func (ch *accountChange) reviewRunAs(ctx context.Context, c client.Client, _ *v1beta1.Instance) error {
	return ch.reviewSubjects(ctx, c, ch.RunAsBinding(), false)
}

// reviewSubjects adds the subject of a binding. That of an Instance has one subject only: rights that are computed for one
// account are no other's.
func (ch *accountChange) reviewSubjects(ctx context.Context, c client.Client, want *rbacv1.RoleBinding, only bool) error {
	live := &rbacv1.RoleBinding{}
	found, err := ch.look(ctx, c, want, live)
	switch {
	case err != nil || !found:
		return err
	case live.RoleRef != want.RoleRef || only && !ch.isOurs(live):
		return fmt.Errorf("RoleBinding %s/%s is there already, and binds %s %s: it is not changed. Delete it, and run the same command again", live.Namespace, live.Name, live.RoleRef.Kind, live.RoleRef.Name)
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

// try has the API server check the steps, without writing. A binding cannot be tried before its Role is there: who may give
// the rules of the Role may bind it, if he may write bindings.
func (ch *accountChange) try(ctx context.Context, c client.Client) error {
	for _, step := range ch.steps {
		var err error
		if step.patch == nil && step.object.GetName() == ch.RoleName() && step.object.GetObjectKind().GroupVersionKind().Kind == "RoleBinding" {
			err = mayCreate(ctx, c, ch.Namespace, rbacv1.Resource("rolebindings"))
		} else {
			err = step.write(ctx, c, true)
		}
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("%s: %w\n%s", step, err, ungiven)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

// writeAccount does the steps.
func writeAccount(ctx context.Context, env *command.Env, c client.Client, change *accountChange) error {
	var done []string
	for _, step := range change.steps {
		if err := step.write(ctx, c, false); err != nil {
			before := "nothing was written"
			if len(done) > 0 {
				before = "written before: " + strings.Join(done, ", ")
			}
			return fmt.Errorf("%s: %w (%s; %s)", step, err, before, goOn)
		}
		verb := "created"
		if step.patch != nil {
			verb = "changed"
		}
		done = append(done, step.String())
		env.Printf("%s %s/%s %s", strings.ToLower(step.object.GetObjectKind().GroupVersionKind().Kind), step.object.GetNamespace(), step.object.GetName(), verb)
	}
	return nil
}

// ownAccount has the garbage collector delete the objects of the account after the Instance, which its finalizer holds until
// the cleanup plan has ended. An Instance that is being deleted gets none: where all that it owns is deleted first
// (--cascade=foreground), the cleanup plan would lose its account again.
func ownAccount(ctx context.Context, env *command.Env, c client.Client, change *accountChange, instance *v1beta1.Instance) {
	if instance.DeletionTimestamp != nil {
		return
	}
	owner := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: instance.Name, UID: instance.UID}
	for _, object := range change.owned {
		live := object.DeepCopyObject().(client.Object)
		err := c.Get(ctx, client.ObjectKeyFromObject(object), live)
		if err == nil && !slices.ContainsFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			patch := client.MergeFromWithOptions(live.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
			others := slices.DeleteFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return v1beta1.OwnedBy(o, "Instance") })
			live.SetOwnerReferences(append(others, owner))
			err = c.Patch(ctx, live, patch)
		}
		if err != nil {
			env.Warnf("%s will stay when instance %s/%s is deleted: %v", accountStep{object: object}, instance.Namespace, instance.Name, err)
		}
	}
}
