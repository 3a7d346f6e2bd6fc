package explore

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/live"
)

func newTest(env *command.Env) *cobra.Command {
	var output string
	var strict bool
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Run the cases of a tree of folders",
		Long: `Run the cases of all folders below DIR that have Configs (or customizations.yaml) and, in testdata/ beside them,
files of cases. Each case is asked 20 times, and retentions and aggregations are asked about their own result, too.

A case that cannot be judged, since its document is malformed, is reported as broken, and the others run all the same. A case
without output passes if it is answered without an error, and is counted as unasserted.

The exit code is 1 if a case is broken, else 3 if a case failed.`,
		Args: command.ExactArgs(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" && output != "junit" {
				return command.UsageError("invalid output format %q: only json and junit are known", output)
			}
			root, err := os.OpenRoot(args[0]) // links must not lead to files outside of the tree
			if err != nil {
				return fmt.Errorf("open the folder of the cases: %w", err)
			}
			defer func() { _ = root.Close() }()
			folders, err := cases.Load(root.FS(), live.NewHost())
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			results := cases.RunAll(cmd.Context(), folders, env.Now)
			if len(results) == 0 {
				return fmt.Errorf("there are no cases below %s: put them into testdata/ or into customizations_tests.yaml, beside a Config or "+
					"customizations.yaml", args[0])
			}
			if strict {
				results = strictResults(folders, results)
			} else {
				warn(env, folders, results)
			}
			return exploreResults(env, output, results)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or junit")
	cmd.Flags().BoolVar(&strict, "strict", false, "regard warnings as failures")
	return cmd
}

// strictResults returns the results with warnings turned into failures. The warnings of a folder become one result, before the cases of the
// folder.
func strictResults(folders []cases.Folder, results []cases.Result) []cases.Result {
	var all []cases.Result
	for _, f := range folders {
		if len(f.Warnings) > 0 {
			all = append(all, cases.Result{Folder: f.Path, Name: f.Path, Place: f.Path, State: cases.Failed, Failures: f.Warnings})
		}
		for ; len(results) > 0 && results[0].Folder == f.Path; results = results[1:] {
			results[0].Strict()
			all = append(all, results[0])
		}
	}
	return all
}

func warn(env *command.Env, folders []cases.Folder, results []cases.Result) {
	for _, f := range folders {
		for _, w := range f.Warnings {
			env.Warnf("%s", w)
		}
	}
	for _, r := range results {
		for _, w := range r.Warnings {
			env.Warnf("%s: %s: %s", r.Place, r.Name, w)
		}
	}
}

func exploreResults(env *command.Env, output string, results []cases.Result) error {
	var err error
	switch output {
	case "json":
		err = cases.WriteJSON(env.Out, results)
	case "junit":
		err = cases.WriteJUnit(env.Out, results)
	default:
		err = exploreTable(env, results)
	}
	if err != nil {
		return err
	}
	counts := cases.Count(results)
	switch {
	case counts[cases.Broken] > 0:
		return fmt.Errorf("%d of %d cases are broken, and %d failed", counts[cases.Broken], len(results), counts[cases.Failed])
	case counts[cases.Failed] > 0:
		return command.WithCode(command.ExitFailed, fmt.Errorf("%d of %d cases failed", counts[cases.Failed], len(results)))
	}
	return nil
}

// exploreTable counts by folder and operation, and lists failures.
func exploreTable(env *command.Env, results []cases.Result) error {
	states := []cases.State{cases.Passed, cases.Failed, cases.Broken, cases.Unasserted}
	rows := [][]string{{"FOLDER", "OPERATION", "PASSED", "FAILED", "BROKEN", "UNASSERTED"}}
	type place struct {
		folder    string
		operation explore.Operation
	}
	groups := map[place][]cases.Result{}
	var order []place
	for _, r := range results {
		p := place{r.Folder, r.Operation}
		if groups[p] == nil {
			order = append(order, p)
		}
		groups[p] = append(groups[p], r)
	}
	for _, p := range order {
		row := []string{p.folder, string(p.operation)}
		counts := cases.Count(groups[p])
		for _, state := range states {
			row = append(row, fmt.Sprint(counts[state]))
		}
		rows = append(rows, row)
	}
	if err := env.PrintTable(rows); err != nil {
		return err
	}
	for _, r := range results {
		label := "FAIL"
		if r.State == cases.Broken {
			label = "BROKEN"
		}
		for i, f := range r.Failures {
			if i == 0 {
				env.Printf("\n%s %s (%s)", label, r.Name, r.Place)
			}
			env.Printf("  %s", f)
		}
	}
	counts := cases.Count(results)
	env.Printf("\n%d cases passed, %d failed, %d broken, %d unasserted", counts[cases.Passed], counts[cases.Failed], counts[cases.Broken],
		counts[cases.Unasserted])
	return nil
}
