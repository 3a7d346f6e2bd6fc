package installplan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("Two OperatorVersions in two namespaces share a definition, a ClusterRole, a Namespace and a Deployment", Label("shared"), func() {
	t := GinkgoTB()
	f, a, b := newFleet(), suite.NewNamespace(t), suite.NewNamespace(t)
	first, second := f.version(a, "fleet"), f.version(b, "fleet")
	complete(t, install(t, first))
	created := map[string]v1beta1.HoldState{
		"CustomResourceDefinition": v1beta1.HoldCreated, "ClusterRole": v1beta1.HoldCreated, "Namespace": v1beta1.HoldCreated, "Deployment": v1beta1.HoldCreated,
	}
	if diff := cmp.Diff(created, states(t, first)); diff != "" {
		t.Errorf("what was not there is created: %s", diff)
	}
	before := map[string]string{}
	for name, obj := range f.objects() {
		if !exists(t, obj) {
			t.Fatalf("%s is not there", name)
		}
		if obj.GetAnnotations()[v1beta1.ManagedAnnotation] != "true" || obj.GetLabels()[v1beta1.HeritageLabel] != v1beta1.Heritage {
			t.Errorf("%s is marked as made by kudo: %v %v", name, obj.GetAnnotations(), obj.GetLabels())
		}
		if diff := cmp.Diff([]string{first.InstallationName()}, owners(obj)); diff != "" {
			t.Errorf("%s is owned by the Installation: %s", name, diff)
		}
		before[name] = string(obj.GetUID())
	}
	complete(t, install(t, second))
	for kind, state := range states(t, second) {
		if state != v1beta1.HoldShared {
			t.Errorf("%s is %s in the second Installation, want Shared", kind, state)
		}
	}
	for name, obj := range f.objects() {
		if exists(t, obj); string(obj.GetUID()) != before[name] {
			t.Errorf("%s was made anew", name)
		}
		if diff := cmp.Diff([]string{first.InstallationName(), second.InstallationName()}, owners(obj)); diff != "" {
			t.Errorf("both own %s: %s", name, diff)
		}
	}
	for _, ov := range []*v1beta1.OperatorVersion{first, second} {
		env.Must(t, suite.Create(ctx, gen.Instance("i", ov, nil)))
		_, err := suite.Await(ctx, ov.Namespace, "i", env.DefaultTimeout, env.PlanEnded("deploy", 1))
		env.Must(t, err)
		env.Must(t, suite.Delete(ctx, gen.Instance("i", ov, nil)))
	}

	uninstall(t, first)
	for name, obj := range f.objects() {
		if !exists(t, obj) || obj.GetDeletionTimestamp() != nil {
			t.Fatalf("%s went with the first of two that hold it", name)
		}
		if diff := cmp.Diff([]string{second.InstallationName()}, owners(obj)); diff != "" {
			t.Errorf("the second owns %s alone: %s", name, diff)
		}
	}
	uninstall(t, second)
	for name, obj := range f.objects() {
		if exists(t, obj) {
			t.Errorf("%s is left over: %v", name, obj.GetOwnerReferences())
		}
	}
})

var _ = It("An object that kudo did not create, and that matches, is used as it is, and left exactly as it was", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	foreign := role(f.word, "get", f.group())
	foreign.Labels = map[string]string{"made": "by-hand"}
	foreign.Rules = append(foreign.Rules[:0:0], foreign.Rules...)
	env.Must(t, suite.Create(ctx, foreign))
	t.Cleanup(func() { _ = suite.Delete(ctx, foreign) })
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	if got := states(t, ov)["ClusterRole"]; got != v1beta1.HoldExisting {
		t.Errorf("the ClusterRole is %s, want Existing", got)
	}
	uninstall(t, ov)
	now := &rbacv1.ClusterRole{}
	env.Read(t, suite, now, "", f.word)
	if now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("it was written: %v", now)
	}
})

