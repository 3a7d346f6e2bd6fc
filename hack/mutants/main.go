// Command mutants checks that the suites find faults: it makes one fault after another in a copy of the committed tree, builds the manager,
// and checks that the suite of the fault fails.
//
//	mutants [TEXT]
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	flag.Parse()
	if err := run(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// mutant is a fault of a file, and the suite that must find it.
type mutant struct{ name, file, suite, from, to string }

func run(pattern string) error {
	text, err := os.ReadFile(filepath.Join("hack", "mutants", "mutants.txt"))
	if err != nil {
		return err
	}
	mutants, err := parse(string(text))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kudo-mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if out, err := exec.Command("git", "clone", "--quiet", "--local", ".", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the tree: %s%w", out, err)
	}
	var alive []error
	for _, m := range mutants {
		if !strings.Contains(m.name+m.suite, pattern) {
			continue
		}
		began := time.Now()
		found, err := m.try(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Printf("%-7s %6s  %s: %s\n", map[bool]string{true: "found", false: "ALIVE"}[found], time.Since(began).Round(time.Second), m.suite,
			m.name)
		if !found {
			alive = append(alive, fmt.Errorf("%s does not find: %s", m.suite, m.name))
		}
	}
	return errors.Join(alive...)
}

// parse reads the blocks of the file: the name, the file with the suite, and lines that begin with - and +.
func parse(text string) ([]mutant, error) {
	var out []mutant
	for _, block := range strings.Split(text, "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		if strings.HasPrefix(lines[0], "#") {
			continue
		}
		m := mutant{name: lines[0]}
		if len(lines) < 3 {
			return nil, fmt.Errorf("%q: want a name, a file with a suite, and lines", m.name)
		}
		place := strings.Fields(lines[1])
		if len(place) != 2 {
			return nil, fmt.Errorf("%q: %q is no file with a suite", m.name, lines[1])
		}
		m.file, m.suite = place[0], place[1]
		for _, line := range lines[2:] {
			switch {
			case strings.HasPrefix(line, "-"):
				m.from += line[1:] + "\n"
			case strings.HasPrefix(line, "+"):
				m.to += line[1:] + "\n"
			default:
				return nil, fmt.Errorf("%q: %q begins with neither - nor +", m.name, line)
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// try plants the fault, and reports whether the suite fails. The tree is as before afterwards.
func (m mutant) try(dir string) (bool, error) {
	file := filepath.Join(dir, m.file)
	before, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	if bytes.Count(before, []byte(m.from)) != 1 {
		return false, fmt.Errorf("%s does not have the lines once:\n%s", m.file, m.from)
	}
	if err := os.WriteFile(file, bytes.Replace(before, []byte(m.from), []byte(m.to), 1), 0o600); err != nil {
		return false, err
	}
	defer func() { _ = os.WriteFile(file, before, 0o600) }()
	if out, err := command(dir, "make", "--no-print-directory", "build").CombinedOutput(); err != nil {
		return false, fmt.Errorf("build: %s%w", out, err)
	}
	run, failed := []string{"go", "test", "-count=1", "-failfast", "-timeout", "40m"}, "--- FAIL"
	if isGinkgo(filepath.Join(dir, m.suite)) {
		run = []string{"go", "tool", "-modfile=hack/tools/go.mod", "ginkgo", "run", "--procs=4", "--fail-fast", "--timeout=40m"}
		failed = "FAIL! -"
	}
	out, err := command(dir, run[0], append(run[1:], m.suite)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || !bytes.Contains(out, []byte(failed))) {
		return false, fmt.Errorf("the suite did not run: %s%w", out, err)
	}
	return err != nil, nil
}

// isGinkgo reports whether the suite in a folder is one of Ginkgo.
func isGinkgo(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go")) // the pattern has no error
	return slices.ContainsFunc(files, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && bytes.Contains(text, []byte("RunSpecs("))
	})
}

func command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd
}
