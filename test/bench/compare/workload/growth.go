package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/bench/compare/plane"
	"kudo.dev/kudo/test/bench/compare/report"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// maxExponent is the aim for each exponent of growth: 1 is a cost in proportion to the size, and 2 its square.
const maxExponent = 1.1

// growthLimit bounds the time of a measurement at one size.
const growthLimit = 10 * time.Minute

func growth() Workload {
	return Workload{
		Name: "growth", Title: "Cost against size",
		About: `One thing grows at a time, to four sizes, each on a control plane without controllers of workloads. *tool CPU* is that of the
manager. The exponent is that between the two largest sizes, where what is the same for each size counts least: 1 is a cost in proportion
to the size, 2 its square. Objects are ConfigMaps. A step waits for the one before it, and a child is an Instance that a KudoOperator task creates, which
applies one ConfigMap. Parameters, and the bytes of one parameter, are given to ten Instances one after the other, whose ConfigMap has their length or their number. Revisions are changes
of one Instance, one after the other. Each holder of a shared object is an entry in the list of its owners, so that the object grows, and
is written once for each: the bare client writes these entries, and nothing else.`,
		Run: runGrowth,
	}
}

// dimension is one of the things that grow.
type dimension struct {
	name  string
	sizes []int
	// prepare prepares the measurement of kudo.
	prepare preparation
	// floor prepares the measurement of a bare client, which sends only the requests whose cost grows faster than the size for any client. It is
	// nil if there are no such requests.
	floor preparation
}

// preparation makes the objects that exist before a measurement of size n, in a new namespace. It returns the function that is measured.
type preparation func(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error)

