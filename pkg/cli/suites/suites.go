// Package suites has the command that runs test suites of packages.
package suites

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/testsuite"
	"kudo.dev/kudo/pkg/text"
)

// suiteTimeout is how long a step may take to hold if nothing is said, as in kuttl.
const suiteTimeout = command.Seconds(30 * time.Second)

// parallelCases is how many cases run at a time if nothing is said, as in kuttl.
const parallelCases = 8

// errKeepLocal refuses to keep what ends with the control plane of the run.
var errKeepLocal = command.UsageError("--keep-failed cannot be used with --local, whose control plane ends with the run: start one by " +
	"kudo-local up")

type testOptions struct {
	env *command.Env

	suite        testsuite.Suite
	config, only string
	timeout      command.Seconds
	local        bool
	privileged   bool
	// nodes are those of kudo-local up; images are archives for real ones.
	nodes      string
	images     []string
	repeat     int
	keepFailed bool
	fault      string
	// kuttl's flags that do not apply.
	startKIND, skipClusterDelete, startKudo bool
	attachOutput, fullName                  bool
	kindConfig, kindContext, granularity    string
	suppress                                []string
	verbosity                               int
	// labels of the run, by which a TestFile selects.
	labels map[string]string
}

// New returns the command test.
func New(env *command.Env) *cobra.Command {
	o := &testOptions{env: env}
	cmd := &cobra.Command{
		Use:   "test [DIR…]",
		Short: "Run declarative tests of operator packages, in kuttl's format",
		Long: `Run the cases in folders: each case is a folder of numbered files that apply objects, run commands, and say what
must hold afterwards. Without a folder, those of kudo-test.yaml or kuttl-test.yaml are taken.

  kubectl kudo test ./tests                       on the cluster of the current context
  kubectl kudo test ./tests --local               on a control plane that is started for the run, with kudo in it
  kubectl kudo test ./tests --local --nodes real --load images.tar
                                                  the same, and containers run
  kubectl kudo test ./tests --test upgrade        one case

Without a kubeconfig, --local is taken. A case that fails is exit code 3.

These flags of kuttl are accepted and have no effect: --attach-control-plane-output, --full-name, --kind-config, --kind-context,
--report-granularity, --skip-cluster-delete, --start-kind, --start-kudo, --suppress-log, -v.`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	o.add(cmd.Flags())
	return cmd
}

// add defines the flags.
func (o *testOptions) add(f *pflag.FlagSet) {
	f.StringVar(&o.config, "config", "", "file of the TestSuite (default kudo-test.yaml or kuttl-test.yaml, if there is one)")
	f.StringVar(&o.only, "test", "", "run the case of this name only")
	f.StringVar(&o.suite.CRDDir, "crd-dir", "", "folder of CRDs to apply first")
	f.StringSliceVar(&o.suite.ManifestDirs, "manifest-dir", nil, "folder or file of objects to apply before the tests; may be repeated")
	f.StringVar(&o.suite.Namespace, "test-namespace", "", "run all cases in this namespace, instead of one of its own for each (-n does "+
		"the same)")
	f.BoolVar(&o.suite.SkipDelete, "skip-delete", false, "keep the namespaces of the cases")
	f.BoolVar(&o.keepFailed, "keep-failed", false, "keep what cases that fail have made, and print how to look at it and delete it")
	f.IntVar(&o.suite.Parallel, "parallel", 0, "how many cases run at a time (default 8)")
	f.Var(&o.timeout, "timeout", "how long what must hold may take: seconds, or a duration such as 5m (default 30s)")
	f.StringVar(&o.suite.ArtifactsDir, "artifacts-dir", "", "folder of the report (default the current one)")
	f.StringVar(&o.suite.ReportFormat, "report", "", "write a report: json or xml (JUnit)")
	f.StringVar(&o.suite.ReportName, "report-name", "", "name of the report's file (default kudo-test)")
	f.BoolVar(&o.local, "local", false, "start a control plane with kudo for the run, and stop it afterwards")
	f.BoolVar(&o.suite.StartControlPlane, "start-control-plane", false, "the same as --local, as kuttl names it")
	f.IntVar(&o.repeat, "repeat", 1, "run each case this many times")
	f.BoolVar(&o.privileged, "privileged", false, "with --local: run plans of Instances that name no ServiceAccount with the rights of "+
		"kudo, as suites made for KUDO expect")
	f.StringVar(&o.nodes, "nodes", "", "with --local: fake, where pods become ready and nothing runs in them, or real, on Linux as root "+
		"(default fake)")
	f.StringSliceVar(&o.images, "load", nil, "with --local --nodes real: archive of images for the node, as docker save writes it; may be "+
		"repeated")
	f.StringVar(&o.fault, "fault", "", "with --local: kill apiserver or manager at random while steps wait; or each-write: kill the manager "+
		"after each of its writes, case by case")
	f.StringToStringVar(&o.labels, "test-run-labels", nil, "labels of the run, as NAME=VALUE: files whose TestFile selects others are "+
		"left out")
	o.addVoid(f)
}

// addVoid defines the flags of kuttl that have no effect. The text of the help names them.
func (o *testOptions) addVoid(flags *pflag.FlagSet) {
	f := pflag.NewFlagSet("void", pflag.ContinueOnError)
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
	f.VisitAll(func(flag *pflag.Flag) { flag.Hidden = true })
	flags.AddFlagSet(f)
}

// merge puts what flags say over what the suite's file says.
func (o *testOptions) merge(cmd *cobra.Command, suite *testsuite.Suite, namespace string) {
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
		o.timeout = command.Seconds(time.Duration(suite.Timeout) * time.Second)
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
		return command.UsageError("--report %q: must be json or xml", o.suite.ReportFormat)
	case o.repeat < 1:
		return command.UsageError("--repeat %d: must be at least 1", o.repeat)
	case !slices.Contains([]string{"", "apiserver", "manager", eachWrite}, o.fault):
		return command.UsageError("--fault %q: must be apiserver, manager or %s", o.fault, eachWrite)
	case o.nodes != "" && o.nodes != fakeNodes && o.nodes != realNodes:
		return command.UsageError("--nodes %q: must be %s or %s", o.nodes, fakeNodes, realNodes)
	case len(o.images) > 0 && o.nodes != realNodes:
		return command.UsageError("--load requires --nodes %s: in pods of other nodes, nothing runs", realNodes)
	case o.keepFailed && (o.local || o.suite.StartControlPlane):
		return errKeepLocal
	case o.suite.Parallel < 1:
		return command.UsageError("--parallel %d: must be at least 1", o.suite.Parallel)
	}
	return nil
}

