package instances

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
)

// NewRollback returns the command rollback.
func NewRollback(env *command.Env) *cobra.Command {
	w, o, previews := &command.WaitFlags{}, act.Rollback{}, previewFlags{}
	cmd := command.NewInstanceCommand(env, "rollback NAME", "Set an Instance back to what an earlier run was started with",
		func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			o.Instance = i
			change, err := o.Change(ctx, c)
			if err != nil {
				return err
			}
			if done, err := previews.show(ctx, env, c, o, change); done || err != nil {
				return err
			}
			return changeInstance(ctx, env, c, i, w, previews.lock(change.Verb, change.Apply))
		})
	cmd.Long = `Set the operator version and the parameters of an Instance back to those of an earlier run, which kubectl kudo plan history
lists. The plans that such a change starts are run: nothing but the plans changes what is in the cluster. Values of Secrets
and ConfigMaps that spec.parametersFrom names stay as they are there. A plan that runs is cancelled, so that the rollback does
not wait behind one that may never end.

  kubectl kudo rollback db --to-revision 3 --wait`
	cmd.Flags().Int64Var(&o.Revision, "to-revision", 0, "number of the run (default the newest that was complete and had other values or "+
		"another version than the Instance has now)")
	cmd.Flags().BoolVar(&o.AfterRunning, "after-running", false, "wait behind the plan that runs, and do not cancel it")
	previews.add(cmd.Flags())
	cmd.PreRunE = func(*cobra.Command, []string) error { return previews.check(env) }
	w.Add(cmd.Flags(), "the plans that the change starts have ended")
	return cmd
}
