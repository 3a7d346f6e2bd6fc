package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/plans"
)

// NewPlan returns the command plan.
func NewPlan(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "plan", Short: "Manage the plans of an Instance"}
	command.SetupGroup(cmd)
	cmd.AddCommand(newPlanStatus(env), newPlanHistory(env), newPlanTrigger(env), newPlanWait(env), newPlanCancel(env), newPlanRetry(env),
		newPlanPreview(env))
	return cmd
}

// checkFormat refuses a wrong format of -o before a command waits or reads anything.
func checkFormat(output *string) func(*cobra.Command, []string) error {
	return func(*cobra.Command, []string) error { return command.CheckFormat(*output) }
}

func newPlanStatus(env *command.Env) *cobra.Command {
	var output string
	var clusters clusterFlags
	watch, w := false, &command.WaitFlags{}
	one := func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
		var failed error // the tree is shown also after an error
		if watch {
			return env.WatchInstance(ctx, c, i, command.UntilEnded(i))
		}
		if w.Wait {
			failed = env.WaitForInstance(ctx, c, i, time.Duration(w.Time), command.UntilEnded(i))
			if err := c.Get(ctx, client.ObjectKeyFromObject(i), i); err != nil {
				return errors.Join(failed, err)
			}
		}
		if output != "" {
			return errors.Join(failed, env.PrintValue(output, i.Status))
		}
		details := ""
		if failed == nil { // else the error has them
			details = env.ExplainInstance(ctx, c, i)
		}
		if i.IsTemplate() {
			env.Notef("the plans run in the clusters: --clusters shows them, and --cluster NAME those of one")
		}
		return errors.Join(failed, printPlans(ctx, env, c, i, details))
	}
	all := func(ctx context.Context, copies []command.Copy) error { return printStatuses(ctx, env, copies, output) }
	cmd := command.NewInstanceCommand(env, "status NAME", "Show the plans of an Instance as a tree, and why they wait or have failed",
		clusters.choose(env, one, all))
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show the changes until no plan runs any more: the tree is drawn anew on a terminal, "+
		"and each change is a line elsewhere")
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json: print status as such")
	cmd.PreRunE = checkFormat(&output)
	w.Add(cmd.Flags(), "no plan runs any more")
	clusters.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("watch", "wait", "clusters")
	cmd.MarkFlagsMutuallyExclusive("watch", "output")
	cmd = withOperatorVersionFlag(env, cmd, versionStatus(env, &output, w))
	cmd.MarkFlagsMutuallyExclusive("watch", "operator-version")
	clusters.exclude(cmd, "operator-version")
	return cmd
}

func newPlanWait(env *command.Env) *cobra.Command {
	limit := command.DefaultWait
	cmd := command.NewInstanceCommand(env, "wait NAME", "Wait until no plan of an Instance runs any more",
		func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			if err := env.WaitForInstance(ctx, c, i, time.Duration(limit), command.UntilEnded(i)); err != nil {
				return err
			}
			env.Printf("instance %s/%s ready", i.Namespace, i.Name)
			return nil
		})
	cmd.Flags().Var(&limit, "wait-time", "how long to wait at most: seconds, or a duration such as 5m")
	return cmd
}

func newPlanTrigger(env *command.Env) *cobra.Command {
	var plan string
	var previews previewFlags
	w := &command.WaitFlags{}
	cmd := command.NewInstanceCommand(env, "trigger NAME PLAN", "Start a plan", func(ctx context.Context, c client.WithWatch,
		i *v1beta1.Instance) error {
		trigger := act.Trigger{Instance: i, Plan: plan}
		change, err := trigger.Change(ctx, c)
		if err != nil {
			return err
		}
		if done, err := previews.show(ctx, env, c, trigger, change); done || err != nil {
			return err
		}
		return changeInstance(ctx, env, c, i, w, previews.lock(change.Verb, change.Apply))
	})
	cmd.Flags().StringVar(&plan, "name", "", "name of the plan")
	cmd.Args = command.ArgumentsForFlags("instance", "name")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if plan == "" {
			return command.UsageError("--name is missing: name the plan to start")
		}
		return previews.check(env)
	}
	previews.add(cmd.Flags())
	w.Add(cmd.Flags(), "the plan has ended")
	return cmd
}

