package workload

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/perf/benchfmt"

	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/sourcetree"
)

func parts() Workload {
	return Workload{
		Name: "parts", Title: "Parts of kudo",
		About: `Go benchmarks of parts that have aims of their own: tarballs of CustomResourceDefinitions, scripts that keep values of live
objects (*by hand*: the same function called on a Lua machine that was prepared for it), an index of a repository of 10,000 packages with 10 versions each,
the check of a package of 250 parameters, the list of the [page](ui.md) (by the server, and in a headless Chromium), a [preview](previews.md), in turns with the questions that it asks, and a
[migration of stored versions](install-plans.md#when-the-storage-version-changes), after as many objects by a bare client. Medians.`,
		Run: runParts,
	}
}

// part is a figure of a benchmark.
type part struct {
	what, benchmark, unit string
	// scale makes what is shown of the unit.
	scale, aim float64
	format     string
}

var allParts = []part{
	{"tarball in the cache: resolved", "CachedResolve", "sec/op", 1e3, 1, "%.2f ms"},
	{"Instances with one tarball from a source that takes 15 s: fifty, times as long as one", "Fifty/15s", "fifty/one", 1, 1.5, "%.2f"},
	{"the same, of a source that takes 5 s", "Fifty/5s", "fifty/one", 1, 0, "%.2f"},
	{"the same, of a source that takes 1 s", "Fifty/1s", "fifty/one", 1, 0, "%.2f"},
	{"the same, times as long as one wait for the source and the work of fifty", "Fifty/1s", "fifty/work", 1, 1.5, "%.2f"},
	{"a tarball that is not in the cache: an Instance complete, the 1 s of the source included", "Fifty/1s", "s/one", 1, 0, "%.2f s"},
	{"a script that keeps values: a call", "Retain", "sec/op", 1e6, 50, "%.0f µs"},
	{"the same: allocations", "Retain", "allocs/op", 1, 300, "%.0f"},
	{"the same by hand: a call", "RetainByHand", "sec/op", 1e6, 0, "%.0f µs"},
	{"a script with 1,000 empty maps", "EmptyMaps", "sec/op", 1e3, 5, "%.1f ms"},
	{"a call of an explore webhook", "Call", "sec/op", 1e6, 0, "%.0f µs"},
	{"kubectl kudo explore test: 600 cases in 30 kinds", "ManyCases", "sec/op", 1, 3, "%.2f s"},
	{"index of 100,000 versions: loaded", "ParseIndex", "sec/op", 1e3, 1000, "%.0f ms"},
	{"the same: held", "ParseIndex", "MiB", 1, 150, "%.0f MiB"},
	{"the same: a lookup", "Lookup", "sec/op", 1e3, 20, "%.1f ms"},
	{"check of a package of 250 parameters", "Lint", "sec/op", 1e3, 200, "%.0f ms"},
	{"preview of an upgrade that changes 1,000 objects and a definition with 10,000 custom resources", "Preview", "s/preview", 1, 0, "%.1f s"},
	{"the same: its dry runs and pages of objects alone", "Preview", "s/bare", 1, 0, "%.1f s"},
	{"the same: times as long as these", "Preview", "preview/bare", 1, 1.2, "%.2f"},
	{"the same: requests, of which 1,000 are dry runs of changed objects", "Preview", "requests", 1, 1040, "%.0f"},
	{"the page's list of 1,000 Instances: first view, time of the server", "FirstView/1000", "sec/op", 1e3, 100, "%.1f ms"},
	{"the same of 10,000", "FirstView/10000", "sec/op", 1e3, 100, "%.1f ms"},
	{"the same: a search", "FirstView/10000/search", "sec/op", 1e3, 100, "%.1f ms"},
	{"the same of 1,000 in the browser, until the document is there", "BrowserView", "ms/view", 1, 1000, "%.0f ms"},
	{"a change of one of 1,000 Instances, until the browser shows it", "BrowserUpdate", "ms/update", 1, 300, "%.0f ms"},
	{"the same: messages to the page", "BrowserUpdate", "messages/update", 1, 1, "%.0f"},
	{"migration of stored versions: custom resources", "Migration", "objects", 1, 0, "%.0f"},
	{"the same: rewritten in", "Migration", "s/kudo", 1, 0, "%.0f s"},
	{"the same: by a bare client", "Migration", "s/bare", 1, 0, "%.0f s"},
	{"the same: times as long as that", "Migration", "times-bare", 1, 1.5, "%.2f"},
}

func runParts(ctx context.Context, b *Bench, s *report.Section) error {
	measured := map[string][]float64{}
	if err := os.Setenv("KUDO_BENCH_OBJECTS", strconv.Itoa(b.Sizes.Migrated)); err != nil {
		return err
	}
	for _, run := range [][]string{
		{".", "-bench", "^Benchmark(CachedResolve|Retain|RetainByHand|EmptyMaps|Call|ManyCases|ParseIndex|Lookup|Lint|FirstView)$", "-benchmem", "-count", strconv.Itoa(min(b.Sizes.Rounds, 5)),
			"./pkg/crdtarball", "./pkg/explore/lua", "./pkg/explore/webhook", "./pkg/cli/explore", "./pkg/repository", "./operators/lint", "./pkg/ui"},
		{"test/ui", "-mod=mod", "-bench", "^BenchmarkBrowser", "-count", strconv.Itoa(min(b.Sizes.Rounds, 5)), "."},
		{".", "-bench", "^BenchmarkFifty$", "-benchtime", "1x", "-timeout", "20m", "./test/crdtarball"},
		{".", "-bench", "^Benchmark(Preview|Migration)$", "-benchtime", "1x", "-timeout", "2h", "./test/bench"},
	} {
		b.Say("Go benchmarks of %s in %s", run[len(run)-1], run[0])
		if err := benchmark(ctx, run[0], run[1:], measured); err != nil {
			return err
		}
	}
	for _, p := range allParts {
		values := measured[p.benchmark+" "+p.unit]
		if len(values) == 0 {
			return fmt.Errorf("benchmark %s has not told of %s", p.benchmark, p.unit)
		}
		value := report.Median(values) * p.scale
		if p.aim == 0 {
			s.Figures = append(s.Figures, report.Told(p.what, p.format, value))
			continue
		}
		s.Figures = append(s.Figures, report.AtMost(p.what, value, p.aim, p.format))
	}
	ratio := report.Median(measured["Retain sec/op"]) / report.Median(measured["RetainByHand sec/op"])
	s.Figures = append(s.Figures, report.AtMost("a script that keeps values: times as long as by hand", ratio, 1.3, "%.2f"))
	return nil
}

// benchmark runs Go benchmarks of the module in a folder of the project, and collects their values by name and unit.
func benchmark(ctx context.Context, dir string, args []string, into map[string][]float64) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-run", "^$", "-p", "1"}, args...)...)
	cmd.Dir, cmd.Stderr, cmd.Env = filepath.Join(sourcetree.Root(), dir), os.Stderr, append(os.Environ(), "GOFLAGS=", "KUDO_REQUIRE_BROWSER=1")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	lines := benchfmt.NewReader(bytes.NewReader(out), "benchmarks")
	for lines.Scan() {
		result, ok := lines.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		base, rest := result.Name.Parts()
		for _, part := range rest {
			if part[0] == '/' { // and not the number of processors
				base = append(base, part...)
			}
		}
		for _, value := range result.Values {
			key := string(base) + " " + value.Unit
			into[key] = append(into[key], value.Value)
		}
	}
	return lines.Err()
}
