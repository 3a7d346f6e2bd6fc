// Package placement has the commands about the clusters that a hub places an Instance on.
package placement

import (
	"context"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
)

// New returns the command placement.
func New(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "placement", Short: "Show and change how a hub places an Instance on clusters"}
	command.SetupGroup(cmd)
	cmd.AddCommand(newShow(env), newPause(env), newResume(env), newFree(env), newForget(env))
	return cmd
}

// newCommand returns a command about one Instance, with a long text of help.
func newCommand(env *command.Env, use, short, long string, run func(ctx context.Context, c client.WithWatch,
	i *v1beta1.Instance) error) *cobra.Command {
	cmd := command.NewInstanceCommand(env, use, short, run)
	cmd.Long = long
	return cmd
}

// edit makes the change of an action, unless the Instance has changed since it was read.
func edit(ctx context.Context, env *command.Env, c client.Client, i *v1beta1.Instance, action act.Edit) error {
	change, err := action.Change(ctx, c)
	if err != nil {
		return err
	}
	if err := act.Write(ctx, c, i, true, change.Apply); err != nil {
		return err
	}
	env.Printf("instance %s/%s %s", i.Namespace, i.Name, change.Verb)
	return nil
}

func newPause(env *command.Env) *cobra.Command {
	return newCommand(env, "pause NAME", "Hold the next wave of a change",
		`Hold the next wave of a change. Clusters that have the change go on with it. As a change of spec,
it starts the rollout anew at the first wave, where the clusters have nothing left to do.

  kubectl kudo placement pause db`, func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			return edit(ctx, env, c, i, act.PauseRollout{Instance: i})
		})
}

func newResume(env *command.Env) *cobra.Command {
	return newCommand(env, "resume NAME", "Go on with a change that is stopped or paused",
		`Go on with a change that is stopped or paused. After a stop, the clusters that have failed so far do not count any more; what has
failed there stays as it is: kubectl kudo plan retry in the cluster runs the plan again.

  kubectl kudo placement resume db`, func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			return edit(ctx, env, c, i, act.ResumeRollout{Instance: i})
		})
}

func newForget(env *command.Env) *cobra.Command {
	var cluster string
	cmd := newCommand(env, "forget NAME", "Give up the copy of an Instance in a cluster that is lost",
		`Give up the copy of an Instance in a cluster that is to lose it and cannot be reached: the hub does not wait for it any more. What is
left in the cluster is to be deleted there. A hub that works with Karmada does not need this.

  kubectl kudo placement forget db --cluster m2`, func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			return edit(ctx, env, c, i, act.ForgetCluster{Instance: i, Cluster: cluster})
		})
	cmd.Flags().StringVar(&cluster, "cluster", "", "cluster to give up")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if cluster == "" {
			return command.UsageError("name the cluster to give up by --cluster")
		}
		return nil
	}
	return cmd
}

func newFree(env *command.Env) *cobra.Command {
	return newCommand(env, "free NAME", "Let an Instance run by itself that a hub has left in a cluster",
		`Let an Instance run by itself that a hub has left in a cluster: it takes spec.placement out, and starts no plan. The hub leaves it
when the Instance is deleted there and spec.placement.onDelete is Orphan. Run the command in the cluster, not on the hub.

  kubectl kudo placement free db --context m1`, func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			free := act.FreePlacement{Instance: i}
			unreleased := free.HasUnreleased()
			if err := edit(ctx, env, c, i, free); err != nil {
				return err
			}
			if unreleased {
				env.Warnf("spec of instance %s/%s may have a change that the hub had not released, for which plans start now: kubectl kudo plan "+
					"status --instance %s -n %s shows them", i.Namespace, i.Name, i.Name, i.Namespace)
			}
			return nil
		})
}

func newShow(env *command.Env) *cobra.Command {
	var output string
	cmd := newCommand(env, "show NAME", "Show the clusters of an Instance, and how far a change has come",
		`Show the clusters of an Instance, and how far a change has come.

  kubectl kudo placement show db
  kubectl kudo placement show db -o json`, func(_ context.Context, _ client.WithWatch, i *v1beta1.Instance) error {
			return show(env, i, output)
		})
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml, json or wide, which adds weights, waves and values of each cluster")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if output == "wide" {
			return nil
		}
		return checkShowFormat(output)
	}
	return cmd
}

func checkShowFormat(output string) error {
	if command.CheckFormat(output) != nil {
		return command.UsageError("invalid output format %q: use yaml, json or wide", output)
	}
	return nil
}
