package cases

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// WriteJSON writes results as one object with counts and a list.
func WriteJSON(out io.Writer, results []Result) error {
	type line struct {
		Folder    string   `json:"folder"`
		Name      string   `json:"name"`
		Place     string   `json:"place"`
		Operation string   `json:"operation"`
		Passed    bool     `json:"passed"`
		Failures  []string `json:"failures,omitempty"`
		Seconds   float64  `json:"seconds"`
	}
	report := struct {
		Passed int    `json:"passed"`
		Failed int    `json:"failed"`
		Cases  []line `json:"cases"`
	}{Cases: []line{}}
	for _, r := range results {
		if r.Passed() {
			report.Passed++
		} else {
			report.Failed++
		}
		report.Cases = append(report.Cases, line{r.Folder, r.Name, r.Place, string(r.Operation), r.Passed(), r.Failures, r.Took.Seconds()})
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(report)
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Cases    []junitCase `xml:"testcase"`
}

// WriteJUnit writes results as JUnit XML, with a suite a folder.
func WriteJUnit(out io.Writer, results []Result) error {
	report := struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}{}
	for _, r := range results {
		if n := len(report.Suites); n == 0 || report.Suites[n-1].Name != r.Folder {
			report.Suites = append(report.Suites, junitSuite{Name: r.Folder})
		}
		suite := &report.Suites[len(report.Suites)-1]
		made := junitCase{Class: string(r.Operation), Name: r.Name, Time: fmt.Sprintf("%.3f", r.Took.Seconds())}
		report.Tests++
		suite.Tests++
		if !r.Passed() {
			report.Failures++
			suite.Failures++
			made.Failure = &junitFailure{Message: r.Failures[0], Text: r.Place + "\n" + strings.Join(r.Failures, "\n")}
		}
		suite.Cases = append(suite.Cases, made)
	}
	if _, err := io.WriteString(out, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(out)
	encoder.Indent("", "  ")
	if err := encoder.Encode(report); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\n")
	return err
}
