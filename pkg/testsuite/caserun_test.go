package testsuite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// logged keeps what a Runner tells.
type logged struct {
	mu    sync.Mutex
	lines []string
}

var took = regexp.MustCompile(`\([0-9.]+[mµn]?s\)`)

func (l *logged) log(name, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, name+": "+took.ReplaceAllString(fmt.Sprintf(format, args...), "(time)"))
}

// newRunner returns a Runner on a server in memory, whose cases run in namespace ns.
func newRunner(t *testing.T) (*Runner, *apitest.Server, *logged) {
	t.Helper()
	cluster, server := newCluster(t)
	out := &logged{}
	return &Runner{Cluster: cluster, Path: os.Getenv("PATH"), Timeout: 2 * time.Second, Namespace: "ns", Log: out.log}, server, out
}

// load writes the files of a case, and loads it.
func load(t *testing.T, files map[string]string) *Case {
	t.Helper()
	c, err := Load(folder(t, files), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Name = "case"
	return c
}

// TestRun has cases with what they log, what they return, and what they leave on the cluster.
func TestRun(t *testing.T) {
	const clusterRole = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: role}\n"
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		steps  []string
		log    []string
		err    string
	}{
		"Steps": {
			"steps in order, and what they have made is deleted, the last first",
			map[string]string{"00-install.yaml": object + clusterRole, "00-assert.yaml": object, "01-remove.yaml": head + "TestStep\ndelete: [{apiVersion: v1, kind: ConfigMap, name: app}]", "01-errors.yaml": object},
			[]string{"0-install", "1-remove"},
			[]string{"applied ConfigMap app", "applied ClusterRole role", "step 0-install done (time)", "deleted ConfigMap app", "step 1-remove done (time)"}, "",
		},
		"Unmet": {
			"the first step that fails is the last",
			map[string]string{"00-a.yaml": object, "00-assert.yaml": strings.Replace(object, "app", "other", 1), "01-b.yaml": object},
			[]string{"0-a"},
			[]string{"applied ConfigMap app", "step 0-a FAILED (time): does not hold after 2s:\n    ConfigMap other does not exist; there are app"},
			"step 0-a: does not hold after 2s:\n    ConfigMap other does not exist; there are app",
		},
		"Command": {
			"a command that fails, after which nothing is applied",
			map[string]string{"00-a.yaml": head + "TestStep\ncommands: [{script: exit 3}]\n---\n" + object},
			[]string{"0-a"}, []string{"$ exit 3", "step 0-a FAILED (time): command \"exit 3\": exit status 3\n    "},
			"step 0-a: command \"exit 3\": exit status 3\n    ",
		},
		"Check": {
			"a command that must succeed shows its output when the time ends, and not in between",
			map[string]string{"00-assert.yaml": head + "TestAssert\ncommands: [{script: echo not yet; exit 1}]"},
			[]string{"0-"}, []string{"step 0- FAILED (time): does not hold after 2s:\n    command \"echo not yet; exit 1\": exit status 1\n        not yet"},
			"step 0-: does not hold after 2s:\n    command \"echo not yet; exit 1\": exit status 1\n        not yet",
		},
		"Interrupted": {
			"of a command that the end of the time has ended, what it said before is shown",
			map[string]string{"00-assert.yaml": head + "TestAssert\ncommands: [{script: 'test -e tried && sleep 60; touch tried; echo not yet; exit 1'}]"},
			[]string{"0-"}, []string{"step 0- FAILED (time): does not hold after 2s:\n    command \"test -e tried && sleep 60; touch tried; echo not yet; exit 1\": exit status 1\n        not yet"},
			"step 0-: does not hold after 2s:\n    command \"test -e tried && sleep 60; touch tried; echo not yet; exit 1\": exit status 1\n        not yet",
		},
		"Note": {
			"what has no effect is said first",
			map[string]string{"00-a.yaml": head + "TestStep\nsurprise: 1"}, []string{"0-a"},
			[]string{`note: TestStep: unknown field "surprise", which has no effect`, "step 0-a done (time)"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, server, out := newRunner(t)
			result := r.Run(t.Context(), load(t, tc.files))
			if text := fmt.Sprint(result.Err); text != tc.err && (result.Err != nil || tc.err != "") {
				t.Errorf("%s: error %q, want %q", tc.reason, text, tc.err)
			}
			var steps []string
			for i, s := range result.Steps {
				steps = append(steps, s.Name)
				if last := i == len(result.Steps)-1; (s.Err != nil) != (last && tc.err != "") {
					t.Errorf("%s: step %s: %v", tc.reason, s.Name, s.Err)
				}
			}
			if diff := cmp.Diff(tc.steps, steps); diff != "" {
				t.Errorf("%s: steps (-want +got):\n%s", tc.reason, diff)
			}
			for i := range tc.log {
				tc.log[i] = "case: " + tc.log[i]
			}
			if diff := cmp.Diff(tc.log, out.lines); diff != "" {
				t.Errorf("%s: log (-want +got):\n%s", tc.reason, diff)
			}
			for _, obj := range append(parsed(t, object), parsed(t, clusterRole)...) {
				if obj.GetKind() == "ConfigMap" {
					obj.SetNamespace("ns")
				}
				if server.Get(obj) != nil {
					t.Errorf("%s: %s is left", tc.reason, title(obj))
				}
			}
		})
	}
}

