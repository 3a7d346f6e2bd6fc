package workload

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

const (
	// clustersOfEach is how many clusters an Instance is placed on. The first one is placed on all.
	clustersOfEach = 10
	// changeAim is how long the status of a change may take, in seconds.
	changeAim = 10
	// profileNamespace is the namespace of the ClusterProfiles.
	profileNamespace = "kudo-system"
)

func hub() Workload {
	return Workload{
		Name: "hub", Title: "A hub of many clusters",
		About: `A hub with clustersEngine=inventory, a real API server and the process of its manager, places Instances on ten clusters each,
and one on all. The clusters are played: each is a server inside of the benchmark that keeps what is applied, serves watches of it, and
answers an Instance at once with the status of a plan that has ended. So the times are those of the hub, and not of plans; the clusters share
the machine with it. A change is over when the status of the Instance says that all its clusters are ready with it.`,
		Run: runHub,
	}
}

func runHub(ctx context.Context, b *Bench, s *report.Section) error {
	return try(ctx, b.Dir, func(t testing.TB) error {
		h, err := startHub(t, b)
		if err != nil {
			return err
		}
		for _, part := range []func() ([]report.Figure, error){h.arrive, h.changeOne, h.changeMany, h.idle, h.restart} {
			figures, err := part()
			if err != nil {
				return err
			}
			s.Figures = append(s.Figures, figures...)
		}
		return nil
	})
}

// fleetHub is a hub, and the clusters that it places Instances on.
type fleetHub struct {
	tb      testing.TB
	bench   *Bench
	plane   *plane.Plane
	manager *env.HubManager
	members []*member
	metrics string
	version *v1beta1.OperatorVersion
}

