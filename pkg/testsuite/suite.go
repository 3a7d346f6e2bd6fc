// Package testsuite runs declarative test cases in kuttl's format: numbered files that apply objects and run commands,
// and files that say what must hold afterwards.
package testsuite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Suite is the configuration of a run: the fields of kuttl's TestSuite.
type Suite struct {
	// CRDDir is a folder of objects that are applied first; their CRDs are awaited.
	CRDDir string `json:"crdDir,omitempty"`
	// ManifestDirs are folders or files of objects that are applied before the tests.
	ManifestDirs []string `json:"manifestDirs,omitempty"`
	// TestDirs are folders of cases.
	TestDirs []string `json:"testDirs,omitempty"`
	// Commands are run before the tests, in the folder of the suite.
	Commands []Command `json:"commands,omitempty"`
	// SkipDelete keeps what tests made.
	SkipDelete bool `json:"skipDelete,omitempty"`
	// Timeout for what must hold after a step, in seconds.
	Timeout int `json:"timeout,omitempty"`
	// Parallel is how many cases run at a time.
	Parallel int `json:"parallel,omitempty"`
	// ArtifactsDir is where reports go.
	ArtifactsDir string `json:"artifactsDir,omitempty"`
	// ReportFormat is JSON or XML (JUnit), or empty for no report.
	ReportFormat string `json:"reportFormat,omitempty"`
	// ReportName is the name of the report's file, without ending.
	ReportName string `json:"reportName,omitempty"`
	// Namespace in which all cases run; empty for one of its own for each.
	Namespace string `json:"namespace,omitempty"`
	// StartControlPlane asks for a control plane of the run's own.
	StartControlPlane bool `json:"startControlPlane,omitempty"`

	// Kubectl are commands in the older way.
	Kubectl []string `json:"kubectl,omitempty"`

	// Fields of kuttl that do not apply.
	StartKIND                bool     `json:"startKIND,omitempty"`
	KINDConfig               string   `json:"kindConfig,omitempty"`
	KINDContext              string   `json:"kindContext,omitempty"`
	KINDNodeCache            bool     `json:"kindNodeCache,omitempty"`
	KINDContainers           []string `json:"kindContainers,omitempty"`
	SkipClusterDelete        bool     `json:"skipClusterDelete,omitempty"`
	AttachControlPlaneOutput bool     `json:"attachControlPlaneOutput,omitempty"`
	ControlPlaneArgs         []string `json:"controlPlaneArgs,omitempty"`
	Suppress                 []string `json:"suppress,omitempty"`
	StartKUDO                bool     `json:"startKUDO,omitempty"`
	ReportGranularity        string   `json:"reportGranularity,omitempty"`
	FullName                 bool     `json:"fullName,omitempty"`
}

// Command is a command of a step or a suite.
type Command struct {
	// Command line: split into words as a shell does, variables expanded.
	Command string `json:"command,omitempty"`
	// Script is run by sh.
	Script string `json:"script,omitempty"`
	// Namespaced adds --namespace.
	Namespaced bool `json:"namespaced,omitempty"`
	// IgnoreFailure continues if the command fails.
	IgnoreFailure bool `json:"ignoreFailure,omitempty"`
	// Background leaves the command running until the case ends.
	Background bool `json:"background,omitempty"`
	// SkipLogOutput keeps the output to itself.
	SkipLogOutput bool `json:"skipLogOutput,omitempty"`
	// Timeout in seconds.
	Timeout int `json:"timeout,omitempty"`
}

// Names of the files in which a suite is looked for.
var suiteFiles = []string{"kudo-test.yaml", "kuttl-test.yaml"}

