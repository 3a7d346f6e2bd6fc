package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/cmd/kudo-local/internal/plane"
)

func newDown(o *options) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a control plane; its data stays, so that 'up' continues",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.change(cmd, func(ctx context.Context, p *plane.Plane) error {
				if err := stop(ctx, cmd, p); err != nil {
					return err
				}
				if !remove {
					return nil
				}
				if err := p.Delete(); err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "removed %s\n", p.Dir())
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "also remove the data, certificates and logs")
	return cmd
}

func newReset(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "reset",
		Short: "Reset the cluster",
		Long:  "Delete the data of the cluster, and start an empty one with the same kubeconfig.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.change(cmd, func(ctx context.Context, p *plane.Plane) error {
				if err := stop(ctx, cmd, p); err != nil {
					return err
				}
				if err := p.Empty(); err != nil {
					return err
				}
				if err := p.Up(ctx); err != nil {
					return err
				}
				printUp(cmd, o, p)
				return nil
			})
		},
	}
}

func stop(ctx context.Context, cmd *cobra.Command, p *plane.Plane) error {
	ran, err := p.Down(ctx)
	if err != nil {
		return err
	}
	if len(ran) == 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "nothing of instance %q was running\n", p.Name)
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "stopped %s\n", strings.Join(ran, ", "))
	return nil
}
