package testsuite

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files")

func value(t testing.TB, text string) any {
	t.Helper()
	objs, err := parse([]byte("apiVersion: v1\nkind: X\nv: " + text))
	if err != nil {
		t.Fatal(err)
	}
	return objs[0].Object["v"]
}

func TestDifferences(t *testing.T) {
	for _, tc := range []struct{ reason, want, have, diff string }{
		{"the same", `{a: 1}`, `{a: 1}`, ""},
		{"maps may hold more", `{a: 1}`, `{a: 1, b: 2}`, ""},
		{"an empty map is in each map", `{}`, `{a: 1}`, ""},
		{"what is missing is named", `{a: {b: 1}}`, `{a: {}}`, ".a.b: want 1, is missing"},
		{"lists have the same length", `[1]`, `[1, 2]`, ": want a list of 1, have one of 2: want [1], have [1,2]"},
		{"lists have an order", `[1, 2]`, `[2, 1]`, "[0]: want 1, have 2\n[1]: want 2, have 1"},
		{"items may hold more", `[{a: 1}]`, `[{a: 1, b: 2}]`, ""},
		{"a text is no number", `"1"`, `1`, `: want "1", have 1`},
		{"numbers by value", `1.0`, `1`, ""},
		{"large numbers exactly", `9007199254740993`, `9007199254740992`, ": want 9007199254740993, have 9007199254740992"},
		{"null is not missing", `{a: null}`, `{}`, ".a: want null, is missing"},
		{"null is null", `{a: null}`, `{a: null}`, ""},
		{"a map is no list", `{a: 1}`, `[1]`, `: want {"a":1}, have [1]`},
		{"booleans", `true`, `false`, ": want true, have false"},
	} {
		var got []string
		for _, d := range Differences(value(t, tc.want), value(t, tc.have), "") {
			got = append(got, d.String())
		}
		if diff := cmp.Diff(tc.diff, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}

// TestConditionsOfInstances shows P30: the conditions of an Instance are compared as kuttl compares any list.
func TestConditionsOfInstances(t *testing.T) {
	const idle, running = `[{type: Ready, status: "True", reason: ResourcesReady}]`, `[{type: Ready, status: Unknown}, {type: Reconciling, status: "True"}]`
	for _, tc := range []struct {
		reason, want, have string
		met                bool
	}{
		{"a suite for KUDO names Ready only, which an idle Instance has alone", `[{type: Ready, status: "True"}]`, idle, true},
		{"while a plan runs, there is another one", `[{type: Ready, status: Unknown}]`, running, false},
		{"which is named then, too", `[{type: Ready}, {type: Reconciling}]`, running, true},
	} {
		if got := len(Differences(value(t, tc.want), value(t, tc.have), "")) == 0; got != tc.met {
			t.Errorf("P30: %s: met is %t", tc.reason, got)
		}
	}
}

func FuzzDifferences(f *testing.F) {
	f.Add(`{"a":[1,2.5,null,"x"]}`, `{"a":[1]}`)
	f.Add(`{}`, `[]`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var want, have any
		if json.Unmarshal([]byte(a), &want) != nil || json.Unmarshal([]byte(b), &have) != nil {
			return
		}
		if d := Differences(want, want, ""); len(d) > 0 {
			t.Errorf("a value must contain itself: %v", d)
		}
		for _, d := range Differences(want, have, "") {
			if d.String() == "" {
				t.Error("a difference must have words")
			}
		}
	})
}

func TestArguments(t *testing.T) {
	t.Setenv("WORD", "two words")
	s := &shell{namespace: "ns", kubeconfig: "/k", path: "/p"}
	for _, tc := range []struct {
		reason  string
		command Command
		want    []string
		err     string
	}{
		{"variables, then words", Command{Command: "a $NAMESPACE ${KUBECONFIG} $PATH $WORD '$WORD' $UNSET"}, []string{"a", "ns", "/k", "/p", "two", "words", "two words"}, ""},
		{"two dollars are one", Command{Command: "a $$b"}, []string{"a", "$b"}, ""},
		{"namespaced", Command{Command: "kubectl get x", Namespaced: true}, []string{"kubectl", "get", "x", "--namespace", "ns"}, ""},
		{"a namespace of its own stays", Command{Command: "kubectl get x -n y", Namespaced: true}, []string{"kubectl", "get", "x", "-n", "y"}, ""},
		{"what is for another command stays", Command{Command: "kubectl exec x -- ls -n", Namespaced: true}, []string{"kubectl", "exec", "x", "--namespace", "ns", "--", "ls", "-n"}, ""},
		{"a script is for sh", Command{Script: "a $NAMESPACE"}, []string{"sh", "-c", "a $NAMESPACE"}, ""},
		{"not both", Command{Script: "a", Command: "b"}, nil, "cannot be used with command"},
		{"nothing", Command{}, nil, "cannot be split"},
	} {
		got, err := s.arguments(tc.command)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", tc.reason, err, diff)
		}
	}
}

func TestCollectors(t *testing.T) {
	for _, tc := range []struct {
		collector Collector
		want      string
	}{
		{Collector{Pod: "p"}, "kubectl logs --prefix p --all-containers --tail=-1 -n ns"},
		{Collector{Selector: "a=b", Namespace: "other"}, "kubectl logs --prefix -l 'a=b' --all-containers --tail=10 -n other"},
		{Collector{Type: "pod", Pod: "p", Container: "c", Tail: 3}, "kubectl logs --prefix p -c c --tail=3 -n ns"},
		{Collector{Command: "x"}, "x"},
		{Collector{Type: "command", Cmd: "y"}, "y"},
		{Collector{Type: "events"}, "kubectl get events --sort-by=.lastTimestamp -n ns"},
	} {
		if got := tc.collector.command("ns"); got.Command != tc.want || !got.IgnoreFailure || !tc.collector.valid() {
			t.Errorf("%+v: %+v, want %q", tc.collector, got, tc.want)
		}
	}
	for _, c := range []Collector{{}, {Type: "pod"}, {Type: "command"}, {Type: "logs", Pod: "p"}} {
		if c.valid() {
			t.Errorf("%+v must not be valid", c)
		}
	}
}

func TestReport(t *testing.T) {
	results := []Result{
		{Name: "good", Took: time.Second, Steps: []StepResult{{Name: "0-install", Took: time.Second}}},
		{Name: "bad", Took: 2 * time.Second, Steps: []StepResult{{"0-install", time.Second, nil}, {"1-update", time.Second, errors.New("does not hold:\n  <a> & b")}}},
		{Name: "broken", Err: errors.New("cannot be read")},
	}
	for _, format := range []string{"JSON", "xml"} {
		path, err := Report(filepath.Join(t.TempDir(), "new"), "report", format, results, 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", filepath.Base(path))
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
}
