package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/lua"
)

func quantities(t *testing.T, pairs ...string) corev1.ResourceList {
	t.Helper()
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		quantity, err := resource.ParseQuantity(pairs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		list[corev1.ResourceName(pairs[i])] = quantity
	}
	return list
}

// numbered is a layer that answers by the number of the question.
type numbered struct {
	asked  int
	answer func(n int, r explore.Request) (explore.Answer, bool, error)
}

func (n *numbered) Layer() explore.Layer { return explore.User }

func (n *numbered) Explore(_ context.Context, r explore.Request) (explore.Answer, bool, error) {
	n.asked++
	return n.answer(n.asked, r)
}

// TestRun has layers that fail a case.
func TestRun(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "status": map[string]any{"n": int64(1)}}}
	healthy := explore.Answer{Healthy: true}
	for name, tc := range map[string]struct {
		reason    string
		operation explore.Operation
		answer    func(n int, r explore.Request) (explore.Answer, bool, error)
		want      []string
		asked     int
	}{
		"Passes": {
			"the same answer each time", explore.Healthy,
			func(int, explore.Request) (explore.Answer, bool, error) { return healthy, true, nil }, nil, 20,
		},
		"Error": {
			"an error without the names that the case has", explore.Healthy,
			func(int, explore.Request) (explore.Answer, bool, error) {
				return healthy, false, errors.New("timed out")
			}, []string{"timed out"}, 1,
		},
		"NoOpinion": {
			"no answer", explore.Healthy,
			func(int, explore.Request) (explore.Answer, bool, error) { return healthy, false, nil },
			[]string{"no layer answers ExploreHealthy for v1 X"}, 1,
		},
		"Varies": {
			"the last of 20 answers varies", explore.Healthy,
			func(n int, _ explore.Request) (explore.Answer, bool, error) {
				return explore.Answer{Healthy: n < 20}, true, nil
			}, []string{"the answer varies from one time to another"}, 20,
		},
		"FailsLater": {
			"the second answer is an error", explore.Healthy,
			func(n int, _ explore.Request) (explore.Answer, bool, error) {
				if n == 2 {
					return healthy, false, errors.New("timed out")
				}
				return healthy, true, nil
			}, []string{"asked again: timed out"}, 2,
		},
		"OwnResult": {
			"an error about its own result", explore.Retaining,
			func(n int, r explore.Request) (explore.Answer, bool, error) {
				if n == 21 {
					return healthy, false, errors.New("timed out")
				}
				return explore.Answer{Object: r.Object}, true, nil
			}, []string{"asked about its own result: timed out"}, 21,
		},
		"OwnOpinion": {
			"no opinion about its own result", explore.Retaining,
			func(n int, r explore.Request) (explore.Answer, bool, error) {
				return explore.Answer{Object: r.Object}, n < 21, nil
			}, []string{"asked about its own result, it has no opinion"}, 21,
		},
	} {
		t.Run(name, func(t *testing.T) {
			layer := &numbered{answer: tc.answer}
			c := &Case{Request: explore.Request{Operation: tc.operation, Object: object}, Output: map[string]any{"healthy": true}}
			if tc.operation == explore.Retaining {
				c.Output, c.Request.Observed = nil, object
			}
			failures, warnings := Run(t.Context(), layer, c)
			if warnings != nil {
				t.Errorf("%s: warnings %q", tc.reason, warnings)
			}
			if diff := cmp.Diff(tc.want, failures); diff != "" || layer.asked != tc.asked {
				t.Errorf("%s: asked %d times (-want +got):\n%s", tc.reason, layer.asked, diff)
			}
		})
	}
}

const (
	healthConfig = "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: c}\n" +
		"spec: {explorations: [{apiVersion: v1, kind: X, healthLua: return true}]}\n"
	healthCase = "operation: InterpretHealth\nobservedObj: {apiVersion: v1, kind: X}\noutput: {healthy: true}\n"
)

