package installplan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// all wants every object of the fleet to be there, or none.
func (f fleet) all(t testing.TB, there bool) {
	t.Helper()
	for name, obj := range f.objects() {
		if is := exists(t, obj) && obj.GetDeletionTimestamp() == nil; is != there {
			t.Errorf("%s: there %v, want %v", name, is, there)
		}
	}
}

var _ = It("An OperatorVersion that loses its finalizers by force and goes is noticed, and what it held is released", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	env.Must(t, suite.Create(ctx, gen.Instance("user", ov, nil)))
	_, err := suite.Await(ctx, ns, "user", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	env.Must(t, suite.Delete(ctx, ov))
	waits(t, ov, v1beta1.ReasonInUse)
	edit(t, ov, func(ov *v1beta1.OperatorVersion) { ov.Finalizers = nil })
	env.Eventually(t, "the deletion of the OperatorVersion", func() string {
		if exists(t, ov.DeepCopy()) {
			return "it is there"
		}
		return ""
	})
	env.Consistently(t, time.Second, func() { f.all(t, true) }) // an Instance still needs it
	env.Must(t, suite.Delete(ctx, gen.Instance("user", ov, nil)))
	released(t, ov)
	f.all(t, false)
})

var _ = It("A namespace that is deleted under an OperatorVersion releases what that held in other places", Label("namespace-deleted"), func() {
	t := GinkgoTB()
	f, ns, other := newFleet(), suite.NewNamespace(t), suite.NewNamespace(t)
	ov, sharer := f.version(ns, "fleet"), f.version(other, "fleet")
	complete(t, install(t, ov))
	complete(t, install(t, sharer))
	env.Must(t, suite.Delete(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", ns)}))
	released(t, ov)
	f.all(t, true)
	env.Must(t, suite.Delete(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", other)}))
	released(t, sharer)
	f.all(t, false)
	env.Eventually(t, "the deletion of the namespaces", func() string {
		if exists(t, &corev1.Namespace{ObjectMeta: gen.Meta("", ns)}) || exists(t, &corev1.Namespace{ObjectMeta: gen.Meta("", other)}) {
			return "they are there"
		}
		return ""
	})
})

var _ = It("An Installation that is deleted by hand holds on to what its OperatorVersion needs, until that goes", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	env.Must(t, suite.Delete(ctx, holder(ov)))
	env.Eventually(t, "an Installation that waits", func() string {
		c := meta.FindStatusCondition(holder(ov).Status.Conditions, v1beta1.ReleasedCondition)
		if c == nil || c.Reason != v1beta1.ReasonInUse || !strings.Contains(c.Message, "OperatorVersion "+ns+"/fleet needs what is held") {
			return fmt.Sprint(c)
		}
		return ""
	})
	env.Consistently(t, time.Second, func() { f.all(t, true) })
	uninstall(t, ov)
	f.all(t, false)
})

var _ = It("The garbage collector cannot be set on what an Installation holds", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	i := holder(ov)
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		err := suite.Delete(ctx, i, client.PropagationPolicy(policy))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "can only be deleted in the background") {
			t.Errorf("delete with %s: %v", policy, err)
		}
		if err := suite.DeleteAllOf(ctx, &v1beta1.Installation{}, client.MatchingFields{"metadata.name": i.Name}, client.PropagationPolicy(policy)); !apierrors.IsForbidden(err) {
			t.Errorf("delete a collection with %s: %v", policy, err)
		}
	}
	patch := client.MergeFrom(i.DeepCopy())
	i.Finalizers = append(i.Finalizers, metav1.FinalizerDeleteDependents)
	if err := suite.Patch(ctx, i, patch); !apierrors.IsForbidden(err) {
		t.Errorf("add foregroundDeletion: %v", err)
	}
	user := as(t, ns, "editor", rbacv1.PolicyRule{APIGroups: []string{"kudo.dev"}, Resources: []string{"*"}, Verbs: []string{"get", "update", "patch", "delete"}})
	i = holder(ov)
	patch = client.MergeFrom(i.DeepCopy())
	controllerutil.RemoveFinalizer(i, v1beta1.InstallationFinalizer)
	if err := user.Patch(ctx, i, patch); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `the verb "release"`) {
		t.Errorf("take the finalizer off without the right: %v", err)
	}

	t.Log("an administrator may; then the garbage collector takes what holds no data, and nothing else")
	env.Must(t, suite.Delete(ctx, holder(ov)))
	edit(t, holder(ov), func(i *v1beta1.Installation) { i.Finalizers = nil })
	objects := f.objects()
	env.Consistently(t, 2*time.Second, func() {
		if !exists(t, objects["crd"]) || !exists(t, objects["namespace"]) {
			t.Error("the garbage collector took what is guarded by kube-system")
		}
	})
	t.Log("the OperatorVersion makes another Installation, which takes everything up again")
	env.Eventually(t, "another Installation", func() string {
		if now := holder(ov); now == nil || now.Status.Created+now.Status.Shared != 4 {
			return fmt.Sprintf("%+v", now)
		}
		return ""
	})
	f.all(t, true)
	uninstall(t, ov)
	f.all(t, false)
})

