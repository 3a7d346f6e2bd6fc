package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/env"
)

// leasePeriod is how often the manager renews its lease.
const leasePeriod = 2 * time.Second

func fleet() Workload {
	return Workload{
		Name: "fleet", Title: "A fleet of Instances",
		About: `Instances of four objects each (Deployment of no replica, ServiceAccount, Service, Ingress), created by 16 clients at a
time on a control plane with the controllers of Deployments, which share the machine. Requests are those that the manager
itself says it has sent (` + "`rest_client_requests_total`" + `): writes are all but GETs and the renewals of its lease, events among
them. Of the writes of an Instance, four are its objects, three its status, three events, of which one names the user who asked, and one
is the record of its run. Meanwhile, one Instance every two seconds comes into another namespace. One manager
works at a time, and is enough for 10,000 Instances: it needs a quarter of the CPU time of the API server, which bounds how fast they come. So kudo
does not divide Instances among several managers. The bare client writes the same Instances,
objects, records, events and status, as in the section of steps and bursts, on a control plane without a manager. For scale: Flux publishes 4 min
39 s for 1,000 releases of four objects, on another machine.`,
		Run: runFleet,
	}
}

// maxCostGrowth bounds the cost of an Instance in a larger fleet, as a multiple of its cost in the smallest fleet.
const maxCostGrowth = 1.2

// instances are the Instances of one control plane, and what was measured of them.
type instances struct {
	size  int
	plane *plane.Plane
	crowd *crowd
	costs []instanceCost
	// example is one of the Instances, took the time of all of them.
	example *example
	took    time.Duration
	// floor are the costs of a bare client that writes the same.
	floor []instanceCost
}

// instanceCost is a cost of one Instance.
type instanceCost struct {
	what  string
	value float64
}

// addCost adds the cost of one Instance, which is the total cost divided by the number of Instances.
func (f *instances) addCost(what string, total float64) {
	f.costs = append(f.costs, instanceCost{what + ", for each", total / float64(f.size)})
}

func runFleet(ctx context.Context, b *Bench, s *report.Section) error {
	var smallest *instances
	for _, n := range b.Sizes.Fleets {
		f := &instances{size: n}
		if err := b.on("full", func(p *plane.Plane) error { return f.measure(ctx, b, p, s) }); err != nil {
			return err
		}
		if err := f.measureFloor(ctx, b, s); err != nil {
			return err
		}
		if smallest == nil {
			smallest = f
			continue
		}
		for i, c := range f.costs {
			what := fmt.Sprintf("%s: of %d, times that of %d", c.what, f.size, smallest.size)
			s.Figures = append(s.Figures, report.AtMost(what, c.value/smallest.costs[i].value, maxCostGrowth, "%.2f"))
		}
		for i, c := range f.floor {
			what := fmt.Sprintf("bare client: %s: of %d, times that of %d", c.what, f.size, smallest.size)
			s.Figures = append(s.Figures, report.Told(what, "%.2f", c.value/smallest.floor[i].value))
		}
	}
	return nil
}

func (f *instances) measure(ctx context.Context, b *Bench, p *plane.Plane, s *report.Section) (err error) {
	f.plane = p
	if f.crowd, err = b.crowd(ctx, p, creators); err != nil {
		return err
	}
	for _, part := range []func(context.Context, *Bench) ([]report.Figure, error){f.arrive, f.idle, f.change, f.drift, f.restart} {
		figures, err := part(ctx, b)
		if err != nil {
			return err
		}
		s.Figures = append(s.Figures, figures...)
	}
	return nil
}

// maxTimesFloor bounds the time of a fleet, as a multiple of that of a bare client.
const maxTimesFloor = 1.3

// maxSeats bounds the share of the manager and its accounts in the seats of their priority level, in percent.
const maxSeats = 25

// creators is how many clients create the Instances of a fleet.
const creators = 16

// measureFloor has a bare client write what the manager has written for the fleet, on a control plane without a manager.
func (f *instances) measureFloor(ctx context.Context, b *Bench, s *report.Section) error {
	c, err := b.startBareClient(ctx, f.example)
	if err != nil {
		return err
	}
	defer c.plane.Stop()
	server, err := c.plane.PID("kube-apiserver")
	if err != nil {
		return err
	}
	before, err := plane.CPU(server)
	if err != nil {
		return err
	}
	b.Say("%d Instances of a bare client", f.size)
	_, took, err := c.come(ctx, 1, 1+f.size, creators)
	if err != nil {
		return err
	}
	cpu, err := plane.CPU(server)
	n := float64(f.size)
	f.floor = []instanceCost{{"to the last status, for each", took.Seconds() / n}, {"CPU time of the apiserver, for each", (cpu - before) / n}}
	s.Figures = append(s.Figures,
		report.Told(fmt.Sprintf("bare client: the same objects and status of %d Instances", f.size), "%.1f s", took.Seconds()),
		report.AtMost(fmt.Sprintf("%d Instances to COMPLETE: times as long as a bare client", f.size), f.took.Seconds()/took.Seconds(), maxTimesFloor, "%.2f"),
		report.Told("bare client: CPU time of the apiserver", "%.1f s", cpu-before))
	return err
}