// TestLoad reads trees.
func TestLoad(t *testing.T) {
	large := strings.Repeat("# a comment\n", maxFile/12+1)
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   []string
	}{
		"Root": {
			"the tree itself may be a folder",
			map[string]string{"c.yaml": healthConfig, "testdata/a.yaml": healthCase},
			[]string{". 1 configs 1 cases"},
		},
		"Order": {
			"folders in the order of their paths",
			map[string]string{
				"b/c.yaml": healthConfig, "b/testdata/a.yaml": healthCase,
				"a/b/c.yml": healthConfig, "a/b/testdata/x/a.yml": healthCase,
			},
			[]string{"a/b 1 configs 1 cases", "b 1 configs 1 cases"},
		},
		"Others": {
			"files of other kinds do not matter",
			map[string]string{
				"c.yaml": healthConfig, "testdata/a.yaml": healthCase,
				"d.yaml": "kind: Secret", "e.yaml": "text", "f.json": "{",
			},
			[]string{". 1 configs 1 cases"},
		},
		"NoCases": {
			"Configs without cases",
			map[string]string{"c.yaml": healthConfig, "testdata/b/.keep.yaml": ""},
			[]string{". 1 configs 0 cases"},
		},
		"Neither": {"a folder without either", map[string]string{"a.yaml": "kind: Secret", "testdata/b.txt": "x"}, nil},
		"NoConfig": {
			"cases without a Config",
			map[string]string{"x/testdata/a.yaml": healthCase},
			[]string{"x 0 configs 2 cases", "x: x has cases, but no Config or customizations.yaml beside them"},
		},
		"BadConfig": {
			"a Config that cannot be read",
			map[string]string{"x/c.yaml": healthConfig + "status: {extra: 1}\n", "x/testdata/a.yaml": healthCase},
			[]string{"x 0 configs 2 cases", `x/c.yaml: x/c.yaml:1: strict decoding error: unknown field "status.extra"`},
		},
		"BadCase": {
			"a case that cannot be read, and one after it",
			map[string]string{"x/c.yaml": healthConfig, "x/testdata/a.yaml": healthCase + "---\n5\n---\n" + healthCase},
			[]string{"x 1 configs 3 cases", "x/testdata/a.yaml:5: a case is a map with operation and output"},
		},
		"BadYAML": {
			"what is no YAML",
			map[string]string{"x/c.yaml": "a: [", "x/testdata/a.yaml": healthCase},
			[]string{"x 0 configs 2 cases", "x/c.yaml: x/c.yaml: line 1: malformed YAML: did not find expected node content"},
		},
		"Large": {
			"a file that is too large",
			map[string]string{"x/c.yaml": healthConfig, "x/testdata/a.yaml": large, "x/testdata/b.yaml": healthCase},
			[]string{"x 1 configs 2 cases", "x/testdata/a.yaml: x/testdata/a.yaml has more than 3145728 bytes"},
		},
		"JSON": {
			"cases in JSON, and other files, which are named",
			map[string]string{"x/c.yaml": healthConfig, "x/testdata/a.json": `{"operation": "InterpretHealth",
	"observedObj": {"apiVersion": "v1", "kind": "X"}, "output": {"healthy": true}}`, "x/testdata/b.txt": "x"},
			[]string{"x 1 configs 1 cases", "warning: x/testdata/b.txt is not read: cases are in files .yaml, .yml and .json"},
		},
		"Object": {
			"an object that no list names",
			map[string]string{"x/c.yaml": healthConfig, "x/testdata/a.yaml": healthCase, "x/testdata/b.yaml": "{apiVersion: v1, kind: X}"},
			[]string{"x 1 configs 1 cases", "warning: x/testdata/b.yaml:1 is an object and no case, and no list of cases names its file"},
		},
		"Target": {
			"a folder named after another kind, and one after its own",
			map[string]string{"g/v1/K/customizations.yaml": customization("g/v1", "L"), "g/v1/L/customizations.yaml": customization("g/v1", "L"),
				"g/v1/K/testdata/a.yaml": healthCase, "g/v1/L/testdata/a.yaml": healthCase},
			[]string{"g/v1/K 1 configs 1 cases", "warning: g/v1/K/customizations.yaml: spec.target is g/v1 L, but the folder is g/v1/K: rename one of them",
				"g/v1/L 1 configs 1 cases"},
		},
		"List": {
			"a list that names files, and a file of it that is missing",
			map[string]string{"x/c.yaml": healthConfig, "x/testdata/o.yaml": "{apiVersion: v1, kind: X}",
				"x/customizations_tests.yaml": "tests:\n- {observedInputPath: testdata/o.yaml, operation: InterpretHealth, output: {healthy: true}}\n" +
					"- {observedInputPath: testdata/p.yaml, operation: InterpretHealth}\n- {desiredInputPath: ../../p.yaml, operation: InterpretHealth}\n"},
			[]string{"x 1 configs 3 cases", "x/customizations_tests.yaml:1 tests[1]: observedInputPath: open x/testdata/p.yaml: file does not exist",
				"x/customizations_tests.yaml:1 tests[2]: desiredInputPath: ../p.yaml is outside of the tree"},
		},
		"ListItems": {
			"a list that names a file of items, and replicas by their former name",
			map[string]string{"x/c.yaml": healthConfig, "x/testdata/o.yaml": "{apiVersion: v1, kind: X}",
				"x/testdata/items.yaml": "{clusterName: a, applied: true}\n---\n{clusterName: b}",
				"x/customizations_tests.yaml": "tests:\n- {desiredInputPath: testdata/o.yaml, statusInputPath: testdata/items.yaml, operation: AggregateStatus}\n" +
					"- {desiredInputPath: testdata/o.yaml, desiredReplicas: 2, operation: ReviseReplica}\n"},
			[]string{"x 1 configs 2 cases"},
		},
		"ListOfCases": {
			"a list that names files of cases adds none, and cases in the list are cases",
			map[string]string{"x/c.yaml": healthConfig, "x/testdata/a.yaml": healthCase,
				"x/customizations_tests.yaml": "tests:\n- {desiredInputPath: testdata/a.yaml, operation: InterpretHealth}\n---\n" + healthCase},
			[]string{"x 1 configs 2 cases"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for path, text := range tc.files {
				tree[path] = &fstest.MapFile{Data: []byte(text)}
			}
			var got []string
			for _, f := range load(t, tree) {
				got = append(got, strings.Join([]string{f.Path, digits(len(f.Configs)), "configs", digits(len(f.Cases)), "cases"}, " "))
				for _, c := range f.Cases {
					if c.Broken != nil {
						got = append(got, c.Place+": "+c.Broken.Error())
					}
				}
				for _, w := range f.Warnings {
					got = append(got, "warning: "+w)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPipes: reading a pipe would never end.
func TestPipes(t *testing.T) {
	for _, path := range []string{"x/c.yaml", "x/testdata/a.yaml", "x/customizations_tests.yaml"} {
		tree := fstest.MapFS{"x/c.yaml": {Data: []byte(healthConfig)}, "x/testdata/b.yaml": {Data: []byte(healthCase)}}
		tree[path] = &fstest.MapFile{Mode: fs.ModeNamedPipe | 0o600}
		folders, err := Load(tree, lua.New(noon, lua.DefaultLimits()))
		got := fmt.Sprint(err)
		for _, f := range folders {
			for _, c := range f.Cases {
				got += fmt.Sprint(c.Broken)
			}
		}
		if !strings.Contains(got, path+" is not a regular file") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func customization(apiVersion, kind string) string {
	return "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: c}\nspec: {target: {apiVersion: " +
		apiVersion + ", kind: " + kind + "}, customizations: {healthInterpretation: {luaScript: return true}}}\n"
}

func digits(n int) string { return string(rune('0' + n)) }

// TestReports writes results that markup could break.
func TestReports(t *testing.T) {
	results := []Result{
		{Folder: "a", Name: "one", Place: "a/x.yaml:1", Operation: explore.Healthy, State: Passed, Took: 1500 * time.Millisecond},
		{Folder: "a", Name: `<"&">`, Place: "a/x.yaml:9", Operation: explore.Status, State: Failed, Failures: []string{"want <a>", "and \x1b more"}},
		{Folder: "b", Name: "three", Place: "b/x.yaml:1", State: Broken, Failures: []string{"no map"}},
	}
	var junit, text bytes.Buffer
	if err := WriteJUnit(&junit, results); err != nil {
		t.Fatal(err)
	}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="1" errors="1">
  <testsuite name="a" tests="2" failures="1" errors="0">
    <testcase classname="ExploreHealthy" name="one" time="1.500"></testcase>
    <testcase classname="ExploreStatus" name="&lt;&#34;&amp;&#34;&gt;" time="0.000">
      <failure message="want &lt;a&gt;">a/x.yaml:9&#xA;want &lt;a&gt;&#xA;and ` + "\ufffd" + ` more</failure>
    </testcase>
  </testsuite>
  <testsuite name="b" tests="1" failures="0" errors="1">
    <testcase classname="" name="three" time="0.000">
      <error message="no map">b/x.yaml:1&#xA;no map</error>
    </testcase>
  </testsuite>
</testsuites>
`
	if diff := cmp.Diff(want, junit.String()); diff != "" {
		t.Errorf("JUnit (-want +got):\n%s", diff)
	}
	if err := WriteJSON(&text, nil); err != nil || text.String() != "{\n  \"passed\": 0,\n  \"failed\": 0,\n  \"broken\": 0,\n  \"unasserted\": 0,\n  \"cases\": []\n}\n" {
		t.Errorf("no results: %v %s", err, text.String())
	}
	text.Reset()
	if err := WriteJSON(&text, results[1:2]); err != nil {
		t.Fatal(err)
	}
	want = `{
  "passed": 0,
  "failed": 1,
  "broken": 0,
  "unasserted": 0,
  "cases": [
    {
      "folder": "a",
      "name": "<\"&\">",
      "place": "a/x.yaml:9",
      "operation": "ExploreStatus",
      "state": "failed",
      "failures": [
        "want <a>",
        "and \u001b more"
      ],
      "seconds": 0
    }
  ]
}
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// karmadaTree is a folder with a customization of one operation, and one case.
func karmadaTree(slot, script, text string) fstest.MapFS {
	indented := "        " + strings.ReplaceAll(strings.TrimSpace(script), "\n", "\n        ")
	return fstest.MapFS{
		"g/v1/K/customizations.yaml": {Data: []byte("apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: c}\n" +
			"spec:\n  target: {apiVersion: g/v1, kind: K}\n  customizations:\n    " + slot + ":\n      luaScript: |\n" + indented + "\n")},
		"g/v1/K/testdata/a.yaml": {Data: []byte(text)},
	}
}

// TestScriptsOfOthers (C53 to C59) runs scripts and cases that rely on what Karmada's interpreter does.
func TestScriptsOfOthers(t *testing.T) {
	const object = "{apiVersion: g/v1, kind: K, metadata: {name: a, namespace: ns}, spec: {a: 1}}"
	for name, tc := range map[string]struct {
		reason, slot, script, text string
		state                      State
		failures, warnings         []string
	}{
		"BareStatus": {
			"C55: an aggregation that returns its status only, and a case that expects the object so", "statusAggregation",
			"function AggregateStatus(desiredObj, statusItems)\n  return {apiVersion = desiredObj.apiVersion, kind = desiredObj.kind, metadata = desiredObj.metadata, status = {count = #statusItems}}\nend",
			"operation: AggregateStatus\ndesiredObj: " + object + "\nstatusItems: [{clusterName: x}]\noutput: {aggregatedStatus: {apiVersion: g/v1, kind: K, metadata: {name: a, namespace: ns}, status: {count: 1}}}",
			Passed, nil, []string{"spec is missing in the result: only status is taken"},
		},
		"OtherIdentity": {
			"C55: an aggregation that changes the name", "statusAggregation",
			"desiredObj.metadata.name = 'b'; desiredObj.status = {}; return desiredObj",
			"operation: AggregateStatus\ndesiredObj: " + object + "\nstatusItems: []\noutput: {}",
			Unasserted, nil, []string{"metadata is changed in the result: only status is taken"},
		},
		"Accumulates": {
			"C57: an aggregation that adds to its own sum", "statusAggregation",
			"desiredObj.status = {count = (desiredObj.status and desiredObj.status.count or 0) + #statusItems}; return desiredObj",
			"operation: AggregateStatus\ndesiredObj: " + object + "\nstatusItems: [{clusterName: x}]\noutput: {aggregatedStatus: {count: 1}}",
			Passed, nil, []string{"asked about its own result, it answers otherwise: object.status.count: want 1, got 2"},
		},
		"Flaps": {
			"C57: a retention that changes its own result", "retention", "desiredObj.spec.a = desiredObj.spec.a + 1; return desiredObj",
			"operation: Retain\ndesiredObj: " + object + "\nobservedObj: " + object + "\noutput: {}",
			Failed, []string{"retaining its own result changes it again: Retain must be idempotent"}, nil,
		},
		"SetOfDependencies": {
			"C56: the same dependency twice, and in another order than expected", "dependencyInterpretation",
			"local a = {apiVersion = 'v1', kind = 'Secret', namespace = 'ns', name = 'b'}\nreturn {a, {apiVersion = 'v1', kind = 'ConfigMap', namespace = 'ns', name = 'z'}, a}",
			"operation: InterpretDependency\ndesiredObj: " + object + "\noutput:\n  dependencies:\n  - {apiVersion: v1, kind: Secret, namespace: ns, name: b}\n  - {apiVersion: v1, kind: ConfigMap, namespace: ns, name: '{{EXCLUDE}}'}",
			Passed, nil, nil,
		},
		"MissingDependency": {
			"C56: and what is wrong in a set", "dependencyInterpretation", "return {{apiVersion = 'v1', kind = 'Secret', namespace = 'ns', name = 'b'}}",
			"operation: InterpretDependency\ndesiredObj: " + object + "\noutput:\n  dependencies:\n  - {apiVersion: v1, kind: Secret, namespace: ns, name: b}\n  - {apiVersion: v1, kind: ConfigMap, namespace: ns, name: c}",
			Failed, []string{`dependencies: want [{"apiVersion":"v1","kind":"ConfigMap","name":"c","namespace":"ns"}], got []`}, nil,
		},
		"Components": {
			"C54: components are a set by name, with quantities by value, of whichever object is there", "componentResource",
			"function GetComponents(desiredObj)\n  return {{name = 'b', replicas = 2, replicaRequirements = {resourceRequest = {cpu = '1000m'}}}, {name = 'a', replicas = desiredObj.spec.a, replicaRequirements = {nodeClaim = {nodeSelector = {}}}}}\nend",
			"operation: InterpretComponent\nobservedObj: " + object + "\noutput:\n  components:\n  - {name: a, replicas: 1}\n  - {name: b, replicas: 2, replicaRequirements: {resourceRequest: {cpu: 1}}}",
			Passed, nil, nil,
		},
		"OtherComponents": {
			"C54: and what differs is named", "componentResource", "return {{name = 'a', replicas = 2}}",
			"operation: InterpretComponent\ndesiredObj: " + object + "\noutput: {components: [{name: a, replicas: 1}]}",
			Failed, []string{"components.a.replicas: want 1, got 2"}, nil,
		},
		"NoComponents": {
			"C54: nil is none", "componentResource", "return nil", "operation: getcomponents\ndesiredObj: " + object + "\noutput: {components: []}",
			Passed, nil, nil,
		},
		"NilGlobal": {
			"C58: a global that is set to nil", "statusReflection",
			"function ReflectStatus(observedObj)\n  error = ''\n  error = nil\n  local s = {a = observedObj.spec.a}\n  s.error = error\n  return s\nend",
			"operation: InterpretStatus\nobservedObj: " + object + "\noutput: {status: {a: 1}}",
			Passed, nil, nil,
		},
		"Items": {
			"C59: items have health, and applied only if it is true", "statusAggregation",
			"local s = {}\nfor i, item in ipairs(statusItems) do\n  s[item.clusterName] = tostring(item.health) .. ' ' .. tostring(item.applied)\nend\ndesiredObj.status = s\nreturn desiredObj",
			"operation: AggregateStatus\ndesiredObj: " + object + "\nstatusItems: [{clusterName: x, health: Healthy, applied: true}, {clusterName: 'y', applied: false}]\noutput: {aggregatedStatus: {x: Healthy true, 'y': nil nil}}",
			Passed, nil, nil,
		},
		"Clock": {
			"C57: the clock stands still for a case", "statusReflection", "return {t = os.time(), d = os.date()}",
			"operation: InterpretStatus\nobservedObj: " + object + "\noutput: {status: {t: '{{EXCLUDE}}', d: '{{EXCLUDE}}'}}",
			Passed, nil, nil,
		},
		"NoOutput": {
			"C53: a case without output is judged by running", "healthInterpretation", "return true",
			"operation: InterpretHealth\nobservedObj: " + object, Unasserted, nil, nil,
		},
		"NoOutputFails": {
			"C53: and fails if the script does", "healthInterpretation", "error('no')\nreturn true",
			"operation: InterpretHealth\nobservedObj: " + object + "\noutput: {}", Failed, []string{"script:1: no"}, nil,
		},
		"OtherOutput": {
			"C53: an output that the operation does not have fails the case", "healthInterpretation", "return true",
			"operation: InterpretHealth\nobservedObj: " + object + "\noutput: {status: {}}",
			Failed, []string{"output.status is no output of ExploreHealthy: use healthy or message or outcome"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Each time that the clock is read, another second has begun.
			now := noon()
			var mutex sync.Mutex
			clock := func() time.Time {
				mutex.Lock()
				defer mutex.Unlock()
				now = now.Add(time.Second)
				return now
			}
			folders, err := Load(karmadaTree(tc.slot, tc.script, tc.text), lua.New(clock, lua.DefaultLimits()))
			if err != nil {
				t.Fatal(err)
			}
			results := RunAll(t.Context(), folders, clock)
			if len(results) != 1 {
				t.Fatalf("%s: %d results", tc.reason, len(results))
			}
			want := Result{State: tc.state, Failures: tc.failures, Warnings: tc.warnings}
			got := Result{State: results[0].State, Failures: results[0].Failures, Warnings: results[0].Warnings}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
