package command

import (
	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/act"
)

// NewInstanceCommand returns a command that works on one Instance.
func NewInstanceCommand(env *Env, use, short string, run InstanceFunc) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: ArgumentsForFlags("instance"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				return ErrNoInstance
			}
			c, _, namespace, err := env.Connect()
			if err != nil {
				return err
			}
			instance, err := act.FindInstance(cmd.Context(), c, namespace, name)
			if err != nil {
				return err
			}
			return run(cmd.Context(), c, instance)
		},
	}
	AddInstanceFlag(cmd, &name)
	return cmd
}