var _ = It("A definition of others that holds more than the package wants matches", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	foreign := &unstructured.Unstructured{}
	env.Must(t, yaml.Unmarshal([]byte(strings.ReplaceAll(f.templates()["crd.yaml"], "size: {type: integer}", "size: {type: integer}, color: {type: string}")), &foreign.Object))
	env.Must(t, suite.Create(ctx, foreign))
	t.Cleanup(func() { _ = suite.Delete(ctx, foreign) })
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	if got := states(t, ov)["CustomResourceDefinition"]; got != v1beta1.HoldExisting {
		t.Errorf("it is %s, want Existing", got)
	}
	uninstall(t, ov)
	if !exists(t, foreign) {
		t.Error("it is not ours to delete")
	}
})

var _ = It("A mismatch fails permanently, names object, fields, values and holders, and nothing of the step is written", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	foreign := role(f.word, "list", f.group())
	env.Must(t, suite.Create(ctx, foreign, client.FieldOwner("by-hand")))
	t.Cleanup(func() { _ = suite.Delete(ctx, foreign) })
	ov := f.version(ns, "fleet")
	env.Must(t, suite.Create(ctx, gen.Instance("i", ov, nil)))
	fatal(t, install(t, ov), "ClusterRole "+f.word, `rules[0].verbs[0] is "list", and the package wants "get"`, "by-hand", "was not changed")
	for name, obj := range f.objects() {
		if name != "role" && exists(t, obj) {
			t.Errorf("%s was installed, though the step cannot be", name)
		}
	}
	if now := env.Read(t, suite, &rbacv1.ClusterRole{}, "", f.word); now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("it was written: %v", now)
	}
	if got := states(t, ov)["ClusterRole"]; got != v1beta1.HoldMismatch {
		t.Errorf("the ClusterRole is %s, want Mismatch", got)
	}

	t.Log("the Instance is PENDING, and says why")
	i, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, func(i *v1beta1.Instance) bool {
		return i != nil && i.Status.AggregatedStatus.Status == v1beta1.Pending && i.Status.PlanStatus["deploy"].Status == v1beta1.Pending &&
			len(i.Status.AggregatedStatus.Message) > 100
	})
	env.Must(t, err)
	env.Contains(t, i.Status.AggregatedStatus.Message, `waits for the install plan "install" of OperatorVersion `+ns+"/fleet", "FATAL_ERROR", "ClusterRole "+f.word)
	if c := i.Status.Conditions[0]; c.Type != v1beta1.ReadyCondition || c.Reason != v1beta1.ReasonWaitingForInstallPlan || c.Status != metav1.ConditionFalse {
		t.Errorf("condition %+v", c)
	}

	t.Log("mended and retried, it goes on, and the Instance starts")
	edit(t, foreign, func(r *rbacv1.ClusterRole) { r.Rules[0].Verbs = []string{"get"} })
	env.Contains(t, suite.MustKudo(t, 0, "plan", "retry", "--operator-version", "fleet", "-n", ns, "--wait"), "retried")
	complete(t, ended(t, ov, 2))
	_, err = suite.Await(ctx, ns, "i", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	if diff := cmp.Diff(int64(2), env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet").Status.Revision); diff != "" {
		t.Error(diff)
	}
	env.Contains(t, suite.MustKudo(t, 0, "plan", "history", "--operator-version", "fleet", "-n", ns), "FATAL_ERROR", "COMPLETE", "retry of run 1", "OperatorVersion created")
	env.Must(t, suite.Delete(ctx, gen.Instance("i", ov, nil)))
	uninstall(t, ov)
})

var _ = It("Secrets are compared, and not shown", func() {
	t := GinkgoTB()
	ns, shared := suite.NewNamespace(t), suite.NewNamespace(t)
	env.Must(t, suite.Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta(shared, "key"), StringData: map[string]string{"k": "old-secret"}}))
	ov := gen.Version(ns, "secret", gen.Template("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: "+shared+"}\nstringData: {k: new-secret}\n"),
		gen.Apply("s", "s.yaml"), gen.Serial("install", "s"), gen.InstallPlan("install"))
	now := install(t, ov)
	fatal(t, now, "Secret "+shared+"/key", "data.k is ***, and the package wants ***")
	uninstall(t, ov)
})