func (f *instances) arrive(ctx context.Context, b *Bench) ([]report.Figure, error) {
	p, c, n := f.plane, f.crowd, f.size
	other, err := b.crowd(ctx, p, 1)
	if err != nil {
		return nil, err
	}
	if _, _, err := other.come(ctx, 0, 1); err != nil { // the first one waits for the lists of new kinds
		return nil, err
	}
	meter, err := p.Meter(ctx)
	if err != nil {
		return nil, err
	}
	sent, err := sentBy(ctx, p)
	if err != nil {
		return nil, err
	}
	c.say("%d Instances", n)
	var singles []float64
	var seats plane.Seats
	arrived, group := make(chan struct{}), errgroup.Group{}
	group.Go(func() (err error) {
		singles, err = comeOneByOne(ctx, other, arrived)
		return err
	})
	group.Go(func() (err error) {
		seats, err = p.WatchSeats(ctx, arrived)
		return err
	})
	times, took, err := c.come(ctx, 0, n)
	close(arrived)
	if err = errors.Join(err, group.Wait()); err != nil {
		return nil, err
	}
	cost, err := meter.Stop(ctx)
	if err != nil {
		return nil, err
	}
	f.took = took
	if f.example, err = readExample(ctx, p, c.namespace, "i0"); err != nil {
		return nil, err
	}
	writes, err := sent.writes(ctx)
	writes = writes * n / (n + len(singles))
	f.addCost("to COMPLETE", took.Seconds())
	f.addCost("writes of the manager", float64(writes))
	f.addCost("CPU time of the manager", cost.Manager)
	f.addCost("CPU time of the apiserver", cost.Server)
	return []report.Figure{
		report.AtMost(fmt.Sprintf("%d Instances to COMPLETE", n), took.Seconds(), 60*float64(n)/1000, "%.1f s"),
		report.Told("one of them, median and p99", "%.2f s, %.2f s", report.Median(times), report.Quantile(times, 0.99)),
		report.AtMost("a single Instance of another namespace meanwhile: the longest", slices.Max(singles), 2, "%.2f s"),
		report.Told("the same: median", "%.2f s", report.Median(singles)),
		report.AtMost("writes of the manager for each", float64(writes)/float64(n), 11, "%.2f"),
		report.AtMost("seats of the manager and its accounts at the apiserver, at most, of those of their priority level", 100*seats.Used/seats.Limit, maxSeats, "%.0f %%"),
		report.Told("requests at the apiserver, of anybody", "%s", listed(cost.Requests)),
		report.Told("CPU time of manager and apiserver", "%.1f s, %.1f s", cost.Manager, cost.Server),
	}, err
}

// comeOneByOne creates Instances of a crowd, one every two seconds, until the channel is closed. It returns how long each took.
func comeOneByOne(ctx context.Context, c *crowd, until <-chan struct{}) ([]float64, error) {
	var out []float64
	for n := 1; ; n++ {
		seconds, _, err := c.come(ctx, n, n+1)
		if err != nil {
			return nil, err
		}
		out = append(out, seconds...)
		select {
		case <-until:
			return out, nil
		case <-time.After(2 * time.Second):
		}
	}
}

// changes is how many Instances are changed, one after the other.
const changes = 10

// change changes a parameter of single Instances.
func (f *instances) change(ctx context.Context, b *Bench) ([]report.Figure, error) {
	b.Say("change of one Instance, %d times", changes)
	meter, err := f.plane.Meter(ctx)
	if err != nil {
		return nil, err
	}
	var seconds []float64
	for i := range changes {
		instance := f.crowd.instance(f.size - 1 - i)
		base := client.MergeFrom(instance.DeepCopy())
		instance.Spec.Parameters = map[string]string{"PORT": "82"}
		began := time.Now()
		if err := f.plane.Patch(ctx, instance, base); err != nil {
			return nil, err
		}
		if _, err := f.plane.Await(ctx, instance.Namespace, instance.Name, time.Minute, env.PlanEnded(v1beta1.DeployPlan, 2)); err != nil {
			return nil, err
		}
		seconds = append(seconds, time.Since(began).Seconds())
	}
	cost, err := meter.Stop(ctx)
	median := report.Median(seconds)
	f.costs = append(f.costs, instanceCost{"change of one", median}, instanceCost{"CPU time of manager and apiserver for a change of one", cost.Manager + cost.Server})
	return []report.Figure{
		report.Told(fmt.Sprintf("change of one of %d Instances: median, until COMPLETE", f.size), "%.0f ms", median*1000),
		report.Told("the same: requests at the apiserver, of anybody", "%.1f", float64(cost.Requests.Total())/changes),
	}, err
}

