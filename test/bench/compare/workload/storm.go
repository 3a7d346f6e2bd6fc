package workload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// foreigner is the field manager of the foreign writer, and window the time in which kudo may write once.
const (
	foreigner = "foreign-writer"
	window    = 10 * time.Second
)

func storm() Workload {
	return Workload{
		Name: "storm", Title: "A foreign writer",
		About: `Another client flips a field that the package sets, 50 times a second. kudo does not correct what others change between runs: it
is listed in *status.drift* of the Instance or, for an object of an install plan, of the OperatorVersion. Counted is each write of the manager, events among them.`,
		Run: runStorm,
	}
}

func runStorm(ctx context.Context, b *Bench, s *report.Section) error {
	return b.on("api", func(p *plane.Plane) error {
		for _, part := range []struct {
			name string
			make func(context.Context, *plane.Plane) (*struck, error)
		}{{"an object of an Instance", instanceStruck}, {"an object of an install plan", versionStruck}} {
			b.Say("storm on %s", part.name)
			object, err := part.make(ctx, p)
			if err != nil {
				return err
			}
			figures, err := b.strike(ctx, p, part.name, object)
			if err != nil {
				return err
			}
			s.Figures = append(s.Figures, figures...)
		}
		return nil
	})
}

// struck is a ConfigMap amid a storm, and the drift that the status of its writer lists.
type struck struct {
	key   types.NamespacedName
	drift func(context.Context) ([]v1beta1.ObjectDrift, error)
}

func instanceStruck(ctx context.Context, p *plane.Plane) (*struck, error) {
	ns, err := p.NewNamespace(ctx)
	if err != nil {
		return nil, err
	}
	ov := gen.Version(ns, "storm", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial(v1beta1.DeployPlan, "cm"))
	if err := p.Create(ctx, ov); err != nil {
		return nil, err
	}
	if err := p.Create(ctx, gen.Instance("i", ov, nil)); err != nil {
		return nil, err
	}
	if _, err := p.Await(ctx, ns, "i", time.Minute, env.PlanEnded(v1beta1.DeployPlan, 1)); err != nil {
		return nil, err
	}
	return &struck{key: types.NamespacedName{Namespace: ns, Name: "i-cm-0"}, drift: func(ctx context.Context) ([]v1beta1.ObjectDrift, error) {
		i := &v1beta1.Instance{}
		err := p.Get(ctx, types.NamespacedName{Namespace: ns, Name: "i"}, i)
		return i.Status.Drift, err
	}}, nil
}

func versionStruck(ctx context.Context, p *plane.Plane) (*struck, error) {
	ns, err := p.NewNamespace(ctx)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: %s}\ndata: {key: a}\n", ns)
	ov := gen.Version(ns, "storm", gen.Template("shared.yaml", text), gen.Apply("all", "shared.yaml"), gen.Serial("install", "all"), gen.InstallPlan("install"))
	if err := p.Create(ctx, ov); err != nil {
		return nil, err
	}
	read := func(ctx context.Context) (*v1beta1.OperatorVersion, error) {
		now := &v1beta1.OperatorVersion{}
		return now, p.Get(ctx, client.ObjectKeyFromObject(ov), now)
	}
	err = plane.Poll(ctx, time.Minute, "the install plan", func() (bool, error) {
		now, err := read(ctx)
		return now.Status.AggregatedStatus.Status == v1beta1.Complete, err
	})
	return &struck{key: types.NamespacedName{Namespace: ns, Name: "shared"}, drift: func(ctx context.Context) ([]v1beta1.ObjectDrift, error) {
		now, err := read(ctx)
		return now.Status.Drift, err
	}}, err
}

// strike flips a field, and looks what kudo does.
func (b *Bench) strike(ctx context.Context, p *plane.Plane, what string, object *struck) ([]report.Figure, error) {
	meter, err := p.Meter(ctx)
	if err != nil {
		return nil, err
	}
	began, named, most := time.Now(), false, 0
	flips, message := 0, ""
	for time.Since(began) < b.Sizes.Storm {
		sent, err := sentBy(ctx, p)
		if err != nil {
			return nil, err
		}
		n, err := flip(ctx, p, object.key, min(window, b.Sizes.Storm-time.Since(began)))
		if err != nil {
			return nil, err
		}
		flips += n
		writes, err := sent.writes(ctx)
		if err != nil {
			return nil, err
		}
		most = max(most, writes)
		drift, err := object.drift(ctx)
		if err != nil {
			return nil, err
		}
		for _, d := range drift {
			named, message = named || strings.Contains(d.Message, foreigner), d.Message
		}
	}
	took := time.Since(began).Seconds()
	cost, err := meter.Stop(ctx)
	if err != nil {
		return nil, err
	}
	says := report.Figure{What: what + ": the status names the other writer", Value: "no", Aim: "yes", Met: named}
	if named {
		says.Value = "yes"
	}
	return []report.Figure{
		report.AtMost(fmt.Sprintf("%s: writes of the manager, the most in %s", what, window), float64(most), 1, "%.0f"),
		says,
		report.Told(what+": the drift", "%s", cmp.Or(message, "none")),
		report.Told(what+": requests at the apiserver, the foreign writer's among them", "%s", listed(cost.Requests)),
		report.Told(what+": flips a second; share of a core of the manager", "%.0f; %.1f %%", float64(flips)/took, 100*cost.Manager/took),
	}, nil
}

// listed lists requests by kind.
func listed(r env.Requests) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		out = append(out, fmt.Sprintf("%d %s", r[name], name))
	}
	return strings.Join(out, ", ")
}

// flip changes the field to and fro for a time, 50 times a second, and returns how often.
func flip(ctx context.Context, p *plane.Plane, key types.NamespacedName, d time.Duration) (int, error) {
	tick := time.NewTicker(time.Second / 50)
	defer tick.Stop()
	end := time.Now().Add(d)
	for n := 0; ; n++ {
		if time.Now().After(end) {
			return n, nil
		}
		value := "a"
		if n%2 == 0 {
			value = "z"
		}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"`+value+`"}}`))
		if err := p.Patch(ctx, object, patch, client.FieldOwner(foreigner)); err != nil {
			return n, err
		}
		select {
		case <-ctx.Done():
			return n, ctx.Err()
		case <-tick.C:
		}
	}
}
