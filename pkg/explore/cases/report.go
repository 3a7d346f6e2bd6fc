package cases

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// Count counts results by their state.
func Count(results []Result) map[State]int {
	counts := map[State]int{}
	for _, r := range results {
		counts[r.State]++
	}
	return counts
}

// WriteJSON writes results as one object with counts and a list.
func WriteJSON(out io.Writer, results []Result) error {
	type line struct {
		Folder    string   `json:"folder"`
		Name      string   `json:"name"`
		Place     string   `json:"place"`
		Operation string   `json:"operation"`
		State     State    `json:"state"`
		Failures  []string `json:"failures,omitempty"`
		Warnings  []string `json:"warnings,omitempty"`
		Seconds   float64  `json:"seconds"`
	}
	report := struct {
		Passed     int    `json:"passed"`
		Failed     int    `json:"failed"`
		Broken     int    `json:"broken"`
		Unasserted int    `json:"unasserted"`
		Cases      []line `json:"cases"`
	}{Cases: []line{}}
	counts := Count(results)
	report.Passed, report.Failed, report.Broken, report.Unasserted = counts[Passed], counts[Failed], counts[Broken], counts[Unasserted]
	for _, r := range results {
		report.Cases = append(report.Cases, line{r.Folder, r.Name, r.Place, string(r.Operation), r.State, r.Failures, r.Warnings,
			r.Took.Seconds()})
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
	Error   *junitFailure `xml:"error,omitempty"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Cases    []junitCase `xml:"testcase"`
}

// WriteJUnit writes results as JUnit XML, with a suite a folder. A broken case is an error.
func WriteJUnit(out io.Writer, results []Result) error {
	report := struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
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
		if len(r.Failures) > 0 {
			failure := &junitFailure{Message: r.Failures[0], Text: r.Place + "\n" + strings.Join(r.Failures, "\n")}
			if r.State == Broken {
				report.Errors++
				suite.Errors++
				made.Error = failure
			} else {
				report.Failures++
				suite.Failures++
				made.Failure = failure
			}
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
