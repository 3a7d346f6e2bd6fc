package workload

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/bench/compare/fixture"
	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/gen"
)

func controllers() Workload {
	return Workload{
		Name: "controllers", Title: "Installing objects by controllers",
		About: `N ConfigMaps of three values each, from the request that declares them until the status says that they are there, on a control plane
without controllers of workloads, where both managers run:

| controller | install | again, unchanged | one changed |
|------------|---------|------------------|-------------|
| kudo | an Instance | its plan is requested | a parameter |
| kustomize-controller | a Kustomization | its reconciliation is requested | another artifact |

kudo renders N templates, Flux reads rendered objects from an archive. Flux's source-controller does not run: the archive and the source that names it
are there before. Its limits on requests are those of kudo, and it applies 16 objects at a time.`,
		Run: runControllers,
	}
}

// declaration is an object that declares others, and the requests of its three cases.
type declaration struct {
	object *unstructured.Unstructured
	cases  []declaredCase
}

// declaredCase is a request, and what the status of the declaration says when what it asks for is done.
type declaredCase struct {
	request func(ctx context.Context) error
	isDone  func(u *unstructured.Unstructured) bool
}

// controller applies what is declared.
type controller struct {
	name    string
	declare func(ctx context.Context, ns string, n int) (*declaration, error)
	// cpu returns the CPU time of the controller, in seconds.
	cpu func() (float64, error)
}

func runControllers(ctx context.Context, b *Bench, s *report.Section) error {
	program := filepath.Join(b.Dir, "kustomize-controller")
	if err := b.Build("flux", program, "github.com/fluxcd/kustomize-controller"); err != nil {
		return fmt.Errorf("build kustomize-controller: %w", err)
	}
	return b.on("api", func(p *plane.Plane) error {
		f, err := startFlux(ctx, p, program, b.Dir)
		if err != nil {
			return err
		}
		defer f.stop()
		manager, err := p.PID("manager")
		if err != nil {
			return err
		}
		all := []controller{
			{"kudo", declareByKudo(p), func() (float64, error) { return plane.CPU(manager) }},
			{"kustomize-controller", f.declare, f.cpu},
		}
		for _, n := range b.Sizes.Counts {
			for round := range b.Sizes.Rounds {
				for i := range all {
					c := all[(i+round)%len(all)]
					b.Say("%d objects, round %d of %d: %s", n, round+1, b.Sizes.Rounds, c.name)
					if err := measureController(ctx, p, table{s}, n, c); err != nil {
						return err
					}
				}
			}
			order(s, n, []string{all[0].name, all[1].name})
		}
		s.Figures = append(s.Figures, s.Faster()...)
		return nil
	})
}

// measureController has a controller install, apply again and change objects in a namespace of their own.
func measureController(ctx context.Context, p *plane.Plane, t table, n int, c controller) error {
	ns, err := p.NewNamespace(ctx)
	if err != nil {
		return err
	}
	d, err := c.declare(ctx, ns, n)
	if err != nil {
		return err
	}
	for i, one := range d.cases {
		sample, err := d.measure(ctx, p, one, c)
		if err != nil {
			return fmt.Errorf("%s with %d objects, %s: %w", c.name, n, cases()[i], err)
		}
		t.add(cases()[i], n, c.name, sample)
	}
	if n < crowded {
		return nil
	}
	if err := p.Delete(ctx, d.object); err != nil {
		return err
	}
	err = plane.Poll(ctx, 10*time.Minute, "the end of "+d.object.GetKind()+" "+d.object.GetName(), func() (bool, error) {
		err := p.Get(ctx, client.ObjectKeyFromObject(d.object), d.object.DeepCopy())
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return p.DeleteNamespace(ctx, ns)
}

// measure sends a request, and waits until a watch shows that what it asks for is done.
func (d *declaration) measure(ctx context.Context, p *plane.Plane, one declaredCase, c controller) (report.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(d.object.GroupVersionKind())
	meter, err := p.Meter(ctx)
	if err != nil {
		return report.Sample{}, err
	}
	before, err := c.cpu()
	if err != nil {
		return report.Sample{}, err
	}
	events, err := p.Watch(ctx, list, client.InNamespace(d.object.GetNamespace()))
	if err != nil {
		return report.Sample{}, err
	}
	defer events.Stop()
	began := time.Now()
	if err := one.request(ctx); err != nil {
		return report.Sample{}, err
	}
	for e := range events.ResultChan() {
		if u, ok := e.Object.(*unstructured.Unstructured); !ok || u.GetName() != d.object.GetName() || !one.isDone(u) {
			continue
		}
		sample := report.Sample{Seconds: time.Since(began).Seconds()}
		cost, err := meter.Stop(ctx)
		if err != nil {
			return report.Sample{}, err
		}
		after, err := c.cpu()
		sample.ToolCPU, sample.ServerCPU = after-before, cost.Server
		sample.Requests, sample.Writes, sample.Objects = cost.Requests.Total(), cost.Requests.Writes(), cost.Requests.Of("configmaps")
		return sample, err
	}
	return report.Sample{}, errors.Join(errors.New("the watch has ended"), ctx.Err())
}

// patch returns a request that merges a patch into an object.
func patch(p *plane.Plane, object *unstructured.Unstructured, merge string) func(context.Context) error {
	return func(ctx context.Context) error {
		return p.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(merge)))
	}
}

// create returns a request that creates an object.
func create(p *plane.Plane, object *unstructured.Unstructured) func(context.Context) error {
	return func(ctx context.Context) error { return p.Create(ctx, object.DeepCopy()) }
}

// object returns an object with a spec.
func object(kind schema.GroupVersionKind, ns, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

// declareByKudo returns a function that creates an OperatorVersion of n objects, and returns the requests of an Instance.
func declareByKudo(p *plane.Plane) func(ctx context.Context, ns string, n int) (*declaration, error) {
	return func(ctx context.Context, ns string, n int) (*declaration, error) {
		ov := gen.Version(ns, "many", gen.Param("ALL", "a", ""), gen.Param("ONE", "original", ""), gen.Apply("all", "all.yaml"), gen.Serial(v1beta1.DeployPlan, "all"),
			gen.Template("all.yaml", fixture.Text(n, "{{ .Name }}", "{{ .Params.ALL | quote }}", "{{ .Params.ONE | quote }}")))
		if err := p.Create(ctx, ov); err != nil {
			return nil, err
		}
		instance := object(v1beta1.GroupVersion.WithKind("Instance"), ns, "bench", map[string]any{"operatorVersion": map[string]any{"name": ov.Name}})
		ended := func(run int64) func(*unstructured.Unstructured) bool {
			return func(u *unstructured.Unstructured) bool {
				revision, _, _ := unstructured.NestedInt64(u.Object, "status", "planStatus", v1beta1.DeployPlan, "revision")
				status, _, _ := unstructured.NestedString(u.Object, "status", "planStatus", v1beta1.DeployPlan, "status")
				return revision == run && status == string(v1beta1.Complete)
			}
		}
		return &declaration{instance, []declaredCase{
			{create(p, instance), ended(1)},
			{patch(p, instance, `{"spec":{"planExecution":{"planName":"deploy","uid":"again"}}}`), ended(2)},
			{patch(p, instance, `{"spec":{"parameters":{"ONE":"`+fixture.Changed+`"}}}`), ended(3)},
		}}, nil
	}
}
