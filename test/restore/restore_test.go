package restore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// The manager of the target belongs to the test, so that all cases run in one process, one after the other.
var _ = Describe("After a restore", Ordered, ContinueOnFailure, Label("R32", "R33", "R34"), func() {
	var m *manager
	BeforeEach(func() { m = newManager(GinkgoTB()) })

	It("R32: an Instance whose objects are all there becomes Ready by a deploy run that writes their owners only", func() {
		t := GinkgoTB()
		w := newWorld(t)
		env.Must(t, source.Create(ctx, web(w.ns)))
		ready(t, gen.Instance("x", web(w.ns), nil))
		w.save(t, false)
		w.bring(t)
		m.start(t)
		w.arrive(t)
		m.settle(t)
		got := objectWrites(m.count(0))
		want := []string{"2 PATCH configmaps", "1 PATCH deployments", "1 PATCH persistentvolumeclaims", "1 PATCH secrets", "1 POST controllerrevisions"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got: %s", diff)
		}
		w.holds(t)
		w.noRollout(t)
		again(t, m)
	})

	It("R32: an Instance that is annotated as restored is taken over, and nothing runs", func() {
		t := GinkgoTB()
		w := newWorld(t)
		env.Must(t, source.Create(ctx, web(w.ns, once())))
		ready(t, gen.Instance("x", web(w.ns), nil))
		w.save(t, false)
		w.annotate = true
		w.bring(t)
		m.start(t)
		w.arrive(t)
		m.settle(t)
		got := objectWrites(m.count(0))
		want := []string{"2 PATCH configmaps", "1 PATCH deployments", "1 PATCH persistentvolumeclaims", "1 PATCH secrets", "1 POST controllerrevisions"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got: %s", diff)
		}
		w.holds(t)
		w.noRollout(t)
		i := w.instances(t)["x"]
		event(t, i, v1beta1.EventInstanceRestored, "5 objects are as plan deploy makes them and were taken over: the plan was not run")
		env.Contains(t, history(t, w, "x"), "deploy", "COMPLETE", "restored")
		for _, name := range []string{"x-init", "x-scratch"} {
			for _, obj := range []*unstructured.Unstructured{object("batch/v1", "Job", w.place(), name), object("v1", "ConfigMap", w.place(), name)} {
				if err := target.Get(ctx, client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("%s %s was created: %v", obj.GetKind(), name, err)
				}
			}
		}
		again(t, m)

		By("an update runs as usual")
		patch(t, i, `{"spec":{"parameters":{"VALUE":"b"}}}`)
		_, err := target.Await(ctx, w.place(), "x", env.DefaultTimeout, env.PlanEnded("deploy", 2))
		env.Must(t, err)
	})

	It("R32: objects that are missing or differ are named, and nothing is written until they are there or the annotation is removed", func() {
		t := GinkgoTB()
		w := newWorld(t)
		env.Must(t, source.Create(ctx, web(w.ns)))
		ready(t, gen.Instance("x", web(w.ns), nil), gen.Instance("z", web(w.ns), nil))
		w.save(t, false)
		w.annotate = true
		var late []*unstructured.Unstructured
		w.objects = slices.DeleteFunc(w.objects, func(obj *unstructured.Unstructured) bool {
			lost := obj.GetName() == "x-data" || obj.GetName() == "z-cm-0"
			if lost {
				late = append(late, obj)
			}
			if obj.GetName() == "x-cm-1" {
				obj.Object["data"] = map[string]any{"key": "other"}
			}
			return lost
		})
		w.bring(t)
		m.start(t)
		for name, texts := range map[string][]string{
			"x": {"PersistentVolumeClaim " + w.ns + "/x-data does not exist", "ConfigMap " + w.ns + "/x-cm-1 differs in .data.key"},
			"z": {"ConfigMap " + w.ns + "/z-cm-0 does not exist"},
		} {
			i, err := target.Await(ctx, w.ns, name, env.DefaultTimeout, func(i *v1beta1.Instance) bool {
				return i != nil && condition(i, v1beta1.ReadyCondition) != nil && condition(i, v1beta1.ReadyCondition).Reason == v1beta1.ReasonObjectsNotRestored
			})
			env.Must(t, err)
			env.Contains(t, condition(i, v1beta1.ReadyCondition).Message, append(texts, "Restore them, or remove the annotation")...)
			event(t, i, v1beta1.EventObjectsNotRestored, texts...)
			if i.Status.Baseline != nil {
				t.Errorf("Instance %s has a baseline: %v", name, i.Status.Baseline)
			}
		}
		if wrote := objectWrites(m.count(0)); len(wrote) != 0 {
			t.Errorf("the manager has written %v", wrote)
		}
		for _, obj := range late {
			if strings.HasPrefix(obj.GetName(), "z") {
				(&backup{[]*unstructured.Unstructured{obj}}).restore(t, target.Cluster, w.options)
			}
		}
		_, err := target.Await(ctx, w.ns, "z", env.DefaultTimeout, isReady)
		env.Must(t, err)
		patch(t, w.instances(t)["x"], `{"metadata":{"annotations":{"kudo.dev/restored":null}}}`)
		x, err := target.Await(ctx, w.ns, "x", env.DefaultTimeout, isReady)
		env.Must(t, err)
		event(t, x, v1beta1.EventPlanStarted, "Execution of plan deploy started")
		env.Contains(t, history(t, w, "x"), "instance created")

		By("the annotation means nothing once a run is recorded")
		m.settle(t)
		m.count(0)
		env.Must(t, target.Delete(ctx, object("v1", "ConfigMap", w.ns, "x-cm-1")))
		patch(t, x, `{"metadata":{"annotations":{"kudo.dev/restored":"true"}},"spec":{"parameters":{"VALUE":"c"}}}`)
		_, err = target.Await(ctx, w.ns, "x", env.DefaultTimeout, env.PlanEnded("deploy", 2))
		env.Must(t, err)
		env.Contains(t, history(t, w, "x"), "parameters changed: VALUE")
	})

	It("R33: runs from before are shown, are never rolled back to, and go with the Instance", func() {
		t := GinkgoTB()
		w := newWorld(t)
		env.Must(t, source.Create(ctx, web(w.ns)))
		x := gen.Instance("x", web(w.ns), map[string]string{"VALUE": "a"})
		ready(t, x)
		for n, value := range []string{"b", "c"} {
			sourcePatch(t, x, fmt.Sprintf(`{"spec":{"parameters":{"VALUE":%q}}}`, value))
			_, err := source.Await(ctx, w.ns, "x", env.DefaultTimeout, env.PlanEnded("deploy", int64(n+2)))
			env.Must(t, err)
		}
		w.save(t, true)
		w.status = true
		w.bring(t)
		m.start(t)
		i, err := target.Await(ctx, w.ns, "x", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
			return isReady(i) && i.Status.PlanStatus["deploy"].Revision == 4
		})
		env.Must(t, err)
		event(t, i, v1beta1.EventStatusReset, "the status was that of an Instance with another uid")
		own, all := history(t, w, "x"), history(t, w, "x", "--all")
		if strings.Count(own, "deploy") != 1 || strings.Contains(own, "from before the restore") {
			t.Errorf("the history is\n%s", own)
		}
		if strings.Count(all, "from before the restore") != 3 || strings.Count(all, "deploy") != 4 {
			t.Errorf("the whole history is\n%s", all)
		}
		for _, args := range [][]string{{"rollback", "--instance", "x", "-n", w.ns}, {"rollback", "--instance", "x", "-n", w.ns, "--to-revision", "1"}} {
			if out, code := target.Kudo(args...); code == 0 {
				t.Errorf("%v succeeds: %s", args, out)
			}
		}
		again(t, m)
		env.Must(t, target.Delete(ctx, i))
		env.Eventually(t, "the deletion of the records", func() string {
			records := &unstructured.UnstructuredList{}
			records.SetAPIVersion("apps/v1")
			records.SetKind("ControllerRevisionList")
			env.Must(t, target.List(ctx, records, client.InNamespace(w.ns), client.MatchingLabels{v1beta1.InstanceLabel: "x"}))
			if len(records.Items) > 0 {
				return fmt.Sprintf("%d records", len(records.Items))
			}
			return ""
		})
	})

	DescribeTable("R34: nothing is lost, and a second manager writes nothing:",
		func(c fleetCase) { c.run(GinkgoTB(), m) },
		Entry("20 Instances and 5 install plans, created while the manager runs", fleetCase{versions: 5, each: 4, running: true}),
		Entry("with status, the manager started last", fleetCase{versions: 2, each: 2, status: true}),
		Entry("with status, to another namespace while the manager runs", fleetCase{versions: 2, each: 2, status: true, moved: true, running: true}),
		Entry("the manager killed at random writes", fleetCase{versions: 2, each: 2, kills: 4}),
		Entry("annotated, with status, the manager killed at random writes", fleetCase{versions: 2, each: 2, kills: 4, annotate: true, status: true}),
	)

	DescribeTable("R34: packages of the catalog come back, by their plans and taken over, with a manager that is killed", Label("catalog"),
		func(c catalogCase) { c.run(GinkgoTB(), m) },
		Entry("at random writes: all packages", catalogCase{most: 20}),
		killedAtEachWrite(),
	)
})

