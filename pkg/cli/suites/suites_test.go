package suites

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/testsuite"
)

// TestUsage checks that wrong flags are refused before a control plane is started.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Report":   {"formats exist", []string{"--report", "html"}, "must be json or xml"},
		"Repeat":   {"a case runs at least once", []string{"--repeat", "0"}, "must be at least 1"},
		"Nodes":    {"nodes are of a kind", []string{"--nodes", "many"}, "must be fake or real"},
		"Load":     {"images are for real nodes", []string{"--load", "images.tar"}, "--load requires --nodes real"},
		"Fault":    {"faults exist", []string{"--fault", "disk"}, "must be apiserver, manager or each-write"},
		"Parallel": {"at least one case runs", []string{"--parallel", "-1"}, "must be at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := commandtest.Expect(t, New, command.ExitUsage, "", append([]string{"test", dir}, tc.args...)...)
			if !strings.Contains(errs, tc.want) {
				t.Errorf("%s: %q is not in\n%s", tc.reason, tc.want, errs)
			}
		})
	}
}

// TestMerge checks which of a flag, the file of the suite, and a default wins.
func TestMerge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		flags    []string
		suite    testsuite.Suite
		timeout  time.Duration
		parallel int
		report   string
	}{
		"Default": {"there are defaults", nil, testsuite.Suite{}, time.Duration(suiteTimeout), parallelCases, "kudo-test"},
		"File":    {"the file wins over defaults", nil, testsuite.Suite{Timeout: 7, Parallel: 3, ReportName: "file"}, 7 * time.Second, 3, "file"},
		"Flags": {"flags win over the file", []string{"--timeout", "9", "--parallel", "2", "--report-name", "flag"},
			testsuite.Suite{Timeout: 7, Parallel: 3, ReportName: "file"}, 9 * time.Second, 2, "flag"},
	} {
		t.Run(name, func(t *testing.T) {
			o, cmd := &testOptions{}, &cobra.Command{}
			o.add(cmd.Flags())
			if err := cmd.ParseFlags(tc.flags); err != nil {
				t.Fatal(err)
			}
			o.merge(cmd, &tc.suite, "")
			if got := time.Duration(o.timeout); got != tc.timeout || o.suite.Parallel != tc.parallel || o.suite.ReportName != tc.report {
				t.Errorf("%s: %s, %d cases, report %s", tc.reason, got, o.suite.Parallel, o.suite.ReportName)
			}
		})
	}
}