var _ = It("What is being deleted is awaited, and then created", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	old := role(f.word, "watch", f.group())
	old.Finalizers = []string{"example.com/hold"}
	env.Must(t, suite.Create(ctx, old))
	env.Must(t, suite.Delete(ctx, old))
	ov := f.version(ns, "fleet")
	env.Must(t, suite.Create(ctx, ov))
	env.Eventually(t, "an install plan that waits", func() string {
		now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet")
		if m := now.Status.AggregatedStatus.Message; now.Status.AggregatedStatus.Status != v1beta1.InProgress || m == "" {
			return fmt.Sprintf("%+v", now.Status.AggregatedStatus)
		}
		return ""
	})
	env.Contains(t, env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet").Status.AggregatedStatus.Message, "ClusterRole "+f.word+" is being deleted (finalizers [example.com/hold])")
	edit(t, old, func(r *rbacv1.ClusterRole) { r.Finalizers = nil })
	complete(t, ended(t, ov, 1))
	if got := states(t, ov)["ClusterRole"]; got != v1beta1.HoldCreated {
		t.Errorf("the ClusterRole is %s, want Created", got)
	}
	uninstall(t, ov)
})

var _ = Describe("The release of a version", Label("release"), func() {
	It("leaves an object that was taken over, without an owner", func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		taken := f.objects()["role"].(*rbacv1.ClusterRole)
		edit(t, taken, func(r *rbacv1.ClusterRole) { delete(r.Annotations, v1beta1.ManagedAnnotation) })
		uninstall(t, ov)
		if !exists(t, taken) || len(taken.OwnerReferences) > 0 {
			t.Errorf("it was taken over: it must stay, and have no owners: %v", taken.OwnerReferences)
		}
		env.Must(t, suite.Delete(ctx, taken))
	})
	It("leaves an object that is annotated to be kept, and an installation takes it over", Label("keep", "P25", "P26"), func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		kept := f.objects()["role"].(*rbacv1.ClusterRole)
		edit(t, kept, func(r *rbacv1.ClusterRole) { r.Annotations[v1beta1.KeepAnnotation] = "true" })
		out, _ := suite.Kudo("uninstall-version", "fleet", "-n", ns, "--dry-run")
		env.Contains(t, out, "it is annotated to be kept")
		uninstall(t, ov)
		if !exists(t, kept) || len(kept.OwnerReferences) > 0 {
			t.Fatalf("it is annotated: it must stay, and have no owners: %v", kept.OwnerReferences)
		}
		uid := kept.UID
		again := f.version(ns, "fleet")
		complete(t, install(t, again))
		if !exists(t, kept) || kept.UID != uid || !slices.Equal(owners(kept), []string{again.InstallationName()}) {
			t.Errorf("after the second installation, the object is %s with the owners %v", kept.UID, owners(kept))
		}
		evented(t, again, "Normal ObjectsReadopted: Plan install took over again what was kept: ClusterRole "+f.word)
		edit(t, kept, func(r *rbacv1.ClusterRole) { delete(r.Annotations, v1beta1.KeepAnnotation) })
		uninstall(t, again)
		if exists(t, kept) {
			t.Error("it is not annotated any more: it must go")
		}
	})
	It("waits for a definition that has objects, which a later version takes over again with the objects", Label("keep", "P26"), func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		ship := f.ship(ns, "kon-tiki")
		env.Must(t, suite.Create(ctx, ship))
		crd := f.objects()["crd"]
		if !exists(t, crd) {
			t.Fatal("the definition is not there")
		}
		definition, data := crd.GetUID(), ship.GetUID()
		env.Must(t, suite.Delete(ctx, ov))
		waits(t, ov, v1beta1.ReasonCustomResourcesExist, "kon-tiki")

		next := f.version(ns, "fleet-2")
		complete(t, install(t, next))
		released(t, ov)
		if !exists(t, crd) || crd.GetUID() != definition || crd.GetDeletionTimestamp() != nil || !slices.Equal(owners(crd), []string{next.InstallationName()}) {
			t.Errorf("the definition is %s with the owners %v, not %s", crd.GetUID(), owners(crd), definition)
		}
		if !exists(t, ship) || ship.GetUID() != data || ship.GetDeletionTimestamp() != nil {
			t.Errorf("the object is another one: %s, not %s", ship.GetUID(), data)
		}
		eventedWith(t, next, "Normal ObjectsReadopted: Plan install took over again what was kept: CustomResourceDefinition "+f.crd())
		env.Must(t, suite.Delete(ctx, ship))
		uninstall(t, next)
	})
	It("waits for an object that is annotated to be kept in a Namespace that would go with it", Label("keep", "P25"), func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		kept := f.objects()["deployment"].(*appsv1.Deployment)
		edit(t, kept, func(d *appsv1.Deployment) { d.Annotations[v1beta1.KeepAnnotation] = "true" })
		env.Must(t, suite.Delete(ctx, ov))
		waits(t, ov, v1beta1.ReasonNamespaceNotEmpty, "Namespace "+f.word, "Deployment harbor")
		f.all(t, true)
		edit(t, kept, func(d *appsv1.Deployment) { delete(d.Annotations, v1beta1.KeepAnnotation) })
		released(t, ov)
		f.all(t, false)
	})
	It("leaves an object that a kind Installation of another group owns, too", func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		other := foreignInstallation(t, f.word)
		owned := f.objects()["role"].(*rbacv1.ClusterRole)
		edit(t, owned, func(r *rbacv1.ClusterRole) {
			r.OwnerReferences = append(r.OwnerReferences, metav1.OwnerReference{APIVersion: other.GetAPIVersion(), Kind: other.GetKind(), Name: other.GetName(), UID: other.GetUID()})
		})
		uninstall(t, ov)
		if !exists(t, owned) || owned.DeletionTimestamp != nil || !slices.Equal(owners(owned), []string{other.GetName()}) {
			t.Errorf("a kind Installation that is not kudo's owns it, too: %v", owned.OwnerReferences)
		}
		env.Must(t, suite.Delete(ctx, owned))
	})
	It("deletes an orphan that kudo made", Serial, Label("disruptive"), func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		stop(t)
		edit(t, f.objects()["role"].(*rbacv1.ClusterRole), func(r *rbacv1.ClusterRole) { r.OwnerReferences = nil })
		env.Must(t, suite.Delete(ctx, ov))
		resume(t)
		released(t, ov)
		if exists(t, f.objects()["role"]) {
			t.Error("an orphan that kudo made is left over")
		}
	})
	It("leaves an object of another uid", Serial, Label("disruptive"), func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		stop(t)
		env.Must(t, suite.Delete(ctx, f.objects()["role"]))
		env.Must(t, suite.Create(ctx, role(f.word, "get", f.group())))
		env.Must(t, suite.Delete(ctx, ov))
		resume(t)
		released(t, ov)
		if other := f.objects()["role"]; !exists(t, other) {
			t.Error("an object of another uid is not ours")
		} else {
			env.Must(t, suite.Delete(ctx, other))
		}
	})
	It("waits for an object with a finalizer, and deletes what was installed before it after it", func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		free := hold(t, f.objects()["deployment"])
		env.Must(t, suite.Delete(ctx, ov))
		waits(t, ov, v1beta1.ReasonReleasing, "harbor is being deleted (finalizers ["+holdFinalizer+"])")
		if !exists(t, f.objects()["namespace"]) || !exists(t, f.objects()["role"]) {
			t.Error("what was installed before it goes after it")
		}
		late := gen.Instance("late", ov, nil) // what it would need is terminating
		env.Must(t, suite.Create(ctx, late))
		i, err := suite.Await(ctx, ns, "late", env.DefaultTimeout, func(i *v1beta1.Instance) bool { return i.Status.AggregatedStatus.Status != "" })
		env.Must(t, err)
		if a := i.Status.AggregatedStatus; a.Status != v1beta1.Pending || !strings.Contains(a.Message, "is being deleted") {
			t.Errorf("an Instance of a version that goes is %s: %s", a.Status, a.Message)
		}
		env.Must(t, suite.Delete(ctx, late))
		free()
		released(t, ov)
	})
	It("waits for the Instances that use the version", func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		env.Must(t, suite.Create(ctx, gen.Instance("user", ov, nil)))
		_, err := suite.Await(ctx, ns, "user", env.DefaultTimeout, env.PlanEnded("deploy", 1))
		env.Must(t, err)
		env.Must(t, suite.Delete(ctx, ov))
		waits(t, ov, v1beta1.ReasonInUse, "Instance "+ns+"/user")
		if !exists(t, f.objects()["deployment"]) {
			t.Error("what an Instance needs was taken away")
		}
		env.Must(t, suite.Delete(ctx, gen.Instance("user", ov, nil)))
		released(t, ov)
	})
})

