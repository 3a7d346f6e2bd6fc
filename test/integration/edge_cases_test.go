package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
)

// stuck deploys a web whose pods never come, with a plan of its own for parameter A.
func stuck(t testing.TB, ns string) *v1beta1.OperatorVersion {
	t.Helper()
	ov := web(ns, gen.Param("A", "1", "plan-a"), gen.Task("done", "Dummy", v1beta1.TaskSpec{Done: true}), gen.Serial("plan-a", "done"))
	env.Must(t, cluster.Create(context.Background(), ov))
	env.Must(t, cluster.Create(context.Background(), gen.Instance("i", ov, map[string]string{"IMAGE": "does-not-exist:1"})))
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

var _ = It("A queued plan waits for an OperatorVersion that has gone, says so, and runs when it is back", Label("queue-without-version"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := stuck(t, ns)
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters["A"] = "2" }))
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return len(i.Status.Queue) == 1 })
	env.Must(t, cluster.Delete(context.Background(), ov))
	kudo(t, 0, "plan", "cancel", "--instance", "i", "-n", ns)
	await(t, ns, "i", notReady(v1beta1.ReasonOperatorVersionNotFound))
	ov.ResourceVersion, ov.UID = "", ""
	env.Must(t, cluster.Create(context.Background(), ov))
	status(t, await(t, ns, "i", env.PlanEnded("plan-a", 2)), "plan-a", v1beta1.Complete)
})

var _ = It("Commands that need the OperatorVersion of an Instance say what to do when it does not exist any more", Label("commands-without-version"), func() {
	t := GinkgoTB()
	ns, dir := cluster.NewNamespace(t), filepath.Join(sourcetree.Root(), "operators", "catalog", "hello", "operator")
	kudo(t, 0, "install", dir, "--instance", "i", "-n", ns, "--wait")
	ov := get(t, &v1beta1.Instance{}, ns, "i").OperatorVersionKey()
	env.Must(t, cluster.Delete(t.Context(), &v1beta1.OperatorVersion{ObjectMeta: gen.Meta(ov.Namespace, ov.Name)}))
	want := "instance " + ns + "/i names operatorversion " + ov.String() + ", which does not exist: install it again (kubectl kudo install PACKAGE --skip-instance -n " + ns + "), " +
		"move the instance to another version (kubectl kudo upgrade PACKAGE --instance i -n " + ns + "), or remove it (kubectl kudo uninstall --instance i -n " + ns + ")"
	for _, args := range [][]string{{"update", "-p", "NAME=x"}, {"upgrade", dir}, {"plan", "trigger", "--name", "deploy"}, {"account", "create", "-y"}} {
		contains(t, kudo(t, 1, append(args, "--instance", "i", "-n", ns)...), want)
	}
	kudo(t, 0, "install", dir, "--skip-instance", "-n", ns)
	kudo(t, 0, "plan", "trigger", "--name", "deploy", "--instance", "i", "-n", ns)
	await(t, ns, "i", env.PlanEnded("deploy", 2))
})

var _ = It("A plan that is cancelled is shown as ended, though the OperatorVersion that comes next is not there", Label("cancel-without-version"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	stuck(t, ns)
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "missing" }))
	kudo(t, 0, "plan", "cancel", "--instance", "i", "-n", ns)
	i := await(t, ns, "i", notReady(v1beta1.ReasonOperatorVersionNotFound))
	if i.Status.AggregatedStatus.Status != v1beta1.FatalError {
		t.Errorf("aggregated status is %+v", i.Status.AggregatedStatus)
	}
})

var _ = It("A spec that is refused while a plan runs is shown as refused when the plan has ended", Label("refused-while-running"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ctx := context.Background()
	held := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "i-cm-0")}
	held.Finalizers, held.Labels = []string{"example.org/hold"}, map[string]string{"heritage": "kudo", "kudo.dev/instance": "i"}
	env.Must(t, cluster.Create(ctx, held))
	env.Must(t, cluster.Delete(ctx, held))
	ov := gen.Version(ns, "one", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	env.Must(t, cluster.Create(ctx, ov))
	env.Must(t, cluster.Create(ctx, gen.Instance("i", ov, nil)))
	await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, "is being deleted")
	})
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "two" }))
	env.Must(t, cluster.Create(ctx, gen.Version(ns, "two", gen.Task("done", "Dummy", v1beta1.TaskSpec{Done: true}), gen.Serial("other", "done"))))
	hasEvent(t, ns, "has none of the plans upgrade, update and deploy")
	env.Must(t, cluster.Get(ctx, client.ObjectKeyFromObject(held), held))
	held.Finalizers = nil
	env.Must(t, cluster.Update(ctx, held))
	i := await(t, ns, "i", func(i *v1beta1.Instance) bool {
		if st := i.Status; st.PlanStatus["deploy"].Status == v1beta1.Complete && st.ObservedGeneration == i.Generation && !notReady(v1beta1.ReasonInvalidSpec)(i) {
			t.Errorf("the refused spec is shown as done: %+v", st.Conditions)
		}
		return notReady(v1beta1.ReasonInvalidSpec)(i)
	})
	status(t, i, "deploy", v1beta1.Complete)
})