// TestOwnNamespace checks that a case without a namespace gets one, by which all in it is deleted, and that objects elsewhere are
// deleted one by one.
func TestOwnNamespace(t *testing.T) {
	elsewhere := strings.Replace(object, "name: app", "name: elsewhere, namespace: other", 1)
	for name, tc := range map[string]struct {
		reason string
		keep   bool
		want   []string
	}{
		"Delete": {"all of it, the last first", false, []string{"delete ConfigMap other/later", "delete ConfigMap other/elsewhere", "delete Namespace kudo-test-"}},
		"Keep":   {"nothing, if the user says so", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r, server, _ := newRunner(t)
			r.Namespace, r.SkipDelete = "", tc.keep
			c := load(t, map[string]string{"00-a.yaml": object + "---\n" + elsewhere + "---\n" + strings.Replace(elsewhere, "elsewhere", "later", 1), "00-assert.yaml": object,
				"01-b.yaml": head + "TestStep\ncommands: [{script: 'echo $NAMESPACE >namespace'}]"})
			if result := r.Run(t.Context(), c); result.Err != nil {
				t.Fatal(result.Err)
			}
			text, err := os.ReadFile(filepath.Join(c.Dir, "namespace"))
			namespace := strings.TrimSpace(string(text))
			if err != nil || !regexp.MustCompile(`^kudo-test-[0-9a-f]{10}$`).MatchString(namespace) {
				t.Errorf("%s: the namespace is %q, %v", tc.reason, namespace, err)
			}
			var got []string
			for _, request := range writes(server) {
				if strings.HasPrefix(request, "delete") {
					got = append(got, strings.TrimSuffix(request, strings.TrimPrefix(namespace, "kudo-test-")))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOpen makes the namespace of all cases, and deletes it afterwards only if it has made it.
func TestOpen(t *testing.T) {
	there := &corev1.Namespace{ObjectMeta: gen.Meta("", "ns")}
	for name, tc := range map[string]struct {
		reason, namespace string
		there             bool
		want              []string
	}{
		"None":  {"no namespace is named", "", false, nil},
		"New":   {"one that does not exist", "ns", false, []string{"create Namespace", "delete Namespace ns"}},
		"There": {"one that exists stays", "ns", true, []string{"create Namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, server, _ := newRunner(t)
			if r.Namespace = tc.namespace; tc.there {
				server.Put(there)
			}
			ctx, cancel := context.WithCancel(t.Context())
			leave, err := r.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			cancel() // the user has interrupted the run
			leave()
			if diff := cmp.Diff(tc.want, writes(server), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	r, server, _ := newRunner(t)
	server.Before(func(apitest.Request) (any, error) {
		return nil, apierrors.NewForbidden(corev1.Resource("namespaces"), "ns", errors.New("no"))
	})
	if _, err := r.Open(t.Context()); fmt.Sprint(err) != `namespace ns: namespaces "ns" is forbidden: no` {
		t.Errorf("a namespace that cannot be made: %v", err)
	}
}

// TestRunAll keeps the order of the cases, and begins none after the context has ended.
func TestRunAll(t *testing.T) {
	r, _, out := newRunner(t)
	r.Parallel = 2
	ctx, cancel := context.WithCancel(t.Context())
	var cases []*Case
	for n := range 4 {
		c := load(t, map[string]string{"00-a.yaml": strings.Replace(object, "app", fmt.Sprint("app", n), 1)})
		c.Name = fmt.Sprint("case", n)
		cases = append(cases, c)
	}
	cases[1].LoadError = errors.New("cannot be read")
	results := r.RunAll(ctx, cases)
	for n, result := range results {
		if want := cases[n].LoadError; result.Name != cases[n].Name || !errors.Is(result.Err, want) || (want == nil) != (len(result.Steps) == 1) {
			t.Errorf("%d: %+v", n, result)
		}
	}
	if !slices.Contains(out.lines, "case1: FAILED: cannot be read") {
		t.Errorf("the log does not say why a case was not run: %q", out.lines)
	}
	cancel()
	out.lines = nil
	for n, result := range r.RunAll(ctx, cases) {
		if result.Name != cases[n].Name || !errors.Is(result.Err, context.Canceled) || result.Steps != nil {
			t.Errorf("after the end of the context, %d: %+v", n, result)
		}
	}
	if len(out.lines) > 0 {
		t.Errorf("a case was begun: %q", out.lines)
	}
}

// TestCollected has what is shown after a failure: the plans, the newest events, and what the collectors of the step gather.
func TestCollected(t *testing.T) {
	r, server, out := newRunner(t)
	for n := range shownEvents + 2 {
		e := &corev1.Event{ObjectMeta: gen.Meta("ns", fmt.Sprint("e", (n*5)%12)), Type: "Normal", Reason: "R", Message: fmt.Sprintf("event %02d", n)}
		e.InvolvedObject.Kind, e.InvolvedObject.Name = "Pod", "p"
		e.LastTimestamp.Time = time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC)
		server.Put(e)
	}
	r.Describe = func(_ context.Context, kubeconfig, namespace string) string {
		return "plans of " + namespace + " by " + kubeconfig
	}
	c := load(t, map[string]string{"00-assert.yaml": object + "---\n" + head +
		"TestAssert\ncollectors: [{command: echo first}, {type: command, command: 'false'}, {cmd: echo last}]"})
	r.Run(t.Context(), c)
	want := []string{"case:     plans of ns by /kubeconfig", "case: last events:"}
	var events []string
	for n := 2; n < shownEvents+2; n++ {
		events = append(events, fmt.Sprintf("    Normal Pod/p R: event %02d", n))
	}
	want[1] += "\n" + strings.Join(events, "\n")
	want = append(want, "case: $ echo first", "case:     first", "case: $ false", "case: $ echo last", "case:     last")
	if diff := cmp.Diff(want, out.lines[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCommands has commands that fail, that take too long, and that are wrong.
func TestCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		command Command
		log     []string
		err     string
	}{
		"Output":   {"what it prints", Command{Command: "echo a b"}, []string{"$ echo a b", "    a b"}, ""},
		"Script":   {"a script is shown without blanks around it", Command{Script: "\n echo a\n echo b\n"}, []string{"$ echo a\n echo b", "    a\n    b"}, ""},
		"Quiet":    {"output that is not wanted", Command{Command: "echo a", SkipLogOutput: true}, []string{"$ echo a"}, ""},
		"Fails":    {"the output of a command that fails is part of the error", Command{Script: "echo a; echo b >&2; exit 2"}, []string{"$ echo a; echo b >&2; exit 2", "    a\n    b"}, "command \"echo a; echo b >&2; exit 2\": exit status 2\n    a\n    b"},
		"Secret":   {"unless it is not wanted", Command{Script: "echo a; exit 2", SkipLogOutput: true}, []string{"$ echo a; exit 2"}, `command "echo a; exit 2": exit status 2`},
		"Ignored":  {"a failure that is ignored", Command{Command: "false", IgnoreFailure: true}, []string{"$ false"}, ""},
		"Absent":   {"a program that does not exist is not ignored", Command{Command: "kudo-absent", IgnoreFailure: true}, []string{"$ kudo-absent"}, "kudo-absent is not in PATH"},
		"Relative": {"nor is a path that does not exist", Command{Command: "./absent"}, []string{"$ ./absent"}, "no such file or directory"},
		"Both": {
			"a script and a command", Command{Script: " a ", Command: "b"}, nil,
			`script "a": cannot be used with command or namespaced: use $NAMESPACE`,
		},
		"Quotes": {
			"quotes that do not match", Command{Command: `echo "a`}, nil,
			`command "echo \"a" cannot be split into words: quotes do not match, or it is empty`,
		},
		"Background": {"one in the background that does not exist", Command{Command: "./absent", Background: true}, []string{"$ ./absent"}, "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, out := newRunner(t)
			r.Timeout = time.Minute
			end, err := r.Commands(t.Context(), []Command{tc.command})
			defer end()
			if text := fmt.Sprint(err); err == nil && tc.err != "" || err != nil && (tc.err == "" || !strings.Contains(text, tc.err)) {
				t.Errorf("%s: %q, want %q", tc.reason, text, tc.err)
			}
			for i := range tc.log {
				tc.log[i] = "suite: " + tc.log[i]
			}
			if diff := cmp.Diff(tc.log, out.lines); diff != "" {
				t.Errorf("%s: log (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCommandTimeouts has commands whose time is over when they begin: the message names the time that they had.
func TestCommandTimeouts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		factor int
		want   string
	}{
		"Plain": {"the timeout of the suite", 0, `command "echo a": has not ended after 1ns`},
		"Slow":  {"times the factor of a slow cluster", 5, `command "echo a": has not ended after 5ns`},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, _ := newRunner(t)
			r.Timeout, r.TimeFactor = 1, tc.factor
			_, err := r.Commands(t.Context(), []Command{{Command: "echo a"}})
			if fmt.Sprint(err) != tc.want {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
			}
			s := &shell{dir: ".", path: r.Path, timeFactor: tc.factor, log: t.Logf}
			if err := s.run(t.Context(), Command{Command: "echo a"}, 1); fmt.Sprint(err) != tc.want {
				t.Errorf("of a case, %s: %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
	s := &shell{dir: ".", path: os.Getenv("PATH"), log: t.Logf}
	if err := s.run(t.Context(), Command{Command: "echo a", Timeout: 60}, 1); err != nil {
		t.Errorf("a timeout of its own counts: %v", err)
	}
	if err := s.run(t.Context(), Command{Command: "echo a", Timeout: -1}, 1); err != nil {
		t.Errorf("a negative timeout is none: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.run(ctx, Command{Command: "echo a", IgnoreFailure: true}, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted command is not ignored: %v", err)
	}
}