var _ = It("Definitions with custom resources, namespaces with content and claims are kept, and nothing else goes before they may", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: " + f.word + "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	ov := f.version(ns, "fleet", gen.Template("claim.yaml", claim), func(ov *v1beta1.OperatorVersion) {
		ov.Spec.Tasks[0].Spec.Resources = append(ov.Spec.Tasks[0].Spec.Resources, "claim.yaml")
	})
	complete(t, install(t, ov))
	ship := f.ship(ns, "kon-tiki")
	env.Must(t, suite.Create(ctx, ship))
	env.Must(t, suite.Create(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(f.word, "foreign")}))

	out := suite.MustKudo(t, 0, "uninstall-version", "fleet", "-n", ns, "--dry-run")
	env.Contains(t, out, "harbor", "kon-tiki", "ConfigMap foreign", "PersistentVolumeClaim")
	comparePreviews(t, ns, f)
	suite.MustKudo(t, 0, "uninstall-version", "fleet", "-n", ns)
	waits(t, ov, v1beta1.ReasonPersistentVolumeClaimKept, "PersistentVolumeClaim "+f.word+"/data")
	for name, obj := range f.objects() {
		if !exists(t, obj) || obj.GetDeletionTimestamp() != nil {
			t.Errorf("%s went, though the release waits", name)
		}
	}
	env.Must(t, suite.Delete(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta(f.word, "data")}))
	waits(t, ov, v1beta1.ReasonNamespaceNotEmpty, "Namespace "+f.word, "ConfigMap foreign")
	env.Must(t, suite.Delete(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(f.word, "foreign")}))
	waits(t, ov, v1beta1.ReasonCustomResourcesExist, "one object of kind Ship ("+ns+"/kon-tiki)")
	env.Must(t, suite.Delete(ctx, ship))
	released(t, ov)
	for name, obj := range f.objects() {
		if exists(t, obj) {
			t.Errorf("%s is left over", name)
		}
	}
})

