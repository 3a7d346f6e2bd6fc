package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/scenario"
)

// suiteTimeout is how long a step may take to hold if nothing is said, as in kuttl.
const suiteTimeout = seconds(30 * time.Second)

// parallelCases is how many cases run at a time if nothing is said, as in kuttl.
const parallelCases = 8

type testOptions struct {
	suite        scenario.Suite
	config, only string
	timeout      seconds
	local        bool
	privileged   bool
	repeat       int
	fault        string
	// kuttl's flags that do not apply.
	startKIND, skipClusterDelete, startKudo bool
	attachOutput, fullName                  bool
	kindConfig, kindContext, granularity    string
	suppress                                []string
	verbosity                               int
	// labels of the run, by which a TestFile selects.
	labels map[string]string
}

func (t *tool) testCommand() *cobra.Command {
	o := &testOptions{}
	cmd := &cobra.Command{
		Use:   "test [DIR…]",
		Short: "Run declarative tests of operator packages, in kuttl's format",
		Long: `Run the cases in folders: each case is a folder of numbered files that apply objects, run commands, and say what
must hold afterwards. Without a folder, those of kudo-test.yaml or kuttl-test.yaml are taken.

  kubectl kudo test ./tests                       on the cluster of the current context
  kubectl kudo test ./tests --local               on a control plane that is started for the run, with kudo in it
  kubectl kudo test ./tests --test upgrade        one case

Without a kubeconfig, --local is taken. A case that fails is exit code 3.`,
		RunE: func(cmd *cobra.Command, args []string) error { return t.test(cmd, args, o) },
	}
	o.add(cmd.Flags())
	return cmd
}

// add defines the flags.
func (o *testOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.config, "config", "", "file of the TestSuite (default kudo-test.yaml or kuttl-test.yaml, if there is one)")
	f.StringVar(&o.only, "test", "", "run the case of this name only")
	f.StringVar(&o.suite.CRDDir, "crd-dir", "", "folder of CRDs to apply first")
	f.StringSliceVar(&o.suite.ManifestDirs, "manifest-dir", nil, "folder or file of objects to apply before the tests; may be given several times")
	f.StringVar(&o.suite.Namespace, "test-namespace", "", "run all cases in this namespace, instead of one of its own for each (-n does the same)")
	f.BoolVar(&o.suite.SkipDelete, "skip-delete", false, "keep the namespaces of the cases")
	f.IntVar(&o.suite.Parallel, "parallel", 0, "how many cases run at a time (default 8)")
	f.Var(&o.timeout, "timeout", "how long what must hold may take: seconds, or a duration such as 5m (default 30s)")
	f.StringVar(&o.suite.ArtifactsDir, "artifacts-dir", "", "folder of the report (default the current one)")
	f.StringVar(&o.suite.ReportFormat, "report", "", "write a report: json or xml (JUnit)")
	f.StringVar(&o.suite.ReportName, "report-name", "", "name of the report's file (default kudo-test)")
	f.BoolVar(&o.local, "local", false, "start a control plane with kudo for the run, and stop it afterwards")
	f.BoolVar(&o.suite.StartControlPlane, "start-control-plane", false, "the same as --local, as kuttl names it")
	f.IntVar(&o.repeat, "repeat", 1, "run each case this many times")
	f.BoolVar(&o.privileged, "privileged", false, "with --local: run plans of Instances that name no ServiceAccount with the rights of kudo, as suites made for KUDO expect")
	f.StringVar(&o.fault, "fault", "", "with --local: kill apiserver or manager at random while steps wait")
	f.StringToStringVar(&o.labels, "test-run-labels", nil, "labels of the run, as name=value: files whose TestFile selects others are left out")
	o.addVoid(f)
}

// addVoid defines the flags of kuttl that have no effect.
func (o *testOptions) addVoid(f *pflag.FlagSet) {
	f.BoolVar(&o.startKIND, "start-kind", false, "no effect: no container runtime is used")
	f.StringVar(&o.kindConfig, "kind-config", "", "no effect: no container runtime is used")
	f.StringVar(&o.kindContext, "kind-context", "", "no effect: no container runtime is used")
	f.BoolVar(&o.skipClusterDelete, "skip-cluster-delete", false, "no effect: the control plane of --local always goes")
	f.StringSliceVar(&o.suppress, "suppress-log", nil, "no effect: only steps and failures are shown")
	f.BoolVar(&o.attachOutput, "attach-control-plane-output", false, "no effect: kudo-local logs shows the logs of a control plane")
	f.StringVar(&o.granularity, "report-granularity", "step", "no effect: a report has each step")
	f.BoolVar(&o.fullName, "full-name", false, "no effect: a report has the names of the case and the step")
	f.IntVarP(&o.verbosity, "v", "v", 0, "no effect: only steps and failures are shown")
	f.BoolVar(&o.startKudo, "start-kudo", false, "no effect: --local always has kudo")
}

