// Command testcount reads the output of "go test -json" and fails if tests have vanished: if a package ran fewer tests than
// test/counts.txt records, or if a test was skipped that test/skips.txt does not list. A skip that is listed excuses as many tests as its
// line says, and no others. With -all it also fails if a package of test/counts.txt has no results at all. With -failures it only prints
// which tests have failed, and why.
//
//	testcount [-write | -failures | -all [-except PACKAGE]] [-counts FILE] [-skips FILE] RESULT.json...
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

func main() {
	o := options{}
	flag.BoolVar(&o.write, "write", false, "record the counts of the results instead of checking them")
	flag.BoolVar(&o.failures, "failures", false, "print the failed tests instead of checking the counts")
	flag.BoolVar(&o.all, "all", false, "the results are those of all packages")
	flag.StringVar(&o.except, "except", "", "a package that -all does not ask for")
	flag.StringVar(&o.counts, "counts", "test/counts.txt", "file of the recorded counts")
	flag.StringVar(&o.skips, "skips", "test/skips.txt", "file of the skips that are allowed")
	flag.Parse()
	if err := run(flag.Args(), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(1)
	}
}

// options are the flags of the command.
type options struct {
	counts, skips, except string
	write, all, failures  bool
}

func run(results []string, o options, out io.Writer) error {
	if len(results) == 0 {
		return errors.New("name the files with the output of go test -json")
	}
	if o.failures {
		return printFailures(results, out)
	}
	r := newReport()
	for _, name := range results {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		err = errors.Join(r.read(file), file.Close())
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	recorded, err := readCounts(o.counts)
	if err != nil {
		return err
	}
	allowed, err := readSkips(o.skips)
	if err != nil {
		return err
	}
	if o.write {
		return r.record(o, recorded, allowed)
	}
	problems, passed, skipped := r.check(recorded, allowed)
	if o.all {
		delete(recorded, o.except)
		problems = append(problems, r.absent(recorded)...)
	}
	fmt.Fprintf(out, "%d tests passed and %d were skipped in %d packages\n", passed, skipped, len(r.tests))
	return errors.Join(problems...)
}

// record writes the counts of the results into the files of counts and skips.
func (r *report) record(o options, recorded map[string]count, allowed map[testName]int) error {
	for pkg := range r.tests {
		switch n := r.count(pkg); {
		case recorded[pkg].varies:
		case n == 0:
			delete(recorded, pkg)
		default:
			recorded[pkg] = count{tests: n}
		}
	}
	for name := range allowed {
		if n := r.countOf(name); n > 0 {
			allowed[name] = n
		}
	}
	return errors.Join(os.WriteFile(o.counts, formatCounts(recorded), 0o644), writeSkips(o.skips, allowed))
}

// report holds the outcome of each test, by package and name.
type report struct {
	tests map[string]map[string]string
}

func newReport() *report { return &report{tests: map[string]map[string]string{}} }

// read adds the events of a run. What is not a JSON object is output of a build, and is passed over.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Package == "" {
			continue
		}
		if r.tests[event.Package] == nil {
			r.tests[event.Package] = map[string]string{}
		}
		switch event.Action {
		case "pass", "fail", "skip":
			if event.Test != "" {
				r.tests[event.Package][event.Test] = event.Action
			}
		}
	}
	return lines.Err()
}

// leaves returns the tests of a package that have no subtests, in order.
func (r *report) leaves(pkg string) []string {
	parents := map[string]bool{}
	for name := range r.tests[pkg] {
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			parents[parent] = true
		}
	}
	return slices.Sorted(func(yield func(string) bool) {
		for name := range r.tests[pkg] {
			if !parents[name] && !yield(name) {
				return
			}
		}
	})
}

// count returns how many tests of a package have run.
func (r *report) count(pkg string) int {
	n := 0
	for _, name := range r.leaves(pkg) {
		if r.tests[pkg][name] != "skip" {
			n++
		}
	}
	return n
}

// countOf returns how many tests have run of a test with its subtests; 0 if it was skipped or is not there.
func (r *report) countOf(test testName) int {
	n := 0
	for _, name := range r.leaves(test.pkg) {
		if (name == test.name || strings.HasPrefix(name, test.name+"/")) && r.tests[test.pkg][name] != "skip" {
			n++
		}
	}
	return n
}

