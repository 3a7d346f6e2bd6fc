package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Case is a folder of steps.
type Case struct {
	Name  string
	Dir   string
	Steps []Step
	// Notes say what in the files does not apply here.
	Notes []string
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
}

// testAssert is kuttl's TestAssert.
type testAssert struct {
	Timeout    int         `json:"timeout,omitempty"`
	Commands   []Command   `json:"commands,omitempty"`
	Collectors []Collector `json:"collectors,omitempty"`
	// What kuttl has and this does not: ignoring it would let wrong things pass.
	AssertAny    []any `json:"assertAny,omitempty"`
	AssertAll    []any `json:"assertAll,omitempty"`
	ResourceRefs []any `json:"resourceRefs,omitempty"`
}

// stepName is the name of a file or folder of a step. The word after the number says what the file is for.
var stepName = regexp.MustCompile(`^(\d+)-([^.]+)(?:\.yaml)?$`)

// Load reads a case from its folder.
func Load(dir string) (*Case, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	c := &Case{Name: caseName(dir), Dir: dir}
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
		if entry.IsDir() {
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
	for _, step := range steps {
		c.Steps = append(c.Steps, *step)
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
	name = strings.TrimLeft(name, "0123456789")
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "-")
	return name
}

// readFile puts the documents of a file where they belong.
func (c *Case) readFile(s *Step, file string) error {
	objs, err := Documents(file)
	if err != nil {
		return err
	}
	for _, obj := range objs {
		switch {
		case testing(obj) && obj.GetKind() == "TestStep":
			err = c.readStep(s, obj)
		case testing(obj) && obj.GetKind() == "TestAssert":
			err = c.readAssert(s, obj)
		case testing(obj) && obj.GetKind() == "TestFile":
			c.Notes = append(c.Notes, file+": TestFile has no effect: runs are not selected by labels")
		case role(file) == "assert":
			s.Asserts = append(s.Asserts, obj)
		case role(file) == "errors":
			s.Errors = append(s.Errors, obj)
		default:
			s.Applies = append(s.Applies, obj)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
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

func testing(obj *unstructured.Unstructured) bool {
	switch obj.GetAPIVersion() {
	case "kuttl.dev/v1beta1", "kudo.dev/v1alpha1", "kudo.dev/v1beta1", "kuttl.dev/v1alpha1":
		return strings.HasPrefix(obj.GetKind(), "Test")
	}
	return false
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
	s.Deletes, s.Commands = append(s.Deletes, t.Delete...), append(s.Commands, t.Commands...)
	if t.Kubeconfig != "" {
		s.Kubeconfig = filepath.Join(c.Dir, t.Kubeconfig)
		if filepath.IsAbs(t.Kubeconfig) {
			s.Kubeconfig = t.Kubeconfig
		}
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
	if len(t.AssertAny)+len(t.AssertAll)+len(t.ResourceRefs) > 0 {
		return errors.New("TestAssert: assertAny, assertAll and resourceRefs are not supported: say what must hold as an object")
	}
	c.Notes = append(c.Notes, notes...)
	s.Timeout = max(s.Timeout, seconds(t.Timeout))
	s.Checks, s.Collectors = append(s.Checks, t.Commands...), append(s.Collectors, t.Collectors...)
	for _, collector := range t.Collectors {
		if !collector.valid() {
			return fmt.Errorf("TestAssert: a collector of type %q: must be pod (with pod or selector), command (with command) or events", collector.Type)
		}
	}
	return nil
}

// objects reads a file, or the files of a folder, relative to the case.
func (c *Case) objects(path string) ([]*unstructured.Unstructured, error) {
	if strings.Contains(path, "://") {
		return nil, fmt.Errorf("%s: objects are read from files only: download it beside the case", path)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	return Objects(path)
}

// Objects reads the objects of a file, or of the YAML files of a folder.
func Objects(path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = yamlFiles(path); err != nil {
			return nil, err
		}
	}
	var out []*unstructured.Unstructured
	for _, file := range files {
		objs, err := Documents(file)
		if err != nil {
			return nil, err
		}
		out = append(out, objs...)
	}
	return out, nil
}

func yamlFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); !entry.IsDir() && (ext == ".yaml" || ext == ".yml" || ext == ".json") {
			out = append(out, filepath.Join(dir, entry.Name()))
		}
	}
	return out, nil
}

// maxFile bounds a file of tests, in bytes.
const maxFile = 16 << 20

// Documents reads the objects of a YAML file.
func Documents(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, err
	}
	out, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// parse splits YAML into objects.
func parse(content []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var out []*unstructured.Unstructured
	for i := 1; ; i++ {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
			return nil, fmt.Errorf("document %d lacks apiVersion or kind", i)
		}
		out = append(out, obj)
	}
}
