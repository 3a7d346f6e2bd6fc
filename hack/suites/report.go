package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// event is one of "go test -json".
type event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string  `json:",omitempty"`
	Elapsed float64 `json:",omitempty"`
	Output  string  `json:",omitempty"`
}

// report is what is read of Ginkgo's JSON report of a suite.
type report struct {
	SuiteSucceeded             bool
	SpecialSuiteFailureReasons []string
	SpecReports                []spec
}

// spec is what is read of the report of a spec, or of a node that prepares or cleans up.
type spec struct {
	ContainerHierarchyTexts           []string
	LeafNodeType, LeafNodeText, State string
	StartTime, EndTime                time.Time
	RunTime                           time.Duration
	Failure                           failure
	AdditionalFailures                []struct{ Failure failure }

	CapturedGinkgoWriterOutput, CapturedStdOutErr string
}

type failure struct {
	Message, ForwardedPanic string
	Location                struct {
		FileName       string
		LineNumber     int
		FullStackTrace string
	}
}

// actions are the actions of go test for the states of specs. Each other state is a failure.
var actions = map[string]string{"passed": "pass", "skipped": "skip", "pending": "skip"}

// readReport turns Ginkgo's report of one suite into events of its specs, and reports whether the suite has passed.
func readReport(in io.Reader, importPath string) (events []event, passed bool, err error) {
	var reports []report
	if err := json.NewDecoder(in).Decode(&reports); err != nil {
		return nil, false, fmt.Errorf("read Ginkgo's report: %w", err)
	}
	if len(reports) != 1 {
		return nil, false, fmt.Errorf("read Ginkgo's report: it has %d suites, want one", len(reports))
	}
	for _, s := range reports[0].SpecReports {
		// A node that prepares or cleans up counts as a test only where it fails.
		if s.LeafNodeType == "It" || actions[s.State] == "" {
			events = append(events, s.events(importPath)...)
		}
	}
	for _, reason := range reports[0].SpecialSuiteFailureReasons {
		events = append(events, event{Action: "output", Package: importPath, Output: reason + "\n"})
	}
	return events, reports[0].SuiteSucceeded, nil
}

func (s spec) events(importPath string) []event {
	of := func(at time.Time, action, output string) event {
		return event{Time: at, Action: action, Package: importPath, Test: s.testName(), Output: output}
	}
	events := []event{of(s.StartTime, "run", "")}
	action := actions[s.State]
	switch action {
	case "":
		action = "fail"
		for line := range strings.Lines(s.failureText()) {
			events = append(events, of(s.EndTime, "output", line))
		}
	case "skip":
		events = append(events, of(s.EndTime, "output", s.Failure.Message+"\n"))
	}
	last := of(s.EndTime, action, "")
	last.Elapsed = s.RunTime.Seconds()
	return append(events, last)
}

// failureText returns what a spec has logged, and its failures with their places.
func (s spec) failureText() string {
	text := s.CapturedGinkgoWriterOutput + s.CapturedStdOutErr
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	failures := []failure{s.Failure}
	for _, more := range s.AdditionalFailures {
		failures = append(failures, more.Failure)
	}
	for _, f := range failures {
		text += fmt.Sprintf("    %s:%d: %s\n", f.Location.FileName, f.Location.LineNumber, strings.TrimRight(f.Message, "\n"))
		if f.ForwardedPanic != "" {
			text += f.ForwardedPanic + "\n" + f.Location.FullStackTrace + "\n"
		}
	}
	return text
}

// testName returns the text of a spec in the form of go test: without spaces, and without slashes, since what follows a slash is
// a subtest.
func (s spec) testName() string {
	text := strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
	if s.LeafNodeText == "" {
		text = "[" + s.LeafNodeType + "]"
	}
	return strings.NewReplacer(" ", "_", "/", "-", "\n", "_").Replace(text)
}