func newPlanCancel(env *command.Env) *cobra.Command {
	var previews previewFlags
	var cluster string
	cmd := command.NewInstanceCommand(env, "cancel NAME", "End the plan that runs; of a failed cleanup, give it up",
		env.InCluster(&cluster, func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			cancel := act.Cancel{Instance: i}
			change, err := cancel.Change(ctx, c)
			if err != nil {
				return err
			}
			if done, err := previews.show(ctx, env, c, cancel, change); done || err != nil {
				return err
			}
			if err := act.Write(ctx, c, i, false, change.Apply); err != nil {
				return err
			}
			env.Printf("%s", change.Verb)
			return nil
		}))
	cmd.PreRunE = func(*cobra.Command, []string) error { return previews.check(env) }
	previews.add(cmd.Flags())
	command.AddClusterFlag(cmd, &cluster)
	return cmd
}

func newPlanRetry(env *command.Env) *cobra.Command {
	w := &command.WaitFlags{}
	var previews previewFlags
	var cluster string
	cmd := command.NewInstanceCommand(env, "retry NAME", "Run the plan that failed last again",
		env.InCluster(&cluster, func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			retry := act.Retry{Instance: i}
			change, err := retry.Change(ctx, c)
			if err != nil {
				return err
			}
			if done, err := previews.show(ctx, env, c, retry, change); done || err != nil {
				return err
			}
			if err := act.Write(ctx, c, i, previews.expect.isSet(), change.Apply); err != nil {
				return err
			}
			env.Printf("%s", change.Verb)
			if !w.Wait {
				return nil
			}
			err = env.WaitForInstance(ctx, c, i, time.Duration(w.Time), command.UntilEnded(i))
			if err == nil {
				env.Printf("instance %s/%s ready", i.Namespace, i.Name)
			}
			return err
		}))
	cmd.PreRunE = func(*cobra.Command, []string) error { return previews.check(env) }
	previews.add(cmd.Flags())
	w.Add(cmd.Flags(), "the plan has ended")
	command.AddClusterFlag(cmd, &cluster)
	cmd = withOperatorVersionFlag(env, cmd, retryVersion(env, w))
	cmd.MarkFlagsMutuallyExclusive("operator-version", "cluster")
	cmd.MarkFlagsMutuallyExclusive("operator-version", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("operator-version", "expect")
	return cmd
}

func newPlanHistory(env *command.Env) *cobra.Command {
	var output string
	var clusters clusterFlags
	all := false
	cmd := command.NewInstanceCommand(env, "history NAME", "List the last runs of an Instance's plans",
		clusters.choose(env, func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			if i.IsTemplate() {
				return fmt.Errorf("the plans of instance %s/%s run in clusters: --clusters lists their runs", i.Namespace, i.Name)
			}
			return printHistory(ctx, env, c, i, output, all)
		}, func(ctx context.Context, copies []command.Copy) error {
			return printHistories(ctx, env, copies, output, all)
		}))
	cmd.Flags().BoolVar(&all, "all", false, "list also the runs from before a restore")
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json")
	cmd.PreRunE = checkFormat(&output)
	clusters.add(cmd)
	cmd = withOperatorVersionFlag(env, cmd, func(ctx context.Context, c client.WithWatch, ov *v1beta1.OperatorVersion) error {
		return printHistory(ctx, env, c, ov, output, all)
	})
	clusters.exclude(cmd, "operator-version")
	return cmd
}

// listRuns returns the runs of an Instance or an OperatorVersion; all of them, or those since the last restore.
func listRuns(ctx context.Context, c client.Client, owner client.Object, all bool) ([]history.Entry, error) {
	runs, err := history.List(ctx, c, owner)
	return slices.DeleteFunc(runs, func(r history.Entry) bool { return r.Former && !all }), err
}

// printHistory prints the runs that listRuns returns.
func printHistory(ctx context.Context, env *command.Env, c client.Client, owner client.Object, output string, all bool) error {
	runs, err := listRuns(ctx, c, owner, all)
	if err != nil {
		return err
	}
	if output != "" {
		return env.PrintValue(output, runs)
	}
	return env.PrintTable(append([][]string{historyColumns()}, historyRows(env, runs)...))
}

func historyColumns() []string {
	return []string{"REVISION", "PLAN", "STATUS", "STARTED", "TOOK", "OPERATOR-VERSION", "CAUSE"}
}

// historyRows returns a row for each run, and prints a warning for each that cannot be read.
func historyRows(env *command.Env, runs []history.Entry) [][]string {
	var rows [][]string
	for _, r := range runs {
		if r.Unread != nil {
			env.Warnf("%s", r.Unread)
		}
		took := command.Elapsed(&r.Started, r.Finished, env.Now())
		cause := plans.DescribeCause(r.Cause, r.RequestedBy)
		if r.Former {
			cause += " (from before the restore)"
		}
		rows = append(rows, []string{fmt.Sprint(r.Revision), r.Plan, string(r.Status), r.Started.Format(time.DateTime), strings.TrimSpace(took),
			r.Version, cause})
	}
	return rows
}