func runGrowth(ctx context.Context, b *Bench, s *report.Section) error {
	for _, d := range dimensions() {
		if b.Sizes.Growth < len(d.sizes) {
			d.sizes = d.sizes[:b.Sizes.Growth]
		}
		if err := b.on("api", func(p *plane.Plane) error { return d.measure(ctx, b, p, s) }); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return nil
}

// measure measures each size, and the exponents.
func (d dimension) measure(ctx context.Context, b *Bench, p *plane.Plane, s *report.Section) error {
	seconds, cpu, err := d.exponents(ctx, b, p, s, "kudo", d.prepare)
	if err != nil {
		return err
	}
	s.Figures = append(s.Figures,
		report.AtMost(d.name+": exponent of the time", seconds, maxExponent, "%.2f"),
		report.AtMost(d.name+": exponent of the CPU time of manager and apiserver", cpu, maxExponent, "%.2f"))
	if d.floor == nil {
		return nil
	}
	if seconds, cpu, err = d.exponents(ctx, b, p, s, "bare client", d.floor); err == nil {
		s.Figures = append(s.Figures, report.Told(d.name+", by a bare client: exponents of the time and of the CPU time", "%.2f, %.2f", seconds, cpu))
	}
	return err
}

// exponents measures a tool at each size. It returns the exponents of the time, and of the CPU time of manager and apiserver.
func (d dimension) exponents(ctx context.Context, b *Bench, p *plane.Plane, s *report.Section, tool string,
	prepare preparation) (seconds, cpu float64, err error) {
	if _, err := sample(ctx, p, 1, prepare); err != nil { // the first one waits for watches of new kinds
		return 0, 0, err
	}
	var samples []report.Sample
	for _, n := range d.sizes {
		b.Say("%s, %s: %d", d.name, tool, n)
		one, err := sample(ctx, p, n, prepare)
		if err != nil {
			return 0, 0, err
		}
		table{s}.add(d.name, n, tool, one)
		samples = append(samples, one)
	}
	larger, largest := len(d.sizes)-2, len(d.sizes)-1
	exponent := func(cost func(report.Sample) float64) float64 {
		return growthExponent(float64(d.sizes[larger]), float64(d.sizes[largest]), cost(samples[larger]), cost(samples[largest]))
	}
	return exponent(func(one report.Sample) float64 { return one.Seconds }),
		exponent(func(one report.Sample) float64 { return one.ToolCPU + one.ServerCPU }), nil
}

// growthExponent is the power of the size with which a cost grows between two sizes.
func growthExponent(size, larger, cost, higher float64) float64 {
	return math.Log(higher/cost) / math.Log(larger/size)
}

// sample measures one size.
func sample(ctx context.Context, p *plane.Plane, n int,
	prepare preparation) (report.Sample, error) {
	ns, err := p.NewNamespace(ctx)
	if err != nil {
		return report.Sample{}, err
	}
	run, err := prepare(ctx, p, ns, n)
	if err != nil {
		return report.Sample{}, err
	}
	meter, err := p.Meter(ctx)
	if err != nil {
		return report.Sample{}, err
	}
	began := time.Now()
	if err := run(); err != nil {
		return report.Sample{}, err
	}
	seconds := time.Since(began).Seconds()
	cost, err := meter.Stop(ctx)
	return report.Sample{
		Seconds: seconds, Requests: cost.Requests.Total(), Writes: cost.Requests.Writes(), Objects: cost.Requests.Of("configmaps"),
		ToolCPU: cost.Manager, ServerCPU: cost.Server,
	}, err
}

func dimensions() []dimension {
	return []dimension{
		{name: "objects of a step", sizes: []int{100, 320, 1000, 3200}, prepare: manyObjects},
		{name: "steps of a plan", sizes: []int{32, 100, 320, 1000}, prepare: manySteps},
		{name: "Instances of a namespace", sizes: []int{100, 320, 1000, 3200}, prepare: manyInstances},
		{name: "namespaces of an Instance each", sizes: []int{32, 100, 320, 1000}, prepare: manyNamespaces},
		{name: "OperatorVersions, with an object of an install plan and an Instance each", sizes: []int{32, 100, 320, 1000}, prepare: manyVersions("shared-%d")},
		{name: "holders of a shared object", sizes: []int{32, 100, 320, 1000}, prepare: manyVersions("shared # %d"), floor: manyOwners},
		{name: "revisions of an Instance", sizes: []int{32, 100, 320, 1000}, prepare: manyRevisions},
		{name: "parameters", sizes: []int{32, 100, 320, 1000}, prepare: manyParameters},
		{name: "KiB of a parameter", sizes: []int{8, 32, 100, 320}, prepare: longParameter},
		{name: "children of an Instance", sizes: []int{8, 16, 32, 64}, prepare: manyChildren},
		{name: "generations of children", sizes: []int{1, 2, 4, 8}, prepare: manyGenerations},
	}
}

// runEach creates Instances one after the other, and awaits each.
func runEach(ctx context.Context, p *plane.Plane, instances ...*v1beta1.Instance) error {
	for _, i := range instances {
		if err := p.Create(ctx, i); err != nil {
			return err
		}
		if _, err := p.Await(ctx, i.Namespace, i.Name, growthLimit, env.PlanEnded(v1beta1.DeployPlan, 1)); err != nil {
			return err
		}
	}
	return nil
}

// createAll creates objects, 16 at a time.
func createAll[T client.Object](ctx context.Context, p *plane.Plane, objects []T) error {
	failed := make([]error, len(objects))
	slots := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i, object := range objects {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			failed[i] = p.Create(ctx, object)
		})
	}
	all.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func manyObjects(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error) {
	ov := gen.Version(ns, "objects", gen.Param("COUNT", "1", ""), gen.Apply("all", "all.yaml"), gen.Serial(v1beta1.DeployPlan, "all"), gen.Template("all.yaml",
		"{{ range $i := until (int .Params.COUNT) }}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ $.Name }}-{{ $i }}\"}\ndata: {key: value}\n{{ end }}"))
	return func() error {
		return runEach(ctx, p, gen.Instance("i", ov, map[string]string{"COUNT": strconv.Itoa(n)}))
	}, p.Create(ctx, ov)
}

