package workload

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"

	kudorender "kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/test/bench/compare/fixture"
	"kudo.dev/kudo/test/bench/compare/report"
)

func render() Workload {
	return Workload{
		Name: "render", Title: "Rendering templates",
		About: `Templates of Deployments with an include, conditions, a loop and a nested map, as text; both engines run as libraries in
one process, and their outputs are compared. Helm parses the templates each time it renders them, and so does kudo here
(*parse and render*). kudo works on all processors, which Helm's engine does not. kudo's manager keeps parsed templates,
which is the case *render again*: Helm's engine has no such thing, and its time is that of the first case.`,
		Run: runRender,
	}
}

// renderer renders all templates to text by path.
type renderer func() (map[string]string, error)

func runRender(ctx context.Context, b *Bench, s *report.Section) error {
	t := table{s}
	for _, n := range b.Sizes.Counts {
		b.Say("%d templates", n)
		cold, warm, helm := kudoCold(n), kudoWarm(n), helmEngine(n)
		if err := alike(cold, helm); err != nil {
			return err
		}
		contestants := []contestant{{"parse and render", "kudo", cold}, {"parse and render", "Helm's engine", helm}, {"render again", "kudo", warm}, {"render again", "Helm's engine", helm}}
		for round := range b.Sizes.Rounds {
			for i := range contestants {
				c := contestants[(i+round)%len(contestants)]
				sample, err := timed(ctx, n, c.render)
				if err != nil {
					return err
				}
				t.add(c.name, n, c.subject, sample)
			}
		}
	}
	most := slices.Max(b.Sizes.Counts)
	helm := t.of("parse and render", most, "Helm's engine")
	s.Figures = append(s.Figures, report.AtLeast(fmt.Sprintf("%d templates: times as fast as Helm's engine", most), s.Ratio(helm), 2, "%.2f"))
	cpu := func(of *report.Series) float64 {
		return report.Median(of.Of(func(one report.Sample) float64 { return one.ToolCPU }))
	}
	s.Figures = append(s.Figures, report.Told("the same, by CPU time", "%.2f", cpu(helm)/cpu(t.of("parse and render", most, "kudo"))))
	s.Figures = append(s.Figures, report.Told("the same, templates parsed before", "%.2f", s.Ratio(t.of("render again", most, "Helm's engine"))))
	return nil
}

type contestant struct {
	name, subject string
	render        renderer
}

// timed is a sample of one rendering: the mean of as many as make a time that can be measured.
func timed(ctx context.Context, n int, render renderer) (report.Sample, error) {
	runtime.GC() // so that the time holds no collection of earlier garbage
	times := max(1, 500/n)
	before, began := ownCPU(), time.Now()
	for range times {
		if _, err := render(); err != nil {
			return report.Sample{}, err
		}
	}
	took := time.Since(began)
	return report.Sample{Seconds: took.Seconds() / float64(times), ToolCPU: (ownCPU() - before) / float64(times)}, ctx.Err()
}

// ownCPU is the CPU time of this process, in seconds.
func ownCPU() float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()).Seconds()
}

func kudoVariables() kudorender.Variables {
	return kudorender.Variables{OperatorName: "bench", OperatorVersion: "0.1.0", AppVersion: "1.0.0", Name: "bench", Namespace: "default", PlanName: "deploy", PhaseName: "main", StepName: "all", Params: fixture.Values()}
}

func kudoCold(n int) renderer {
	templates := fixture.Templates(fixture.Kudo(), n)
	return func() (map[string]string, error) { return kudoAll(kudorender.New(templates)) }
}

func kudoWarm(n int) renderer {
	set := kudorender.New(fixture.Templates(fixture.Kudo(), n))
	return func() (map[string]string, error) { return kudoAll(set) }
}

func kudoAll(set *kudorender.Set) (map[string]string, error) {
	names, variables := set.Names(), kudoVariables()
	texts := make([]string, len(names))
	errs := make([]error, len(names))
	everyProcessor(len(names), func(i int) { texts[i], errs[i] = set.Text(names[i], variables) })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out := make(map[string]string, len(names))
	for i, name := range names {
		out[name] = texts[i]
	}
	return out, nil
}

// everyProcessor calls a function for each number below n, on all processors, as Set.All does in the manager.
func everyProcessor(n int, do func(int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}

func helmEngine(n int) renderer {
	c := &chart.Chart{Metadata: &chart.Metadata{Name: "bench", Version: "0.1.0", AppVersion: "1.0.0", APIVersion: "v2"}}
	for name, text := range fixture.Templates(fixture.Helm(), n) {
		c.Templates = append(c.Templates, &common.File{Name: "templates/" + name, Data: []byte(text)})
	}
	slices.SortFunc(c.Templates, func(a, b *common.File) int { return strings.Compare(a.Name, b.Name) })
	return func() (map[string]string, error) {
		values, err := util.ToRenderValues(c, fixture.Values(), common.ReleaseOptions{Name: "bench", Namespace: "default", Revision: 1, IsInstall: true}, nil)
		if err != nil {
			return nil, err
		}
		return engine.Render(c, values)
	}
}

// alike wants two renderers to make the same of the templates, so that neither does less.
func alike(kudo, helm renderer) error {
	ours, err := kudo()
	if err != nil {
		return err
	}
	theirs, err := helm()
	if err != nil {
		return err
	}
	for name, text := range ours {
		if name == fixture.HelpersFile {
			continue // Helm prints what is around the definitions, too
		}
		if theirs["bench/templates/"+name] != text {
			return fmt.Errorf("template %s is rendered differently: the comparison would not be fair\nkudo:\n%s\nHelm:\n%s", name, text, theirs["bench/templates/"+name])
		}
	}
	return nil
}
