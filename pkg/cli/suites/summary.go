package suites

import (
	"fmt"
	"time"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/testsuite"
)

// printLeftovers names what is still there when all namespaces are deleted.
func (o *testOptions) printLeftovers(names []string) {
	if len(names) == 0 {
		return
	}
	o.env.Printf("\nPlans of the cases have left these objects in the cluster, which uninstalling keeps, since others may use them:")
	for _, name := range names {
		o.env.Printf("  kubectl delete %s", name)
	}
}

// printKept says how to look at what failed cases have made, and how to delete it.
func (o *testOptions) printKept(results []testsuite.Result) {
	for _, r := range results {
		if len(r.Kept) == 0 {
			continue
		}
		o.env.Printf("\n%s has failed, and what it has made is kept. To look at it, and to delete it:", r.Name)
		for _, line := range r.Kept {
			o.env.Printf("  %s", line)
		}
	}
}

// printSummary prints a table of results, writes the report, and returns an error if a case failed.
func (o *testOptions) printSummary(results []testsuite.Result, took time.Duration) error {
	rows := [][]string{{"RESULT", "CASE", "STEPS", "TOOK"}}
	failed := 0
	for _, r := range results {
		verdict := "pass"
		if r.Err != nil {
			verdict = "FAIL"
			failed++
		}
		rows = append(rows, []string{verdict, r.Name, fmt.Sprint(len(r.Steps)), r.Took.Round(10 * time.Millisecond).String()})
	}
	o.env.Printf("")
	if err := o.env.PrintTable(rows); err != nil {
		return err
	}
	o.printKept(results)
	o.env.Printf("%d passed, %d failed in %s", len(results)-failed, failed, took.Round(10*time.Millisecond))
	if o.suite.ReportFormat != "" {
		path, err := testsuite.Report(o.suite.ArtifactsDir, o.suite.ReportName, o.suite.ReportFormat, results, took)
		if err != nil {
			return err
		}
		o.env.Printf("report written to %s", path)
	}
	if failed > 0 {
		return command.WithCode(command.ExitFailed, fmt.Errorf("%d of %d cases failed", failed, len(results)))
	}
	return nil
}