func (o *testOptions) run(cmd *cobra.Command, dirs []string) error {
	ctx := cmd.Context()
	suite, notes, err := testsuite.LoadSuite(o.config)
	if err != nil {
		return err
	}
	for _, note := range notes {
		o.env.Warnf("%s", note)
	}
	o.merge(cmd, suite, *o.env.Flags.Namespace)
	if err := o.validate(); err != nil {
		return err
	}
	if o.startKIND || o.kindConfig != "" || o.kindContext != "" || o.skipClusterDelete {
		o.env.Warnf("--start-kind, --kind-config, --kind-context and --skip-cluster-delete have no effect: no container runtime is used; " +
			"--local starts a control plane of the run's own")
	}
	if len(dirs) == 0 {
		dirs = o.suite.TestDirs
	}
	cases, err := o.load(dirs)
	if err != nil {
		return err
	}
	plane, kubeconfig, err := o.startPlane(ctx)
	if err != nil {
		return err
	}
	defer plane.stop()
	switch {
	case plane.name != "":
	case o.fault != "":
		return command.UsageError("--fault requires --local: only a control plane of the run's own may be broken")
	case o.nodes != "":
		return command.UsageError("--nodes requires --local: a cluster that is there has its own")
	}
	if plane.name != "" && o.keepFailed {
		return errKeepLocal
	}
	began := o.env.Now()
	results, err := o.runCases(ctx, cases, plane, kubeconfig)
	if err != nil {
		return err
	}
	err = o.printSummary(results, o.env.Now().Sub(began))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// load reads the cases, as often as they are to be run.
func (o *testOptions) load(dirs []string) ([]*testsuite.Case, error) {
	if len(dirs) == 0 {
		return nil, command.UsageError("no tests: name a folder of cases, or give a TestSuite with testDirs")
	}
	folders, err := testsuite.Cases(dirs, o.only)
	if err != nil {
		return nil, err
	}
	if len(folders) == 0 && o.only != "" {
		return nil, fmt.Errorf("no case named %q in %s", o.only, strings.Join(dirs, ", "))
	}
	if len(folders) == 0 {
		return nil, fmt.Errorf("no case in %s: a case is a folder with files such as 00-install.yaml and 00-assert.yaml",
			strings.Join(dirs, ", "))
	}
	names := map[string]int{}
	for _, folder := range folders {
		names[filepath.Base(folder)]++
	}
	var cases []*testsuite.Case
	for n := range o.repeat {
		for _, folder := range folders {
			c, err := testsuite.Load(folder, o.labels)
			if err != nil {
				c = &testsuite.Case{Name: filepath.Base(folder), Dir: folder, LoadError: err}
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

func (o *testOptions) runCases(ctx context.Context, cases []*testsuite.Case, plane *localPlane,
	kubeconfig string) ([]testsuite.Result, error) {
	cluster, err := testsuite.Connect(kubeconfig)
	if err != nil {
		return nil, err
	}
	log := caseLog(o.env, len(cases) > 1)
	r := &testsuite.Runner{
		Cluster: cluster, Path: programPath(), Timeout: time.Duration(o.timeout), Namespace: o.suite.Namespace,
		SkipDelete: o.suite.SkipDelete, KeepFailed: o.keepFailed, Parallel: o.suite.Parallel, Log: log, Describe: describeFailure,
	}
	if o.fault != "" && o.fault != eachWrite {
		r.InjectFault = func(ctx context.Context) { plane.injectFault(ctx, o.fault, log) }
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
	if o.fault == eachWrite {
		return o.runEachWrite(ctx, r, cases, plane)
	}
	results := r.RunAll(ctx, cases)
	o.printLeftovers(r.Leftovers(context.WithoutCancel(ctx), results))
	return results, nil
}

// caseLog writes lines live, each under the name of its case, so that cases that run side by side can be told apart.
func caseLog(env *command.Env, named bool) func(name, format string, args ...any) {
	var mu sync.Mutex
	return func(name, format string, args ...any) {
		text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
		if named {
			text = name + " | " + strings.ReplaceAll(text, "\n", "\n"+name+" | ")
		}
		mu.Lock()
		defer mu.Unlock()
		env.Printf("%s", text)
	}
}

// programPath returns the PATH of commands, which begins with bin in the current folder, as in kuttl, and the folder of this
// program.
func programPath() string {
	var dirs []string
	if here, err := filepath.Abs("bin"); err == nil {
		dirs = append(dirs, here)
	}
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self))
	}
	return strings.Join(append(dirs, os.Getenv("PATH")), string(os.PathListSeparator))
}

// describeFailure draws the plans of the Instances in a namespace, what they wait for, and the log of what has failed.
func describeFailure(ctx context.Context, kubeconfig, namespace string) string {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return ""
	}
	s, err := command.NewScheme()
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
	env := command.NewEnv(nil, io.Discard, io.Discard)
	env.Flags.KubeConfig = &kubeconfig
	var out strings.Builder
	for i := range list.Items {
		ov := &v1beta1.OperatorVersion{}
		if c.Get(ctx, list.Items[i].OperatorVersionKey(), ov) != nil {
			ov = nil
		}
		out.WriteString(text.EscapeControls(command.FormatPlans(&list.Items[i], ov, env.Now())))
		if m := list.Items[i].Status.AggregatedStatus.Message; m != "" {
			out.WriteString("blocked by: " + m + "\n")
		}
		out.WriteString(text.EscapeControls(env.ExplainInstance(ctx, c, &list.Items[i])))
	}
	return out.String()
}
