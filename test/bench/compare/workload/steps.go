package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/bench/compare/fixture"
	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/bench/compare/tools"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// chainLength is the number of serial steps, bursts how often many Instances come at once, and helmAtOnce how many commands
// of helm run at a time.
const chainLength, bursts, helmAtOnce = 5, 3, 8

func steps() Workload {
	return Workload{
		Name: "steps", Title: "Serial steps, and many at once",
		About: `Five serial steps of one ConfigMap each, each step awaited: by the API (an Instance is created; its OperatorVersion is
there), and by the command, which also installs the package. ` + "`helm upgrade --install --wait`" + ` applies the five ConfigMaps
together, as Helm has no steps. Then Instances of four objects (Deployment of no replica) that come at once, on a
control plane with the controllers of Deployments. They come
three times, and the figures are the medians of the three. The bare client writes the same on a control plane without kudo, its policies and webhooks: each
Instance, its objects, the record of its run, its events, and its status before the objects and after the Deployment is observed, eight Instances
at a time as the manager. Helm's are as many commands, 8 at a time. Of Instances that come
at once, eight are worked on at a time, and those that were begun are ended before others are begun. What bounds it is the
processor, of which each Instance needs some 77 ms: 42 ms for the API server, 15 ms for the manager, 12 ms for etcd and 8 ms
for the controllers of Kubernetes. An Instance that comes alone costs 18 requests: ten writes of the manager, three of which are
events, and eight requests of Kubernetes' own controllers.`,
		Run: runSteps,
	}
}

func runSteps(ctx context.Context, b *Bench, s *report.Section) error {
	if err := b.on("api", func(p *plane.Plane) error { return b.chain(ctx, p, s) }); err != nil {
		return err
	}
	var kudo []float64
	var w *example
	if err := b.on("full", func(p *plane.Plane) (err error) {
		kudo, w, err = b.burst(ctx, p, s)
		return err
	}); err != nil {
		return err
	}
	n := b.Sizes.Burst
	late, all, err := b.burstOfBareClient(ctx, w, n)
	if err != nil {
		return err
	}
	s.Figures = append(s.Figures,
		report.Told(fmt.Sprintf("%d Instances of a bare client at once: p99, all", n), "%.2f s, %.2f s", report.Median(late), report.Median(all)),
		report.AtMost(fmt.Sprintf("%d Instances at once: p99, times that of the bare client", n), report.Median(kudo)/report.Median(late), 1.3, "%.2f"))
	return nil
}

func (b *Bench) chain(ctx context.Context, p *plane.Plane, s *report.Section) error {
	pack, chart := b.folder("chain", chainLength), b.folder("chain-chart", chainLength)
	if err := fixture.Chain(pack, chainLength); err != nil {
		return err
	}
	if err := fixture.Chart(chart, chainLength); err != nil {
		return err
	}
	ov, err := b.chainVersion(ctx, p)
	if err != nil {
		return err
	}
	t := table{s}
	for round := range b.Sizes.Rounds {
		b.Say("serial steps, round %d of %d", round+1, b.Sizes.Rounds)
		began := time.Now()
		name := fmt.Sprintf("i%d", round)
		if err := p.Create(ctx, gen.Instance(name, ov, nil)); err != nil {
			return err
		}
		if _, err := p.Await(ctx, ov.Namespace, name, time.Minute, env.PlanEnded(v1beta1.DeployPlan, 1)); err != nil {
			return err
		}
		t.add("five serial steps, by the API", chainLength, "kudo", report.Sample{Seconds: time.Since(began).Seconds()})
		for _, one := range b.chainCommands(pack, chart) {
			ns, err := p.NewNamespace(ctx)
			if err != nil {
				return err
			}
			sample, err := b.measure(ctx, p, one.command(ns), "configmaps")
			if err != nil {
				return err
			}
			t.add("five objects", chainLength, one.name, sample)
		}
	}
	api := t.of("five serial steps, by the API", chainLength, "kudo")
	s.Figures = append(s.Figures, report.AtMost("five serial steps, by the API: median", report.Median(api.Seconds())*1000, 250, "%.0f ms"))
	s.Figures = append(s.Figures, s.Faster()...)
	return nil
}

type command struct {
	name    string
	command func(ns string) []string
}