var _ = It("By force all is deleted, and what will be is said before", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	ship := f.ship(ns, "kon-tiki")
	env.Must(t, suite.Create(ctx, ship))
	out := suite.MustKudo(t, 0, "uninstall-version", "fleet", "-n", ns, "--force", "--wait")
	env.Contains(t, out, "it is destroyed with what it holds", "kon-tiki")
	released(t, ov)
	if exists(t, f.objects()["crd"]) {
		t.Error("the definition is left over")
	}
})

var _ = Describe("A custom resource that is created while its definition is released", Label("fence"), func() {
	It("keeps the definition, if it comes before the fence", func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		free := hold(t, f.objects()["deployment"]) // it goes before the definition
		env.Must(t, suite.Delete(ctx, ov))
		first := f.ship(ns, "first")
		env.Must(t, suite.Create(ctx, first))
		free()
		waits(t, ov, v1beta1.ReasonCustomResourcesExist, "first")
		if !exists(t, f.ship(ns, "first")) {
			t.Fatal("the custom resource is lost")
		}
		env.Eventually(t, "the fence is taken off", func() string {
			if err := suite.Create(ctx, f.ship(ns, "second")); err != nil {
				return err.Error()
			}
			return ""
		})
		env.Must(t, suite.Delete(ctx, first))
		env.Must(t, suite.Delete(ctx, f.ship(ns, "second")))
		released(t, ov)
	})
	It("is refused by the fence", func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		crd := f.objects()["crd"].(*unstructured.Unstructured)
		free := hold(t, crd)
		env.Must(t, suite.Delete(ctx, ov))
		env.Eventually(t, "a fence", func() string {
			if !exists(t, crd) {
				t.Fatal("the definition went without a fence")
			}
			text, err := crd.MarshalJSON()
			env.Must(t, err)
			if !strings.Contains(string(text), "oldSelf.hasValue()") {
				if crd.GetDeletionTimestamp() != nil {
					t.Fatal("the definition is being deleted without a fence")
				}
				return "no rule"
			}
			return ""
		})
		inForce(t, func() client.Object { return f.ship(ns, "late") })
		err := suite.Create(ctx, f.ship(ns, "late"))
		if err == nil || !strings.Contains(err.Error(), "kudo is deleting this CustomResourceDefinition, since it has no owner") && !strings.Contains(err.Error(), "is terminating") {
			t.Errorf("want a refusal, got %v", err)
		}
		free()
		released(t, ov)
	})
})

