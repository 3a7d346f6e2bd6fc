package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/cmd/kudo-local/internal/plane"
)

func newKill(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kill COMPONENT",
		Short: "Kill a component as a crash would, to see what others do without it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.change(cmd, func(ctx context.Context, p *plane.Plane) error {
				if err := p.Kill(ctx, args[0]); err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "killed %s\n", args[0])
				return nil
			})
		},
		ValidArgsFunction: o.completeComponent,
	}
}

func newStart(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "start COMPONENT",
		Short: "Start a component that was killed or has died",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.change(cmd, func(ctx context.Context, p *plane.Plane) error { return p.Start(ctx, args[0]) })
		},
		ValidArgsFunction: o.completeComponent,
	}
}

func (o *options) completeComponent(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || o.complete() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	p, err := o.load(cmd.ErrOrStderr())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return append(p.Components(), p.NodeServers()...), cobra.ShellCompDirectiveNoFileComp
}