// LoadSuite reads the suite of a file, or, without one, that of the current folder; none is an empty suite. Notes say what
// in it does not apply here. Its paths are relative to the current folder, as in kuttl.
func LoadSuite(file string) (suite *Suite, notes []string, err error) {
	if file == "" {
		i := slices.IndexFunc(suiteFiles, func(name string) bool { _, err := os.Stat(name); return err == nil })
		if i < 0 {
			return &Suite{}, nil, nil
		}
		file = suiteFiles[i]
	}
	objs, err := Documents(file)
	if err != nil {
		return nil, nil, err
	}
	for _, obj := range objs {
		if obj.GetKind() != "TestSuite" || !ofTests(obj) {
			return nil, nil, fmt.Errorf("%s: holds a %s of %s, and must hold a TestSuite of kuttl.dev/v1beta1", file, obj.GetKind(),
				obj.GetAPIVersion())
		}
		if suite != nil {
			return nil, nil, fmt.Errorf("%s: holds several TestSuites", file)
		}
		suite = &Suite{}
		if notes, err = decode(obj, suite); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		suite.Commands = append(suite.Commands, kubectl(suite.Kubectl)...)
	}
	if suite == nil {
		return nil, nil, fmt.Errorf("%s: holds no TestSuite", file)
	}
	for i, note := range notes {
		notes[i] = file + ": " + note
	}
	if f := strings.ToUpper(suite.ReportFormat); f != "" && f != "JSON" && f != "XML" {
		return nil, nil, fmt.Errorf("%s: reportFormat %q: must be JSON or XML", file, suite.ReportFormat)
	}
	return suite, append(notes, suite.inapplicable(file)...), nil
}

// inapplicable says which fields of a suite have no effect.
func (s *Suite) inapplicable(file string) []string {
	var out []string
	note := func(set bool, field, why string) {
		if set {
			out = append(out, fmt.Sprintf("%s: %s has no effect: %s", file, field, why))
		}
	}
	note(s.StartKIND || s.KINDConfig != "" || s.KINDContext != "" || s.KINDNodeCache || len(s.KINDContainers) > 0, "startKIND (and "+
		"kindConfig, kindContext, kindNodeCache, kindContainers)", "no container runtime is used; --local starts a control plane of the "+
		"run's own")
	note(s.SkipClusterDelete, "skipClusterDelete", "the control plane of --local always goes; start one with kudo-local up to keep it")
	note(s.AttachControlPlaneOutput, "attachControlPlaneOutput", "kudo-local logs shows the logs of a control plane")
	note(len(s.ControlPlaneArgs) > 0, "controlPlaneArgs", "the control plane's arguments are fixed")
	note(s.StartKUDO, "startKUDO", "--local always has kudo, and another cluster gets it by kubectl kudo init")
	note(s.ReportGranularity != "" && s.ReportGranularity != "step", "reportGranularity", "a report has each step")
	note(len(s.Suppress) > 0, "suppress", "only steps and failures are shown")
	return out
}

// decode fills a value from a document, and notes the fields that it does not have.
func decode(obj *unstructured.Unstructured, into any) (notes []string, err error) {
	content := map[string]any{}
	for key, value := range obj.Object {
		if key != "apiVersion" && key != "kind" && key != "metadata" && value != nil {
			content[key] = value
		}
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, into, true)
	unknown, strict := runtime.AsStrictDecodingError(err)
	if err != nil && !strict {
		return nil, fmt.Errorf("%s: %w", obj.GetKind(), err)
	}
	if strict {
		for _, e := range unknown.Errors() {
			notes = append(notes, fmt.Sprintf("%s: %s, which has no effect", obj.GetKind(), e))
		}
	}
	sort.Strings(notes)
	return notes, nil
}

// kubectl are commands in the way of the older format: arguments of kubectl.
func kubectl(lines []string) []Command {
	var out []Command
	for _, line := range lines {
		out = append(out, Command{Command: "kubectl " + line, Namespaced: true})
	}
	return out
}

// Cases finds the case folders below the folders of tests, by name if one is given. A folder that holds steps itself is a
// case.
func Cases(dirs []string, name string) ([]string, error) {
	var out []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("folder of tests: %w", err)
		}
		if isCase(dir) {
			out = append(out, dir)
			continue
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if isDir(path) && !strings.HasPrefix(entry.Name(), ".") && holdsSteps(path) {
				out = append(out, path)
			}
		}
	}
	if name != "" {
		out = slices.DeleteFunc(out, func(dir string) bool { return caseName(dir) != name })
	}
	return out, nil
}

// isCase reports whether a folder is a case rather than one of cases, which may have numbers too: it holds files of steps,
// or folders of steps whose files have no numbers.
func isCase(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		path := filepath.Join(dir, e.Name())
		return stepName.MatchString(e.Name()) && (!isDir(path) || !holdsSteps(path) && holdsYAML(path))
	})
}

func holdsSteps(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(e os.DirEntry) bool { return stepName.MatchString(e.Name()) })
}

func holdsYAML(dir string) bool {
	files, err := yamlFiles(dir)
	return err == nil && len(files) > 0
}

// isDir follows symbolic links.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func caseName(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
