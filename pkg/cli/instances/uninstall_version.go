package instances

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/preview"
)

type uninstallVersionOptions struct {
	env *command.Env

	command.WaitFlags
	preview           previewFlags
	force, leaveUsers bool
}

// NewUninstallVersion returns the command uninstall-version.
func NewUninstallVersion(env *command.Env) *cobra.Command {
	o := &uninstallVersionOptions{env: env}
	cmd := &cobra.Command{
		Use:   "uninstall-version NAME",
		Short: "Delete an OperatorVersion, and release what its install plan installed",
		Long: `Delete an OperatorVersion. What its install plan installed is released: an object goes if kudo created it and no
other OperatorVersion holds it; all else stays. CustomResourceDefinitions that have objects, namespaces with content that
kudo did not create, and PersistentVolumeClaims hold the release up, unless --force is given, which destroys them.

Instances that use the version, also those of other namespaces, are listed, and nothing is deleted. With --leave-users the
OperatorVersion is deleted nevertheless: these Instances run on from their records, and what the install plan installed stays
until the last of them is uninstalled or runs another version.

  kubectl kudo uninstall-version mysql-5.7-0.3.0 --dry-run
  kubectl kudo uninstall-version mysql-5.7-0.3.0 --wait`,
		Args:    command.ExactArgs(1, "the name of one OperatorVersion"),
		PreRunE: func(*cobra.Command, []string) error { return o.preview.check(env) },
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	o.preview.add(f)
	f.BoolVar(&o.force, "force", false, "destroy custom resources, content of namespaces and claims along")
	f.BoolVar(&o.leaveUsers, "leave-users", false, "delete the OperatorVersion although Instances use it, and keep what it installed for them")
	o.WaitFlags.Add(f, "the OperatorVersion and what it held are deleted")
	return cmd
}

func (o *uninstallVersionOptions) run(ctx context.Context, name string) error {
	if o.force && o.leaveUsers {
		return command.UsageError("--force cannot be used with --leave-users: what the Instances need is kept for them, so that nothing is " +
			"destroyed now")
	}
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	ov, err := findVersion(ctx, c, namespace, name)
	if err != nil {
		return err
	}
	users, unlisted, err := usersOf(ctx, c, ov)
	if err != nil {
		return err
	}
	if done, err := o.showRelease(ctx, c, ov, users, unlisted); done || err != nil {
		return err
	}
	if len(users) > 0 && !o.leaveUsers {
		return fmt.Errorf("operatorversion %s/%s stays, since Instances use it: %s. Uninstall or upgrade them first, or add --leave-users: "+
			"they run on, and what the version installed stays for them", namespace, name, byNamespace(users))
	}
	if err := markDeletion(ctx, c, ov, o); err != nil {
		return err
	}
	// An earlier deletion may complete as soon as the OperatorVersion is marked.
	only := client.Preconditions{UID: &ov.UID}
	if o.preview.expect.isSet() { // delete it only as the preview has shown it
		only.ResourceVersion = &ov.ResourceVersion
	}
	if err := client.IgnoreNotFound(c.Delete(ctx, ov, only)); err != nil {
		return fmt.Errorf("operatorversion %s/%s: %w", namespace, name, err)
	}
	o.env.Printf("operatorversion %s/%s deleted", namespace, name)
	if !o.Wait {
		return nil
	}
	if err := o.awaitRelease(ctx, c, ov); err != nil {
		return err
	}
	o.env.Printf("operatorversion %s/%s and what it held are deleted", namespace, name)
	return nil
}

// showRelease shows what the deletion would do, if the flags ask for a preview, force the deletion or leave users, and reports whether the
// command ends after it.
func (o *uninstallVersionOptions) showRelease(ctx context.Context, c client.Client, ov *v1beta1.OperatorVersion,
	users []types.NamespacedName, unlisted error) (bool, error) {
	release := preview.Release{Version: ov, Users: users, Unlisted: unlisted, LeavesUsers: o.leaveUsers, Force: o.force}
	compute := func(p *act.Previewer) (*preview.Preview, error) { return p.Release(ctx, release) }
	if o.preview.asked() {
		return o.preview.compute(o.env, c, compute)
	}
	if unlisted != nil {
		o.env.Warnf("Instances of other namespaces are not looked at, since they cannot be listed: %s", unlisted)
	}
	if !o.force && !o.leaveUsers {
		return false, nil
	}
	previewer, err := o.preview.timeout.previewer(o.env, c, false)
	if err != nil {
		return false, err
	}
	p, err := compute(previewer)
	if err != nil {
		return false, err
	}
	return false, command.PrintPreview(o.env, p, "")
}

// markDeletion writes on an OperatorVersion how its deletion is to be done.
func markDeletion(ctx context.Context, c client.Client, ov *v1beta1.OperatorVersion, o *uninstallVersionOptions) error {
	patch := client.MergeFrom(ov.DeepCopy())
	if o.preview.expect.isSet() { // mark it only as the preview has shown it
		patch = client.MergeFromWithOptions(ov.DeepCopy(), client.MergeFromWithOptimisticLock{})
	}
	switch {
	case o.force:
		metav1.SetMetaDataAnnotation(&ov.ObjectMeta, v1beta1.ForceReleaseAnnotation, "true")
	case o.leaveUsers:
		metav1.SetMetaDataAnnotation(&ov.ObjectMeta, v1beta1.LeaveUsersAnnotation, "true")
	default:
		return nil
	}
	if err := c.Patch(ctx, ov, patch); err != nil {
		return fmt.Errorf("operatorversion %s/%s: %w", ov.Namespace, ov.Name, err)
	}
	return nil
}

// awaitRelease waits until a deleted OperatorVersion is absent, and warns of what its release waits for.
func (o *uninstallVersionOptions) awaitRelease(ctx context.Context, c client.WithWatch, ov *v1beta1.OperatorVersion) error {
	told := ""
	return o.env.WaitForVersion(ctx, c, client.ObjectKeyFromObject(ov), time.Duration(o.Time), func(now *v1beta1.OperatorVersion) (bool,
		error) {
		if now == nil || now.UID != ov.UID {
			return true, nil
		}
		waits := meta.FindStatusCondition(now.Status.Conditions, v1beta1.ReleasedCondition)
		if waits != nil && waits.Message != told && (!o.leaveUsers || waits.Reason != v1beta1.ReasonInUse) {
			told = waits.Message
			o.env.Warnf("the release waits: %s", told)
		}
		return false, nil
	})
}

// usersOf returns the Instances that use an OperatorVersion, without those that are being deleted. unlisted is why the Instances of other
// namespaces are not known; nil if they are.
func usersOf(ctx context.Context, c client.Client, ov *v1beta1.OperatorVersion) (users []types.NamespacedName, unlisted, err error) {
	list := &v1beta1.InstanceList{}
	err = c.List(ctx, list)
	if apierrors.IsForbidden(err) {
		unlisted = err
		if err = c.List(ctx, list, client.InNamespace(ov.Namespace)); apierrors.IsForbidden(err) {
			return nil, unlisted, nil
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list Instances that use operatorversion %s/%s: %w", ov.Namespace, ov.Name, err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(i v1beta1.Instance) bool { return i.DeletionTimestamp != nil })
	return list.UsersOf(client.ObjectKeyFromObject(ov)), unlisted, nil
}

// byNamespace lists Instances, sorted by namespace: "a, b (namespace x), c (namespace y)".
func byNamespace(users []types.NamespacedName) string {
	var text strings.Builder
	for n, user := range users {
		text.WriteString(user.Name)
		if n+1 == len(users) || users[n+1].Namespace != user.Namespace {
			fmt.Fprintf(&text, " (namespace %s)", user.Namespace)
		}
		if n+1 < len(users) {
			text.WriteString(", ")
		}
	}
	return text.String()
}
