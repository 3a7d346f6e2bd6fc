package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

func profiles() Workload {
	return Workload{
		Name: "profiles", Title: "Profiles",
		About: `The ten largest costs of the manager while Instances of four objects come, as shares of its CPU time, by the package that is closest to the
leaf of the stack and is no helper of the standard library; and the ten packages whose initialization takes the most of the start of the command, as
medians. A manager that is built with this profile (profile-guided optimization) then does the same work. Releases are built
without a profile, since it saves less than 3 % of the CPU time.

What was done about the largest: JSON, HTTP/2 and the network are the cost of requests and of what watches bring. An Instance of four objects takes
ten requests of the manager in place of fifteen, and the manager watches only the metadata of objects of which it needs only the names. The garbage
collector has the default settings of Go: fewer collections need more memory, and memory has an aim, too. The command compiles an expression when it is
first used, and not at the start; the rest of the start is the initialization of packages of other projects.`,
		Run: runProfiles,
	}
}

// largest is how many costs a table has.
const largest = 10

func runProfiles(ctx context.Context, b *Bench, s *report.Section) error {
	n := b.Sizes.Fleets[0]
	p, err := b.profileManager(ctx, n)
	if err != nil {
		return err
	}
	addLargest(s, "manager", shares(p), "%.1f %%")
	times, err := initTimes(ctx, b)
	if err != nil {
		return err
	}
	addLargest(s, "command, start", times, "%.2f ms")
	total := 0.0
	for _, t := range times {
		total += t
	}
	s.Figures = append(s.Figures, report.AtMost("command, start: all initialization", total, 15, "%.1f ms"))
	var plain float64 // without the work of the profile
	if err := b.on("full", func(p *plane.Plane) (err error) {
		plain, err = b.cpuOf(ctx, p, n, nil)
		return err
	}); err != nil {
		return err
	}
	optimized, err := b.optimizedManager(ctx, p, n)
	if err != nil {
		return err
	}
	s.Figures = append(s.Figures, report.Told(fmt.Sprintf("manager built with the profile: CPU time for %d Instances, times that without", n), "%.2f", optimized/plain))
	return nil
}

// addLargest adds the largest of costs, by package.
func addLargest(s *report.Section, of string, costs map[string]float64, format string) {
	names := slices.SortedFunc(maps.Keys(costs), func(a, b string) int { return cmp.Or(cmp.Compare(costs[b], costs[a]), cmp.Compare(a, b)) })
	for i, name := range names[:min(largest, len(names))] {
		s.Figures = append(s.Figures, report.Told(fmt.Sprintf("%s, %d: `%s`", of, i+1, name), format, costs[name]))
	}
}