// check returns what has vanished. A package may have run fewer tests than usual by as many as its allowed skips excuse.
func (r *report) check(recorded map[string]count, allowed map[testName]int) (problems []error, passed, skipped int) {
	for _, pkg := range slices.Sorted(maps.Keys(r.tests)) {
		excused := 0
		for _, name := range r.leaves(pkg) {
			switch {
			case r.tests[pkg][name] != "skip":
				passed++
			case allowed[testName{pkg, name}] > 0:
				skipped++
				excused += allowed[testName{pkg, name}]
			default:
				skipped++
				problems = append(problems, fmt.Errorf("%s: %s was skipped, and test/skips.txt does not list it", pkg, name))
			}
		}
		want, known := recorded[pkg]
		switch got := r.count(pkg); {
		case !known && got > 0:
			problems = append(problems, fmt.Errorf("%s ran %d tests, and test/counts.txt does not list it: run make counts", pkg, got))
		case got+excused < want.tests:
			problems = append(problems, fmt.Errorf("%s ran %d tests, and test/counts.txt records %d: bring the others back, or record the new "+
				"number with make counts and say why", pkg, got, want.tests))
		}
	}
	return problems, passed, skipped
}

// absent returns the recorded packages that have no results.
func (r *report) absent(recorded map[string]count) (problems []error) {
	for _, pkg := range slices.Sorted(maps.Keys(recorded)) {
		if r.tests[pkg] == nil {
			problems = append(problems, fmt.Errorf("%s has no results, and test/counts.txt records %d tests: run it, or delete its line if it "+
				"does not exist anymore", pkg, recorded[pkg].tests))
		}
	}
	return problems
}

// count is how many tests a package runs at least.
type count struct {
	tests int
	// varies is set by hand where the number is not the same in each run; -write leaves it.
	varies bool
}

// readCounts reads lines of a package, a number, and "varies" where that is so. An absent file holds none.
func readCounts(name string) (map[string]count, error) {
	counts := map[string]count{}
	return counts, readLines(name, func(fields []string) error {
		if len(fields) != 2 && (len(fields) != 3 || fields[2] != "varies") {
			return errors.New("want a package and a number, and \"varies\" where it is not the same in each run")
		}
		n, err := strconv.Atoi(fields[1])
		counts[fields[0]] = count{n, len(fields) == 3}
		return err
	})
}

// testName names a test, or a parent of tests.
type testName struct{ pkg, name string }

// readSkips reads lines of a package, a test, how many tests its skip excuses, and the reason for it.
func readSkips(name string) (map[testName]int, error) {
	skips := map[testName]int{}
	return skips, readLines(name, func(fields []string) error {
		if len(fields) < 4 {
			return errors.New("want a package, a test, how many tests its skip excuses, and a reason")
		}
		n, err := strconv.Atoi(fields[2])
		if err == nil && n < 1 {
			err = fmt.Errorf("want 1 or more tests, not %d", n)
		}
		skips[testName{fields[0], fields[1]}] = n
		return err
	})
}

// writeSkips puts new numbers into the lines of skips.
func writeSkips(name string, skips map[testName]int) error {
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 {
			if n := skips[testName{fields[0], fields[1]}]; n > 0 {
				fields[2] = strconv.Itoa(n)
				line = strings.Join(fields, " ")
			}
		}
		out.WriteString(line)
	}
	return os.WriteFile(name, []byte(out.String()), 0o644)
}

func readLines(name string, add func(fields []string) error) error {
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if err := add(fields); err != nil {
			return fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	return nil
}

func formatCounts(counts map[string]count) []byte {
	out := []byte("# How many tests each package runs, subtests counted and their parents not. Made by make counts.\n")
	for _, pkg := range slices.SortedFunc(maps.Keys(counts), cmp.Compare) {
		out = fmt.Appendf(out, "%s %d", pkg, counts[pkg].tests)
		if counts[pkg].varies {
			out = append(out, " varies"...)
		}
		out = append(out, '\n')
	}
	return out
}
