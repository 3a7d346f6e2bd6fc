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
			if r.State != Passed {
				t.Errorf("%s %s: %v", r.Operation, r.Place, r.Failures)
			}
			continue
		}
		got = append(got, fmt.Sprintf("%s: %s%s", r.Name, strings.Join(r.Failures, "; "), strings.Join(r.Warnings, " (warning)")))
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

// TestParse (C53): a document that cannot be judged is one broken case, with its line.
func TestParse(t *testing.T) {
	const object = "{apiVersion: v1, kind: X, metadata: {name: x}}"
	for name, tc := range map[string]struct{ reason, text, place, err string }{
		"Good":        {"a case", "operation: Retain\ndesiredObj: " + object + "\nobservedObj: " + object + "\noutput: {retained: " + object + "}", "f.yaml:1", ""},
		"Text":        {"a case is a map", "x", "f.yaml:1", "a case is a map with operation and output"},
		"Syntax":      {"YAML has a syntax", "a: 1\nb: [", "f.yaml:2", "line 2: malformed YAML: did not find expected node content"},
		"None":        {"an operation is needed", "output: {}", "f.yaml:1", fmt.Sprintf("operation \"\" is unknown: use one of %v", explore.Operations())},
		"Object":      {"an object is needed", "operation: InterpretHealth\noutput: {healthy: true}", "f.yaml:1", "ExploreHealthy: there is no object"},
		"Observed":    {"two for Retain", "operation: Retain\ndesiredObj: " + object + "\noutput: {retained: 1}", "f.yaml:1", "ExploreRetaining of X x: there is no observed object"},
		"NoMap":       {"an object is a map", "operation: InterpretHealth\nobservedObj: x", "f.yaml:1", "observedObj must be an object"},
		"Name":        {"names are texts", "name: [a]\noperation: InterpretHealth\nobservedObj: " + object, "f.yaml:1", "name must be a text"},
		"Replicas":    {"of 32 bits", "operation: ReviseReplica\ninputReplicas: 2147483648\ndesiredObj: " + object, "f.yaml:1", "inputReplicas must be a whole number from 0 to 2147483647"},
		"Items":       {"items are a list", "operation: AggregateStatus\nstatusItems: {}\ndesiredObj: " + object, "f.yaml:1", "statusItems must be a list"},
		"Item":        {"of maps", "operation: AggregateStatus\nstatusItems: [1]\ndesiredObj: " + object, "f.yaml:1", "statusItems[0] must be a map"},
		"Applied":     {"with the right types", "operation: AggregateStatus\nstatusItems: [{applied: 'true'}]\ndesiredObj: " + object, "f.yaml:1", "statusItems[0].applied must be true or false"},
		"Health":      {"and values", "operation: AggregateStatus\nstatusItems: [{health: good}]\ndesiredObj: " + object, "f.yaml:1", "statusItems[0].health must be Healthy, Unhealthy or Unknown"},
		"OutputType":  {"output is a map", "operation: InterpretHealth\noutput: [healthy]\nobservedObj: " + object, "f.yaml:1", "output must be a map with healthy or message or outcome"},
		"EmptyOutput": {"which may be empty", "operation: InterpretHealth\noutput: {}\nobservedObj: " + object, "f.yaml:1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			const next = "\n---\noperation: InterpretHealth\nobservedObj: " + object + "\noutput: {healthy: true}\n"
			found := Parse("f.yaml", []byte(tc.text+next))
			if len(found) != 2 {
				t.Fatalf("%s: %d cases, want the one after it, too", tc.reason, len(found))
			}
			got := ""
			if found[0].Broken != nil {
				got = found[0].Broken.Error()
			}
			if diff := cmp.Diff([]string{tc.place, tc.err}, []string{found[0].Place, got}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if found[1].Broken != nil {
				t.Errorf("%s: the next case is broken, too: %v", tc.reason, found[1].Broken)
			}
		})
	}
}

// TestWarnings (C53, C60): what is ignored of a case is named, and does not fail it.
func TestWarnings(t *testing.T) {
	const object = "{apiVersion: v1, kind: X, metadata: {name: x}}"
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Field": {"typos are found", "desired: 1", "field desired is unknown: use name, description, operation, desiredObj, observedObj, statusItems, inputReplicas, output"},
		"Item":  {"in items, too", "statusItems: [{clusterName: a, appliedMesage: x}]", "statusItems[0].appliedMesage is unknown: use clusterName, status, applied, appliedMessage or health"},
		"Twice": {"the last of duplicate keys counts", "name: a\nname: b", "line 4: name is a duplicate of line 3, whose value is lost"},
		"Both":  {"one object is asked about", "desiredObj: " + object, "desiredObj and observedObj are set: ExploreHealthy asks about one of them"},
	} {
		t.Run(name, func(t *testing.T) {
			found := Parse("f.yaml", []byte("operation: InterpretHealth\nobservedObj: "+object+"\n"+tc.text))
			if len(found) != 1 || found[0].Broken != nil {
				t.Fatalf("%s: got %+v", tc.reason, found)
			}
			if diff := cmp.Diff([]string{tc.want}, found[0].Warnings); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStrict: warnings are failures on demand, and a broken case stays broken.
func TestStrict(t *testing.T) {
	for state, want := range map[State]State{Passed: Failed, Unasserted: Failed, Failed: Failed, Broken: Broken} {
		r := Result{State: state, Warnings: []string{"w"}}
		if r.Strict(); r.State != want || len(r.Failures) != 1 || r.Warnings != nil {
			t.Errorf("%s with a warning: got %+v, want %s", state, r, want)
		}
		if r = (Result{State: state}); r.State != state {
			t.Errorf("%s without a warning: got %s", state, r.State)
		}
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
	configs, warnings, err := ReadConfigs("f", bytes.Replace(text, []byte("healthInterpretation"), []byte("prune"), 1))
	if err != nil || len(configs) != 1 {
		t.Fatal(configs, err)
	}
	e := configs[0].Spec.Explorations[0]
	if e.Kind != "CloneSet" || e.RetainingLua == "" || e.HealthLua != "" || configs[0].Name != "declarative-configuration-cloneset" {
		t.Errorf("got %+v", e)
	}
	if diff := cmp.Diff([]string{"f:1: spec.customizations.prune is left out: kudo has no such operation"}, warnings); diff != "" {
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
		if r.State != Passed {
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
		for _, c := range Parse("f", text) {
			if c.Broken == nil && c.Request.Validate() != nil {
				t.Errorf("a case without what its operation needs went through: %+v", c)
			}
		}
	})
}

// FuzzList reads lists of cases, and files that they name.
func FuzzList(f *testing.F) {
	f.Add([]byte("tests: [{desiredInputPath: testdata/a.yaml, operation: InterpretReplica, statusInputPath: ../x}]"), []byte("kind: X"))
	f.Add([]byte("tests: [1, {observedInputPath: /etc/passwd}]\n---\noperation: x"), []byte("---\n- 1\n---\na: ["))
	f.Fuzz(func(t *testing.T, list, file []byte) {
		tree := fstest.MapFS{"k/customizations_tests.yaml": {Data: list}, "k/testdata/a.yaml": {Data: file}}
		for _, folder := range load(t, tree) {
			for _, c := range folder.Cases {
				if c.Place == "" || c.Name == "" || c.Broken == nil && c.Request.Validate() != nil {
					t.Errorf("a case without a place, or what its operation needs: %+v", c)
				}
			}
		}
	})
}