// holdFinalizer is the finalizer of hold.
const holdFinalizer = "example.com/hold"

// hold keeps an object by a finalizer, however slow the test is, until the returned function is called.
func hold(t testing.TB, obj client.Object) (free func()) {
	t.Helper()
	edit(t, obj, func(o client.Object) { controllerutil.AddFinalizer(o, holdFinalizer) })
	free = sync.OnceFunc(func() {
		t.Helper()
		edit(t, obj, func(o client.Object) { controllerutil.RemoveFinalizer(o, holdFinalizer) })
	})
	t.Cleanup(func() {
		if exists(t, obj) { // the test has failed before it has freed the object
			free()
		}
	})
	return free
}

// inForce waits until a fence refuses an object: API servers read their rules a moment after they were written.
func inForce(t testing.TB, late func() client.Object) {
	t.Helper()
	env.Eventually(t, "a refusal by the fence", func() string {
		if suite.Create(ctx, late(), client.DryRunAll) == nil {
			return "the object would be created"
		}
		return ""
	})
}

var _ = Describe("An object that is created while its namespace is released", Label("namespace-fence"), func() {
	label := func(t testing.TB, f fleet, want string) {
		t.Helper()
		space := f.objects()["namespace"]
		env.Eventually(t, "the label "+want, func() string {
			if !exists(t, space) {
				t.Fatal("the namespace was deleted")
			}
			if got := space.GetLabels()[v1beta1.ReleasingLabel]; got != want {
				if space.GetDeletionTimestamp() != nil {
					t.Fatalf("the namespace is being deleted, and its label is %q", got)
				}
				return "the label is " + got
			}
			return ""
		})
	}
	late := func(f fleet) *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: gen.Meta(f.word, "late")} }
	It("is refused by the fence", func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		free := hold(t, f.objects()["namespace"])
		env.Must(t, suite.Delete(ctx, ov))
		label(t, f, "true")
		inForce(t, func() client.Object { return late(f) })
		err := suite.Create(ctx, late(f))
		if err == nil || !strings.Contains(err.Error(), "kudo is about to delete this Namespace") && !strings.Contains(err.Error(), "being terminated") {
			t.Errorf("want a refusal, got %v", err)
		}
		free()
		released(t, ov)
	})
	It("takes the fence off, if it came before", func() {
		t := GinkgoTB()
		f, ns := newFleet(), suite.NewNamespace(t)
		ov := f.version(ns, "fleet")
		complete(t, install(t, ov))
		space := f.objects()["namespace"].(*corev1.Namespace)
		env.Must(t, suite.Create(ctx, late(f)))
		edit(t, space, func(n *corev1.Namespace) { n.Labels[v1beta1.ReleasingLabel] = "true" }) // left over of a crash
		env.Must(t, suite.Delete(ctx, ov))
		waits(t, ov, v1beta1.ReasonNamespaceNotEmpty, "ConfigMap late")
		label(t, f, "")
		env.Must(t, suite.Delete(ctx, late(f)))
		released(t, ov)
	})
})

