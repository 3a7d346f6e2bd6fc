package suites

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/testsuite"
)

// writeCases writes folders of cases, each with one file.
func writeCases(t *testing.T, folders ...string) {
	t.Helper()
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
		if err := os.WriteFile(filepath.Join(folder, "00-install.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoad checks which cases run, and under which names.
func TestLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	writeCases(t, "one/deploy", "one/upgrade", "two/deploy")
	if err := os.Mkdir("empty", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		dirs   []string
		only   string
		repeat int
		want   []string
		fails  string
		usage  bool
	}{
		"Folder":      {"the cases of a folder, in the order of their names", []string{"one"}, "", 1, []string{"deploy", "upgrade"}, "", false},
		"Only":        {"one case", []string{"one"}, "upgrade", 1, []string{"upgrade"}, "", false},
		"SameName":    {"cases of the same name are named by their folders", []string{"one", "two"}, "", 1, []string{"one/deploy", "upgrade", "two/deploy"}, "", false},
		"OnlySame":    {"and so if one name is chosen", []string{"one", "two"}, "deploy", 1, []string{"one/deploy", "two/deploy"}, "", false},
		"Repeat":      {"repetitions have a number, and come after all cases", []string{"one"}, "", 2, []string{"deploy#1", "upgrade#1", "deploy#2", "upgrade#2"}, "", false},
		"OnlyMissing": {"a case of a name exists", []string{"one"}, "deplyo", 1, nil, `no case named "deplyo" in one`, false},
		"Empty":       {"a folder has cases", []string{"empty"}, "", 1, nil, "no case in empty: a case is a folder with files such as 00-install.yaml", false},
		"None":        {"a folder is named", nil, "", 1, nil, "no tests: name a folder of cases, or give a TestSuite with testDirs", true},
		"Missing":     {"a folder exists", []string{"none"}, "", 1, nil, "none", false},
	} {
		t.Run(name, func(t *testing.T) {
			cases, err := (&testOptions{only: tc.only, repeat: tc.repeat}).load(tc.dirs)
			var coded *command.CodeError
			if (err != nil) != (tc.fails != "") || err != nil && (!strings.Contains(err.Error(), tc.fails) || errors.As(err, &coded) != tc.usage) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			var got []string
			for _, c := range cases {
				got = append(got, filepath.ToSlash(c.Name))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLoadBroken checks that a case that cannot be read is a case that fails, and leaves the others alone.
func TestLoadBroken(t *testing.T) {
	t.Chdir(t.TempDir())
	writeCases(t, "one/broken", "one/deploy")
	if err := os.WriteFile("one/broken/01-assert.yaml", []byte("a: ["), 0o644); err != nil {
		t.Fatal(err)
	}
	cases, err := (&testOptions{repeat: 1}).load([]string{"one"})
	if err != nil || len(cases) != 2 {
		t.Fatalf("%d cases, error %v", len(cases), err)
	}
	if cases[0].Name != "broken" || cases[0].LoadError == nil || !strings.Contains(cases[0].LoadError.Error(), "01-assert.yaml") {
		t.Errorf("the broken case: %s, %v", cases[0].Name, cases[0].LoadError)
	}
	if cases[1].Name != "deploy" || cases[1].LoadError != nil {
		t.Errorf("the other case: %s, %v", cases[1].Name, cases[1].LoadError)
	}
}

// TestMergeFields checks, field by field, that a flag wins over the file of the suite, even with an empty value.
func TestMergeFields(t *testing.T) {
	file := testsuite.Suite{
		CRDDir: "file-crds", ArtifactsDir: "file-out", ReportFormat: "json", Namespace: "file", ManifestDirs: []string{"file-objects"},
		SkipDelete: true, StartControlPlane: true, TestDirs: []string{"file-tests"},
	}
	for name, tc := range map[string]struct {
		reason    string
		flags     []string
		namespace string
		suite     testsuite.Suite
		want      testsuite.Suite
	}{
		"Defaults": {"nothing is given", nil, "", testsuite.Suite{}, testsuite.Suite{ArtifactsDir: ".", Parallel: parallelCases, ReportName: "kudo-test"}},
		"File": {"the file alone", nil, "", file, testsuite.Suite{
			CRDDir: "file-crds", ArtifactsDir: "file-out", ReportFormat: "json", Namespace: "file", ManifestDirs: []string{"file-objects"},
			SkipDelete: true, StartControlPlane: true, TestDirs: []string{"file-tests"}, Parallel: parallelCases, ReportName: "kudo-test",
		}},
		"Flags": {"flags win", []string{"--crd-dir", "c", "--artifacts-dir", "o", "--report", "xml", "--test-namespace", "n", "--manifest-dir", "m", "--skip-delete=false", "--start-control-plane=false"}, "", file, testsuite.Suite{
			CRDDir: "c", ArtifactsDir: "o", ReportFormat: "xml", Namespace: "n", ManifestDirs: []string{"m"}, TestDirs: []string{"file-tests"}, Parallel: parallelCases, ReportName: "kudo-test",
		}},
		"EmptyFlags": {"an empty flag takes away what the file says", []string{"--crd-dir=", "--report=", "--test-namespace="}, "", file, testsuite.Suite{
			ArtifactsDir: "file-out", ManifestDirs: []string{"file-objects"}, SkipDelete: true, StartControlPlane: true, TestDirs: []string{"file-tests"}, Parallel: parallelCases, ReportName: "kudo-test",
		}},
		"Namespace": {"-n wins over both", []string{"--test-namespace", "n"}, "kubectl", testsuite.Suite{Namespace: "file"}, testsuite.Suite{
			Namespace: "kubectl", ArtifactsDir: ".", Parallel: parallelCases, ReportName: "kudo-test",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o, cmd := &testOptions{}, &cobra.Command{}
			o.add(cmd.Flags())
			if err := cmd.ParseFlags(tc.flags); err != nil {
				t.Fatal(err)
			}
			o.merge(cmd, &tc.suite, tc.namespace)
			if diff := cmp.Diff(tc.want, o.suite); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRunRefuses checks what is refused before a control plane or a cluster is asked.
func TestRunRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("PATH", "")
	writeCases(t, "one/deploy")
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   []string
	}{
		"NoTests":    {"no folder, and no suite", nil, command.ExitUsage, []string{"no tests: name a folder of cases"}},
		"NoSuite":    {"the file of the suite exists", []string{"--config", "none.yaml"}, command.ExitError, []string{"none.yaml"}},
		"NoCase":     {"the case exists", []string{"one", "--test", "none"}, command.ExitError, []string{`no case named "none" in one`}},
		"NoProgram":  {"without a cluster, a control plane is started, which needs a program", []string{"one"}, command.ExitError, []string{"no cluster is configured: a local one is started (--local)", "kudo-local is neither beside kubectl-kudo nor in PATH: build it with make build, or configure a cluster"}},
		"Local":      {"with --local, too", []string{"one", "--local"}, command.ExitError, []string{"kudo-local is neither beside kubectl-kudo nor in PATH"}},
		"Void":       {"flags of kuttl without effect have a warning", []string{"one", "--start-kind", "--local"}, command.ExitError, []string{"Warning: --start-kind, --kind-config, --kind-context and --skip-cluster-delete have no effect"}},
		"VoidSilent": {"those that change nothing for a user have none", []string{"one", "--start-kudo", "--full-name", "--local"}, command.ExitError, []string{"kudo-local is neither"}},
		"Report":     {"formats of reports are in any letter case", []string{"one", "--report", "XML", "--local"}, command.ExitError, []string{"kudo-local is neither"}},
		"Labels":     {"labels have values", []string{"one", "--test-run-labels", "a"}, command.ExitUsage, []string{"a must be formatted as key=value"}},
		"Timeout":    {"times are times", []string{"one", "--timeout", "soon"}, command.ExitUsage, []string{"neither a number of seconds"}},
		"LoadFake":   {"images need real nodes", []string{"one", "--nodes", "fake", "--load", "a.tar"}, command.ExitUsage, []string{"--load requires --nodes real"}},
		"Repeat":     {"a case runs at least once", []string{"one", "--repeat=-1"}, command.ExitUsage, []string{"--repeat -1: must be at least 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs := commandtest.Expect(t, New, tc.code, "", append([]string{"test"}, tc.args...)...)
			for _, want := range tc.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("%s: no %q in\n%s%s", tc.reason, want, out, errs)
				}
			}
			if name == "VoidSilent" && strings.Contains(errs, "Warning: ") {
				t.Errorf("%s:\n%s", tc.reason, errs)
			}
		})
	}
}

// TestFaultNeedsLocal checks that a cluster that the user has is not broken.
func TestFaultNeedsLocal(t *testing.T) {
	t.Chdir(t.TempDir())
	writeCases(t, "one/deploy")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	path := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", path)
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{
		"--fault=manager":    "--fault requires --local: only a control plane of the run's own may be broken",
		"--fault=each-write": "--fault requires --local",
		"--nodes=real":       "--nodes requires --local: a cluster that is there has its own",
	} {
		if _, errs := commandtest.Expect(t, New, command.ExitUsage, "", "test", "one", flag); !strings.Contains(errs, want) {
			t.Errorf("%s: no %q in\n%s", flag, want, errs)
		}
	}
}

// TestFindProgram checks where a program is looked for.
func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "kudo-found")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kudo-plain"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if path, err := findProgram("kudo-found"); err != nil || path != program {
		t.Errorf("a program in PATH: %s, %v", path, err)
	}
	for _, name := range []string{"kudo-none", "kudo-plain"} {
		if path, err := findProgram(name); err == nil || !strings.Contains(err.Error(), name+" is neither beside kubectl-kudo nor in PATH") {
			t.Errorf("%s is no program: %s, %v", name, path, err)
		}
	}
}

// TestCaseLog checks that lines of cases that run side by side can be told apart.
func TestCaseLog(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		named        bool
		want         string
	}{
		{"a case alone has no name", "step %d\n", false, "step 1\n"},
		{"one of several has", "step %d", true, "deploy | step 1\n"},
		{"on each of its lines", "step %d\nfailed\n\n", true, "deploy | step 1\ndeploy | failed\n"},
		{"control characters of what failed are escaped", "step %d\x1b[2J", true, `deploy | step 1\x1b[2J` + "\n"},
	} {
		var out bytes.Buffer
		caseLog(command.NewEnv(nil, &out, nil), tc.named)("deploy", tc.text, 1)
		if out.String() != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, out.String(), tc.want)
		}
	}
	var out bytes.Buffer
	log := caseLog(command.NewEnv(nil, &out, nil), true)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { log("a", "one\ntwo") })
	}
	group.Wait()
	if got := strings.Count(out.String(), "a | one\na | two\n"); got != 20 {
		t.Errorf("the lines of one message stay together: %d of 20", got)
	}
}

