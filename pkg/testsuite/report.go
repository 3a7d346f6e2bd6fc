package testsuite

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// JUnit's elements, which are the report's in JSON too.
type (
	testsuites struct {
		XMLName  xml.Name    `xml:"testsuites" json:"-"`
		Name     string      `xml:"name,attr" json:"name"`
		Tests    int         `xml:"tests,attr" json:"tests"`
		Failures int         `xml:"failures,attr" json:"failures"`
		Time     string      `xml:"time,attr" json:"time"`
		Suites   []testsuite `xml:"testsuite" json:"testsuite"`
	}
	testsuite struct {
		Name     string     `xml:"name,attr" json:"name"`
		Tests    int        `xml:"tests,attr" json:"tests"`
		Failures int        `xml:"failures,attr" json:"failures"`
		Time     string     `xml:"time,attr" json:"time"`
		Cases    []testcase `xml:"testcase" json:"testcase"`
	}
	testcase struct {
		Class   string   `xml:"classname,attr" json:"classname"`
		Name    string   `xml:"name,attr" json:"name"`
		Time    string   `xml:"time,attr" json:"time"`
		Failure *failure `xml:"failure,omitempty" json:"failure,omitempty"`
	}
	failure struct {
		Message string `xml:"message,attr" json:"message"`
		Text    string `xml:",chardata" json:"text"`
	}
)

// Report writes the results to a file in a folder, which is made: XML is JUnit's.
func Report(dir, name, format string, results []Result, took time.Duration) (string, error) {
	all := testsuites{Name: name, Time: secondsOf(took)}
	for _, r := range results {
		suite := testsuite{Name: r.Name, Time: secondsOf(r.Took)}
		steps := r.Steps
		if len(steps) == 0 {
			steps = []StepResult{{Name: "setup", Took: r.Took, Err: r.Err}}
		}
		for _, step := range steps {
			c := testcase{Class: r.Name, Name: step.Name, Time: secondsOf(step.Took)}
			if step.Err != nil {
				first, _, _ := strings.Cut(step.Err.Error(), "\n")
				c.Failure = &failure{Message: first, Text: step.Err.Error()}
				suite.Failures++
			}
			suite.Tests++
			suite.Cases = append(suite.Cases, c)
		}
		all.Tests, all.Failures = all.Tests+suite.Tests, all.Failures+suite.Failures
		all.Suites = append(all.Suites, suite)
	}
	var text []byte
	var err error
	ending := strings.ToLower(format)
	if ending == "json" {
		text, err = json.MarshalIndent(all, "", "  ")
	} else {
		text, err = xml.MarshalIndent(all, "", "  ")
		text = append([]byte(xml.Header), text...)
	}
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	path := filepath.Join(dir, name+"."+ending)
	return path, os.WriteFile(path, append(text, '\n'), 0o644)
}

func secondsOf(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
