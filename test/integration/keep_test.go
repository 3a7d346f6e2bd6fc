package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = Describe("What is annotated to be kept", Label("keep", "P25", "P26"), func() {
	annotated := func(name, annotation string) gen.VersionMod {
		return gen.Template(name+".yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  annotations: {%s}\ndata: {value: \"{{ .Params.VALUE }}\"}\n", name, annotation))
	}
	exists := func(ctx context.Context, ns, name string) bool {
		err := cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, &corev1.ConfigMap{})
		if err != nil && !apierrors.IsNotFound(err) {
			env.Must(GinkgoTB(), err)
		}
		return err == nil
	}
	keep := func(ctx context.Context, ns, name string) {
		GinkgoHelper()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1beta1.KeepAnnotation+`":"true"}}}`))
		env.Must(GinkgoTB(), cluster.Patch(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, name)}, patch))
	}
	isUnowned := func(ns, name string) func() string {
		return func() string {
			if owners := get(GinkgoTB(), &corev1.ConfigMap{}, ns, name).OwnerReferences; len(owners) > 0 {
				return fmt.Sprint(owners)
			}
			return ""
		}
	}

	It("stays when the Instance is deleted, and an Instance of the name takes it over", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "store", gen.Param("VALUE", "one", ""), annotated("kept", `kudo.dev/keep: "true"`), annotated("of-helm", "helm.sh/resource-policy: keep"),
			annotated("dropped", `kudo.dev/keep: "false"`), annotated("plain", `a: b`),
			gen.Apply("all", "kept.yaml", "of-helm.yaml", "dropped.yaml", "plain.yaml"), gen.Serial("deploy", "all"))
		status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)
		before := get(t, &corev1.ConfigMap{}, ns, "kept")
		if len(before.OwnerReferences) > 0 {
			t.Errorf("the owners are %v", before.OwnerReferences)
		}
		contains(t, kudo(t, 0, "uninstall", "--instance", "i", "-n", ns, "--wait"), "configmap kept stays, since it is annotated to be kept",
			"configmap of-helm stays")
		env.Eventually(t, "the others are deleted", env.Condition(func() bool { return !exists(ctx, ns, "dropped") && !exists(ctx, ns, "plain") }))
		if !exists(ctx, ns, "of-helm") {
			t.Error("the annotation of Helm keeps nothing")
		}
		env.Must(t, cluster.Create(ctx, gen.Instance("i", ov, map[string]string{"VALUE": "two"})))
		status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
		if after := get(t, &corev1.ConfigMap{}, ns, "kept"); after.UID != before.UID || after.Data["value"] != "two" || len(after.OwnerReferences) > 0 {
			t.Errorf("after the second installation, the object is %v", after)
		}
		hasEvent(t, ns, "ObjectsReadopted: Plan deploy took over again what was kept: ConfigMap "+ns+"/kept, ConfigMap "+ns+"/of-helm")
	})

	It("as a claim or in no namespace is taken over again by a reinstallation, with its data, which an event names", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t, v1beta1.PrivilegedLabel)
		ov := gen.Version(ns, "store", gen.Template("c.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: '{{ .Name }}'}\n"+
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n"),
			gen.Template("r.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: '{{ .Namespace }}-reader'}\n"+
				"rules: [{apiGroups: ['kudo.dev'], resources: [instances], verbs: [get]}]\n"), annotated("new", "a: b"),
			gen.Apply("all", "c.yaml", "r.yaml", "new.yaml"), gen.Param("VALUE", "one", ""), gen.Serial("deploy", "all"))
		status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)
		for _, e := range events(t, ns) {
			if strings.HasPrefix(e, v1beta1.EventObjectsReadopted) {
				t.Errorf("the first installation has taken over: %s", e)
			}
		}
		claim, role := get(t, &corev1.PersistentVolumeClaim{}, ns, "i"), &rbacv1.ClusterRole{}
		env.Must(t, cluster.Get(ctx, types.NamespacedName{Name: ns + "-reader"}, role))
		DeferCleanup(func(ctx context.Context) {
			_ = cluster.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", ns+"-reader")})
		})
		mark := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/data":"mine"}}}`))
		env.Must(t, cluster.Patch(ctx, claim, mark)) // what stands for the data: nothing but the object itself keeps it
		kudo(t, 0, "uninstall", "--instance", "i", "-n", ns, "--keep-claims", "--wait")

		env.Must(t, cluster.Create(ctx, gen.Instance("i", ov, nil)))
		status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
		after, now := get(t, &corev1.PersistentVolumeClaim{}, ns, "i"), &rbacv1.ClusterRole{}
		if after.UID != claim.UID || after.Annotations["example.com/data"] != "mine" || after.DeletionTimestamp != nil {
			t.Errorf("after the second installation, the claim is %v", after)
		}
		env.Must(t, cluster.Get(ctx, types.NamespacedName{Name: ns + "-reader"}, now))
		if now.UID != role.UID {
			t.Errorf("the ClusterRole is another one: %s, not %s", now.UID, role.UID)
		}
		hasEvent(t, ns, "ObjectsReadopted: Plan deploy took over again what was kept: PersistentVolumeClaim "+ns+"/i, ClusterRole "+ns+"-reader")
		for _, r := range get(t, &v1beta1.Instance{}, ns, "i").Status.Resources {
			if r.Kind == "PersistentVolumeClaim" && r.UID != claim.UID {
				t.Errorf("the inventory has the claim %s", r.UID)
			}
		}
	})

	It("by a user is the Instance's no more at once, also while a plan hangs, and counts as no drift", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "store", gen.Param("VALUE", "one", ""), annotated("a", "x: z"), annotated("b", "x: z"), gen.Param("HANG", "", "hang"),
			gen.Apply("all", "a.yaml", "b.yaml"), gen.Serial("deploy", "all"), gen.Task("hang", v1beta1.DummyTask, v1beta1.TaskSpec{}), gen.Serial("hang", "hang"))
		status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)
		keep(ctx, ns, "a")
		env.Eventually(t, "a has no owner", isUnowned(ns, "a"))
		hasEvent(t, ns, "ConfigMap "+ns+"/a is annotated to be kept: the Instance does not own it any more")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"VALUE":"two"}}}`))
		env.Must(t, cluster.Patch(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(ns, "i")}, patch))
		i := await(t, ns, "i", env.PlanEnded("deploy", 2))
		if message := drifted(i); message != "" {
			t.Errorf("the Instance has drifted: %s", message)
		}
		if now := get(t, &corev1.ConfigMap{}, ns, "a"); len(now.OwnerReferences) > 0 || now.Data["value"] != "two" {
			t.Errorf("after the next plan, the object is %v", now)
		}

		patch = client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"HANG":"yes"}}}`))
		env.Must(t, cluster.Patch(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(ns, "i")}, patch))
		await(t, ns, "i", func(i *v1beta1.Instance) bool { return i != nil && i.Status.AggregatedStatus.ActivePlanName == "hang" })
		keep(ctx, ns, "b")
		env.Eventually(t, "b has no owner", isUnowned(ns, "b"))
		env.Must(t, cluster.Delete(ctx, get(t, &v1beta1.Instance{}, ns, "i")))
		await(t, ns, "i", func(i *v1beta1.Instance) bool { return i == nil })
		if !exists(ctx, ns, "a") || !exists(ctx, ns, "b") {
			t.Error("an object that is kept was deleted with the Instance")
		}
	})

	It("is owned again by the next plan once it is not kept any more", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "store", gen.Param("VALUE", "one", ""), annotated("a", "x: z"), gen.Apply("all", "a.yaml"), gen.Serial("deploy", "all"))
		status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)
		keep(ctx, ns, "a")
		env.Eventually(t, "a has no owner", isUnowned(ns, "a"))
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1beta1.KeepAnnotation+`":null}}}`))
		env.Must(t, cluster.Patch(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "a")}, patch))
		kudo(t, 0, "plan", "trigger", "--instance", "i", "--name", "deploy", "-n", ns, "--wait")
		if owners := get(t, &corev1.ConfigMap{}, ns, "a").OwnerReferences; len(owners) != 1 || !*owners[0].Controller {
			t.Errorf("the owners are %v", owners)
		}
	})

	It("is not deleted by a Delete task, by a Toggle that is switched off and by an upgrade that drops it", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		boolean := func(ov *v1beta1.OperatorVersion) { ov.Spec.Parameters[1].Type = v1beta1.BooleanType }
		one := gen.Version(ns, "store-1", gen.Param("VALUE", "one", ""), gen.Param("ON", "true", ""), boolean, gen.Param("DROP", "", "drop"),
			annotated("a", `kudo.dev/keep: ""`), annotated("b", `kudo.dev/keep: ""`), annotated("c", `kudo.dev/keep: ""`),
			gen.Apply("all", "a.yaml", "c.yaml"), gen.Task("b", v1beta1.ToggleTask, v1beta1.TaskSpec{Resources: []string{"b.yaml"}, Parameter: "ON"}), gen.Serial("deploy", "all", "b"),
			gen.Task("drop", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"a.yaml"}}), gen.Serial("drop", "drop"))
		status(t, deploy(t, one, "i", nil), "deploy", v1beta1.Complete)
		for _, tc := range []struct{ parameter, value, plan, object, task string }{{"DROP", "yes", "drop", "a", "drop"}, {"ON", "false", "deploy", "b", "b"}} {
			kudo(t, 0, "update", "--instance", "i", "-p", tc.parameter+"="+tc.value, "-n", ns, "--wait")
			hasEvent(t, ns, fmt.Sprintf("ConfigMap %s/%s is annotated to be kept: task %s did not delete it", ns, tc.object, tc.task))
		}
		two := gen.Version(ns, "store-2", gen.Param("VALUE", "one", ""), annotated("a", `kudo.dev/keep: ""`), gen.Apply("all", "a.yaml"), gen.Serial("deploy", "all"))
		env.Must(t, cluster.Create(ctx, two))
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) {
			i.Spec.OperatorVersion.Name, i.Spec.Parameters = "store-2", nil
		}))
		hasEvent(t, ns, "ConfigMap "+ns+"/c is no longer part of the operator and was kept: it is annotated kudo.dev/keep")
		for _, name := range []string{"a", "b", "c"} {
			if !exists(ctx, ns, name) {
				t.Errorf("%s was deleted", name)
			}
		}
	})

	It("can be all claims of an Instance, by a flag of uninstall", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		const spec = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}"
		ov := gen.Version(ns, "store", gen.Template("c.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: '{{ .Name }}'}\n"+spec+"\n"),
			gen.Template("s.yaml", workload("StatefulSet", "\n  volumeClaimTemplates: [{metadata: {name: own}, "+spec+"}]")),
			gen.Apply("all", "c.yaml", "s.yaml"), gen.Serial("deploy", "all"))
		claims := func() (names []string) {
			list := &corev1.PersistentVolumeClaimList{}
			env.Must(t, cluster.List(ctx, list, client.InNamespace(ns)))
			for _, claim := range list.Items {
				if claim.DeletionTimestamp == nil {
					names = append(names, claim.Name)
				}
			}
			return names
		}
		for _, name := range []string{"one", "two"} {
			env.Must(t, client.IgnoreAlreadyExists(cluster.Create(ctx, ov.DeepCopy())))
			env.Must(t, cluster.Create(ctx, gen.Instance(name, ov, nil)))
			status(t, await(t, ns, name, env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
		}
		contains(t, kudo(t, 0, "uninstall", "--instance", "one", "-n", ns, "--keep-claims", "--wait"), "persistentvolumeclaim one stays, since it is annotated to be kept",
			"persistentvolumeclaim own-one-0 stays, since it holds data, and no Instance owns it")
		contains(t, kudo(t, 0, "uninstall", "--instance", "two", "-n", ns, "--wait"), "Warning: persistentvolumeclaim "+ns+"/two (1Mi) is deleted with its data: --keep-claims would keep it",
			"persistentvolumeclaim own-two-1 stays, since it holds data")
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: ns, Name: "two"}, &corev1.PersistentVolumeClaim{}); !apierrors.IsNotFound(err) {
			t.Errorf("the command ended before the claim two was deleted: %v", err)
		}
		if got := claims(); !slices.Contains(got, "one") || len(got) != 5 {
			t.Errorf("the claims %v are left", got)
		}
		pods := &corev1.PodList{}
		env.Must(t, cluster.List(ctx, pods, client.InNamespace(ns)))
		for i := range pods.Items {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			env.Must(t, cluster.Patch(ctx, &pods.Items[i], patch))
		}
	})

	It("is released also if nothing can run, if an upgrade has dropped it, and if another client has changed it, which is still seen", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n"
		one := gen.Version(ns, "store-1", gen.Param("VALUE", "one", ""), annotated("a", "x: z"), gen.Template("c.yaml", claim), gen.Apply("all", "a.yaml", "c.yaml"), gen.Serial("deploy", "all"))
		two := gen.Version(ns, "store-2", gen.Param("VALUE", "one", ""), annotated("a", "x: z"), gen.Apply("all", "a.yaml"), gen.Serial("deploy", "all"))
		status(t, deploy(t, one, "i", nil), "deploy", v1beta1.Complete)
		env.Must(t, cluster.Create(ctx, two))
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "store-2" }))
		hasEvent(t, ns, "PersistentVolumeClaim "+ns+"/data is no longer part of the operator and was kept")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1beta1.KeepAnnotation+`":"true"}}}`))
		env.Must(t, cluster.Patch(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta(ns, "data")}, patch))
		env.Eventually(t, "the claim has no owner", env.Condition(func() bool { return len(get(t, &corev1.PersistentVolumeClaim{}, ns, "data").OwnerReferences) == 0 }))

		env.Must(t, cluster.Delete(ctx, two)) // nothing can run
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "two"} }))
		await(t, ns, "i", func(i *v1beta1.Instance) bool {
			ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
			return ready != nil && ready.Status == metav1.ConditionFalse
		})
		change := client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"mine"}}`))
		env.Must(t, cluster.Patch(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "a")}, change, client.FieldOwner("by-hand")))
		keep(ctx, ns, "a")
		env.Eventually(t, "a has no owner", isUnowned(ns, "a"))
		two.ResourceVersion, two.UID = "", ""
		env.Must(t, cluster.Create(ctx, two))
		env.Eventually(t, "the plan writes what others have changed", env.Condition(func() bool {
			return get(t, &corev1.ConfigMap{}, ns, "a").Data["value"] == "two"
		}))
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = nil }))
		env.Eventually(t, "and what it wrote", env.Condition(func() bool { return get(t, &corev1.ConfigMap{}, ns, "a").Data["value"] == "one" }))
	})

	It("is no claim that goes with its StatefulSet: uninstall says so, and does not begin", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "store", gen.Template("s.yaml", `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}"}