func manySteps(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error) {
	tasks := make([]string, n)
	for i := range tasks {
		tasks[i] = "one"
	}
	ov := gen.Version(ns, "steps", gen.Apply("one", "one.yaml"), gen.Serial(v1beta1.DeployPlan, tasks...),
		gen.Template("one.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-{{ .StepName }}\"}\ndata: {key: value}\n"))
	return func() error { return runEach(ctx, p, gen.Instance("i", ov, nil)) }, p.Create(ctx, ov)
}

// single is an OperatorVersion whose Instances have one ConfigMap.
func single(ns, name string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	return gen.Version(ns, name, append(mods, gen.Param("VALUE", "a", ""), gen.ConfigMaps("one", 1), gen.Serial(v1beta1.DeployPlan, "one"))...)
}

func manyInstances(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error) {
	ov := single(ns, "single")
	c := &crowd{plane: p, namespace: ns, instance: instancesOf(ov), writers: 16, say: func(string, ...any) {}}
	return func() error {
		_, _, err := c.come(ctx, 0, n)
		return err
	}, p.Create(ctx, ov)
}

func manyNamespaces(ctx context.Context, p *plane.Plane, _ string, n int) (func() error, error) {
	versions := make([]*v1beta1.OperatorVersion, n)
	for i := range n {
		ns, err := p.NewNamespace(ctx)
		if err != nil {
			return nil, err
		}
		versions[i] = single(ns, "single")
	}
	return comeWith(ctx, p, "", versions), nil
}

// manyVersions returns a dimension of OperatorVersions that install a ConfigMap, whose name an expression of Go's fmt makes from their number.
func manyVersions(object string) preparation {
	return func(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error) {
		versions := make([]*v1beta1.OperatorVersion, n)
		for i := range n {
			versions[i] = single(ns, fmt.Sprintf("v%d", i), gen.Apply("share", "share.yaml"), gen.Serial("install", "share"), gen.InstallPlan("install"),
				gen.Template("share.yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "+object+"\n", i)))
		}
		return comeWith(ctx, p, ns, versions), nil
	}
}