func (b *Bench) chainCommands(pack, chart string) []command {
	return []command{
		{"kubectl kudo install --wait, in steps", func(ns string) []string {
			return []string{b.Programs.Kudo, "-n", ns, "install", pack, "--instance", tools.Release, "--wait"}
		}},
		{"helm upgrade --install --wait, together", func(ns string) []string { return b.helmUpgrade(ns, tools.Release, chart) }},
	}
}

func (b *Bench) helmUpgrade(ns, release, chart string) []string {
	return append([]string{b.Programs.Helm, "-n", ns, "upgrade", "--install", "--wait", release, chart}, tools.Unlimited()...)
}

// chainVersion makes the OperatorVersion, and one Instance to warm up.
func (b *Bench) chainVersion(ctx context.Context, p *plane.Plane) (*v1beta1.OperatorVersion, error) {
	ns, err := p.NewNamespace(ctx)
	if err != nil {
		return nil, err
	}
	var tasks []string
	mods := []gen.VersionMod{gen.Param("VALUE", "a", "")}
	for n := range chainLength {
		task := fmt.Sprintf("t%d", n)
		tasks, mods = append(tasks, task), append(mods, gen.ConfigMaps(task, 1))
	}
	ov := gen.Version(ns, "chain", append(mods, gen.Serial(v1beta1.DeployPlan, tasks...))...)
	if err := p.Create(ctx, ov); err != nil {
		return nil, err
	}
	if err := p.Create(ctx, gen.Instance("warm", ov, nil)); err != nil {
		return nil, err
	}
	_, err = p.Await(ctx, ns, "warm", time.Minute, env.PlanEnded(v1beta1.DeployPlan, 1))
	return ov, err
}

// burst measures Instances that come at once, and returns the p99 of each round, and one of the Instances with its objects.
func (b *Bench) burst(ctx context.Context, p *plane.Plane, s *report.Section) ([]float64, *example, error) {
	n := b.Sizes.Burst
	c, err := b.crowd(ctx, p, n)
	if err != nil {
		return nil, nil, err
	}
	if _, _, err := c.come(ctx, 0, 1); err != nil { // the first one waits for the lists of new kinds
		return nil, nil, err
	}
	var late, median, all []float64
	for round := range bursts {
		b.Say("%d Instances at once, round %d of %d", n, round+1, bursts)
		times, took, err := c.come(ctx, 1+round*n, 1+(round+1)*n)
		if err != nil {
			return nil, nil, err
		}
		late, median, all = append(late, report.Quantile(times, 0.99)), append(median, report.Median(times)), append(all, took.Seconds())
	}
	s.Figures = append(s.Figures,
		report.AtMost(fmt.Sprintf("%d Instances at once: p99", n), report.Median(late), 5, "%.2f s"),
		report.Told("the same: median, all", "%.2f s, %.2f s", report.Median(median), report.Median(all)))
	b.Say("%d releases of helm, %d at a time", n, helmAtOnce)
	times, took, err := b.helmBurst(ctx, p, n)
	if err != nil {
		return nil, nil, err
	}
	s.Figures = append(s.Figures, report.Told(fmt.Sprintf("%d times helm upgrade --install --wait, %d at a time: median of one, all", n, helmAtOnce), "%.2f s, %.2f s", report.Median(times), took.Seconds()))
	w, err := readExample(ctx, p, c.namespace, "i1")
	return late, w, err
}

// helmBurst installs n releases, some at a time.
func (b *Bench) helmBurst(ctx context.Context, p *plane.Plane, n int) ([]float64, time.Duration, error) {
	chart := b.folder("four", 4)
	if err := fixture.FourChart(chart); err != nil {
		return nil, 0, err
	}
	ns, err := p.NewNamespace(ctx)
	if err != nil {
		return nil, 0, err
	}
	began, seconds, failed := time.Now(), make([]float64, n), make([]error, n)
	slots := make(chan struct{}, helmAtOnce)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			var took tools.Result
			took, failed[i] = tools.Run(ctx, p.Kubeconfig, b.Home, b.helmUpgrade(ns, fmt.Sprintf("h%d", i), chart))
			seconds[i] = took.Wall.Seconds()
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, 0, err
		}
	}
	return seconds, time.Since(began), nil
}