// merge puts what flags say over what the suite's file says.
func (o *testOptions) merge(cmd *cobra.Command, suite *scenario.Suite, namespace string) {
	set := func(name string) bool { return cmd.Flags().Changed(name) }
	s := &o.suite
	pick := func(flag string, into *string, value string) {
		if !set(flag) {
			*into = value
		}
	}
	pick("crd-dir", &s.CRDDir, suite.CRDDir)
	pick("artifacts-dir", &s.ArtifactsDir, suite.ArtifactsDir)
	pick("report", &s.ReportFormat, suite.ReportFormat)
	pick("report-name", &s.ReportName, suite.ReportName)
	pick("test-namespace", &s.Namespace, suite.Namespace)
	if namespace != "" {
		s.Namespace = namespace
	}
	if !set("manifest-dir") {
		s.ManifestDirs = suite.ManifestDirs
	}
	s.Commands, s.TestDirs = suite.Commands, suite.TestDirs
	s.SkipDelete = s.SkipDelete || !set("skip-delete") && suite.SkipDelete
	s.StartControlPlane = s.StartControlPlane || !set("start-control-plane") && suite.StartControlPlane
	if s.Parallel == 0 {
		s.Parallel = suite.Parallel
	}
	if s.Parallel == 0 {
		s.Parallel = parallelCases
	}
	if o.timeout == 0 {
		o.timeout = seconds(time.Duration(suite.Timeout) * time.Second)
	}
	if o.timeout == 0 {
		o.timeout = suiteTimeout
	}
	if s.ReportName == "" {
		s.ReportName = "kudo-test"
	}
	if s.ArtifactsDir == "" {
		s.ArtifactsDir = "."
	}
}

func (o *testOptions) validate() error {
	switch f := strings.ToLower(o.suite.ReportFormat); {
	case f != "" && f != "json" && f != "xml":
		return usage("--report %q: must be json or xml", o.suite.ReportFormat)
	case o.repeat < 1:
		return usage("--repeat %d: must be at least 1", o.repeat)
	case o.fault != "" && o.fault != "apiserver" && o.fault != "manager":
		return usage("--fault %q: must be apiserver or manager", o.fault)
	case o.suite.Parallel < 1:
		return usage("--parallel %d: must be at least 1", o.suite.Parallel)
	}
	return nil
}

