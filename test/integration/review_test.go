package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// stuck deploys a web whose pods never come, with a plan of its own for parameter A.
func stuck(t *testing.T, ns string) *v1beta1.OperatorVersion {
	t.Helper()
	ov := web(ns, gen.Param("A", "1", "plan-a"), gen.Task("done", "Dummy", v1beta1.TaskSpec{Done: true}), gen.Serial("plan-a", "done"))
	must(t, cluster.Create(context.Background(), ov))
	must(t, cluster.Create(context.Background(), gen.Instance("i", ov, map[string]string{"IMAGE": "does-not-exist:1"})))
	await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, "Deployment")
	})
	return ov
}

// notReady is a predicate: Ready is False for a reason, and no plan counts as running.
func notReady(reason string) func(*v1beta1.Instance) bool {
	return func(i *v1beta1.Instance) bool {
		c := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		return c != nil && c.Status == "False" && c.Reason == reason && i.Status.AggregatedStatus.ActivePlanName == ""
	}
}

// A queued plan waits for an OperatorVersion that has gone, says so, and runs when it is back.
func TestQueueWithoutVersion(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	ov := stuck(t, ns)
	must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters["A"] = "2" }))
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return len(i.Status.Queue) == 1 })
	must(t, cluster.Delete(context.Background(), ov))
	kudo(t, 0, "plan", "cancel", "--instance", "i", "-n", ns)
	await(t, ns, "i", notReady(v1beta1.ReasonOperatorVersionNotFound))
	ov.ResourceVersion, ov.UID = "", ""
	must(t, cluster.Create(context.Background(), ov))
	status(t, await(t, ns, "i", env.Ended("plan-a", 2)), "plan-a", v1beta1.Complete)
}

// A plan that is cancelled is shown as ended, though the OperatorVersion that comes next is not there.
func TestCancelWithoutVersion(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	stuck(t, ns)
	must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "missing" }))
	kudo(t, 0, "plan", "cancel", "--instance", "i", "-n", ns)
	i := await(t, ns, "i", notReady(v1beta1.ReasonOperatorVersionNotFound))
	if i.Status.AggregatedStatus.Status != v1beta1.FatalError {
		t.Errorf("aggregated status is %+v", i.Status.AggregatedStatus)
	}
}

// A spec that is refused while a plan runs is shown as refused when the plan has ended.
func TestRefusedWhileRunning(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	ctx := context.Background()
	held := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "i-cm-0")}
	held.Finalizers, held.Labels = []string{"example.org/hold"}, map[string]string{"heritage": "kudo", "kudo.dev/instance": "i"}
	must(t, cluster.Create(ctx, held))
	must(t, cluster.Delete(ctx, held))
	ov := gen.Version(ns, "one", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	must(t, cluster.Create(ctx, ov))
	must(t, cluster.Create(ctx, gen.Instance("i", ov, nil)))
	await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, "is being deleted")
	})
	must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "two" }))
	must(t, cluster.Create(ctx, gen.Version(ns, "two", gen.Task("done", "Dummy", v1beta1.TaskSpec{Done: true}), gen.Serial("other", "done"))))
	hasEvent(t, ns, "has none of the plans upgrade, update and deploy")
	must(t, cluster.Get(ctx, client.ObjectKeyFromObject(held), held))
	held.Finalizers = nil
	must(t, cluster.Update(ctx, held))
	i := await(t, ns, "i", func(i *v1beta1.Instance) bool {
		if st := i.Status; st.PlanStatus["deploy"].Status == v1beta1.Complete && st.ObservedGeneration == i.Generation && !notReady(v1beta1.ReasonInvalidSpec)(i) {
			t.Errorf("the refused spec is shown as done: %+v", st.Conditions)
		}
		return notReady(v1beta1.ReasonInvalidSpec)(i)
	})
	status(t, i, "deploy", v1beta1.Complete)
}

// ofKUDO creates an Instance whose status says that a run of a plan is going on, before its OperatorVersion is there.
func ofKUDO(t *testing.T, name, plan string, uid types.UID, ov *v1beta1.OperatorVersion) {
	t.Helper()
	i := gen.Instance(name, ov, nil)
	must(t, cluster.Create(context.Background(), i))
	i = await(t, ov.Namespace, name, func(i *v1beta1.Instance) bool { return i != nil && len(i.Status.Conditions) == 1 })
	patch := client.MergeFrom(i.DeepCopy())
	i.Status = v1beta1.InstanceStatus{PlanStatus: map[string]v1beta1.PlanStatus{plan: {Name: plan, Status: v1beta1.InProgress, UID: uid}}}
	must(t, cluster.Status().Patch(context.Background(), i, patch))
}