// fleetCase is a case of the table.
type fleetCase struct {
	versions, each                   int
	status, running, moved, annotate bool
	// kills are how often the manager is killed.
	kills int
}

func (c fleetCase) run(t testing.TB, m *manager) {
	t.Helper()
	w := newWorld(t)
	w.status, w.annotate = c.status, c.annotate
	var all []*v1beta1.Instance
	for v := range c.versions {
		ov := w.fleet(fmt.Sprintf("fleet-%d", v))
		env.Must(t, source.Create(ctx, ov))
		for n := range c.each {
			all = append(all, gen.Instance(fmt.Sprintf("i-%d-%d", v, n), ov, map[string]string{"VALUE": fmt.Sprint(n)}))
		}
	}
	ready(t, all...)
	env.Must(t, source.Create(ctx, w.flagship("kept")))
	if c.moved {
		w.to = map[string]string{w.ns: w.ns + "-moved"}
	}
	w.save(t, false)
	if c.running {
		m.start(t)
	}
	w.bring(t)
	for n := range c.kills {
		m.count(1 + w.random.IntN(16))
		m.start(t)
		if !m.died(t, func() string { return w.pending(t) }) {
			GinkgoWriter.Printf("the manager is idle after %d kills\n", n)
			break
		}
	}
	m.count(0)
	if !c.running {
		m.start(t)
	}
	w.arrive(t)
	w.holds(t)
	again(t, m)
}

