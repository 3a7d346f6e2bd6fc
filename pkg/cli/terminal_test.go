//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/terminal"
)

// commandVariable holds the command line that the test binary runs instead of its tests.
const commandVariable = "KUDO_TEST_COMMAND"

func TestMain(m *testing.M) {
	if line := os.Getenv(commandVariable); line != "" {
		os.Exit(Main(strings.Fields(line), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// onTerminal runs a command line on a terminal with a size.
func onTerminal(t *testing.T, server *apitest.Server, columns, rows int, line string) *terminal.Terminal {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '%s'}}]\n"+
		"contexts: [{name: c, context: {cluster: c, namespace: lab}}]\n", server.Config().Host)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program)
	command.Env = append(os.Environ(), commandVariable+"="+line, "KUBECONFIG="+kubeconfig, "KUDO_HOME="+t.TempDir(), "KUDO_PROGRESS=")
	return terminal.Start(t, columns, rows, command)
}

// watched is an Instance whose plan deploy has steps with these statuses, and waits for something whose name is long.
func watched(status v1beta1.ExecutionStatus, steps ...v1beta1.ExecutionStatus) *v1beta1.Instance {
	i := gen.Instance("site", gen.Version("lab", "web"), nil)
	phase := v1beta1.PhaseStatus{Name: "main", Status: status}
	for n, s := range steps {
		phase.Steps = append(phase.Steps, v1beta1.StepStatus{Name: fmt.Sprintf("step-%d-of-a-plan-with-a-long-name-that-wraps", n), Status: s})
	}
	i.Status.ObservedGeneration = 1
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", UID: "run", Revision: 1, Status: status, Phases: []v1beta1.PhaseStatus{phase}}}
	i.Status.AggregatedStatus = v1beta1.AggregatedStatus{Status: status}
	if status == v1beta1.InProgress {
		i.Status.AggregatedStatus.ActivePlanName = "deploy"
		i.Status.AggregatedStatus.Message = "Deployment web: 0 of 1 replicas are ready, since the image cannot be pulled"
	}
	return i
}

// elapsed matches how long the command has run.
var elapsed = regexp.MustCompile(`[0-9]+s elapsed`)