// The status of an Instance may have been copied along with it: each goes on with its own run.
func TestCopiedStatus(t *testing.T) {
	t.Parallel()
	one, two := namespace(t), namespace(t)
	waits := web(one, func(ov *v1beta1.OperatorVersion) { *ov.Spec.Parameters[1].Default = "does-not-exist:1" })
	writes := gen.Version(two, "copy", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	for _, ov := range []*v1beta1.OperatorVersion{waits, writes} {
		ofKUDO(t, "i", "deploy", "copied", ov)
		must(t, cluster.Create(context.Background(), ov))
		await(t, ov.Namespace, "i", func(i *v1beta1.Instance) bool { return i.Status.Baseline != nil })
	}
	await(t, two, "i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["deploy"].Status == v1beta1.Complete })
	get(t, &corev1.ConfigMap{}, two, "i-cm-0")
}

// A run of a plan that the OperatorVersion does not have cannot go on, and is not complete.
func TestRunOfUnknownPlan(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	ov := gen.Version(ns, "renamed", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	ofKUDO(t, "i", "backup", "of-kudo", ov)
	must(t, cluster.Create(context.Background(), ov))
	i := await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["backup"].Status.IsTerminal() })
	status(t, i, "backup", v1beta1.FatalError, "plan backup", "renamed")
}

// An Instance whose cleanup failed does not hold its namespace, also if nothing else in there tells of its end.
func TestFailedCleanupInNamespace(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	ctx := context.Background()
	ov := gen.Version(ns, "clean", gen.Task("done", "Dummy", v1beta1.TaskSpec{Done: true}),
		gen.Task("fail", "Dummy", v1beta1.TaskSpec{WantErr: true, Fatal: true}), gen.Serial("deploy", "done"), gen.Serial("cleanup", "fail"))
	i := deploy(t, ov, "i", nil)
	must(t, cluster.Delete(ctx, i))
	await(t, ns, "i", env.Ended("cleanup", 2))
	must(t, cluster.Delete(ctx, ov))
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.DeletionTimestamp != nil })
	must(t, cluster.Delete(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", ns)}))
	eventually(t, "the namespace gone", func() bool {
		return apierrors.IsNotFound(cluster.Get(ctx, types.NamespacedName{Name: ns}, &corev1.Namespace{}))
	})
}

// What a task warns of is told once in a run, however often the task is looked at.
func TestWarnedOnce(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	ctx := context.Background()
	must(t, cluster.Create(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "theirs")}))
	ov := gen.Version(ns, "once",
		gen.Template("mine.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n  finalizers: [example.org/hold]\n"),
		gen.Template("theirs.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: theirs\n"),
		gen.Apply("apply", "mine.yaml"), gen.Task("delete", "Delete", v1beta1.TaskSpec{Resources: []string{"theirs.yaml", "mine.yaml"}}),
		gen.Serial("deploy", "apply", "delete"))
	must(t, cluster.Create(ctx, ov))
	must(t, cluster.Create(ctx, gen.Instance("i", ov, nil)))
	const belongs = "theirs belongs to somebody else"
	hasEvent(t, ns, belongs)
	for n := range 5 {
		mine := get(t, &corev1.ConfigMap{}, ns, "mine")
		patch := client.MergeFrom(mine.DeepCopy())
		mine.Data = map[string]string{"n": fmt.Sprint(n)}
		if n == 4 {
			mine.Finalizers = nil
		}
		must(t, cluster.Patch(ctx, mine, patch))
	}
	await(t, ns, "i", env.Ended("deploy", 1))
	hasEvent(t, ns, "finished with status COMPLETE")
	list := &corev1.EventList{}
	must(t, cluster.List(ctx, list, client.InNamespace(ns)))
	told := int32(0)
	for _, e := range list.Items {
		if strings.Contains(e.Message, belongs) {
			told += e.Count
		}
	}
	if told != 1 {
		t.Errorf("the foreign object was told of %d times", told)
	}
}

// An Instance that can never run is denied, and the denial says why: its name is longer than a label's value may be.
func TestLongName(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	ov := web(ns)
	must(t, cluster.Create(context.Background(), ov))
	err := cluster.Create(context.Background(), gen.Instance(strings.Repeat("i", 64), ov, nil))
	contains(t, fmt.Sprint(err), "denied the request", "longer than 63 characters")
}
