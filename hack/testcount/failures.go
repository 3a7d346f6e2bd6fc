package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// maxMessages and maxLine bound what printFailures prints of a test: lines, and bytes of a line.
const (
	maxMessages = 12
	maxLine     = 300
)

// message matches the first line of what a test logs: the file and the line of the call, and its text.
var message = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// failure holds the first lines that a test has logged.
type failure struct {
	lines  []string
	logged bool
}

// add adds a line of output. Lines before the first logged one are those of the test runner.
func (f *failure) add(line string) {
	f.logged = f.logged || message.MatchString(line)
	if !f.logged || len(f.lines) == maxMessages {
		return
	}
	line = strings.TrimRight(line, "\n")
	if len(line) > maxLine {
		line = line[:maxLine] + "…"
	}
	f.lines = append(f.lines, line)
}

// printFailures prints the failed tests of results, and the first lines of what each has logged, so that a short end of a long output names
// the causes. It leaves out a test whose subtest has failed.
func printFailures(results []string, out io.Writer) error {
	for _, name := range results {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		err = printFailuresOf(file, out)
		_ = file.Close()
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	return nil
}

func printFailuresOf(in io.Reader, out io.Writer) error {
	outputs, failed := map[testName]*failure{}, map[testName]bool{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Package, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Test == "" {
			continue
		}
		test := testName{event.Package, event.Test}
		switch event.Action {
		case "output":
			if outputs[test] == nil {
				outputs[test] = &failure{}
			}
			outputs[test].add(event.Output)
		case "pass", "skip":
			delete(outputs, test)
		case "fail":
			if !failed[test] {
				fmt.Fprintf(out, "FAILED %s %s\n", test.pkg, test.name)
				outputs[test].print(out)
			}
			for n, r := range test.name {
				if r == '/' {
					failed[testName{test.pkg, test.name[:n]}] = true
				}
			}
		}
	}
	return lines.Err()
}

// print prints the lines. A nil failure has none.
func (f *failure) print(out io.Writer) {
	if f == nil {
		return
	}
	for _, line := range f.lines {
		fmt.Fprintln(out, line)
	}
}
