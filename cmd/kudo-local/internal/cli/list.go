package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
)

func newKubeconfig(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the admin kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.load(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), p.Kubeconfig())
			return nil
		},
	}
}

func newList(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Print the names of all instances",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names, err := instance.List(o.root)
			if err != nil {
				return err
			}
			for _, name := range names {
				fmt.Fprintln(cmd.OutOrStdout(), name)
			}
			return nil
		},
	}
}
