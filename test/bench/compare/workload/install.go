package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/bench/compare/tools"
)

// crowded is the number of objects from which on a tool's are taken away before the next one comes: the end of a namespace
// takes ten seconds, and some hundred objects do not change the times.
const crowded = 500

const (
	installing = "install"
	again      = "again, unchanged"
	changing   = "one changed"
)

func install() Workload {
	return Workload{
		Name: "install", Title: "Installing objects",
		About: `N ConfigMaps of three values each, by a command that ends when they are there, on a control plane without controllers
of workloads:

| tool | install | again, unchanged | one changed |
|------|---------|------------------|-------------|
| kudo | ` + "`kubectl kudo install --wait`" + ` | ` + "`kubectl kudo plan trigger --wait`" + ` | ` + "`kubectl kudo update -p --wait`" + ` |
| Helm | ` + "`helm install`" + ` | ` + "`helm upgrade`" + ` | ` + "`helm upgrade --set`" + ` |
| ` + "`ssa.ApplyAllStaged`, `kubectl apply --server-side`" + ` | a file | the same file | another file |

kudo and Helm render N templates; for the others the objects are rendered before, and not timed. Helm's limit on requests
of the client is taken off. ` + "`ssa.ApplyAllStaged`" + ` is a small program around the library, which waits for the objects, too;
it asks by a dry run first whether an object must be written, which counts as a write, since it costs the API server as
much. *Of objects* are the requests for ConfigMaps: kudo lists them once before it installs, to refuse foreign ones.

Of few objects, the library alone is faster: a run of a plan costs kudo up to seven writes one after the other, for what
a library does not keep (the history, the status, events), and the start of the command 27 ms.

kudo is strict, as it is installed by default: the command reads the settings of the cluster and the ServiceAccount of the
Instance, which are two requests. An event names the user who asked for the run, which is one more.`,
		Run: runInstall,
	}
}

func runInstall(ctx context.Context, b *Bench, s *report.Section) error {
	return b.on("api", func(p *plane.Plane) error {
		t := table{s}
		for _, n := range b.Sizes.Counts {
			all, err := tools.All(b.Programs, b.folder("install", n), n)
			if err != nil {
				return err
			}
			var subjects []string
			for _, tool := range all {
				subjects = append(subjects, tool.Name())
			}
			for round := range b.Sizes.Rounds {
				for i := range all {
					tool := all[(i+round)%len(all)]
					b.Say("%d objects, round %d of %d: %s", n, round+1, b.Sizes.Rounds, tool.Name())
					if err := b.lives(ctx, p, t, n, tool); err != nil {
						return err
					}
				}
			}
			order(s, n, subjects)
			s.Figures = append(s.Figures, installFigures(t, n, all[0].Name())...)
		}
		s.Figures = append(s.Figures, s.Faster()...)
		return nil
	})
}

// tries is how often a life is tried: opponents without a limit on requests may drown an apiserver.
const tries = 3

// lives is a life that did not fail. The failure of one is printed among the figures.
func (b *Bench) lives(ctx context.Context, p *plane.Plane, t table, n int, tool tools.Tool) error {
	for try := 1; ; try++ {
		samples, err := b.life(ctx, p, n, tool)
		if err == nil {
			for i, sample := range samples {
				t.add(cases()[i], n, tool.Name(), sample)
			}
			return nil
		}
		if try == tries || ctx.Err() != nil {
			return err
		}
		b.Say("it fails, and is tried again: %v", err)
		text, _, _ := strings.Cut(err.Error(), "\n")
		t.section.Figures = append(t.section.Figures, report.Told(fmt.Sprintf("failed, and tried again: %s with %d objects", tool.Name(), n), "%s", text[strings.LastIndexByte(text, ']')+1:]))
	}
}

func cases() []string { return []string{installing, again, changing} }

// life installs in a namespace of its own, applies again, changes one object, and takes what is much away.
func (b *Bench) life(ctx context.Context, p *plane.Plane, n int, tool tools.Tool) ([]report.Sample, error) {
	ns, err := p.NewNamespace(ctx)
	if err != nil {
		return nil, err
	}
	commands := tool.Commands(ns)
	var samples []report.Sample
	for _, command := range [][]string{commands.Install, commands.Again, commands.Change} {
		sample, err := b.measure(ctx, p, command, "configmaps")
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample)
	}
	if n < crowded {
		return samples, nil
	}
	if len(commands.Remove) > 0 {
		if _, err := tools.Run(ctx, p.Kubeconfig, b.Home, commands.Remove); err != nil {
			return nil, err
		}
	}
	return samples, p.DeleteNamespace(ctx, ns)
}

// order puts the series of a size into the order of cases, then of subjects.
func order(s *report.Section, n int, subjects []string) {
	place := func(of report.Series) int {
		return slices.Index(cases(), of.Case)*len(subjects) + slices.Index(subjects, of.Subject)
	}
	slices.SortStableFunc(s.Series, func(a, b report.Series) int {
		if a.Size != n || b.Size != n {
			return a.Size - b.Size
		}
		return place(a) - place(b)
	})
}

func installFigures(t table, n int, kudo string) []report.Figure {
	middle := func(name string, field func(report.Sample) float64) float64 {
		return report.Median(t.of(name, n, kudo).Of(field))
	}
	requests := func(one report.Sample) float64 { return float64(one.Requests) }
	objects := func(one report.Sample) float64 { return float64(one.Objects) }
	// One for each object, ten more, and one for each thousand. Accounts may cost two, and the event that names the user one.
	installation := report.AtMost(fmt.Sprintf("requests of an installation of %d", n), middle(installing, requests), float64(n+10+n/1000+3), "%.0f")
	installation.Required = true
	return []report.Figure{
		installation,
		report.AtMost(fmt.Sprintf("requests of objects, %d applied again", n), middle(again, objects), 0, "%.0f"),
		report.AtMost(fmt.Sprintf("requests of objects, one of %d changed", n), middle(changing, objects), 1, "%.0f"),
	}
}
