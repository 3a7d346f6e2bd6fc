// Package scenario runs declarative test cases in kuttl's format: numbered files that apply objects and run commands,
// and files that say what must hold afterwards.
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
}

// Step is all files of one number.
type Step struct {
	Index    int
	Name     string
	Deletes  []*unstructured.Unstructured
	Commands []Command
	Applies  []*unstructured.Unstructured
	Asserts  []*unstructured.Unstructured
	Errors   []*unstructured.Unstructured
	// Timeout for what must hold; 0 is the suite's.
	Timeout time.Duration
}

// Command is run before the step's objects are applied.
type Command struct {
	Command       string
	Script        string
	Namespaced    bool
	IgnoreFailure bool
	Timeout       time.Duration
}

var fileName = regexp.MustCompile(`^(\d+)-([^.]+)\.ya?ml$`)

// Load reads a case from its folder.
func Load(dir string) (*Case, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	steps := map[int]*Step{}
	for _, entry := range entries {
		match := fileName.FindStringSubmatch(entry.Name())
		if match == nil || entry.IsDir() {
			continue
		}
		index, err := strconv.Atoi(match[1])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		if steps[index] == nil {
			steps[index] = &Step{Index: index, Name: match[2]}
		}
		if err := steps[index].read(filepath.Join(dir, entry.Name()), match[2]); err != nil {
			return nil, err
		}
	}
	c := &Case{Name: filepath.Base(dir), Dir: dir}
	for _, step := range steps {
		c.Steps = append(c.Steps, *step)
	}
	sort.Slice(c.Steps, func(i, j int) bool { return c.Steps[i].Index < c.Steps[j].Index })
	if len(c.Steps) == 0 {
		return nil, fmt.Errorf("%s holds no step: files are named like 00-install.yaml, 00-assert.yaml, 00-errors.yaml", dir)
	}
	return c, nil
}

// read puts the documents of a file where they belong.
func (s *Step) read(path, role string) error {
	objs, err := Documents(path)
	if err != nil {
		return err
	}
	for _, obj := range objs {
		switch {
		case obj.GetKind() == "TestStep" && testing(obj):
			err = s.testStep(obj)
		case obj.GetKind() == "TestAssert" && testing(obj):
			if n, found, _ := unstructured.NestedInt64(obj.Object, "timeout"); found {
				s.Timeout = time.Duration(n) * time.Second
			}
		case role == "assert":
			s.Asserts = append(s.Asserts, obj)
		case role == "errors":
			s.Errors = append(s.Errors, obj)
		default:
			s.Name, s.Applies = role, append(s.Applies, obj)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func testing(obj *unstructured.Unstructured) bool {
	group := obj.GroupVersionKind().Group
	return group == "kuttl.dev" || group == "kudo.dev"
}

func (s *Step) testStep(obj *unstructured.Unstructured) error {
	commands, _, err := unstructured.NestedSlice(obj.Object, "commands")
	if err != nil {
		return err
	}
	for _, c := range commands {
		m, ok := c.(map[string]any)
		if !ok {
			return errors.New("commands: each must be a map")
		}
		command := Command{}
		command.Command, _, _ = unstructured.NestedString(m, "command")
		command.Script, _, _ = unstructured.NestedString(m, "script")
		command.Namespaced, _, _ = unstructured.NestedBool(m, "namespaced")
		command.IgnoreFailure, _, _ = unstructured.NestedBool(m, "ignoreFailure")
		if n, found, _ := unstructured.NestedInt64(m, "timeout"); found {
			command.Timeout = time.Duration(n) * time.Second
		}
		s.Commands = append(s.Commands, command)
	}
	deletes, _, _ := unstructured.NestedSlice(obj.Object, "delete")
	for _, d := range deletes {
		m, ok := d.(map[string]any)
		if !ok {
			return errors.New("delete: each must be a map")
		}
		target := &unstructured.Unstructured{Object: map[string]any{"apiVersion": m["apiVersion"], "kind": m["kind"]}}
		target.SetName(text(m["name"]))
		target.SetNamespace(text(m["namespace"]))
		s.Deletes = append(s.Deletes, target)
	}
	return nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// Documents reads the objects of a YAML file.
func Documents(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var out []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
			return nil, fmt.Errorf("%s: a document lacks apiVersion or kind", path)
		}
		out = append(out, obj)
	}
}

// Differences lists where a live value does not contain what is expected: maps may hold more, lists must have the same
// length, as in kuttl.
func Differences(expected, live any, path string) []string {
	switch want := expected.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: expected a map, found %v", path, live)}
		}
		keys := make([]string, 0, len(want))
		for key := range want {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		var out []string
		for _, key := range keys {
			value, found := have[key]
			if !found {
				out = append(out, fmt.Sprintf("%s.%s: is missing, expected %v", path, key, want[key]))
				continue
			}
			out = append(out, Differences(want[key], value, path+"."+key)...)
		}
		return out
	case []any:
		have, ok := live.([]any)
		if !ok || len(have) != len(want) {
			return []string{fmt.Sprintf("%s: expected %d items, found %v", path, len(want), live)}
		}
		var out []string
		for i := range want {
			out = append(out, Differences(want[i], have[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
		return out
	}
	if fmt.Sprint(expected) != fmt.Sprint(live) {
		return []string{fmt.Sprintf("%s: expected %v, found %v", path, expected, live)}
	}
	return nil
}

// indent puts text under a line.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
