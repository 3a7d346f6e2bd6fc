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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/share"
)

type uninstallVersionOptions struct {
	env *command.Env

	command.WaitFlags
	dryRun, force, leaveUsers bool
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
		Args: command.ExactArgs(1, "the name of one OperatorVersion"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "list what will go, what stays, and why, and delete nothing")
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
	c, config, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	ov, err := findVersion(ctx, c, namespace, name)
	if err != nil {
		return err
	}
	users, err := usersOf(ctx, o.env, c, ov)
	if err != nil {
		return err
	}
	if o.dryRun || o.force || o.leaveUsers {
		if err := o.printReleasePreview(ctx, c, config, ov, users); err != nil || o.dryRun {
			return err
		}
	}
	if len(users) > 0 && !o.leaveUsers {
		return fmt.Errorf("operatorversion %s/%s stays, since Instances use it: %s. Uninstall or upgrade them first, or add --leave-users: "+
			"they run on, and what the version installed stays for them", namespace, name, byNamespace(users))
	}
	if err := markDeletion(ctx, c, ov, o); err != nil {
		return err
	}
	uid := ov.UID
	// A deletion that was asked for before can end as soon as it is marked.
	if err := client.IgnoreNotFound(c.Delete(ctx, ov, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("operatorversion %s/%s: %w", namespace, name, err)
	}
	o.env.Printf("operatorversion %s/%s deleted", namespace, name)
	if !o.Wait {
		return nil
	}
	if err := o.awaitRelease(ctx, c, ov); err != nil {
		return err
	}
	o.env.Printf("operatorversion %s/%s gone", namespace, name)
	return nil
}

// markDeletion writes on an OperatorVersion how its deletion is to be done.
func markDeletion(ctx context.Context, c client.Client, ov *v1beta1.OperatorVersion, o *uninstallVersionOptions) error {
	patch := client.MergeFrom(ov.DeepCopy())
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

// printReleasePreview prints what a release will do to each object.
func (o *uninstallVersionOptions) printReleasePreview(ctx context.Context, c client.Client, config *rest.Config,
	ov *v1beta1.OperatorVersion, users []types.NamespacedName) error {
	leaves := o.leaveUsers && len(users) > 0
	rows := [][]string{{"OBJECT", "WHAT", "WHY"}}
	for _, user := range users {
		what, why := "holds the release up", "it uses this version: uninstall or upgrade it first, or add --leave-users"
		if leaves {
			what, why = "runs on", "from its records; its next change waits for an OperatorVersion"
		}
		rows = append(rows, []string{"Instance " + user.String(), what, why})
	}
	holder := &v1beta1.Installation{}
	err := c.Get(ctx, client.ObjectKey{Name: ov.InstallationName()}, holder)
	switch {
	case apierrors.IsNotFound(err) && len(users) == 0:
		o.env.Printf("operatorversion %s/%s holds nothing in the cluster", ov.Namespace, ov.Name)
		return nil
	case apierrors.IsNotFound(err):
		return o.env.PrintTable(rows)
	case apierrors.IsForbidden(err) && leaves:
		o.env.Warnf("what the install plan has installed stays for these Instances, and cannot be listed: %s", err)
		return o.env.PrintTable(rows)
	case err != nil:
		return fmt.Errorf("installation %s: %w", ov.InstallationName(), err)
	}
	if leaves {
		return o.env.PrintTable(append(rows, kept(holder)...))
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // all kinds are looked at, deprecated ones too
	engine, err := sharing(config, c)
	if err != nil {
		return err
	}
	fates, err := engine.Session(holder, share.Policy{}, holder.Status.Resources).Preview(ctx, o.force)
	if err != nil {
		return err
	}
	for _, fate := range fates {
		what := "stays"
		switch {
		case fate.Blocks:
			what = "holds the release up"
		case fate.Deleted && fate.Reason != "":
			what = "will be destroyed"
		case fate.Deleted:
			what = "goes"
		}
		rows = append(rows, []string{fate.ID.String(), what, fate.Reason})
	}
	return o.env.PrintTable(rows)
}

// kept returns a row of the table for each object that an Installation holds on for Instances.
func kept(holder *v1beta1.Installation) [][]string {
	var rows [][]string
	for _, r := range slices.Backward(holder.Status.Resources) {
		why := "it is held until no Instance uses this version any more"
		if r.State == v1beta1.HoldExisting {
			why = "kudo did not create it"
		}
		rows = append(rows, []string{share.IDOf(r).String(), "stays", why})
	}
	return rows
}

// usersOf returns the Instances that use an OperatorVersion, without those that are being deleted. It warns if this user may
// not list the Instances of all namespaces.
func usersOf(ctx context.Context, env *command.Env, c client.Client, ov *v1beta1.OperatorVersion) ([]types.NamespacedName, error) {
	list := &v1beta1.InstanceList{}
	err := c.List(ctx, list)
	if apierrors.IsForbidden(err) {
		env.Warnf("Instances of other namespaces are not looked at, since they cannot be listed: %s", err)
		if err = c.List(ctx, list, client.InNamespace(ov.Namespace)); apierrors.IsForbidden(err) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list Instances that use operatorversion %s/%s: %w", ov.Namespace, ov.Name, err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(i v1beta1.Instance) bool { return i.DeletionTimestamp != nil })
	return list.UsersOf(client.ObjectKeyFromObject(ov)), nil
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
