// Package testsuite tests kubectl kudo test as people use it: on folders of cases, one for each field of the format, and one
// that fails by it.
package testsuite

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"kudo.dev/kudo/test/env"
)

var plane *env.Env

func TestMain(m *testing.M) {
	ctrllog.SetLogger(zap.New())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if plane, err = env.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer plane.Stop()
	return m.Run()
}

// command is kubectl-kudo test on a cluster; an empty kubeconfig is none.
func command(t *testing.T, dir, kubeconfig string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(filepath.Join(plane.Bin, "kubectl-kudo"), append([]string{"test"}, args...)...)
	cmd.Dir = dir
	// The programs beside kubectl-kudo are found without being in the PATH.
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin", "TMPDIR=" + os.TempDir(), "WORD=hello",
		"STATE=" + filepath.Join(t.TempDir(), "state"), "SECOND_KUBECONFIG=" + plane.Kubeconfig, "KUBECONFIG=" + kubeconfig}
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// kudoTest runs kubectl-kudo test, and wants an exit code.
func kudoTest(t *testing.T, code int, dir, kubeconfig string, args ...string) string {
	t.Helper()
	cmd, out := command(t, dir, kubeconfig, args...)
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("kubectl kudo test %s: exit code %d, want %d\n%s\nThe whole output:\n%s", strings.Join(args, " "), got, code, failures(out.String()), out)
	}
	return out.String()
}

// failures are the lines of a run that say what failed.
func failures(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "FAIL") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// linesOf are what a run printed of a case, without its name.
func linesOf(out, name string) string {
	var lines []string
	for _, line := range strings.Split(out, "\n") {
		if rest, found := strings.CutPrefix(line, name+" | "); found {
			lines = append(lines, rest)
		}
	}
	return strings.Join(lines, "\n")
}

// contains wants texts in the output; one that begins with ! must not be there.
func contains(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		text, unwanted := strings.CutPrefix(text, "!")
		if strings.Contains(out, text) == unwanted {
			t.Errorf("%q (unwanted: %v) in the output:\n%s", text, unwanted, out)
		}
	}
}

// namespaces are those that cases have left.
func namespaces(t *testing.T) []string {
	t.Helper()
	cluster, err := plane.Connect()
	if err != nil {
		t.Fatal(err)
	}
	list := &corev1.NamespaceList{}
	if err := cluster.List(context.Background(), list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, ns := range list.Items {
		if strings.HasPrefix(ns.Name, "kudo-test-") || strings.HasPrefix(ns.Name, "scenario-") {
			out = append(out, ns.Name)
		}
	}
	return out
}

func testdata(t *testing.T, elem ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"testdata"}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFieldsThatHold(t *testing.T) {
	reports := t.TempDir()
	out := kudoTest(t, 0, reports, plane.Kubeconfig, testdata(t, "pass"), "--timeout", "120", "--test-run-labels", "flavor=vanilla", "--report", "xml", "--artifacts-dir", reports)
	contains(t, out, " passed, 0 failed in ", "report written to", "!FAIL")
	text, err := os.ReadFile(filepath.Join(reports, "kudo-test.xml"))
	if err != nil {
		t.Fatal(err)
	}
	report := struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
	}{}
	if err := xml.Unmarshal(text, &report); err != nil || report.Failures != 0 || report.Tests < 42 {
		t.Errorf("the report has %+v (%v):\n%s", report, err, text)
	}
	if left := namespaces(t); len(left) > 0 {
		t.Errorf("namespaces are left: %v", left)
	}
}