// as is a client with the rights of an account that has one ClusterRole.
func as(t testing.TB, ns, name string, rules ...rbacv1.PolicyRule) client.Client {
	t.Helper()
	unique := ns + "-" + name
	env.Must(t, suite.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", unique), Rules: rules}))
	env.Must(t, suite.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: gen.Meta("", unique),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: unique},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: unique}},
	}))
	t.Cleanup(func() {
		_ = suite.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", unique)})
		_ = suite.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: gen.Meta("", unique)})
	})
	config := rest.CopyConfig(suite.Config)
	config.Impersonate.UserName = unique
	c, err := client.New(config, client.Options{Scheme: suite.Scheme()})
	env.Must(t, err)
	return c
}

var _ = It("Whoever sets or changes an install plan needs the verb install for the whole cluster, and all else needs no more than before", Label("install-verb"), func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	write := rbacv1.PolicyRule{APIGroups: []string{"kudo.dev"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "create", "update", "patch", "delete"}}
	// The API server says the first refusal only: with the account, it can be the one about the verb install.
	uses := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"kudo"}, Verbs: []string{"use"}}
	editor := as(t, ns, "editor", write, uses)
	installer := as(t, ns, "installer", write, rbacv1.PolicyRule{APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions"}, Verbs: []string{"install"}})
	bound := as(t, ns, "bound", write)
	env.Must(t, suite.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "bound"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kudo-installer"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: ns + "-bound"}},
	}))
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `the verb "install" on operatorversions.kudo.dev`) || !strings.Contains(err.Error(), "kudo-installer") {
			t.Errorf("%s: %v", what, err)
		}
	}
	ov := f.version(ns, "fleet")
	env.Eventually(t, "rights", func() string { // roles take a moment
		err := editor.Create(ctx, ov.DeepCopy())
		if err == nil || !strings.Contains(err.Error(), "the verb") {
			return fmt.Sprint(err)
		}
		refused("create", err)
		return ""
	})
	refused("a RoleBinding does not suffice", bound.Create(ctx, ov.DeepCopy()))
	plain := gen.Version(ns, "plain", gen.Serial("deploy"))
	env.Must(t, editor.Create(ctx, plain))
	plain.Spec.Version = "0.2.0"
	env.Must(t, editor.Update(ctx, plain))
	plain.Spec.InstallPlan = "deploy"
	refused("add an install plan", editor.Update(ctx, plain.DeepCopy()))

	env.Must(t, installer.Create(ctx, ov))
	now := complete(t, ended(t, ov, 1))
	labeled := now.DeepCopy()
	labeled.Labels = map[string]string{"a": "b"}
	env.Must(t, editor.Patch(ctx, labeled, client.MergeFrom(now)))
	forced := now.DeepCopy()
	forced.Annotations = map[string]string{v1beta1.ForceReleaseAnnotation: "true"}
	refused("destroy what others have", editor.Patch(ctx, forced, client.MergeFrom(now)))
	held := holder(ov)
	patch := client.MergeFrom(held.DeepCopy())
	held.Annotations = map[string]string{v1beta1.ForceReleaseAnnotation: "true"}
	refused("the same at the Installation", editor.Patch(ctx, held, patch))
	changed := now.DeepCopy()
	changed.Spec.InstallParameters = map[string]string{"VERB": "list"}
	refused("change parameters", editor.Patch(ctx, changed.DeepCopy(), client.MergeFrom(now)))
	changed = now.DeepCopy()
	changed.Spec.InstallPlan = ""
	refused("take the install plan away", editor.Patch(ctx, changed, client.MergeFrom(now)))
	instance := gen.Instance("crds", ov, nil)
	instance.Spec.CRDTarball = &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://example.org/x.tgz"}}
	refused("an Instance with a tarball", editor.Create(ctx, instance))
	env.Must(t, editor.Delete(ctx, ov)) // whoever may delete, may: namespaces must be able to go
	released(t, ov)
})

