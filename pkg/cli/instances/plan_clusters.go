package instances

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/text"
)

// clusterFlags select the clusters of an Instance of a hub that a command reads.
type clusterFlags struct {
	cluster string
	all     bool
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	command.AddClusterFlag(cmd, &f.cluster)
	cmd.Flags().BoolVar(&f.all, "clusters", false, "on a hub: show the copies in all clusters of the Instance")
	cmd.MarkFlagsMutuallyExclusive("cluster", "clusters")
}

// exclude makes another flag exclude both.
func (f *clusterFlags) exclude(cmd *cobra.Command, flag string) {
	cmd.MarkFlagsMutuallyExclusive("cluster", flag)
	cmd.MarkFlagsMutuallyExclusive("clusters", flag)
}

// choose returns a function that reads the Instance itself, its copy in one cluster, or its copies in all.
func (f *clusterFlags) choose(env *command.Env, one command.InstanceFunc, all func(ctx context.Context, copies []command.Copy) error,
) command.InstanceFunc {
	inOne := env.InCluster(&f.cluster, one)
	return func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
		if !f.all {
			return inOne(ctx, c, i)
		}
		if !i.IsTemplate() {
			return command.UsageError("--clusters: instance %s/%s is not placed on clusters from here", i.Namespace, i.Name)
		}
		copies := env.FindCopies(ctx, c, i)
		if err := all(ctx, copies); err != nil {
			return err
		}
		return unreadClusters(copies)
	}
}

// unreadClusters returns an error that names the clusters that could not be read.
func unreadClusters(copies []command.Copy) error {
	var names []string
	for _, c := range copies {
		if c.Err != nil {
			names = append(names, c.Cluster)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d clusters cannot be read: %s", len(names), len(copies), text.List(names, 5))
}

// copyStatus is the status of a copy, for programs.
type copyStatus struct {
	Cluster string                  `json:"cluster"`
	Status  *v1beta1.InstanceStatus `json:"status,omitempty"`
	Error   string                  `json:"error,omitempty"`
}

// printStatuses prints the plans of all copies.
func printStatuses(ctx context.Context, env *command.Env, copies []command.Copy, output string) error {
	if output != "" {
		return env.PrintValue(output, statusesOf(copies))
	}
	for _, c := range copies {
		if c.Err != nil {
			env.Printf("Cluster %s: %s", c.Cluster, text.OneLine(c.Err.Error()))
			continue
		}
		env.Printf("Cluster %s:", c.Cluster)
		if err := printPlans(ctx, env, c.Client, c.Instance, env.ExplainInstance(ctx, c.Client, c.Instance)); err != nil {
			return err
		}
	}
	return nil
}

func statusesOf(copies []command.Copy) []copyStatus {
	var out []copyStatus
	for _, c := range copies {
		if c.Err != nil {
			out = append(out, copyStatus{Cluster: c.Cluster, Error: c.Err.Error()})
		} else {
			out = append(out, copyStatus{Cluster: c.Cluster, Status: &c.Instance.Status})
		}
	}
	return out
}

// printPlans prints the plans of an Instance as a tree, and why they wait or have failed.
func printPlans(ctx context.Context, env *command.Env, c client.Client, i *v1beta1.Instance, details string) error {
	ov := &v1beta1.OperatorVersion{}
	if c.Get(ctx, i.OperatorVersionKey(), ov) != nil {
		ov = nil
	}
	return env.Print(command.FormatPlans(i, ov, env.Now()), details)
}

// copyRuns are the runs of a copy, for programs.
type copyRuns struct {
	Cluster string          `json:"cluster"`
	Runs    []history.Entry `json:"runs"`
	Error   string          `json:"error,omitempty"`
}

// printHistories prints the last runs of all copies.
func printHistories(ctx context.Context, env *command.Env, copies []command.Copy, output string, former bool) error {
	values := make([]copyRuns, len(copies))
	rows := [][]string{append([]string{"CLUSTER"}, historyColumns()...)}
	for n := range copies {
		c := &copies[n]
		values[n] = copyRuns{Cluster: c.Cluster, Runs: []history.Entry{}}
		if c.Err == nil {
			values[n].Runs, c.Err = listRuns(ctx, c.Client, c.Instance, former)
		}
		if c.Err != nil {
			values[n].Error = c.Err.Error()
			rows = append(rows, []string{c.Cluster, text.OneLine(c.Err.Error())})
		}
		for _, row := range historyRows(env, values[n].Runs) {
			rows = append(rows, append([]string{c.Cluster}, row...))
		}
	}
	if output != "" {
		return env.PrintValue(output, values)
	}
	return env.PrintTable(rows)
}