func TestFieldsThatFail(t *testing.T) {
	reports := t.TempDir()
	out := kudoTest(t, 3, reports, plane.Kubeconfig, testdata(t, "fail"), "--timeout", "2", "--test-run-labels", "flavor=vanilla", "--report", "JSON", "--report-name", "all")
	entries, err := os.ReadDir(testdata(t, "fail"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			want, err := os.ReadFile(testdata(t, "fail", entry.Name(), "expect.txt"))
			if err != nil {
				t.Fatal(err)
			}
			contains(t, linesOf(out, entry.Name()), strings.Split(strings.TrimSpace(string(want)), "\n")...)
		})
	}
	contains(t, out, fmt.Sprintf("0 passed, %d failed in ", len(entries)), fmt.Sprintf("Error: %d of %d cases failed", len(entries), len(entries)))
	text, err := os.ReadFile(filepath.Join(reports, "all.json"))
	if err != nil {
		t.Fatal(err)
	}
	report := struct{ Failures int }{}
	if err := json.Unmarshal(text, &report); err != nil || report.Failures != len(entries) {
		t.Errorf("the report has %+v (%v):\n%s", report, err, text)
	}
	if left := namespaces(t); len(left) > 0 {
		t.Errorf("namespaces are left: %v", left)
	}
}

func TestSuites(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		suite string
		code  int
		want  []string
	}{
		{"all", 0, []string{"01-one | step 0-install done", "02-two | step 0-install done", "2 passed", "report written to", `unknown field "novelty"`, "kindContext", "skipClusterDelete has no effect", "suppress has no effect"}},
		{"failing-command", 1, []string{"commands of the suite", "asked", "exit status 1", "!01-one"}},
		{"slow", 3, []string{"does not hold after 1s"}},
		{"wrong-kind", 1, []string{"holds a ConfigMap of v1, and must hold a TestSuite of kuttl.dev/v1beta1"}},
		{"wrong-type", 1, []string{"TestSuite: ", "kuttl-test.yaml"}},
		{"wrong-report", 1, []string{`reportFormat "CSV": must be JSON or XML`}},
		{"no-manifests", 1, []string{"nowhere: no such file or directory"}},
		{"no-crds", 1, []string{"nowhere: no such file or directory"}},
		{"no-dirs", 1, []string{"folder of tests: open nowhere"}},
		{"no-parallel", 2, []string{"--parallel -1: must be at least 1"}},
	} {
		t.Run(tc.suite, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(testdata(t, "suites"))); err != nil {
				t.Fatal(err)
			}
			contains(t, kudoTest(t, tc.code, filepath.Join(dir, tc.suite), plane.Kubeconfig), tc.want...)
		})
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	pass := testdata(t, "pass")
	for _, tc := range []struct {
		reason string
		code   int
		args   []string
		want   []string
	}{
		{"one case by its exact name", 0, []string{pass, "--test", "errors"}, []string{"1 passed, 0 failed", "!errors-any-name"}},
		{"an unknown case", 1, []string{pass, "--test", "error"}, []string{`no case named "error"`}},
		{"no folder and no suite", 2, nil, []string{"no tests: name a folder of cases"}},
		{"a folder without cases", 1, []string{testdata(t, "suites", "all", "crds")}, []string{"no case in"}},
		{"a wrong report", 2, []string{pass, "--report", "csv"}, []string{`--report "csv": must be json or xml`}},
		{"no repetition", 2, []string{pass, "--repeat", "0"}, []string{"--repeat 0: must be at least 1"}},
		{"an unknown fault", 2, []string{pass, "--fault", "etcd"}, []string{`--fault "etcd": must be apiserver, manager or each-write`}},
		{"a fault on a cluster of others", 2, []string{pass, "--fault", "manager"}, []string{"--fault goes with --local"}},
		{"an unknown flag", 2, []string{pass, "--color"}, []string{"unknown flag: --color"}},
		{"a config that is not there", 1, []string{"--config", "nowhere.yaml"}, []string{"open nowhere.yaml"}},
		{"kuttl's flags that do not apply", 0, []string{pass, "--test", "errors", "--start-kind", "--kind-context=x", "--kind-config=y", "--skip-cluster-delete", "--attach-control-plane-output", "--suppress-log=events", "--report-granularity=test", "-v=3"}, []string{"1 passed", "have no effect: no container runtime is used"}},
		{"repetition keeps the output apart", 0, []string{pass, "--test", "errors", "--repeat", "3", "--parallel", "3"}, []string{"errors#1 | step 0-install done", "errors#2 | step 0-install done", "errors#3 | step 0-install done", "3 passed"}},
		{"folders of CRDs and manifests", 0, []string{testdata(t, "suites", "all", "cases"), "--test", "02-two", "--crd-dir", testdata(t, "suites", "all", "crds"), "--manifest-dir", testdata(t, "suites", "all", "manifests")}, []string{"1 passed"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			contains(t, kudoTest(t, tc.code, t.TempDir(), plane.Kubeconfig, tc.args...), tc.want...)
		})
	}
}

