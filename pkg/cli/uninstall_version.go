package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/share"
)

type uninstallVersionOptions struct {
	waiting
	dryRun, force bool
}

func (t *tool) uninstallVersionCommand() *cobra.Command {
	o := &uninstallVersionOptions{}
	cmd := &cobra.Command{
		Use:   "uninstall-version NAME",
		Short: "Delete an OperatorVersion, and release what its install plan installed",
		Long: `Delete an OperatorVersion. What its install plan installed is released: an object goes if kudo created it and no
other OperatorVersion holds it; all else stays. CustomResourceDefinitions that have objects, namespaces with content that
kudo did not create, and PersistentVolumeClaims hold the release up, unless --force is given, which destroys them.

  kubectl kudo uninstall-version mysql-5.7-0.3.0 --dry-run
  kubectl kudo uninstall-version mysql-5.7-0.3.0 --wait`,
		Args: exactly(1, "the name of one OperatorVersion"),
		RunE: func(cmd *cobra.Command, args []string) error { return t.uninstallVersion(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "list what will go, what stays, and why, and delete nothing")
	f.BoolVar(&o.force, "force", false, "destroy custom resources, content of namespaces and claims along")
	o.waiting.add(f, "the OperatorVersion and what it held are gone")
	return cmd
}

func (t *tool) uninstallVersion(ctx context.Context, name string, o *uninstallVersionOptions) error {
	c, config, namespace, err := t.connect()
	if err != nil {
		return err
	}
	ov, err := findVersion(ctx, c, namespace, name)
	if err != nil {
		return err
	}
	if o.dryRun || o.force {
		if err := t.fates(ctx, c, config, ov, o.force); err != nil || o.dryRun {
			return err
		}
	}
	if o.force {
		patch := client.MergeFrom(ov.DeepCopy())
		metav1.SetMetaDataAnnotation(&ov.ObjectMeta, v1beta1.ForceReleaseAnnotation, "true")
		if err := c.Patch(ctx, ov, patch); err != nil {
			return fmt.Errorf("operatorversion %s/%s: %w", namespace, name, err)
		}
	}
	uid := ov.UID
	if err := c.Delete(ctx, ov, client.Preconditions{UID: &uid}); err != nil {
		return fmt.Errorf("operatorversion %s/%s: %w", namespace, name, err)
	}
	t.say("operatorversion %s/%s deleted", namespace, name)
	if !o.wait {
		return nil
	}
	told := ""
	err = t.awaitVersion(ctx, c, client.ObjectKeyFromObject(ov), time.Duration(o.time), func(now *v1beta1.OperatorVersion) (bool, error) {
		if now == nil || now.UID != uid {
			return true, nil
		}
		if waits := meta.FindStatusCondition(now.Status.Conditions, v1beta1.ReleasedCondition); waits != nil && waits.Message != told {
			told = waits.Message
			t.warn("the release waits: %s", told)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	t.say("operatorversion %s/%s gone", namespace, name)
	return nil
}

// fates lists what a release will do.
func (t *tool) fates(ctx context.Context, c client.Client, config *rest.Config, ov *v1beta1.OperatorVersion, force bool) error {
	holder := &v1beta1.Installation{}
	err := c.Get(ctx, client.ObjectKey{Name: ov.InstallationName()}, holder)
	if apierrors.IsNotFound(err) {
		t.say("operatorversion %s/%s holds nothing in the cluster", ov.Namespace, ov.Name)
		return nil
	}
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // all kinds are looked at, deprecated ones too
	engine, err := sharing(config, c)
	if err != nil {
		return err
	}
	fates, err := engine.Session(holder, share.Policy{}, holder.Status.Resources).Preview(ctx, force)
	if err != nil {
		return err
	}
	rows := [][]string{{"OBJECT", "WHAT", "WHY"}}
	users, err := usersOf(ctx, c, ov)
	if err != nil {
		return err
	}
	for _, user := range users {
		rows = append(rows, []string{user, "holds the release up", "it runs this version: uninstall or upgrade it first"})
	}
	for _, fate := range fates {
		what := "stays"
		switch {
		case fate.Keeps:
			what = "holds the release up"
		case fate.Goes && fate.Reason != "":
			what = "will be destroyed"
		case fate.Goes:
			what = "goes"
		}
		rows = append(rows, []string{fate.ID.String(), what, fate.Reason})
	}
	return t.table(rows)
}

// usersOf are the Instances that run an OperatorVersion.
func usersOf(ctx context.Context, c client.Client, ov *v1beta1.OperatorVersion) ([]string, error) {
	list := &v1beta1.InstanceList{}
	if err := c.List(ctx, list); err != nil {
		return nil, err
	}
	var out []string
	for i := range list.Items {
		if user := &list.Items[i]; user.Uses(client.ObjectKeyFromObject(ov)) {
			out = append(out, fmt.Sprintf("Instance %s/%s", user.Namespace, user.Name))
		}
	}
	return out, nil
}