spec:
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}
  selector: {matchLabels: {app: "{{ .Name }}"}}
  volumeClaimTemplates: [{metadata: {name: own}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}]
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec: {containers: [{name: c, image: c}]}
`), gen.Apply("all", "s.yaml"), gen.Serial("deploy", "all"))
		status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)
		env.Eventually(t, "the StatefulSet owns the claim", env.Condition(func() bool {
			return len(get(t, &corev1.PersistentVolumeClaim{}, ns, "own-i-0").OwnerReferences) > 0
		}))
		contains(t, kudo(t, 1, "uninstall", "--instance", "i", "-n", ns, "--keep-claims"), "PersistentVolumeClaim "+ns+"/own-i-0 would be deleted with StatefulSet i, instance i is not deleted",
			"persistentVolumeClaimRetentionPolicy.whenDeleted")
		if i := get(t, &v1beta1.Instance{}, ns, "i"); i.DeletionTimestamp != nil {
			t.Error("the Instance is being deleted")
		}
		contains(t, kudo(t, 0, "uninstall", "--instance", "i", "-n", ns, "--wait"), "Warning: persistentvolumeclaim "+ns+"/own-i-0 (1Mi) is deleted with its data if StatefulSet i is deleted")
	})

	It("is no Instance that a plan creates, since the owners of these are counted", func(ctx context.Context) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		child := gen.Version(ns, "child-1", gen.Serial("deploy"))
		env.Must(t, cluster.Create(ctx, child))
		ov := gen.Version(ns, "parent", gen.Template("i.yaml", "apiVersion: kudo.dev/v1beta1\nkind: Instance\nmetadata:\n  name: '{{ .Name }}-0'\n  annotations: {kudo.dev/keep: \"true\"}\n"+
			"spec: {operatorVersion: {name: child-1}}\n"), gen.Apply("i", "i.yaml"), gen.Serial("deploy", "i"))
		status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)
		if controller := metav1.GetControllerOf(get(t, &v1beta1.Instance{}, ns, "i-0")); controller == nil || controller.Name != "i" {
			t.Errorf("the controller of the child is %v", controller)
		}
	})
})