// flagship is a custom resource that no Instance has.
func (w *world) flagship(name string) *unstructured.Unstructured {
	ship := object(w.word+".example.com/v1", "Ship", w.ns, name)
	ship.Object["spec"] = map[string]any{"size": int64(9)}
	return ship
}

// noRollout checks that the pods of a Deployment were not replaced: there is one ReplicaSet.
func (w *world) noRollout(t testing.TB) {
	t.Helper()
	sets := &appsv1.ReplicaSetList{}
	env.Must(t, target.List(ctx, sets, client.InNamespace(w.place())))
	if len(sets.Items) != 1 {
		t.Errorf("there are %d ReplicaSets", len(sets.Items))
	}
}

// objectWrites are the writes but those of kudo's own kinds.
func objectWrites(counts map[string]int) []string {
	for name := range counts {
		for _, own := range []string{" instances", " operatorversions", " installations"} {
			if strings.Contains(name, own) {
				delete(counts, name)
			}
		}
	}
	return list(counts)
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

func patch(t testing.TB, i *v1beta1.Instance, text string) {
	t.Helper()
	env.Must(t, target.Patch(ctx, i.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text))))
}

func sourcePatch(t testing.TB, i *v1beta1.Instance, text string) {
	t.Helper()
	env.Must(t, source.Patch(ctx, i.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text))))
}

// history is what plan history prints in the target.
func history(t testing.TB, w *world, instance string, args ...string) string {
	t.Helper()
	return target.MustKudo(t, 0, append([]string{"plan", "history", "--instance", instance, "-n", w.place()}, args...)...)
}