// manyOwners adds owners to one object, one after the other, by the patch that kudo sends for each of them.
func manyOwners(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error) {
	shared := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "shared")}
	if err := p.Create(ctx, shared); err != nil {
		return nil, err
	}
	return func() error {
		for i := range n {
			name := fmt.Sprintf("%s-v%d-%08x", ns, i, i)
			owner := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: name, UID: uuid.NewUUID()}
			add := map[string]any{"op": "add", "path": "/metadata/ownerReferences/-", "value": owner}
			if i == 0 {
				add["path"], add["value"] = "/metadata/ownerReferences", []metav1.OwnerReference{owner}
			}
			patch, err := json.Marshal([]map[string]any{{"op": "test", "path": "/metadata/uid", "value": shared.UID}, add})
			if err != nil {
				return err
			}
			if err := p.Patch(ctx, shared, client.RawPatch(types.JSONPatchType, patch)); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// comeWith returns a function that creates OperatorVersions, and an Instance of each, and awaits the Instances. ns is the namespace of all, or empty.
func comeWith(ctx context.Context, p *plane.Plane, ns string, versions []*v1beta1.OperatorVersion) func() error {
	c := &crowd{plane: p, namespace: ns, instance: func(n int) *v1beta1.Instance { return instancesOf(versions[n])(n) }, writers: 16, say: func(string, ...any) {}}
	return func() error {
		if err := createAll(ctx, p, versions); err != nil {
			return err
		}
		_, _, err := c.come(ctx, 0, len(versions))
		return err
	}
}

func manyRevisions(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error) {
	ov := single(ns, "single")
	if err := p.Create(ctx, ov); err != nil {
		return nil, err
	}
	if err := runEach(ctx, p, gen.Instance("i", ov, nil)); err != nil {
		return nil, err
	}
	return func() error {
		for i := range n {
			instance := gen.Instance("i", ov, nil)
			if err := p.Get(ctx, client.ObjectKeyFromObject(instance), instance); err != nil {
				return err
			}
			base := client.MergeFrom(instance.DeepCopy())
			instance.Spec.Parameters = map[string]string{"VALUE": strconv.Itoa(i)}
			if err := p.Patch(ctx, instance, base); err != nil {
				return err
			}
			if _, err := p.Await(ctx, ns, "i", growthLimit, env.PlanEnded(v1beta1.DeployPlan, int64(i+2))); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// parameterInstances is how many Instances get parameters. A single Instance costs too little to be measured.
const parameterInstances = 10

func manyParameters(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error) {
	values, mods := map[string]string{}, []gen.VersionMod{}
	for i := range n {
		name := fmt.Sprintf("P%d", i)
		values[name], mods = strconv.Itoa(i), append(mods, gen.Param(name, "a", ""))
	}
	return withParameters(ctx, p, ns, values, "{{ len .Params }}", mods)
}

func longParameter(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error) {
	return withParameters(ctx, p, ns, map[string]string{"TEXT": strings.Repeat("x", n<<10)}, "{{ len .Params.TEXT }}", []gen.VersionMod{gen.Param("TEXT", "a", "")})
}

func withParameters(ctx context.Context, p *plane.Plane, ns string, values map[string]string, text string, mods []gen.VersionMod) (func() error, error) {
	ov := gen.Version(ns, "parameters", append(mods, gen.Apply("one", "one.yaml"), gen.Serial(v1beta1.DeployPlan, "one"),
		gen.Template("one.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}\"}\ndata: {key: \""+text+"\"}\n"))...)
	var instances []*v1beta1.Instance
	for i := range parameterInstances {
		instances = append(instances, gen.Instance(fmt.Sprintf("i%d", i), ov, values))
	}
	return func() error { return runEach(ctx, p, instances...) }, p.Create(ctx, ov)
}

// parent is an OperatorVersion whose Instances have children of others, all in one step.
func parent(ns, name string, children ...gen.VersionMod) *v1beta1.OperatorVersion {
	ov := gen.Version(ns, name, children...)
	var tasks []string
	for _, task := range ov.Spec.Tasks {
		tasks = append(tasks, task.Name)
	}
	ov.Spec.Plans[v1beta1.DeployPlan] = v1beta1.Plan{Phases: []v1beta1.Phase{{Name: "main", Steps: []v1beta1.Step{{Name: "children", Tasks: tasks}}}}}
	return ov
}

// child adds a task for a child of an operator.
func child(task, operator string) gen.VersionMod {
	return gen.Task(task, v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: operator, OperatorVersion: "0.1.0", InstanceName: task})
}

func manyChildren(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error) {
	var tasks []gen.VersionMod
	for i := range n {
		tasks = append(tasks, child(fmt.Sprintf("child%d", i), "single"))
	}
	ov := parent(ns, "parent", tasks...)
	return func() error { return runEach(ctx, p, gen.Instance("i", ov, nil)) }, createAll(ctx, p, []*v1beta1.OperatorVersion{single(ns, "single-0.1.0"), ov})
}

func manyGenerations(ctx context.Context, p *plane.Plane, ns string, n int) (func() error, error) {
	ov := single(ns, "g0-0.1.0")
	versions := []*v1beta1.OperatorVersion{ov}
	for i := 1; i <= n; i++ {
		ov = parent(ns, fmt.Sprintf("g%d-0.1.0", i), child(fmt.Sprintf("child%d", i), fmt.Sprintf("g%d", i-1)))
		versions = append(versions, ov)
	}
	return func() error { return runEach(ctx, p, gen.Instance("i", ov, nil)) }, createAll(ctx, p, versions)
}