// TestPrintSummary checks the table, the report and the exit code of a run.
func TestPrintSummary(t *testing.T) {
	failure := errors.New("no such object")
	for name, tc := range map[string]struct {
		reason, format string
		results        []testsuite.Result
		code           int
		want           []string
	}{
		"Passed": {"all cases pass", "", []testsuite.Result{{Name: "deploy", Took: 1234 * time.Millisecond}}, 0, []string{"pass     deploy   0       1.23s\n", "1 passed, 0 failed in 2s\n"}},
		"Failed": {"one does not", "", []testsuite.Result{{Name: "deploy"}, {Name: "upgrade", Err: failure}}, command.ExitFailed, []string{"pass     deploy ", "FAIL     upgrade ", "1 passed, 1 failed in 2s\n"}},
		"None":   {"no case ran", "", nil, 0, []string{"0 passed, 0 failed"}},
		"Report": {"a report is written for a case that failed, too", "json", []testsuite.Result{{Name: "deploy", Err: failure}}, command.ExitFailed, []string{"report written to "}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := &testOptions{env: command.NewEnv(nil, &out, nil)}
			o.suite.ArtifactsDir, o.suite.ReportName, o.suite.ReportFormat = t.TempDir(), "kudo-test", tc.format
			err := o.printSummary(tc.results, 2*time.Second)
			var coded *command.CodeError
			if (err != nil) != (tc.code != 0) || err != nil && (!errors.As(err, &coded) || coded.Code != tc.code) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%s: no %q in\n%s", tc.reason, want, out.String())
				}
			}
			if files, _ := os.ReadDir(o.suite.ArtifactsDir); (len(files) > 0) != (tc.format != "") {
				t.Errorf("%s: files %v", tc.reason, files)
			}
		})
	}
	o := &testOptions{env: command.NewEnv(nil, &bytes.Buffer{}, nil)}
	o.suite.ArtifactsDir, o.suite.ReportName, o.suite.ReportFormat = filepath.Join(t.TempDir(), "a\x00b"), "kudo-test", "json"
	var coded *command.CodeError
	if err := o.printSummary([]testsuite.Result{{Name: "deploy", Err: failure}}, 0); err == nil || errors.As(err, &coded) {
		t.Errorf("a report that cannot be written is an error: %v", err)
	}
}

// TestUpArgs checks how a control plane is started.
func TestUpArgs(t *testing.T) {
	for _, tc := range []struct {
		privileged bool
		nodes      string
		want       string
	}{
		{false, fakeNodes, "up --with-kudo --privileged=false --nodes fake"},
		{true, realNodes, "up --with-kudo --privileged=true --nodes real"},
	} {
		if got := strings.Join((&localPlane{privileged: tc.privileged, nodes: tc.nodes}).upArgs(), " "); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}

// TestVersionOf checks which answers of an API server have a version.
func TestVersionOf(t *testing.T) {
	for _, tc := range []struct{ reason, answer, want string }{
		{"an object", `{"kind":"Secret","metadata":{"resourceVersion":"7"}}`, "7"},
		{"a status", `{"kind":"Status","status":"Success","metadata":{}}`, ""},
		{"an empty answer", "", ""},
		{"protobuf", "k8s\x00\x0a", ""},
		{"half an object", `{"metadata":{"resourceVersion":"7"`, ""},
		{"a list has no version of an object", `[{"metadata":{"resourceVersion":"7"}}]`, ""},
	} {
		if got := versionOf([]byte(tc.answer)); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}
