// Command suites runs packages of tests side by side, each by what it is written for: Ginkgo's command, with processes that share
// one control plane, or go test. It prints the events of "go test -json", so that gotestsum and testcount read both alike.
//
//	suites [-p N] [-procs N] PACKAGE...
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const ginkgoImport = "github.com/onsi/ginkgo/v2"

func main() {
	side := flag.Int("p", 2, "how many packages run side by side")
	procs := flag.Int("procs", 4, "how many processes run the specs of a Ginkgo suite")
	timeout := flag.String("timeout", "40m", "how long a package may take")
	flag.Parse()
	r := &runner{out: os.Stdout, procs: *procs, timeout: *timeout}
	if err := r.run(*side, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

// pkg is a package, as go list prints it.
type pkg struct {
	ImportPath, Dir           string
	TestImports, XTestImports []string
}

// isGinkgo reports whether a package is a Ginkgo suite.
func (p pkg) isGinkgo() bool {
	return slices.Contains(p.TestImports, ginkgoImport) || slices.Contains(p.XTestImports, ginkgoImport)
}

// list returns packages in the order of their names on the command line.
func list(names []string) ([]pkg, error) {
	if len(names) == 0 {
		return nil, errors.New("name the packages to run")
	}
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,TestImports,XTestImports"}, names...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	var packages []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

// runner prints the events of packages that run side by side.
type runner struct {
	procs   int
	timeout string

	mu  sync.Mutex
	out io.Writer
}

func (r *runner) run(side int, names []string) error {
	packages, err := list(names)
	if err != nil {
		return err
	}
	// The suites get an interrupt themselves and stop their control planes, which takes a moment.
	interrupts, stopped := make(chan os.Signal, 1), atomic.Bool{}
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupts
		stopped.Store(true)
	}()
	queue := make(chan pkg, len(packages))
	for _, p := range packages {
		queue <- p
	}
	close(queue)
	var failed atomic.Int32
	var workers sync.WaitGroup
	for range side {
		workers.Go(func() {
			for p := range queue {
				if stopped.Load() || !r.runPackage(p) {
					failed.Add(1)
				}
			}
		})
	}
	workers.Wait()
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d of %d packages failed", n, len(packages))
	}
	return nil
}

// runPackage reports whether the tests of a package have passed.
func (r *runner) runPackage(p pkg) bool {
	run := r.goTest
	if p.isGinkgo() {
		run = r.ginkgo
	}
	err := run(p)
	if err != nil {
		r.print(event{Action: "output", Package: p.ImportPath, Output: err.Error() + "\n"}, event{Action: "fail", Package: p.ImportPath})
	}
	return err == nil
}

// print writes events as a whole, so that those of two packages do not mix within a line.
func (r *runner) print(events ...event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	encoder := json.NewEncoder(r.out)
	for _, e := range events {
		if e.Time.IsZero() {
			e.Time = time.Now()
		}
		_ = encoder.Encode(e)
	}
}

// goTest passes the events of go test on.
func (r *runner) goTest(p pkg) error {
	cmd := exec.Command("go", "test", "-json", "-count=1", "-timeout", r.timeout, p.ImportPath)
	lines, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		return err
	}
	result := make(chan error, 1)
	go func() {
		result <- cmd.Wait()
		_ = write.Close()
	}()
	reader := bufio.NewReader(lines)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			r.pass(p, line)
		}
		if err != nil {
			break
		}
	}
	return <-result
}

// pass prints a line of go test: an event, or a text of the go command as the output of the package.
func (r *runner) pass(p pkg, line []byte) {
	if !json.Valid(line) {
		r.print(event{Action: "output", Package: p.ImportPath, Output: string(line)})
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(append(bytes.TrimRight(line, "\n"), '\n'))
}

// ginkgo runs a suite, and prints the events that its report makes.
func (r *runner) ginkgo(p pkg) error {
	began := time.Now()
	r.print(event{Action: "start", Package: p.ImportPath})
	dir, err := os.MkdirTemp("", "kudo-suites-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	// Ginkgo runs a program in its folder. The name lets two runs share a tree.
	program := filepath.Join(p.Dir, fmt.Sprintf("ginkgo-%d.test", os.Getpid()))
	defer func() { _ = os.Remove(program) }()
	if out, err := exec.Command("go", "test", "-c", "-o", program, p.ImportPath).CombinedOutput(); err != nil {
		return fmt.Errorf("%s%w", out, err)
	}
	cmd := exec.Command("go", "tool", "-modfile="+filepath.Join(root, "hack", "tools", "go.mod"), "ginkgo", "run",
		"--procs="+strconv.Itoa(r.procs), "--timeout="+r.timeout, "--randomize-all", "--fail-on-empty", "--fail-on-pending", "--require-suite",
		"--no-color", "--json-report=report.json", "--output-dir="+dir, program)
	out, runErr := cmd.CombinedOutput()
	file, err := os.Open(filepath.Join(dir, "report.json"))
	if err != nil { // nothing has run
		return fmt.Errorf("%s%w", out, errors.Join(runErr, err))
	}
	defer func() { _ = file.Close() }()
	events, passed, err := readReport(file, p.ImportPath)
	r.print(events...)
	switch {
	case err != nil:
		return err
	case runErr != nil && passed: // the command has failed for another reason than a spec: it says which
		return fmt.Errorf("%s%w", out, runErr)
	case runErr != nil:
		return errors.New("the suite failed")
	}
	r.print(event{Action: "pass", Package: p.ImportPath, Elapsed: time.Since(began).Seconds()})
	return nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	return string(bytes.TrimSpace(out)), err
}
