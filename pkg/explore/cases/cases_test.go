package cases

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/lua"
)

func noon() time.Time { return time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC) }

func load(t testing.TB, tree fs.FS) []Folder {
	t.Helper()
	folders, err := Load(tree, lua.New(noon, lua.DefaultLimits()))
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// TestTree runs a tree with customizations of Karmada's format and a Config, of which some cases fail on purpose.
func TestTree(t *testing.T) {
	results := RunAll(t.Context(), load(t, os.DirFS("testdata/tree")), noon)
	var got []string
	for _, r := range results {
		if r.Folder == "apps.kruise.io/v1alpha1/CloneSet" {
			if !r.Passed() {
				t.Errorf("%s %s: %v", r.Operation, r.Place, r.Failures)
			}
			continue
		}
		got = append(got, fmt.Sprintf("%s: %s", r.Name, strings.Join(r.Failures, "; ")))
	}
	want := []string{
		"fields, then the script: ",
		"wrong on purpose: healthy: want true, got false",
		"no fixed point: asked about its own result, it answers otherwise: object.status.count: want 1, got 2",
		"unanswered: no layer answers ExploreStatus for example.io/v1 Workload",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"JSON":  func(b *bytes.Buffer) error { return WriteJSON(b, results) },
		"JUnit": func(b *bytes.Buffer) error { return WriteJUnit(b, results) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil || !strings.Contains(out.String(), "wrong on purpose") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
}

func TestParse(t *testing.T) {
	const object = "{apiVersion: v1, kind: X, metadata: {name: x}}"
	for name, tc := range map[string]struct{ reason, text, err string }{
		"Good":     {"a case", "operation: Retain\ndesiredObj: " + object + "\nobservedObj: " + object + "\noutput: {retained: " + object + "}", ""},
		"Text":     {"a case is a map", "x", "f.yaml:1: a case is a map with operation and output"},
		"Unknown":  {"typos are found", "operation: Retain\ndesired: 1", "f.yaml:1: field desired is unknown: use name, description, operation, desiredObj, observedObj, statusItems, inputReplicas, output"},
		"None":     {"an operation is needed", "output: {}", fmt.Sprintf("f.yaml:1: operation \"\" is unknown: use one of %v", explore.Operations())},
		"Object":   {"an object is needed", "operation: InterpretHealth\noutput: {healthy: true}", "f.yaml:1: ExploreHealthy: there is no object"},
		"Observed": {"two for Retain", "operation: Retain\ndesiredObj: " + object + "\noutput: {retained: 1}", "f.yaml:1: ExploreRetaining of X x: there is no observed object"},
		"Output":   {"outputs belong to operations", "operation: InterpretHealth\nobservedObj: " + object + "\noutput: {status: 1}", "f.yaml:1: output.status is no output of ExploreHealthy: use healthy or message"},
		"Replicas": {"of 32 bits", "operation: ReviseReplica\ninputReplicas: 2147483648\ndesiredObj: " + object + "\noutput: {revised: 1}", "f.yaml:1: inputReplicas must be a whole number from 0 to 2147483647"},
		"Second":   {"the line of the document", "operation: InterpretHealth\nobservedObj: " + object + "\noutput: {healthy: true}\n---\noperation: x\n", fmt.Sprintf("f.yaml:5: operation \"x\" is unknown: use one of %v", explore.Operations())},
		"Twice":    {"keys stand once", "operation: Retain\noperation: Retain", "f.yaml:1: line 2: operation is a duplicate of line 1, whose value is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(tc.text))
			if got := fmt.Sprint(err); got != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		want, got any
		same      bool
	}{
		"Empty":    {"an empty map is an absent one", map[string]any{"a": map[string]any{}}, map[string]any{}, true},
		"EmptyGot": {"the other way round, too", map[string]any{}, map[string]any{"a": []any{}}, true},
		"Excluded": {"what is excluded does not matter", map[string]any{"a": Excluded, "b": int64(1)}, map[string]any{"a": int64(7), "b": int64(1)}, true},
		"Lists":    {"also in lists", []any{map[string]any{"t": Excluded, "x": "y"}}, []any{map[string]any{"t": "now", "x": "y"}}, true},
		"Missing":  {"what is excluded may be missing", map[string]any{"a": Excluded}, nil, true},
		"Numbers":  {"1 is 1.0", int64(1), 1.0, true},
		"More":     {"what is not expected must not be there", map[string]any{}, map[string]any{"a": int64(1)}, false},
		"Text":     {"a text is no number", "1", int64(1), false},
		"Zero":     {"zero is there", map[string]any{"a": int64(0)}, map[string]any{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if found := differences("x", tc.want, tc.got); (len(found) == 0) != tc.same {
				t.Errorf("%s: %v", tc.reason, found)
			}
		})
	}
}

func TestConvert(t *testing.T) {
	text, err := os.ReadFile("testdata/tree/apps.kruise.io/v1alpha1/CloneSet/customizations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	configs, warnings, err := ReadConfigs("f", bytes.Replace(text, []byte("healthInterpretation"), []byte("componentResource"), 1))
	if err != nil || len(configs) != 1 {
		t.Fatal(configs, err)
	}
	e := configs[0].Spec.Explorations[0]
	if e.Kind != "CloneSet" || e.RetainingLua == "" || e.HealthLua != "" || configs[0].Name != "declarative-configuration-cloneset" {
		t.Errorf("got %+v", e)
	}
	if diff := cmp.Diff([]string{"f:1: spec.customizations.componentResource is left out: kudo has no such operation"}, warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, text := range map[string]string{
		"other kind": "apiVersion: v1\nkind: Secret",
		"typo":       "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nspec: {retension: []}",
		"no target":  "kind: ResourceInterpreterCustomization\nmetadata: {name: x}",
	} {
		if _, _, err := ReadConfigs("f", []byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestFiveHundred: of 500 cases in 64 kinds, with 20 repetitions each, all are judged, and pass. BenchmarkFiveHundredCases measures them.
func TestFiveHundred(t *testing.T) {
	if results := fiveHundred(t); results != 512 {
		t.Fatalf("%d cases were judged, want 512", results)
	}
}

// fiveHundred judges some 500 cases, which must pass, and returns how many there were.
func fiveHundred(t testing.TB) int {
	const dir = "testdata/tree/apps.kruise.io/v1alpha1/CloneSet/"
	tree := fstest.MapFS{}
	for i := range 64 {
		for _, name := range []string{"customizations.yaml", "testdata/cases.yaml"} {
			text, err := os.ReadFile(dir + name)
			if err != nil {
				t.Fatal(err)
			}
			tree[fmt.Sprintf("g%d/v1/K/%s", i, name)] = &fstest.MapFile{Data: text}
		}
	}
	results := RunAll(t.Context(), load(t, tree), time.Now)
	for _, r := range results {
		if !r.Passed() {
			t.Fatalf("%+v", r)
		}
	}
	return len(results)
}

func BenchmarkFiveHundredCases(b *testing.B) {
	for b.Loop() {
		fiveHundred(b)
	}
}

func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/tree/apps.kruise.io/v1alpha1/CloneSet/testdata/cases.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("operation: Retain\nstatusItems: [1]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := Parse("f", text)
		if err != nil {
			return
		}
		for i := range found {
			if len(found[i].Output) == 0 || found[i].Request.Validate() != nil {
				t.Errorf("a case without output or object went through: %+v", found[i])
			}
		}
	})
}