var _ = It("What another client deletes is restored, and what another client changes is reported and left", Label("drift"), func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	objects := f.objects()
	env.Must(t, suite.Delete(ctx, objects["role"]))
	complete(t, ended(t, ov, 2))
	if !exists(t, objects["role"]) {
		t.Fatal("it was not restored")
	}
	env.Contains(t, suite.MustKudo(t, 0, "plan", "history", "--operator-version", "fleet", "-n", ns), "to restore ClusterRole "+f.word)

	edit(t, objects["role"].(*rbacv1.ClusterRole), func(r *rbacv1.ClusterRole) { r.Rules[0].Verbs = []string{"delete"} })
	drifted := func(want bool) {
		t.Helper()
		env.Eventually(t, fmt.Sprintf("drifted %v", want), func() string {
			now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet")
			if (len(now.Status.Drift) > 0) != want {
				return fmt.Sprintf("%+v", now.Status.Drift)
			}
			return ""
		})
	}
	drifted(true)
	now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet")
	env.Contains(t, now.Status.Drift[0].Message, "ClusterRole "+f.word+" was changed since it was installed, last by "+filepath.Base(os.Args[0]), `rules[0].verbs[0] is "delete", and the package wants "get"`)
	if d := now.Status.Drift[0]; d.Kind != "ClusterRole" || d.Name != f.word || d.Writer != filepath.Base(os.Args[0]) || d.Since == nil ||
		!slices.Equal(d.Fields, []string{".rules[0].verbs[0]"}) {
		t.Errorf("P30: the drift is %+v", d)
	}
	if got := states(t, ov)["ClusterRole"]; got != v1beta1.HoldMismatch {
		t.Errorf("it is %s, want Mismatch", got)
	}
	env.Contains(t, suite.MustKudo(t, 0, "get", "shared"), "ClusterRole "+f.word, "Mismatch")
	if now.Status.Revision != 2 || !now.Installed() {
		t.Errorf("a drift starts nothing: run %d", now.Status.Revision)
	}
	edit(t, objects["role"].(*rbacv1.ClusterRole), func(r *rbacv1.ClusterRole) { r.Rules[0].Verbs = []string{"get"} })
	drifted(false)

	t.Log("a status that moves is no drift, and neither is a label")
	edit(t, objects["role"].(*rbacv1.ClusterRole), func(r *rbacv1.ClusterRole) { r.Labels["team"] = "blue" })
	env.Consistently(t, 2*time.Second, func() { drifted(false) })
	uninstall(t, ov)
	f.all(t, false)
})

