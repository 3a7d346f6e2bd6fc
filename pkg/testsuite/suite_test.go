package testsuite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoadSuite has the notes and the errors of a suite.
func TestLoadSuite(t *testing.T) {
	const suite = head + "TestSuite\n"
	for name, tc := range map[string]struct {
		reason, text string
		notes        []string
		err          string
	}{
		"Whole": {"fields that apply", suite + "testDirs: [a]\nparallel: 2\ntimeout: 5\nreportFormat: xml\nreportGranularity: step", nil, ""},
		"Kind": {
			"the objects of kind",
			suite + "kindNodeCache: true",
			[]string{"startKIND (and kindConfig, kindContext, kindNodeCache, kindContainers) has no effect: " +
				"no container runtime is used; --local starts a control plane of the run's own"},
			"",
		},
		"Several": {
			"each field",
			suite + "skipClusterDelete: true\nattachControlPlaneOutput: true\ncontrolPlaneArgs: [a]\n" +
				"startKUDO: true\nreportGranularity: test\nsuppress: [events]",
			[]string{"skipClusterDelete has no effect: the control plane of --local always goes; start one with kudo-local up to keep it",
				"attachControlPlaneOutput has no effect: kudo-local logs shows the logs of a control plane",
				"controlPlaneArgs has no effect: the control plane's arguments are fixed",
				"startKUDO has no effect: --local always has kudo, and another cluster gets it by kubectl kudo init",
				"reportGranularity has no effect: a report has each step", "suppress has no effect: only steps and failures are shown"},
			"",
		},
		"Unknown": {"a field that is unknown", suite + "testDir: a", []string{`TestSuite: unknown field "testDir", which has no effect`}, ""},
		"Format":  {"a format of reports that is unknown", suite + "reportFormat: html", nil, `reportFormat "html": must be JSON or XML`},
		"Other":   {"another kind", object, nil, "holds a ConfigMap of v1, and must hold a TestSuite of kuttl.dev/v1beta1"},
		"Group": {
			"a TestSuite of another group",
			"apiVersion: x.io/v1\nkind: TestSuite",
			nil,
			"holds a TestSuite of x.io/v1, and must hold a TestSuite of kuttl.dev/v1beta1",
		},
		"Two":      {"two of them", suite + "---\n" + suite, nil, "holds several TestSuites"},
		"None":     {"none", "# nothing", nil, "holds no TestSuite"},
		"Nulls":    {"fields that are null", suite + "testDirs: null\nstartKIND: null", nil, ""},
		"OldGroup": {"the group of KUDO", "apiVersion: kudo.dev/v1alpha1\nkind: TestSuite\nkubectl: [get pods]", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(folder(t, map[string]string{"s.yaml": tc.text}), "s.yaml")
			_, notes, err := LoadSuite(file)
			if err != nil || tc.err != "" {
				if got := strings.TrimPrefix(fmt.Sprint(err), file+": "); got != tc.err {
					t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
				}
				return
			}
			for i := range notes {
				notes[i] = strings.TrimPrefix(notes[i], file+": ")
			}
			if diff := cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSuiteOfFolder looks for a suite in the current folder.
func TestSuiteOfFolder(t *testing.T) {
	timeout := func(n int) string { return fmt.Sprintf("%sTestSuite\ntimeout: %d", head, n) }
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   int
	}{
		"None":  {"no file is an empty suite", nil, 0},
		"Kuttl": {"the name of kuttl", map[string]string{"kuttl-test.yaml": timeout(2)}, 2},
		"Both":  {"kudo's comes first", map[string]string{"kuttl-test.yaml": timeout(2), "kudo-test.yaml": timeout(3)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(folder(t, tc.files))
			suite, notes, err := LoadSuite("")
			if err != nil || suite.Timeout != tc.want || len(notes) > 0 {
				t.Errorf("%s: %+v, notes %q, error %v", tc.reason, suite, notes, err)
			}
		})
	}
}

// TestSuiteCommands keeps the order of commands, of which those of the older way come last.
func TestSuiteCommands(t *testing.T) {
	file := filepath.Join(folder(t, map[string]string{"s.yaml": head + "TestSuite\nkubectl: [get a]\ncommands: [{command: b}]"}), "s.yaml")
	suite, _, err := LoadSuite(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Command{{Command: "b"}, {Command: "kubectl get a", Namespaced: true}}, suite.Commands); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLoadErrors has files of steps that are malformed.
func TestLoadErrors(t *testing.T) {
	const collector = ": must be pod (with pod or selector), command (with command) or events"
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		err    string
	}{
		"Number": {
			"a number beyond 64 bits",
			map[string]string{"99999999999999999999-a.yaml": object},
			"99999999999999999999-a.yaml: the number is too large",
		},
		"Any": {
			"an expression with an unknown variable",
			map[string]string{"00-assert.yaml": head + "TestAssert\nassertAny: [{celExpr: x}]"},
			"00-assert.yaml:3: TestAssert: assertAny[0].celExpr: column 1: undeclared reference to 'x'",
		},
		"All": {
			"an expression without text",
			map[string]string{"00-assert.yaml": head + "TestAssert\nassertAll: [{}]"},
			"00-assert.yaml:3: TestAssert: assertAll[0]: celExpr is missing",
		},
		"Refs": {
			"a reference without a kind",
			map[string]string{"00-assert.yaml": head + "TestAssert\nresourceRefs: [{}]"},
			`00-assert.yaml:3: TestAssert: resourceRefs[0].apiVersion "": must be a version such as apps/v1`,
		},
		"Collector": {
			"a collector of an unknown type",
			map[string]string{"00-assert.yaml": head + "TestAssert\ncollectors: [{type: events}, {type: logs}]"},
			`00-assert.yaml: TestAssert: a collector of type "logs"` + collector,
		},
		"NoPod": {
			"a collector without a pod",
			map[string]string{"00-assert.yaml": head + "TestAssert\ncollectors: [{type: pod}]"},
			`00-assert.yaml: TestAssert: a collector of type "pod"` + collector,
		},
		"Selector": {
			"a selector that is none",
			map[string]string{"00-a.yaml": head + "TestFile\ntestRunSelector: {matchExpressions: [{key: a, operator: Maybe}]}"},
			`00-a.yaml: TestFile: testRunSelector: "Maybe" is not a valid label selector operator`,
		},
		"URL": {
			"a URL",
			map[string]string{"00-a.yaml": head + "TestStep\nassert: ['http://x/a.yaml']"},
			"00-a.yaml: http://x/a.yaml: objects are read from files only: download it beside the case",
		},
		"Content": {"a file of a folder", map[string]string{"00-a/x.yaml": "a: b"}, "00-a/x.yaml: document 1: lacks apiVersion or kind"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, tc.files)
			_, err := Load(dir, nil)
			if got := strings.TrimPrefix(fmt.Sprint(err), dir+string(filepath.Separator)); got != tc.err {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

// TestRoles has the names of files, which say what their objects are for.
func TestRoles(t *testing.T) {
	for file, want := range map[string]string{
		"00-assert.yaml": "assert", "00-Assert-2.yaml": "assert", "assert.yaml": "assert", "00-errors.json": "errors", "00-error.yaml": "error",
		"00-install-assert.yaml": "install", "a-assert.yaml": "a", "1a-assert.yaml": "1a", "00-.yaml": "", "dir/07-x-assert.yaml": "x",
	} {
		if got := role(file); got != want {
			t.Errorf("the role of %s is %q, want %q", file, got, want)
		}
	}
}

// TestPaths has paths that a step names.
func TestPaths(t *testing.T) {
	t.Setenv("SUITE_DIR", "/abs")
	t.Setenv("SUITE_NAME", "n")
	c := &Case{Dir: "/case"}
	for in, want := range map[string]string{
		"a.yaml": "/case/a.yaml", "../a.yaml": "/a.yaml", "/b/a.yaml": "/b/a.yaml", "$SUITE_DIR/a.yaml": "/abs/a.yaml",
		"x-${SUITE_NAME}.yaml": "/case/x-n.yaml",
		"$$a":                  "/case/$a", "$SUITE_UNSET/a": "/a", ".": "/case",
	} {
		if got := c.path(in); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
