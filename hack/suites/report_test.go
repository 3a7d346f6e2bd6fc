package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const ginkgoReport = `[{"SuiteSucceeded": false, "SpecialSuiteFailureReasons": ["Detected pending specs"], "SpecReports": [
{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
{"LeafNodeType": "SynchronizedAfterSuite", "State": "panicked", "Failure": {"ForwardedPanic": "nil map"}},
{"ContainerHierarchyTexts": ["A plan"], "LeafNodeType": "It", "LeafNodeText": "ends and/or restarts", "State": "passed", "RunTime": 1500000000},
{"LeafNodeType": "It", "LeafNodeText": "waits", "State": "failed", "CapturedGinkgoWriterOutput": "a log",
 "Failure": {"Message": "it does not wait", "Location": {"FileName": "a_test.go", "LineNumber": 7}}},
{"LeafNodeType": "It", "LeafNodeText": "hangs", "State": "timedout"},
{"LeafNodeType": "It", "LeafNodeText": "needs more", "State": "skipped", "Failure": {"Message": "the corpus is absent"}},
{"LeafNodeType": "It", "LeafNodeText": "comes later", "State": "pending"}]}]`

func TestReadReport(t *testing.T) {
	events, passed, err := readReport(strings.NewReader(ginkgoReport), "a")
	if err != nil || passed {
		t.Fatalf("passed: %v, error: %v", passed, err)
	}
	ends, output := map[string]string{}, map[string]string{}
	for _, e := range events {
		switch {
		case e.Package != "a":
			t.Errorf("an event of package %q: %+v", e.Package, e)
		case e.Action == "output":
			output[e.Test] += e.Output
		case e.Action == "run":
			ends[e.Test] = ""
		default:
			if begun, known := ends[e.Test]; !known || begun != "" {
				t.Errorf("%s of a test that does not run: %q", e.Action, e.Test)
			}
			ends[e.Test] = e.Action
		}
	}
	for test, want := range map[string]string{
		"A_plan_ends_and-or_restarts": "pass", "waits": "fail", "hangs": "fail", "needs_more": "skip", "comes_later": "skip",
		"[SynchronizedAfterSuite]": "fail",
	} {
		if ends[test] != want {
			t.Errorf("%s: %q, want %q", test, ends[test], want)
		}
		delete(ends, test)
	}
	if len(ends) > 0 {
		t.Errorf("events of more tests: %v", ends)
	}
	for test, want := range map[string]string{
		"waits": "a log\n    a_test.go:7: it does not wait\n", "needs_more": "the corpus is absent\n", "": "Detected pending specs\n",
		"A_plan_ends_and-or_restarts": "",
	} {
		if output[test] != want {
			t.Errorf("output of %q: %q, want %q", test, output[test], want)
		}
	}
	if !strings.Contains(output["[SynchronizedAfterSuite]"], "nil map") {
		t.Errorf("the output lacks the panic: %q", output["[SynchronizedAfterSuite]"])
	}
}

func TestReadReportFails(t *testing.T) {
	for reason, text := range map[string]string{"cut off": ginkgoReport[:99], "no suite": "[]", "two suites": "[{}, {}]"} {
		if events, passed, err := readReport(strings.NewReader(text), "a"); err == nil || passed {
			t.Errorf("%s: no error, and %d events", reason, len(events))
		}
	}
}

func TestIsGinkgo(t *testing.T) {
	packages, err := list([]string{"kudo.dev/kudo/test/pipes", "kudo.dev/kudo/test/faults"})
	if err != nil || len(packages) != 2 || packages[0].Dir == "" {
		t.Fatalf("packages %+v, error: %v", packages, err)
	}
	for _, p := range packages {
		if want := strings.HasSuffix(p.ImportPath, "/pipes"); p.isGinkgo() != want {
			t.Errorf("%s is a Ginkgo suite: %v, want %v", p.ImportPath, p.isGinkgo(), want)
		}
	}
	if _, err := list(nil); err == nil {
		t.Error("a run without packages must fail")
	}
}

// TestVersions checks that the suites and the command that runs them have one version of Ginkgo: it refuses another one's.
func TestVersions(t *testing.T) {
	version := regexp.MustCompile(`github\.com/onsi/ginkgo/v2 (v\S+)`)
	found := map[string]string{}
	for _, file := range []string{"../../go.mod", "../tools/go.mod"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := version.FindSubmatch(text); m != nil {
			found[file] = string(m[1])
		}
	}
	if len(found) != 2 || found["../../go.mod"] != found["../tools/go.mod"] {
		t.Errorf("the versions of Ginkgo are %v: require the same one in both", found)
	}
}