func (t *tool) test(cmd *cobra.Command, dirs []string, o *testOptions) error {
	ctx := cmd.Context()
	ctrllog.SetLogger(logr.Discard())
	suite, notes, err := scenario.LoadSuite(o.config)
	if err != nil {
		return err
	}
	for _, note := range notes {
		t.warn("%s", note)
	}
	o.merge(cmd, suite, *t.flags.Namespace)
	if err := o.validate(); err != nil {
		return err
	}
	if o.startKIND || o.kindConfig != "" || o.kindContext != "" || o.skipClusterDelete {
		t.warn("--start-kind, --kind-config, --kind-context and --skip-cluster-delete have no effect: no container runtime is used; --local starts a control plane of the run's own")
	}
	if len(dirs) == 0 {
		dirs = o.suite.TestDirs
	}
	cases, err := o.load(dirs)
	if err != nil {
		return err
	}
	plane, kubeconfig, err := t.plane(ctx, o)
	if err != nil {
		return err
	}
	defer plane.stop()
	if o.fault != "" && plane.name == "" {
		return usage("--fault goes with --local: only a control plane of the run's own may be broken")
	}
	began := time.Now()
	results, err := t.runCases(ctx, o, cases, plane, kubeconfig)
	if err != nil {
		return err
	}
	err = t.summary(o, results, time.Since(began))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// load reads the cases, as often as they are to be run.
func (o *testOptions) load(dirs []string) ([]*scenario.Case, error) {
	if len(dirs) == 0 {
		return nil, usage("no tests: name a folder of cases, or give a TestSuite with testDirs")
	}
	folders, err := scenario.Cases(dirs, o.only)
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 && o.only != "" {
		return nil, fmt.Errorf("no case named %q in %s", o.only, strings.Join(dirs, ", "))
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("no case in %s: a case is a folder with files such as 00-install.yaml and 00-assert.yaml", strings.Join(dirs, ", "))
	}
	names := map[string]int{}
	for _, folder := range folders {
		names[filepath.Base(folder)]++
	}
	var cases []*scenario.Case
	for n := range o.repeat {
		for _, folder := range folders {
			c, err := scenario.Load(folder, o.labels)
			if err != nil {
				c = &scenario.Case{Name: filepath.Base(folder), Dir: folder, Broken: err}
			}
			if names[filepath.Base(folder)] > 1 {
				c.Name = filepath.Clean(folder)
			}
			if o.repeat > 1 {
				c.Name += fmt.Sprintf("#%d", n+1)
			}
			cases = append(cases, c)
		}
	}
	return cases, nil
}

func (t *tool) runCases(ctx context.Context, o *testOptions, cases []*scenario.Case, plane *localPlane, kubeconfig string) ([]scenario.Result, error) {
	cluster, err := scenario.Connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	log := t.caseLog(len(cases) > 1)
	r := &scenario.Runner{
		Cluster: cluster, Path: t.path(), Timeout: time.Duration(o.timeout), Namespace: o.suite.Namespace,
		SkipDelete: o.suite.SkipDelete, Parallel: o.suite.Parallel, Log: log, Describe: t.describe,
	}
	if o.fault != "" {
		r.Disturb = func(ctx context.Context) { plane.disturb(ctx, o.fault, log) }
	}
	if o.suite.CRDDir != "" {
		if err := cluster.SetupCRDs(ctx, o.suite.CRDDir); err != nil {
			return nil, err
		}
	}
	for _, path := range o.suite.ManifestDirs {
		if err := cluster.Setup(ctx, path, "default"); err != nil {
			return nil, err
		}
	}
	leave, err := r.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	end, err := r.Commands(ctx, o.suite.Commands)
	defer end()
	if err != nil {
		return nil, fmt.Errorf("commands of the suite: %w", err)
	}
	return r.RunAll(ctx, cases), nil
}

// caseLog writes lines live, each under the name of its case, so that cases that run side by side can be told apart.
func (t *tool) caseLog(named bool) func(name, format string, args ...any) {
	var mu sync.Mutex
	return func(name, format string, args ...any) {
		text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
		if named {
			text = name + " | " + strings.ReplaceAll(text, "\n", "\n"+name+" | ")
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintln(t.out, text)
	}
}

// path is the PATH of commands: bin in the current folder, as in kuttl, and this program's folder come first.
func (t *tool) path() string {
	var dirs []string
	if here, err := filepath.Abs("bin"); err == nil {
		dirs = append(dirs, here)
	}
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self))
	}
	return strings.Join(append(dirs, os.Getenv("PATH")), string(os.PathListSeparator))
}

// describe draws the plans of the Instances in a namespace, and what they wait for.
func (t *tool) describe(ctx context.Context, kubeconfig, namespace string) string {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return ""
	}
	s, err := scheme()
	if err != nil {
		return ""
	}
	c, err := client.New(config, client.Options{Scheme: s})
	if err != nil {
		return ""
	}
	list := &v1beta1.InstanceList{}
	if c.List(ctx, list, client.InNamespace(namespace)) != nil {
		return ""
	}
	var out strings.Builder
	for i := range list.Items {
		ov := &v1beta1.OperatorVersion{}
		if c.Get(ctx, list.Items[i].OperatorVersionKey(), ov) != nil {
			ov = nil
		}
		out.WriteString(tree(&list.Items[i], ov, time.Now()))
		if m := list.Items[i].Status.AggregatedStatus.Message; m != "" {
			out.WriteString("blocked by: " + m + "\n")
		}
	}
	return out.String()
}

// summary prints a table of results, writes the report, and fails if a case did.
func (t *tool) summary(o *testOptions, results []scenario.Result, took time.Duration) error {
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
	t.say("")
	if err := t.table(rows); err != nil {
		return err
	}
	t.say("%d passed, %d failed in %s", len(results)-failed, failed, took.Round(10*time.Millisecond))
	if o.suite.ReportFormat != "" {
		path, err := scenario.Report(o.suite.ArtifactsDir, o.suite.ReportName, o.suite.ReportFormat, results, took)
		if err != nil {
			return err
		}
		t.say("report written to %s", path)
	}
	if failed > 0 {
		return &codeError{ExitFailed, fmt.Errorf("%d of %d cases failed", failed, len(results))}
	}
	return nil
}
