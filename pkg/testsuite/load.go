package testsuite

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Case is a folder of steps.
type Case struct {
	Name  string
	Dir   string
	Steps []Step
	// Notes say what in the files does not apply here.
	Notes []string
	// LoadError says why the files cannot be read: such a case fails.
	LoadError error
	// labels of the run, by which a TestFile selects.
	labels labels.Set
}

// Step is all files of one number.
type Step struct {
	Index int
	Name  string
	// Kubeconfig of the cluster that the step works on; empty for the run's.
	Kubeconfig string
	Deletes    []Target
	Commands   []Command
	Applies    []*unstructured.Unstructured
	Asserts    []*unstructured.Unstructured
	Errors     []*unstructured.Unstructured
	// Expressions must be true, like Asserts.
	Expressions []*Expressions
	// Checks are commands that must succeed, like Asserts.
	Checks     []Command
	Collectors []Collector
	// Timeout for what must hold; 0 is the suite's.
	Timeout time.Duration
}

// Target names objects to delete: one by name, or all with the labels.
type Target struct {
	APIVersion string            `json:"apiVersion,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Name       string            `json:"name,omitempty"`
	Namespace  string            `json:"namespace,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Collector gathers something to read after a failure.
type Collector struct {
	// Type is pod, command or events.
	Type      string `json:"type,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Container string `json:"container,omitempty"`
	Selector  string `json:"selector,omitempty"`
	Tail      int    `json:"tail,omitempty"`
	Command   string `json:"command,omitempty"`
	Cmd       string `json:"cmd,omitempty"`
}

// testStep is kuttl's TestStep.
type testStep struct {
	Index      int       `json:"index,omitempty"`
	Apply      []string  `json:"apply,omitempty"`
	Assert     []string  `json:"assert,omitempty"`
	Error      []string  `json:"error,omitempty"`
	Delete     []Target  `json:"delete,omitempty"`
	Commands   []Command `json:"commands,omitempty"`
	Kubeconfig string    `json:"kubeconfig,omitempty"`
	UnitTest   bool      `json:"unitTest,omitempty"`
	// Kubectl are commands in the older way.
	Kubectl []string `json:"kubectl,omitempty"`
	// KubeconfigLoading is "eager" or "lazy" in kuttl; here a kubeconfig is read when its step begins.
	KubeconfigLoading string `json:"kubeconfigLoading,omitempty"`
}

// testFile is kuttl's TestFile.
type testFile struct {
	TestRunSelector *metav1.LabelSelector `json:"testRunSelector,omitempty"`
}

// testAssert is kuttl's TestAssert.
type testAssert struct {
	Timeout    int         `json:"timeout,omitempty"`
	Commands   []Command   `json:"commands,omitempty"`
	Collectors []Collector `json:"collectors,omitempty"`
	// AssertAll are expressions of which all must be true, AssertAny those of which one must be.
	AssertAll []Assertion `json:"assertAll,omitempty"`
	AssertAny []Assertion `json:"assertAny,omitempty"`
	// ResourceRefs are the objects that they use.
	ResourceRefs []ResourceRef `json:"resourceRefs,omitempty"`
}

// stepName is the name of a file or folder of a step. The word after the number says what the file is for.
var stepName = regexp.MustCompile(`^(\d+)-([^.]+)(?:\.yaml)?$`)

// Load reads a case from its folder. Files whose TestFile does not select the labels of the run are left out.
func Load(dir string, run labels.Set) (*Case, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	c := &Case{Name: caseName(dir), Dir: dir, labels: run}
	steps := map[int]*Step{}
	for _, entry := range entries {
		match := stepName.FindStringSubmatch(entry.Name())
		if match == nil {
			continue
		}
		index, err := strconv.Atoi(match[1])
		if err != nil {
			return nil, fmt.Errorf("%s: the number is too large", entry.Name())
		}
		if steps[index] == nil {
			steps[index] = &Step{Index: index}
		}
		files := []string{filepath.Join(dir, entry.Name())}
		if isDir(files[0]) {
			if files, err = yamlFiles(files[0]); err != nil {
				return nil, err
			}
			steps[index].Name = match[2]
		}
		for _, file := range files {
			if err := c.readFile(steps[index], file); err != nil {
				return nil, err
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(steps)) {
		c.Steps = append(c.Steps, *steps[number])
	}
	sort.SliceStable(c.Steps, func(i, j int) bool { return c.Steps[i].Index < c.Steps[j].Index })
	if len(c.Steps) == 0 {
		return nil, fmt.Errorf("%s holds no step: files are named like 00-install.yaml, 00-assert.yaml, 00-errors.yaml", dir)
	}
	return c, nil
}

// role of a file: its name up to the first dash, without the number.
func role(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if number, rest, found := strings.Cut(name, "-"); found && strings.Trim(number, "0123456789") == "" {
		name = rest
	}
	name, _, _ = strings.Cut(name, "-")
	return strings.ToLower(name)
}

// readFile puts the documents of a file where they belong.
func (c *Case) readFile(s *Step, file string) error {
	objs, err := Documents(file)
	if err != nil {
		return err
	}
	if selected, err := c.selects(objs); err != nil || !selected {
		if err != nil {
			err = fmt.Errorf("%s: %w", file, err)
		}
		return err
	}
	for _, obj := range objs {
		switch {
		case ofTests(obj) && obj.GetKind() == "TestStep":
			err = c.readStep(s, obj)
		case ofTests(obj) && obj.GetKind() == "TestAssert":
			err = c.readAssert(s, obj)
		case ofTests(obj) && obj.GetKind() == "TestFile":
			// selects has read it.
		case role(file) == "assert":
			s.Asserts = append(s.Asserts, obj)
		case role(file) == "errors":
			s.Errors = append(s.Errors, obj)
		default:
			s.Applies = append(s.Applies, obj)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", place(file, err), err)
		}
	}
	if r := role(file); r != "assert" && r != "errors" && s.Name == "" {
		match := stepName.FindStringSubmatch(filepath.Base(file))
		if match != nil {
			s.Name = match[2]
		}
	}
	return nil
}

// ofTests reports whether an object is one of the format itself.
func ofTests(obj *unstructured.Unstructured) bool {
	group, _, _ := strings.Cut(obj.GetAPIVersion(), "/")
	return (group == "kuttl.dev" || group == "kudo.dev") && strings.HasPrefix(obj.GetKind(), "Test")
}

// selects reports whether a file takes part in the run.
func (c *Case) selects(objs []*unstructured.Unstructured) (bool, error) {
	for _, obj := range objs {
		if !ofTests(obj) || obj.GetKind() != "TestFile" {
			continue
		}
		t := &testFile{}
		notes, err := decode(obj, t)
		if err != nil {
			return false, err
		}
		c.Notes = append(c.Notes, notes...)
		if t.TestRunSelector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(t.TestRunSelector)
		if err != nil {
			return false, fmt.Errorf("TestFile: testRunSelector: %w", err)
		}
		if !selector.Matches(c.labels) {
			return false, nil
		}
	}
	return true, nil
}

func (c *Case) readStep(s *Step, obj *unstructured.Unstructured) error {
	t := &testStep{}
	notes, err := decode(obj, t)
	if err != nil {
		return err
	}
	c.Notes = append(c.Notes, notes...)
	if name := obj.GetName(); name != "" {
		s.Name = name
	}
	if t.Index != 0 {
		s.Index = t.Index
	}
	s.Deletes, s.Commands = append(s.Deletes, t.Delete...), slices.Concat(s.Commands, kubectl(t.Kubectl), t.Commands)
	if t.Kubeconfig != "" {
		s.Kubeconfig = c.path(t.Kubeconfig)
	}
	for _, list := range []struct {
		paths []string
		into  *[]*unstructured.Unstructured
	}{{t.Apply, &s.Applies}, {t.Assert, &s.Asserts}, {t.Error, &s.Errors}} {
		for _, path := range list.paths {
			objs, err := c.objects(path)
			if err != nil {
				return err
			}
			*list.into = append(*list.into, objs...)
		}
	}
	return nil
}

func (c *Case) readAssert(s *Step, obj *unstructured.Unstructured) error {
	t := &testAssert{}
	notes, err := decode(obj, t)
	if err != nil {
		return err
	}
	expressions, unused, err := compileExpressions(t)
	if err != nil {
		return err
	}
	if expressions != nil {
		s.Expressions = append(s.Expressions, expressions)
	}
	c.Notes = append(append(c.Notes, notes...), unused...)
	if t.Timeout > 0 {
		s.Timeout = seconds(t.Timeout)
	}
	s.Checks, s.Collectors = append(s.Checks, t.Commands...), append(s.Collectors, t.Collectors...)
	for _, collector := range t.Collectors {
		if !collector.valid() {
			return fmt.Errorf("TestAssert: a collector of type %q: must be pod (with pod or selector), command (with command) or events",
				collector.Type)
		}
	}
	return nil
}

// objects reads a file, or the files of a folder, relative to the case.
func (c *Case) objects(path string) ([]*unstructured.Unstructured, error) {
	if strings.Contains(path, "://") {
		return nil, fmt.Errorf("%s: objects are read from files only: download it beside the case", path)
	}
	return Objects(c.path(path))
}

// path is one that a file names: relative to the case, with variables of the environment.
func (c *Case) path(path string) string {
	path = os.Expand(path, func(name string) string {
		if name == "$" {
			return "$"
		}
		return os.Getenv(name)
	})
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Dir, path)
}