// idle watches the manager while idle.
func (f *instances) idle(ctx context.Context, b *Bench) ([]report.Figure, error) {
	p := f.plane
	b.Say("waiting until nothing changes")
	if err := plane.Pause(ctx, 75*time.Second); err != nil { // the garbage collector learns of kudo's kinds within a minute
		return nil, err
	}
	b.Say("idle for %s", b.Sizes.Idle)
	meter, err := p.Meter(ctx)
	if err != nil {
		return nil, err
	}
	sent, err := sentBy(ctx, p)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := plane.Pause(ctx, b.Sizes.Idle); err != nil {
		return nil, err
	}
	writes, err := sent.writes(ctx)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	cost, err := meter.Stop(ctx)
	if err != nil {
		return nil, err
	}
	others := 0
	// Services are not among them: the apiserver lists them itself every few minutes, to repair its allocation of addresses.
	for _, kind := range []string{"instances", "operatorversions", "operators", "installations", "controllerrevisions", "deployments", "serviceaccounts", "ingresses"} {
		others += cost.Requests.Of(kind)
	}
	span := took.Round(time.Second)
	f.addCost("idle: share of a core", cost.Manager/took.Seconds())
	return []report.Figure{
		report.AtMost(fmt.Sprintf("idle for %s: writes of the manager but its lease", span), float64(writes), 0, "%.0f"),
		report.AtMost("idle: requests for kudo's kinds and the objects, of anybody, but watches", float64(others), 0, "%.0f"),
		report.Told("idle: requests at the apiserver, of anybody", "%s", listed(cost.Requests)),
		report.Told("idle: GETs of the manager (watches that begin again)", "%d", sent.now.Sent["GET"]-sent.before.Sent["GET"]),
		report.AtMost("idle: share of a core", 100*cost.Manager/took.Seconds(), 1, "%.2f %%"),
	}, nil
}

// isNumber reports whether a text is a number.
func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// drift deletes the Service of one Instance in a hundred, and changes that of another one.
func (f *instances) drift(ctx context.Context, b *Bench) ([]report.Figure, error) {
	p, n, ns := f.plane, max(1, f.size/100), f.crowd.namespace
	b.Say("drift of %d Instances", n)
	sent, err := sentBy(ctx, p)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for i := range n {
		if err := p.Delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("i%d", i)}}); err != nil {
			return nil, err
		}
		changed := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("i%d", n+i)}}
		if err := p.Patch(ctx, changed, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/ports/0/port","value":81}]`))); err != nil {
			return nil, err
		}
	}
	if err := plane.Poll(ctx, time.Minute, "the drift to be told", func() (bool, error) { return told(ctx, p, ns, n) }); err != nil {
		return nil, err
	}
	took := time.Since(began)
	f.addCost("drift of one in fifty", took.Seconds())
	out, _ := p.Kudo("get", "instances", "-n", ns)
	missing, changed := 0, 0
	for line := range strings.Lines(out) {
		switch fields := strings.Fields(line); {
		case len(fields) > 2 && fields[2] == "False":
			missing++
		case len(fields) > 3 && isNumber(fields[3]): // how many objects drift; the state stands there if none does
			changed++
		}
	}
	writes, err := sent.writes(ctx)
	return []report.Figure{
		report.Told(fmt.Sprintf("drift, the Service of %d Instances deleted, a field of %d others changed: until told", n, n), "%.2f s, with %.1f writes each", took.Seconds(), float64(writes)/float64(2*n)),
		report.AtLeast("of these, `kubectl kudo get instances` shows as not ready", float64(missing), float64(n), "%.0f"),
		report.AtLeast("of these, `kubectl kudo get instances` shows as drifted", float64(changed), float64(n), "%.0f"),
	}, err
}

// told reports whether each of the first n Instances is not ready, and each of the next n drifted.
func told(ctx context.Context, p *plane.Plane, ns string, n int) (bool, error) {
	for i := range 2 * n {
		instance := &v1beta1.Instance{}
		if err := p.Get(ctx, types.NamespacedName{Namespace: ns, Name: fmt.Sprintf("i%d", i)}, instance); err != nil {
			return false, err
		}
		if i < n && !meta.IsStatusConditionFalse(instance.Status.Conditions, v1beta1.ReadyCondition) || i >= n && len(instance.Status.Drift) == 0 {
			return false, nil
		}
	}
	return true, nil
}