func startHub(t testing.TB, b *Bench) (*fleetHub, error) {
	b.Say("starting a hub of %d clusters", b.Sizes.Clusters)
	e, err := env.StartBare("--profile", "api")
	if err != nil {
		return nil, err
	}
	t.Cleanup(e.Stop)
	c, err := e.Connect()
	if err != nil {
		return nil, err
	}
	h := &fleetHub{tb: t, bench: b, plane: &plane.Plane{Env: e, Cluster: c}}
	for n := range b.Sizes.Clusters { // before the manager's addresses are chosen, which one of them could take
		h.members = append(h.members, startMember(t, fmt.Sprintf("c%d", n)))
	}
	h.metrics = env.FreeAddress(t)
	c.Define(t, []byte(profileDefinition))
	h.manager = e.NewHubManager(t, "--set", "clustersEngine=inventory")
	h.manager.Args = []string{"--clusters-engine=inventory", "--metrics-bind-address=" + h.metrics, "--metrics-secure=false"}
	for _, m := range h.members {
		if err := m.register(t.Context(), c); err != nil {
			return nil, err
		}
	}
	h.manager.Start(t)
	ns := c.NewBareNamespace(t)
	h.version = gen.Version(ns, "app-1.0.0", gen.Param("VALUE", "0", ""), gen.ConfigMaps("cm", 1), gen.Serial(v1beta1.DeployPlan, "cm"))
	h.version.Spec.Operator.Name = "app"
	for _, obj := range []client.Object{&v1beta1.Operator{ObjectMeta: gen.Meta(ns, "app")}, h.version} {
		if err := c.Create(t.Context(), obj); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// instance returns the Instance of a number.
func (h *fleetHub) instance(n int) *v1beta1.Instance {
	i := gen.Instance(fmt.Sprintf("i%d", n), h.version, map[string]string{"VALUE": "0"})
	i.Spec.Placement = &v1beta1.Placement{}
	count := min(clustersOfEach, len(h.members))
	if n == 0 {
		count = len(h.members)
	}
	for k := range count {
		i.Spec.Placement.Clusters = append(i.Spec.Placement.Clusters, v1beta1.PlacedCluster{Name: h.members[(n+k)%len(h.members)].name})
	}
	return i
}

// arrive creates the Instances.
func (h *fleetHub) arrive() ([]report.Figure, error) {
	n := h.bench.Sizes.Placed
	h.bench.Say("%d Instances on %d clusters each", n, clustersOfEach)
	cost, err := h.measure(func() ([]float64, error) {
		return h.follow(n, func(n int) (*v1beta1.Instance, error) {
			i := h.instance(n)
			return i, h.plane.Create(h.tb.Context(), i)
		})
	})
	if err != nil {
		return nil, err
	}
	copies := (n-1)*min(clustersOfEach, len(h.members)) + len(h.members)
	return []report.Figure{
		report.Told(fmt.Sprintf("%d Instances on %d of %d clusters each, until all are ready", n, clustersOfEach, len(h.members)), "%.1f s", cost.took),
		report.Told("for each copy: requests at its cluster; for each Instance: at the hub, of anybody", "%.2f; %.2f",
			float64(cost.members)/float64(copies), float64(cost.hub.Total())/float64(n)),
		report.Told("CPU time of the hub's manager", "%.1f s", cost.cpu),
	}, nil
}

// changeOne changes the Instance that is on all clusters, again and again.
func (h *fleetHub) changeOne() ([]report.Figure, error) {
	h.bench.Say("changing one Instance")
	var times []float64
	for round := range h.bench.Sizes.Rounds {
		took, err := h.change(1, fmt.Sprintf("one-%d", round))
		if err != nil {
			return nil, err
		}
		times = append(times, took...)
	}
	return []report.Figure{
		report.AtMost(fmt.Sprintf("a change of one Instance on all %d clusters, until its status says so: the longest", len(h.members)), slices.Max(times),
			changeAim, "%.2f s"),
		report.Told("of these, the median", "%.2f s", report.Median(times)),
	}, nil
}

// changeMany changes one Instance in ten, and all of them.
func (h *fleetHub) changeMany() ([]report.Figure, error) {
	var out []report.Figure
	for _, n := range []int{h.bench.Sizes.Placed / 10, h.bench.Sizes.Placed} {
		h.bench.Say("changing %d Instances", n)
		var times []float64
		cost, err := h.measure(func() (_ []float64, err error) {
			times, err = h.change(n, fmt.Sprintf("many-%d", n))
			return times, err
		})
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("changes of %d Instances at once, until the status says so: median and p99", n)
		if n < h.bench.Sizes.Placed {
			out = append(out, report.AtMost(fmt.Sprintf("changes of %d Instances at once: p99", n), report.Quantile(times, 0.99), changeAim, "%.2f s"))
		}
		out = append(out,
			report.Told(what, "%.2f s, %.2f s", report.Median(times), report.Quantile(times, 0.99)),
			report.Told(fmt.Sprintf("of these, for each Instance: requests at the hub, of anybody, and at its %d clusters", clustersOfEach), "%.2f, %.2f",
				float64(cost.hub.Total())/float64(n), float64(cost.members)/float64(n)))
	}
	return out, nil
}

// change gives the first n Instances another value, and returns how long each took until its clusters are ready with that.
func (h *fleetHub) change(n int, value string) ([]float64, error) {
	return h.follow(n, func(n int) (*v1beta1.Instance, error) {
		i := &v1beta1.Instance{ObjectMeta: gen.Meta(h.version.Namespace, fmt.Sprintf("i%d", n))}
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"parameters":{"VALUE":%q}}}`, value))
		return i, h.plane.Patch(h.tb.Context(), i, patch)
	})
}

// idle watches the hub and its clusters while idle, and how much memory the manager keeps.
func (h *fleetHub) idle() ([]report.Figure, error) {
	ctx, span := h.tb.Context(), min(h.bench.Sizes.Idle, 2*time.Minute)
	h.bench.Say("waiting until nothing changes, and idle for %s", span)
	if err := plane.Pause(ctx, h.bench.Sizes.Settle); err != nil { // long enough for a garbage collection
		return nil, err
	}
	cost, err := h.measure(func() ([]float64, error) { return nil, plane.Pause(ctx, span) })
	if err != nil {
		return nil, err
	}
	manager, err := plane.ReadMetrics(ctx, h.metrics)
	if err != nil {
		return nil, err
	}
	resident, err := plane.RSS(h.manager.PID())
	if err != nil {
		return nil, err
	}
	return []report.Figure{
		report.AtMost(fmt.Sprintf("idle for %s: requests at the clusters, but watches", span), float64(cost.members), 0, "%.0f"),
		report.AtMost("idle: requests for kudo's kinds at the hub, of anybody", float64(cost.hub.Of("instances")+cost.hub.Of("operatorversions")), 0, "%.0f"),
		report.AtMost("idle: share of a core of the hub's manager", 100*cost.cpu/cost.took, 1, "%.2f %%"),
		report.Told("memory of the hub's manager: live, resident", "%.0f MiB, %.0f MiB", manager.Live/(1<<20), resident/(1<<20)),
	}, nil
}

// restart changes an Instance while the hub's manager is away.
func (h *fleetHub) restart() ([]report.Figure, error) {
	h.bench.Say("restarting the hub's manager")
	h.manager.Kill()
	began := time.Now()
	h.manager.Start(h.tb)
	served := time.Since(began)
	times, err := h.change(1, "restarted")
	if err != nil {
		return nil, err
	}
	return []report.Figure{
		report.Told("a restart of the hub's manager: until it serves, and until a change on all clusters that is made then is in the status",
			"%.2f s, %.2f s", served.Seconds(), times[0]),
	}, nil
}

// hubCost is what something costs on a hub.
type hubCost struct {
	took, cpu float64
	hub       env.Requests
	// members are the requests at all clusters, but watches.
	members int
}

// measure counts what something costs, until requests end.
func (h *fleetHub) measure(run func() ([]float64, error)) (hubCost, error) {
	ctx := h.tb.Context()
	before, err := h.plane.Requests(ctx)
	if err != nil {
		return hubCost{}, err
	}
	cpu, err := plane.CPU(h.manager.PID())
	if err != nil {
		return hubCost{}, err
	}
	h.asked()
	began := time.Now()
	if _, err := run(); err != nil {
		return hubCost{}, err
	}
	out := hubCost{took: time.Since(began).Seconds(), members: h.asked()}
	now, err := h.plane.Requests(ctx)
	if err != nil {
		return hubCost{}, err
	}
	out.hub = now.Since(before)
	out.cpu, err = plane.CPU(h.manager.PID())
	out.cpu -= cpu
	return out, err
}

// asked returns how many requests the clusters have had since the last call, but watches.
func (h *fleetHub) asked() int {
	n := 0
	for _, m := range h.members {
		n += m.asked()
	}
	return n
}

// follow does something to the first n Instances, sixteen at a time, and returns how long each took, in seconds, until its status says that
// all clusters are ready with it.
func (h *fleetHub) follow(n int, do func(n int) (*v1beta1.Instance, error)) ([]float64, error) {
	ctx, cancel := context.WithTimeout(h.tb.Context(), 20*time.Minute)
	defer cancel()
	list := &v1beta1.InstanceList{}
	if err := h.plane.List(ctx, list, client.InNamespace(h.version.Namespace)); err != nil {
		return nil, err
	}
	again := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return h.plane.Watch(ctx, &v1beta1.InstanceList{}, &client.ListOptions{Namespace: h.version.Namespace, Raw: &o})
	}}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, again)
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	f := &follower{began: map[string]time.Time{}, generation: map[string]int64{}, ready: map[string]readyAt{}}
	failed := make(chan error, 1)
	go func() { failed <- f.do(n, do) }()
	return f.wait(ctx, n, events, failed, h.bench.Say)
}