// stop stops the manager as a crash would, and resume starts it again.
func stop(t testing.TB) {
	t.Helper()
	if !suite.IsDisposable() {
		t.Skip("the cluster is not the test's own: its manager cannot be stopped")
	}
	if out, err := suite.Local("kill", "manager"); err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(func() { _, _ = suite.Local("start", "manager") })
}

func resume(t testing.TB) {
	t.Helper()
	if out, err := suite.Local("start", "manager"); err != nil {
		t.Fatal(out, err)
	}
}

// foreignInstallation makes an object of a kind that is called like kudo's, in another group.
func foreignInstallation(t testing.TB, word string) *unstructured.Unstructured {
	t.Helper()
	group := word + ".operators.example.com"
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "scope": "Cluster", "names": map[string]any{"plural": "installations", "singular": "installation", "kind": "Installation", "listKind": "InstallationList"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}},
	}}}
	crd.SetGroupVersionKind(crds)
	crd.SetName("installations." + group)
	env.Must(t, suite.Create(ctx, crd))
	t.Cleanup(func() { _ = suite.Delete(ctx, crd) })
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(group + "/v1")
	obj.SetKind("Installation")
	obj.SetName("default")
	env.Eventually(t, "the kind Installation of "+group, func() string {
		if err := suite.Create(ctx, obj); err != nil {
			return err.Error()
		}
		return ""
	})
	return obj
}

// comparePreviews checks what a deletion of a version says that its custom resources, its claim and the content of its namespace hold up: with
// and without force, as JSON and as a comment (P13, P15, P24). The claim and two others would be lost.
func comparePreviews(t testing.TB, ns string, f fleet) {
	t.Helper()
	ask := func(args ...string) string {
		return suite.MustKudo(t, 0, append([]string{"uninstall-version", "fleet", "-n", ns, "--dry-run"}, args...)...)
	}
	effects := func(text string) map[string]preview.Object {
		p, out := &preview.Preview{}, map[string]preview.Object{}
		env.Must(t, json.Unmarshal([]byte(text), p))
		for _, o := range p.Objects {
			out[o.Kind] = o
		}
		return out
	}
	waits, forced := effects(ask("-o", "json")), effects(ask("--force", "-o", "json"))
	for _, kind := range []string{"CustomResourceDefinition", "Namespace", "PersistentVolumeClaim"} {
		if o := waits[kind]; o.Effect != preview.Keep || !strings.HasPrefix(o.Why, "it holds the release up: ") || o.Lost {
			t.Errorf("without force: %+v", o)
		}
		if o := forced[kind]; o.Effect != preview.Delete || !o.Lost {
			t.Errorf("with force: %+v", o)
		}
	}
	if o := forced["CustomResourceDefinition"]; !strings.Contains(o.Why, "one object of kind Ship ("+ns+"/kon-tiki)") {
		t.Errorf("how many custom resources are lost is not said: %+v", o)
	}
	if o := waits["ClusterRole"]; o.Effect != preview.Delete {
		t.Errorf("what nothing holds up: %+v", o)
	}
	env.Contains(t, ask("--force", "-o", "markdown"), "<!-- kudo preview: OperatorVersion "+ns+"/fleet -->", "| delete | PersistentVolumeClaim "+f.word+"/data |",
		"data: 1 claim deleted, 2 objects destroyed with their content")
	if out := suite.MustKudo(t, 3, "uninstall-version", "fleet", "-n", ns, "--force", "--dry-run", "--fail-on", "data"); !strings.Contains(out, "has what --fail-on names: data") {
		t.Error(out)
	}
	if out := suite.MustKudo(t, 3, "uninstall-version", "fleet", "-n", ns, "--expect", "sha256:other"); !strings.Contains(out, "nothing was changed") {
		t.Error(out)
	}
}