var _ = It("Install parameters change what only this OperatorVersion holds, by another run", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	extra := "{{ if eq .Params.VERB \"get\" }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: " + f.word + "}\n{{ end }}\n"
	ov := f.version(ns, "fleet", gen.Template("extra.yaml", extra), func(ov *v1beta1.OperatorVersion) {
		ov.Spec.Tasks[0].Spec.Resources = append(ov.Spec.Tasks[0].Spec.Resources, "extra.yaml")
	})
	complete(t, install(t, ov))
	edit(t, ov, func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallParameters = map[string]string{"VERB": "watch"} })
	complete(t, ended(t, ov, 2))
	if r := f.objects()["role"].(*rbacv1.ClusterRole); !exists(t, r) || r.Rules[0].Verbs[0] != "watch" {
		t.Errorf("the ClusterRole has %v", r.Rules)
	}
	env.Eventually(t, "a ConfigMap that is released", func() string {
		if exists(t, &corev1.ConfigMap{ObjectMeta: gen.Meta(f.word, "extra")}) || len(holder(ov).Status.Resources) != 4 {
			return fmt.Sprintf("%+v", holder(ov).Status)
		}
		return ""
	})
	edit(t, ov, func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallParameters = map[string]string{"NO": "1"} })
	env.Eventually(t, "a refusal", func() string {
		now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet")
		if !strings.Contains(now.Status.AggregatedStatus.Message, "spec.installParameters.NO is not defined") {
			return now.Status.AggregatedStatus.Message
		}
		return ""
	})
	edit(t, ov, func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallParameters = nil })
	complete(t, ended(t, ov, 3))
	uninstall(t, ov)
})

var _ = It("What others hold is changed only by a newer version of the same operator, if its policy says so", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	named := func(operator, version, verb string, policy v1beta1.SharedUpdates) gen.VersionMod {
		return func(ov *v1beta1.OperatorVersion) {
			ov.Spec.Operator.Name, ov.Spec.Version = operator, version
			ov.Spec.InstallParameters = map[string]string{"VERB": verb}
			ov.Spec.InstallPolicy = &v1beta1.InstallPolicy{SharedUpdates: policy}
		}
	}
	first := f.version(ns, "fleet-1", named("fleet", "1.0.0", "get", v1beta1.SameOperatorUpdates))
	complete(t, install(t, first))
	none := f.version(ns, "fleet-none", named("fleet", "2.0.0", "list", ""))
	fatal(t, install(t, none), "It belongs to OperatorVersion "+ns+"/fleet-1", "sharedUpdates does not allow")
	uninstall(t, none)
	foreign := f.version(ns, "other", named("other", "2.0.0", "list", v1beta1.SameOperatorUpdates))
	fatal(t, install(t, foreign), "not only versions of operator other hold it")
	uninstall(t, foreign)
	second := f.version(ns, "fleet-2", named("fleet", "2.0.0", "list", v1beta1.SameOperatorUpdates))
	complete(t, install(t, second))
	r := f.objects()["role"].(*rbacv1.ClusterRole)
	if exists(t, r); r.Rules[0].Verbs[0] != "list" || len(owners(r)) != 2 {
		t.Errorf("the newer version changes it, and both own it: %v %v", r.Rules, owners(r))
	}
	env.Eventually(t, "no drift of the older version", func() string {
		now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet-1")
		if got := states(t, first)["ClusterRole"]; got == v1beta1.HoldMismatch || len(now.Status.Drift) > 0 {
			return fmt.Sprintf("%s: %+v", got, now.Status.Drift)
		}
		return ""
	})
	older := f.version(ns, "fleet-old", named("fleet", "0.9.0", "watch", v1beta1.SameOperatorUpdates))
	fatal(t, install(t, older), "is newer")
	uninstall(t, older)
	uninstall(t, first)
	if exists(t, r); len(owners(r)) != 1 {
		t.Errorf("the second owns it alone: %v", owners(r))
	}
	uninstall(t, second)
	f.all(t, false)
})

