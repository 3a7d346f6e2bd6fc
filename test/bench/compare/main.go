// Command compare measures kudo side by side with Helm, kubectl and Flux's library for server-side apply, and writes what
// it finds into docs/benchmarks.md. Its module is its own, so that kudo's does not need the opponents.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/bench/compare/tools"
	"kudo.dev/kudo/test/bench/compare/workload"
	"kudo.dev/kudo/test/sourcetree"
)

type options struct {
	quick      bool
	only       string
	json, page string
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "fewer rounds, smaller sizes, shorter rests: minutes rather than hours")
	flag.StringVar(&o.only, "only", "", "comma-separated workloads to run, of "+strings.Join(names(), ", ")+"; the others keep what was measured before")
	flag.StringVar(&o.json, "json", filepath.Join(sourcetree.Root(), "dist", "benchmarks.json"), "file of all samples; read first, so that workloads may be run one by one")
	flag.StringVar(&o.page, "page", filepath.Join(sourcetree.Root(), "docs", "benchmarks.md"), "the page to write")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func names() []string {
	var out []string
	for _, w := range workload.All() {
		out = append(out, w.Name)
	}
	return out
}

func titles() []string {
	var out []string
	for _, w := range workload.All() {
		out = append(out, w.Title)
	}
	return out
}

func run(ctx context.Context, o options) error {
	chosen, err := choose(o.only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kudo-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &workload.Bench{Sizes: workload.Full(), Dir: dir, Home: filepath.Join(dir, "home"), Build: build(ctx), Say: say(time.Now())}
	if o.quick {
		b.Sizes = workload.Quick()
	}
	busy := load() // with other things: from now on it is with this
	b.Say("building the opponents")
	if b.Programs, err = tools.Build(filepath.Join(sourcetree.Root(), "bin"), dir, b.Build); err != nil {
		return err
	}
	used, err := versions(ctx, b.Programs)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(o.page)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	committed := report.ParsePage(string(page))
	var regressions, missed []string
	for _, w := range chosen {
		s, worse, err := confirm(committed, func() (*report.Section, error) {
			b.Say("workload %s", w.Name)
			s := &report.Section{Name: w.Name, Title: w.Title, About: w.About, Began: time.Now(), Load: busy, Quick: o.quick}
			if err := w.Run(ctx, b, s); err != nil {
				return nil, fmt.Errorf("workload %s: %w", w.Name, err)
			}
			fmt.Printf("%s\n\n", s.Title)
			if err := s.Table(os.Stdout); err != nil {
				return nil, err
			}
			return s, keep(*s, used, o, committed) // a later failure does not lose this measurement
		})
		if err != nil {
			return err
		}
		regressions, missed = append(regressions, worse...), append(missed, s.Missed()...)
	}
	if len(missed) > 0 {
		return fmt.Errorf("more than it may be, on any machine:\n  %s", strings.Join(missed, "\n  "))
	}
	if len(regressions) > 0 {
		return fmt.Errorf("worse than the committed figures, beyond the tolerance:\n  %s\n%s holds the new figures: commit them with the reason, or correct what has become worse",
			strings.Join(regressions, "\n  "), o.page)
	}
	return nil
}

// confirm measures a workload. If something is worse than on the committed page, confirm measures the workload a second time. It returns the
// last measurement, and the texts of the regressions that both measurements have.
func confirm(committed report.Page, measure func() (*report.Section, error)) (s *report.Section, worse []string, err error) {
	if s, err = measure(); err != nil {
		return nil, nil, err
	}
	regressions := s.Regressions(committed, machine().Cores)
	if len(regressions) > 0 {
		if s, err = measure(); err != nil {
			return nil, nil, err
		}
		regressions = report.Intersect(regressions, s.Regressions(committed, machine().Cores))
	}
	for _, r := range regressions {
		worse = append(worse, r.Text)
	}
	return s, worse, nil
}

func choose(only string) ([]workload.Workload, error) {
	all := workload.All()
	if only == "" {
		return all, nil
	}
	var out []workload.Workload
	for name := range strings.SplitSeq(only, ",") {
		at := slices.IndexFunc(all, func(w workload.Workload) bool { return w.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no workload %q: there are %s", name, strings.Join(names(), ", "))
		}
		out = append(out, all[at])
	}
	return out, nil
}

// say tells of progress on stderr.
func say(began time.Time) func(string, ...any) {
	return func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%7s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
	}
}

// build returns a function that builds a program of a module of opponents, which is in a folder below that of this command.
func build(ctx context.Context) func(module, out, pkg string) error {
	return func(module, out, pkg string) error {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
		cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(sourcetree.Root(), "test", "bench", "compare", module), os.Stderr, os.Stderr
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		return cmd.Run()
	}
}

// keep adds a section to what was measured before, and writes the samples and the page.
func keep(s report.Section, used map[string]string, o options, committed report.Page) error {
	r, err := report.Load(o.json)
	if err != nil {
		return err
	}
	s.Kudo = used["kudo"]
	r.Machine, r.Versions = machine(), others(used)
	r.Put(s, names())
	if err := os.MkdirAll(filepath.Dir(o.json), 0o750); err != nil {
		return err
	}
	if err := r.Save(o.json); err != nil {
		return err
	}
	var page strings.Builder
	if err := r.Document(&page, titles(), committed); err != nil {
		return err
	}
	return os.WriteFile(o.page, []byte(page.String()), 0o644)
}

// others are the versions of all but kudo, which each section has its own of.
func others(used map[string]string) map[string]string {
	out := maps.Clone(used)
	delete(out, "kudo")
	return out
}
