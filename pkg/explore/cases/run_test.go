package cases

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
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
			"an error about its own result", explore.StatusAggregating,
			func(n int, r explore.Request) (explore.Answer, bool, error) {
				if n == 21 {
					return healthy, false, errors.New("timed out")
				}
				return explore.Answer{Object: r.Object}, true, nil
			}, []string{"asked about its own result: timed out"}, 21,
		},
		"OwnOpinion": {
			"no opinion about its own result", explore.StatusAggregating,
			func(n int, r explore.Request) (explore.Answer, bool, error) {
				return explore.Answer{Object: r.Object}, n < 21, nil
			}, []string{"asked about its own result, it has no opinion"}, 21,
		},
	} {
		t.Run(name, func(t *testing.T) {
			layer := &numbered{answer: tc.answer}
			c := &Case{Request: explore.Request{Operation: tc.operation, Object: object}, Output: map[string]any{"healthy": true}}
			if tc.operation == explore.StatusAggregating {
				c.Output = map[string]any{"aggregatedStatus": map[string]any{"n": int64(1)}}
			}
			if diff := cmp.Diff(tc.want, Run(t.Context(), layer, c)); diff != "" || layer.asked != tc.asked {
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
		err    string
	}{
		"Root": {
			"the tree itself may be a folder",
			map[string]string{"c.yaml": healthConfig, "testdata/a.yaml": healthCase},
			[]string{". 1 configs 1 cases"},
			"",
		},
		"Order": {
			"folders in the order of their paths",
			map[string]string{
				"b/c.yaml": healthConfig, "b/testdata/a.yaml": healthCase,
				"a/b/c.yml": healthConfig, "a/b/testdata/x/a.yml": healthCase,
			},
			[]string{"a/b 1 configs 1 cases", "b 1 configs 1 cases"},
			"",
		},
		"Others": {
			"files of other kinds do not matter",
			map[string]string{
				"c.yaml": healthConfig, "testdata/a.yaml": healthCase,
				"d.yaml": "kind: Secret", "e.yaml": "text", "f.json": "{", "testdata/b.txt": "x",
			},
			[]string{". 1 configs 1 cases"},
			"",
		},
		"NoCases": {
			"Configs without cases",
			map[string]string{"c.yaml": healthConfig, "testdata/b.txt": "x"},
			[]string{". 1 configs 0 cases"},
			"",
		},
		"Neither": {"a folder without either", map[string]string{"a.yaml": "kind: Secret", "testdata/b.txt": "x"}, nil, ""},
		"NoConfig": {
			"cases without a Config",
			map[string]string{"x/testdata/a.yaml": healthCase},
			nil,
			"x has cases in testdata/, but no Config or customizations.yaml beside it",
		},
		"BadConfig": {
			"a Config that cannot be read",
			map[string]string{"x/c.yaml": healthConfig + "status: {extra: 1}\n", "x/testdata/a.yaml": healthCase},
			nil,
			`x/c.yaml:1: strict decoding error: unknown field "status.extra"`,
		},
		"BadCase": {
			"a case that cannot be read",
			map[string]string{"x/c.yaml": healthConfig, "x/testdata/a.yaml": healthCase + "---\n5"},
			nil,
			"x/testdata/a.yaml:5: a case is a map with operation and output",
		},
		"BadYAML": {
			"what is no YAML",
			map[string]string{"x/c.yaml": "a: [", "x/testdata/a.yaml": healthCase},
			nil,
			"x/c.yaml: line 1: malformed YAML: did not find expected node content",
		},
		"Large": {
			"a file that is too large",
			map[string]string{"x/c.yaml": large, "x/testdata/a.yaml": healthCase},
			nil,
			"x/c.yaml has more than 3145728 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for path, text := range tc.files {
				tree[path] = &fstest.MapFile{Data: []byte(text)}
			}
			folders, err := Load(tree, lua.New(noon, lua.DefaultLimits()))
			if err != nil || tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			var got []string
			for _, f := range folders {
				got = append(got, strings.Join([]string{f.Path, digits(len(f.Configs)), "configs", digits(len(f.Cases)), "cases"}, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func digits(n int) string { return string(rune('0' + n)) }

// TestReports writes results that markup could break.
func TestReports(t *testing.T) {
	results := []Result{
		{Folder: "a", Name: "one", Place: "a/x.yaml:1", Operation: explore.Healthy, Took: 1500 * time.Millisecond},
		{Folder: "a", Name: `<"&">`, Place: "a/x.yaml:9", Operation: explore.Status, Failures: []string{"want <a>", "and \x1b more"}},
		{Folder: "b", Name: "three", Place: "b/x.yaml:1", Operation: explore.Healthy},
	}
	var junit, text bytes.Buffer
	if err := WriteJUnit(&junit, results); err != nil {
		t.Fatal(err)
	}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="1">
  <testsuite name="a" tests="2" failures="1">
    <testcase classname="ExploreHealthy" name="one" time="1.500"></testcase>
    <testcase classname="ExploreStatus" name="&lt;&#34;&amp;&#34;&gt;" time="0.000">
      <failure message="want &lt;a&gt;">a/x.yaml:9&#xA;want &lt;a&gt;&#xA;and ` + "\ufffd" + ` more</failure>
    </testcase>
  </testsuite>
  <testsuite name="b" tests="1" failures="0">
    <testcase classname="ExploreHealthy" name="three" time="0.000"></testcase>
  </testsuite>
</testsuites>
`
	if diff := cmp.Diff(want, junit.String()); diff != "" {
		t.Errorf("JUnit (-want +got):\n%s", diff)
	}
	if err := WriteJSON(&text, nil); err != nil || text.String() != "{\n  \"passed\": 0,\n  \"failed\": 0,\n  \"cases\": []\n}\n" {
		t.Errorf("no results: %v %s", err, text.String())
	}
	text.Reset()
	if err := WriteJSON(&text, results[1:2]); err != nil {
		t.Fatal(err)
	}
	want = `{
  "passed": 0,
  "failed": 1,
  "cases": [
    {
      "folder": "a",
      "name": "<\"&\">",
      "place": "a/x.yaml:9",
      "operation": "ExploreStatus",
      "passed": false,
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