// profileManager returns a CPU profile of a manager for which Instances come.
func (b *Bench) profileManager(ctx context.Context, n int) (*profile.Profile, error) {
	var address string
	err := try(ctx, b.Dir, func(t testing.TB) error {
		address = env.FreeAddress(t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p, err := plane.Start("full", "--manager-arg=--pprof-bind-address="+address)
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	type answer struct {
		profile *profile.Profile
		err     error
	}
	got := make(chan answer, 1)
	_, err = b.cpuOf(ctx, p, n, func() {
		prof, err := readProfile(ctx, address)
		got <- answer{prof, err}
	})
	if err != nil {
		return nil, err
	}
	a := <-got
	return a.profile, a.err
}

// optimizedManager builds a manager with a profile, and returns its CPU time for n Instances.
func (b *Bench) optimizedManager(ctx context.Context, p *profile.Profile, n int) (float64, error) {
	file, bin := filepath.Join(b.Dir, "manager.pgo"), filepath.Join(b.Dir, "optimized")
	var data bytes.Buffer
	if err := p.Write(&data); err != nil {
		return 0, err
	}
	if err := errors.Join(os.WriteFile(file, data.Bytes(), 0o600), os.MkdirAll(bin, 0o750)); err != nil {
		return 0, err
	}
	b.Say("building the manager with its profile")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-pgo", file, "-o", filepath.Join(bin, "manager"), "./cmd/manager")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = sourcetree.Root(), os.Stderr, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	if err := errors.Join(cmd.Run(), os.Symlink(b.Programs.Kudo, filepath.Join(bin, "kubectl-kudo"))); err != nil {
		return 0, err
	}
	other, err := plane.Start("full", "--bin-dir", bin)
	if err != nil {
		return 0, err
	}
	defer other.Stop()
	return b.cpuOf(ctx, other, n, nil)
}

// cpuOf returns the CPU time of the manager, in seconds, for n Instances that come. It runs a function beside, if there is one.
func (b *Bench) cpuOf(ctx context.Context, p *plane.Plane, n int, beside func()) (float64, error) {
	c, err := b.crowd(ctx, p, creators)
	if err != nil {
		return 0, err
	}
	if _, _, err := c.come(ctx, 0, 1); err != nil {
		return 0, err
	}
	meter, err := p.Meter(ctx)
	if err != nil {
		return 0, err
	}
	if beside != nil {
		go beside()
	}
	if _, _, err := c.come(ctx, 1, 1+n); err != nil {
		return 0, err
	}
	cost, err := meter.Stop(ctx)
	return cost.Manager, err
}

// readProfile reads a CPU profile of 20 seconds.
func readProfile(ctx context.Context, address string) (*profile.Profile, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/profile?seconds=20", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the manager's profile: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	return profile.Parse(answer.Body)
}

// shares returns the share of each owner in the CPU time of a profile, in percent.
func shares(p *profile.Profile) map[string]float64 {
	out, total := map[string]float64{}, 0.0
	for _, sample := range p.Sample {
		var stack []string
		for _, location := range sample.Location {
			for _, line := range location.Line {
				stack = append(stack, line.Function.Name)
			}
		}
		value := float64(sample.Value[len(sample.Value)-1])
		total += value
		out[owner(stack)] += value
	}
	for name := range out {
		out[name] *= 100 / total
	}
	return out
}

// owner returns who causes a cost: the first package of a stack, from its leaf on, that is no helper of the standard library, or the work of the
// runtime.
func owner(stack []string) string {
	for _, function := range stack {
		if strings.HasPrefix(function, "runtime.gc") || strings.HasPrefix(function, "runtime.bgsweep") {
			return "garbage collection"
		}
	}
	for _, function := range stack {
		name := packageOf(function)
		first, _, _ := strings.Cut(name, "/")
		if strings.Contains(first, ".") || slices.Contains([]string{"encoding", "crypto", "compress", "net", "regexp", "text", "log"}, first) {
			return name
		}
	}
	return "scheduling of goroutines"
}

// packageOf returns the package of a function, whose name has dots behind the last slash only.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + name
}

// initTimes returns how long the initialization of each package takes at the start of the command, in milliseconds: the median of some starts.
func initTimes(ctx context.Context, b *Bench) (map[string]float64, error) {
	all := map[string][]float64{}
	for range b.Sizes.Rounds {
		cmd := exec.CommandContext(ctx, b.Programs.Kudo, "--help")
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace bytes.Buffer
		cmd.Stderr = &trace
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("start the command: %w", err)
		}
		if err := readInitTrace(&trace, all); err != nil {
			return nil, err
		}
	}
	out := map[string]float64{}
	for name, times := range all {
		out[name] = report.Median(times)
	}
	return out, nil
}

// readInitTrace adds the times of packages in what GODEBUG=inittrace=1 prints: "init PACKAGE @N ms, N ms clock, …".
func readInitTrace(trace io.Reader, into map[string][]float64) error {
	lines := bufio.NewScanner(trace)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[0] != "init" {
			continue
		}
		took, err := strconv.ParseFloat(fields[4], 64)
		if err != nil {
			return fmt.Errorf("the trace of the start is malformed: %q: %w", lines.Text(), err)
		}
		into[fields[1]] = append(into[fields[1]], took)
	}
	return lines.Err()
}
