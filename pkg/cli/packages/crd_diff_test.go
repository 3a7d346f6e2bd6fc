package packages

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"kudo.dev/kudo/operators/archive"
	"kudo.dev/kudo/pkg/cli/command"
)

const diffedCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string, maxLength: 3}}}}}
`

// TestCRDDiff compares definitions in files, folders and archives.
func TestCRDDiff(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	narrow := strings.ReplaceAll(diffedCRD, "maxLength: 3", "maxLength: 2")
	write("old.yaml", diffedCRD)
	write("wide/crds/w.yaml", strings.ReplaceAll(diffedCRD, "maxLength: 3", "maxLength: 4"))
	write("other.yaml", strings.ReplaceAll(strings.ReplaceAll(diffedCRD, "widgets", "gadgets"), "Widget", "Gadget"))
	write("future.yaml", strings.ReplaceAll(diffedCRD, "maxLength: 3", "maxLength: 3, x-kubernetes-future: true"))
	write("map.yaml", "kind: ConfigMap\napiVersion: v1\n")
	var packed bytes.Buffer
	if _, err := archive.Write(&packed, fstest.MapFS{"w.yaml": {Data: []byte(narrow)}}); err != nil {
		t.Fatal(err)
	}
	write("narrow.tgz", packed.String())

	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		want   []string // in stdout, or in the error
	}{
		"Same":    {"nothing changes", []string{"old.yaml", "old.yaml"}, 0, []string{"widgets.example.org: no change that counts"}},
		"Safe":    {"safe changes of a folder", []string{"old.yaml", "wide"}, 0, []string{"0 breaking changes, 1 safe changes", "maxLength was 3 and is 4"}},
		"Unsafe":  {"breaches of an archive", []string{"old.yaml", "narrow.tgz"}, command.ExitFailed, []string{"Length", "maxLength was 3 and is 2", "1 of 1 CustomResourceDefinitions cannot be replaced safely"}},
		"Others":  {"definitions are matched by name", []string{"old.yaml", "other.yaml"}, 0, []string{"gadgets.example.org: added", "widgets.example.org: removed"}},
		"Unknown": {"what is not known cannot be compared", []string{"old.yaml", "future.yaml"}, command.ExitError, []string{"cannot be compared", "x-kubernetes-future"}},
		"NoCRD":   {"only definitions", []string{"old.yaml", "map.yaml"}, command.ExitError, []string{"ConfigMap"}},
		"Missing": {"files exist", []string{"old.yaml", "none.yaml"}, command.ExitError, []string{"none.yaml"}},
		"Format":  {"formats exist", []string{"old.yaml", "old.yaml", "-o", "table"}, command.ExitUsage, []string{"invalid output format"}},
		"One":     {"two are compared", []string{"old.yaml"}, command.ExitUsage, []string{"OLD and NEW"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, code, err := runCRDDiff(t, tc.args...)
			if err != nil {
				out += err.Error()
			}
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s: no %q in\n%s", tc.reason, want, out)
				}
			}
			if code != tc.code {
				t.Errorf("%s: exit code %d, want %d", tc.reason, code, tc.code)
			}
		})
	}

	out, code, _ := runCRDDiff(t, "old.yaml", "narrow.tgz", "-o", "json")
	var diffs []struct {
		Name, Change    string
		BreakingChanges []struct{ Version, Path, Rule, Remedy string }
		SafeChanges     []any
	}
	if err := json.Unmarshal([]byte(out), &diffs); err != nil || code != command.ExitFailed {
		t.Fatalf("%v, exit code %d: %s", err, code, out)
	}
	if len(diffs) != 1 || len(diffs[0].BreakingChanges) != 1 || diffs[0].BreakingChanges[0].Path != "a" || diffs[0].SafeChanges == nil {
		t.Errorf("lists are lists: %s", out)
	}
}

// runCRDDiff returns stdout and the exit code.
func runCRDDiff(t *testing.T, args ...string) (string, int, error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := newCRDDiff(&command.Env{In: strings.NewReader(""), Out: &out, Err: &errs, Flags: genericclioptions.NewConfigFlags(true)})
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	var coded *command.CodeError
	switch {
	case err == nil:
		return out.String(), 0, nil
	case errors.As(err, &coded):
		return out.String(), coded.Code, err
	}
	return out.String(), command.ExitError, err
}