// ofKUDO creates an Instance whose status says that a run of a plan is going on, before its OperatorVersion is there.
func ofKUDO(t testing.TB, name, plan string, uid types.UID, ov *v1beta1.OperatorVersion) {
	t.Helper()
	i := gen.Instance(name, ov, nil)
	env.Must(t, cluster.Create(context.Background(), i))
	i = await(t, ov.Namespace, name, func(i *v1beta1.Instance) bool { return i != nil && len(i.Status.Conditions) == 1 })
	patch := client.MergeFrom(i.DeepCopy())
	i.Status = v1beta1.InstanceStatus{PlanStatus: map[string]v1beta1.PlanStatus{plan: {Name: plan, Status: v1beta1.InProgress, UID: uid}}}
	env.Must(t, cluster.Status().Patch(context.Background(), i, patch))
}

var _ = It("The status of an Instance may have been copied along with it: each goes on with its own run", func() {
	t := GinkgoTB()
	one, two := cluster.NewNamespace(t), cluster.NewNamespace(t)
	waits := web(one, func(ov *v1beta1.OperatorVersion) { *ov.Spec.Parameters[1].Default = "does-not-exist:1" })
	writes := gen.Version(two, "copy", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	for _, ov := range []*v1beta1.OperatorVersion{waits, writes} {
		ofKUDO(t, "i", "deploy", "copied", ov)
		env.Must(t, cluster.Create(context.Background(), ov))
		await(t, ov.Namespace, "i", func(i *v1beta1.Instance) bool { return i.Status.Baseline != nil })
	}
	await(t, two, "i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["deploy"].Status == v1beta1.Complete })
	get(t, &corev1.ConfigMap{}, two, "i-cm-0")
})

var _ = It("A run of a plan that the OperatorVersion does not have cannot continue, and is not complete", func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := gen.Version(ns, "renamed", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	ofKUDO(t, "i", "backup", "of-kudo", ov)
	env.Must(t, cluster.Create(context.Background(), ov))
	i := await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["backup"].Status.IsTerminal() })
	status(t, i, "backup", v1beta1.FatalError, "plan backup", "renamed")
})

var _ = It("An Instance whose cleanup failed does not hold its namespace, also if nothing else in there tells of its end", Label("failed-cleanup-in-namespace"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ctx := context.Background()
	ov := gen.Version(ns, "clean", gen.Task("done", "Dummy", v1beta1.TaskSpec{Done: true}),
		gen.Task("fail", "Dummy", v1beta1.TaskSpec{WantErr: true, Fatal: true}), gen.Serial("deploy", "done"), gen.Serial("cleanup", "fail"))
	i := deploy(t, ov, "i", nil)
	env.Must(t, cluster.Delete(ctx, i))
	await(t, ns, "i", env.PlanEnded("cleanup", 2))
	env.Must(t, cluster.Delete(ctx, ov))
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.DeletionTimestamp != nil })
	env.Must(t, cluster.Delete(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", ns)}))
	env.Eventually(t, "the namespace gone", env.Condition(func() bool {
		return apierrors.IsNotFound(cluster.Get(ctx, types.NamespacedName{Name: ns}, &corev1.Namespace{}))
	}))
})

var _ = It("A task warns once in a run, however often it is observed", func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ctx := context.Background()
	env.Must(t, cluster.Create(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "theirs")}))
	ov := gen.Version(ns, "once",
		gen.Template("mine.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n  finalizers: [example.org/hold]\n"),
		gen.Template("theirs.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: theirs\n"),
		gen.Apply("apply", "mine.yaml"), gen.Task("delete", "Delete", v1beta1.TaskSpec{Resources: []string{"theirs.yaml", "mine.yaml"}}),
		gen.Serial("deploy", "apply", "delete"))
	env.Must(t, cluster.Create(ctx, ov))
	env.Must(t, cluster.Create(ctx, gen.Instance("i", ov, nil)))
	const belongs = "theirs belongs to another client"
	hasEvent(t, ns, belongs)
	for n := range 5 {
		mine := get(t, &corev1.ConfigMap{}, ns, "mine")
		patch := client.MergeFrom(mine.DeepCopy())
		mine.Data = map[string]string{"n": fmt.Sprint(n)}
		if n == 4 {
			mine.Finalizers = nil
		}
		env.Must(t, cluster.Patch(ctx, mine, patch))
	}
	await(t, ns, "i", env.PlanEnded("deploy", 1))
	hasEvent(t, ns, "finished with status COMPLETE")
	list := &corev1.EventList{}
	env.Must(t, cluster.List(ctx, list, client.InNamespace(ns)))
	events := int32(0)
	for _, e := range list.Items {
		if strings.Contains(e.Message, belongs) {
			events += e.Count
		}
	}
	if events != 1 {
		t.Errorf("the foreign object was reported %d times", events)
	}
})

var _ = It("An Instance that can never run is denied, and the denial says why: its name is longer than a label's value may be", func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := web(ns)
	env.Must(t, cluster.Create(context.Background(), ov))
	err := cluster.Create(context.Background(), gen.Instance(strings.Repeat("i", 64), ov, nil))
	contains(t, fmt.Sprint(err), "denied the request", "longer than 63 characters")
})