func TestNamespaces(t *testing.T) {
	cluster, err := plane.Connect()
	if err != nil {
		t.Fatal(err)
	}
	ns, err := cluster.Namespace(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	kudoTest(t, 0, t.TempDir(), plane.Kubeconfig, testdata(t, "pass", "apply-assert"), "-n", ns)
	list := &corev1.ConfigMapList{}
	if err := cluster.List(context.Background(), list); err != nil {
		t.Fatal(err)
	}
	for _, cm := range list.Items {
		if cm.Namespace == ns && cm.Name == "app" {
			t.Error("what a case applies in a namespace that was given must go")
		}
	}
	// One that is not there is made for all cases, and goes after them.
	kudoTest(t, 0, t.TempDir(), plane.Kubeconfig, testdata(t, "shared"), "-n", ns+"-new")
	if left := namespaces(t); slices.Contains(left, ns+"-new") {
		t.Errorf("the namespace that was made for all cases is left: %v", left)
	}
	out := kudoTest(t, 3, t.TempDir(), plane.Kubeconfig, testdata(t, "pass", "apply-assert"), "--as", "stranger")
	contains(t, out, `User "stranger" cannot`)
	out = kudoTest(t, 0, t.TempDir(), plane.Kubeconfig, testdata(t, "pass", "apply-assert"), "--skip-delete")
	left := namespaces(t)
	if len(left) != 1 {
		t.Fatalf("--skip-delete must leave one namespace, and there are %v:\n%s", left, out)
	}
	kept := &corev1.Namespace{}
	kept.Name = left[0]
	for _, name := range []string{ns, left[0]} {
		kept.Name = name
		if err := cluster.Delete(context.Background(), kept); err != nil {
			t.Error(err)
		}
	}
}

// The packages of the catalog hold what their READMEs promise.
func TestCatalog(t *testing.T) {
	t.Parallel()
	catalog := filepath.Join(env.Root(), "operators", "catalog")
	dirs, err := filepath.Glob(filepath.Join(catalog, "*", "tests"))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Glob(filepath.Join(catalog, "*", "operator"))
	if err != nil || len(dirs) != len(packages) || len(dirs) == 0 {
		t.Fatalf("%d of %d packages have tests (%v)", len(dirs), len(packages), err)
	}
	t.Log(kudoTest(t, 0, env.Root(), plane.Kubeconfig, append(dirs, "--timeout", "300")...))
}

// Many small cases side by side take as long as the slowest, and what starting and namespaces cost.
func TestManySmallCases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n := range 25 {
		for name, text := range map[string]string{
			"00-install.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {n: \"%d\"}\n", n),
			"00-assert.yaml":  fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {n: \"%d\"}\n", n),
		} {
			path := filepath.Join(dir, fmt.Sprintf("small-%d", n), name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := time.Now()
	out := kudoTest(t, 0, t.TempDir(), plane.Kubeconfig, dir, "--parallel", "25")
	total := time.Since(began)
	one := time.Now()
	kudoTest(t, 0, t.TempDir(), plane.Kubeconfig, filepath.Join(dir, "small-0"))
	alone := time.Since(one)
	var slowest time.Duration
	for _, line := range strings.Split(out, "\n") {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] == "pass" {
			took, err := time.ParseDuration(fields[3])
			if err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, took)
		}
	}
	began = time.Now()
	kudoTest(t, 2, t.TempDir(), plane.Kubeconfig)
	start := time.Since(began)
	t.Logf("25 cases: %s in all; the slowest case %s; start of the program %s; the rest, %s, is deletion of namespaces. One case alone: %s",
		total.Round(time.Millisecond), slowest, start.Round(time.Millisecond), (total - slowest - start).Round(time.Millisecond), alone.Round(time.Millisecond))
	if limit := slowest + time.Minute; total > limit {
		t.Errorf("25 small cases took %s, over %s", total, limit)
	}
}