// TestP23WatchOnTerminal: plan status --watch draws the tree, draws it anew in its place when it changes, and leaves the last one. A terminal
// that is narrower than the lines, or lower than the tree, shows no row of an earlier drawing.
func TestP23WatchOnTerminal(t *testing.T) {
	const run, done, pending = v1beta1.InProgress, v1beta1.Complete, v1beta1.Pending
	for _, tc := range []struct {
		reason        string
		columns, rows int
		running, left []string
	}{
		{"wide", 120, 30, []string{
			`Plan(s) for "site" in namespace "lab":`, `site (Operator-Version: "web" Active-Plan: "deploy")`,
			"└── Plan deploy (parallel strategy) [IN_PROGRESS]", "    └── Phase main (parallel strategy) [IN_PROGRESS]",
			"        ├── Step step-0-of-a-plan-with-a-long-name-that-wraps [COMPLETE]",
			"        └── Step step-1-of-a-plan-with-a-long-name-that-wraps [IN_PROGRESS]",
			"0s elapsed, waits for: Deployment web: 0 of 1 replicas are ready, since the image cannot be pulled",
		}, []string{
			`Plan(s) for "site" in namespace "lab":`, `site (Operator-Version: "web" Active-Plan: "")`,
			"└── Plan deploy (parallel strategy) [COMPLETE]", "    └── Phase main (parallel strategy) [COMPLETE]",
			"        ├── Step step-0-of-a-plan-with-a-long-name-that-wraps [COMPLETE]",
			"        └── Step step-1-of-a-plan-with-a-long-name-that-wraps [COMPLETE]", "0s elapsed",
		}},
		{"narrower than the lines", 40, 30, []string{
			`Plan(s) for "site" in namespace "lab":`, `site (Operator-Version: "web" Active-P…`,
			"└── Plan deploy (parallel strategy) [I…", "    └── Phase main (parallel strategy)…",
			"        ├── Step step-0-of-a-plan-with…", "        └── Step step-1-of-a-plan-with…", "0s elapsed, waits for: Deployment web:…",
		}, []string{
			`Plan(s) for "site" in namespace "lab":`, `site (Operator-Version: "web" Active-P…`,
			"└── Plan deploy (parallel strategy) [C…", "    └── Phase main (parallel strategy)…",
			"        ├── Step step-0-of-a-plan-with…", "        └── Step step-1-of-a-plan-with…", "0s elapsed",
		}},
		{"lower than the tree: its end is shown, and at last all of it is written", 120, 5, []string{
			"…", "        ├── Step step-0-of-a-plan-with-a-long-name-that-wraps [COMPLETE]",
			"        └── Step step-1-of-a-plan-with-a-long-name-that-wraps [IN_PROGRESS]",
			"0s elapsed, waits for: Deployment web: 0 of 1 replicas are ready, since the image cannot be pulled",
		}, []string{
			"    └── Phase main (parallel strategy) [COMPLETE]", "        ├── Step step-0-of-a-plan-with-a-long-name-that-wraps [COMPLETE]",
			"        └── Step step-1-of-a-plan-with-a-long-name-that-wraps [COMPLETE]", "0s elapsed",
		}},
	} {
		server := apitest.Start(t, watched(run, run, pending))
		s := onTerminal(t, server, tc.columns, tc.rows, "plan status --instance site --watch")
		before := strings.NewReplacer("[COMPLETE]", "[IN_PROGRESS]", "[IN_PROGRESS]", "[PENDING]")
		expect(t, s, tc.reason+", drawn first", statusOf(tc.running, before))
		server.Put(watched(run, done, run))
		expect(t, s, tc.reason+", drawn anew", strings.Join(tc.running, "\n"))
		server.Put(watched(done, done, done))
		code, left := s.End(t)
		if diff := cmp.Diff(strings.Join(tc.left, "\n"), elapsed.ReplaceAllString(left, "0s elapsed")); diff != "" || code != 0 {
			t.Errorf("%s, what is left (exit code %d): -want +got:\n%s", tc.reason, code, diff)
		}
	}
}

// statusOf returns lines in which the steps have other statuses.
func statusOf(lines []string, status *strings.Replacer) string {
	out := slices.Clone(lines)
	for i, line := range out {
		if strings.Contains(line, "Step ") {
			out[i] = status.Replace(line)
		}
	}
	return strings.Join(out, "\n")
}

// expect waits until the terminal shows a text and nothing else, however long the command has run.
func expect(t *testing.T, s *terminal.Terminal, what, want string) {
	t.Helper()
	shown := ""
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		if shown = elapsed.ReplaceAllString(s.Shown(), "0s elapsed"); shown == want {
			return
		}
	}
	t.Errorf("%s: -want +got:\n%s", what, cmp.Diff(want, shown))
}

// TestP23Interrupted: Ctrl-C leaves the tree, and says that the plan continues and which command waits for it.
func TestP23Interrupted(t *testing.T) {
	const run, pending = v1beta1.InProgress, v1beta1.Pending
	for _, tc := range []struct{ reason, line string }{
		{"watched", "plan status --instance site --watch"},
		{"awaited", "plan wait --instance site"},
	} {
		s := onTerminal(t, apitest.Start(t, watched(run, run, pending)), 120, 30, tc.line)
		s.Await(t, tc.reason, "elapsed")
		s.Interrupt(t)
		code, left := s.End(t)
		rows := strings.Split(left, "\n")
		if end := rows[len(rows)-1]; code != 1 || !strings.HasSuffix(end, "Error: interrupted: the plan continues: kubectl kudo plan wait --instance site -n lab") {
			t.Errorf("%s: exit code %d, the last row is %q", tc.reason, code, end)
		}
		if trees := strings.Count(left, "Plan(s) for"); trees != 1 || !strings.Contains(left, "step-0-of-a-plan-with-a-long-name-that-wraps [IN_PROGRESS]") {
			t.Errorf("%s: the terminal shows %d trees:\n%s", tc.reason, trees, left)
		}
	}
}
