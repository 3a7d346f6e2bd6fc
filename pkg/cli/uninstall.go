package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type uninstallOptions struct {
	waiting
	instance string
}

func (t *tool) uninstallCommand() *cobra.Command {
	o := &uninstallOptions{}
	cmd := &cobra.Command{
		Use:   "uninstall --instance NAME",
		Short: "Delete an Instance, after its cleanup plan",
		Long: `Delete an Instance. Its cleanup plan runs first, if it has one; then its objects go. Cluster-scoped objects of
its plans stay, since others may use them, and are listed. The OperatorVersion stays too.

  kubectl kudo uninstall --instance db --wait`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return t.uninstall(cmd.Context(), o) },
	}
	instanceFlag(cmd, &o.instance)
	o.waiting.add(cmd.Flags(), "the Instance is gone")
	return cmd
}

func (t *tool) uninstall(ctx context.Context, o *uninstallOptions) error {
	c, _, namespace, err := t.connect()
	if err != nil {
		return err
	}
	instance, err := t.find(ctx, c, namespace, o.instance)
	if err != nil {
		return err
	}
	uid := instance.UID
	if err := c.Delete(ctx, instance, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid}); err != nil {
		return fmt.Errorf("instance %s/%s: %w", namespace, o.instance, err)
	}
	t.say("instance %s/%s deleted", namespace, o.instance)
	for _, r := range instance.Status.Resources {
		if r.Namespace == "" {
			t.say("%s %s stays, since it is cluster-scoped and others may use it", lower(r.Kind), r.Name)
		}
	}
	if !o.wait {
		return nil
	}
	if err := t.await(ctx, c, instance, time.Duration(o.time), gone(uid)); err != nil {
		return err
	}
	t.say("instance %s/%s gone", namespace, o.instance)
	return nil
}