var _ = It("Instances can neither run the install plan, nor change or delete by plans of their own what an Installation holds", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	suite.Grant(t, ns, rbacv1.GroupName, "clusterroles") // even if its account may
	mine := strings.ReplaceAll(f.templates()["role.yaml"], "{{ .Params.VERB }}", "{{ .Params.VALUE }}")
	ov := f.version(ns, "fleet", gen.Template("mine.yaml", mine), gen.Apply("mine", "mine.yaml"), gen.Serial("grab", "mine"),
		gen.Task("drop", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"mine.yaml"}}), gen.Serial("drop", "drop"))
	complete(t, install(t, ov))
	env.Must(t, suite.Create(ctx, gen.Instance("i", ov, map[string]string{"VALUE": "get"})))
	_, err := suite.Await(ctx, ns, "i", env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	out := suite.MustKudo(t, 1, "plan", "trigger", "--instance", "i", "-n", ns, "--name", "install")
	env.Contains(t, out, "install plan")
	suite.MustKudo(t, 0, "plan", "trigger", "--instance", "i", "-n", ns, "--name", "grab", "--wait") // the same content is no change
	suite.MustKudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "VALUE='*'", "--wait")
	suite.MustKudo(t, 3, "plan", "trigger", "--instance", "i", "-n", ns, "--name", "grab", "--wait")
	r := f.objects()["role"].(*rbacv1.ClusterRole)
	if exists(t, r); r.Rules[0].Verbs[0] != "get" {
		t.Fatalf("an Instance changed a shared object: %v", r.Rules)
	}
	suite.MustKudo(t, 0, "plan", "trigger", "--instance", "i", "-n", ns, "--name", "drop", "--wait")
	if !exists(t, r) || r.DeletionTimestamp != nil {
		t.Fatal("an Instance deleted a shared object")
	}
	env.Must(t, suite.Delete(ctx, gen.Instance("i", ov, nil)))
	uninstall(t, ov)
})

var _ = It("Content of a namespace that stands behind 500 objects which do not count is observed", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	ov := f.version(ns, "fleet")
	complete(t, install(t, ov))
	harbor := f.objects()["deployment"]
	exists(t, harbor)
	yes := true
	owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "harbor", UID: harbor.GetUID(), Controller: &yes}}
	for n := range 510 {
		cm := &corev1.ConfigMap{ObjectMeta: gen.Meta(f.word, fmt.Sprintf("a-%03d", n))}
		cm.OwnerReferences = owner
		env.Must(t, suite.Create(ctx, cm))
	}
	env.Must(t, suite.Create(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(f.word, "zzz-foreign")}))
	env.Must(t, suite.Delete(ctx, ov))
	waits(t, ov, v1beta1.ReasonNamespaceNotEmpty, "ConfigMap zzz-foreign")
	env.Must(t, suite.Delete(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(f.word, "zzz-foreign")}))
	released(t, ov)
})

var _ = It("Another install plan takes the place of one that runs: that one is given up", func() {
	t := GinkgoTB()
	f, ns := newFleet(), suite.NewNamespace(t)
	ov := f.version(ns, "fleet", gen.Task("never", v1beta1.DummyTask, v1beta1.TaskSpec{}), gen.Serial("install", "never"), gen.Serial("setup", "fleet"))
	env.Must(t, suite.Create(ctx, ov))
	env.Eventually(t, "a plan that runs", func() string {
		now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ns, "fleet")
		if plans.Running(now.Status.PlanStatus) != "install" {
			return fmt.Sprintf("%+v", now.Status.PlanStatus)
		}
		return ""
	})
	edit(t, ov, func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallPlan = "setup" })
	now := complete(t, ended(t, ov, 2))
	if old := now.Status.PlanStatus["install"]; old.Status != v1beta1.FatalError || !strings.Contains(old.Message, "spec.installPlan is setup now") {
		t.Errorf("the plan that was replaced is %s: %s", old.Status, old.Message)
	}
	uninstall(t, ov)
})
