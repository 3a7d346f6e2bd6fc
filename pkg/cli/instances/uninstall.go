package instances

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/preview"
)

type uninstallOptions struct {
	env *command.Env

	command.WaitFlags
	preview    previewFlags
	instance   string
	keepClaims bool
}

// NewUninstall returns the command uninstall.
func NewUninstall(env *command.Env) *cobra.Command {
	o := &uninstallOptions{env: env}
	cmd := &cobra.Command{
		Use:   "uninstall NAME",
		Short: "Delete an Instance, after its cleanup plan",
		Long: `Delete an Instance. Its cleanup plan runs first, if it has one; then its objects go. Cluster-scoped objects of
its plans stay, since others may use them, and so do objects that are annotated kudo.dev/keep, and claims of StatefulSets: they
are listed. An Instance of the same name takes them over. The OperatorVersion stays too.

  kubectl kudo uninstall db --wait
  kubectl kudo uninstall db --keep-claims`,
		Args:    command.ArgumentsForFlags("instance"),
		PreRunE: func(*cobra.Command, []string) error { return o.preview.check() },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	command.AddInstanceFlag(cmd, &o.instance)
	o.preview.add(cmd.Flags())
	o.WaitFlags.Add(cmd.Flags(), "the Instance is deleted")
	cmd.Flags().BoolVar(&o.keepClaims, "keep-claims", false,
		"annotate the PersistentVolumeClaims of the Instance with kudo.dev/keep before, so that they stay")
	return cmd
}

func (o *uninstallOptions) run(ctx context.Context) error {
	if o.instance == "" {
		return command.ErrNoInstance
	}
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	instance, err := find(ctx, c, namespace, o.instance)
	if err != nil {
		return err
	}
	if done, err := o.preview.show(o.env, func() (*preview.Preview, error) {
		return previewUninstall(ctx, o.env, c, instance, o.keepClaims)
	}); done || err != nil {
		return err
	}
	remainder, err := o.keepOrWarn(ctx, c, instance)
	if err != nil {
		return err
	}
	uid := instance.UID
	only := client.Preconditions{UID: &uid}
	if o.preview.expect != "" { // it is deleted as it was looked at
		only.ResourceVersion = &instance.ResourceVersion
	}
	if err := c.Delete(ctx, instance, client.PropagationPolicy(metav1.DeletePropagationBackground), only); err != nil {
		return fmt.Errorf("instance %s/%s: %w", namespace, o.instance, err)
	}
	o.env.Printf("instance %s/%s deleted", namespace, o.instance)
	for _, line := range remainder {
		o.env.Printf("%s", line)
	}
	if !o.Wait {
		return nil
	}
	if err := o.env.WaitForInstance(ctx, c, instance, time.Duration(o.Time), command.UntilDeleted(uid)); err != nil {
		return err
	}
	o.env.Printf("instance %s/%s gone", namespace, o.instance)
	return nil
}
