package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/cmd/kudo-local/internal/plane"
)

func newLoad(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "load ARCHIVE…",
		Short: "Load images into a real node, which pulls none: archives as 'docker save' writes them, or of OCI layouts",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.change(cmd, func(_ context.Context, p *plane.Plane) error {
				for _, archive := range args {
					names, err := p.Load(archive)
					if err != nil {
						return err
					}
					for _, name := range names {
						fmt.Fprintf(cmd.OutOrStdout(), "loaded %s\n", name)
					}
				}
				return nil
			})
		},
	}
}
