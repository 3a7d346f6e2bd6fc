package integration

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("A parameter switches a dependency on and off; switched off, its cleanup plan runs", Label("enabling-parameter"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	child := gen.Version(ns, "store-1.0.0", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"),
		gen.Task("drop", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"cm-0.yaml"}}), gen.Serial("cleanup", "drop"))
	env.Must(t, cluster.Create(t.Context(), child))
	parent := gen.Version(ns, "app", gen.Param("STORE", "false", ""), func(ov *v1beta1.OperatorVersion) { ov.Spec.Parameters[0].Type = v1beta1.BooleanType },
		gen.Task("store", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "store", OperatorVersion: "1.0.0", EnablingParameter: "STORE"}), gen.Serial("deploy", "store"))
	status(t, deploy(t, parent, "i", nil), "deploy", v1beta1.Complete)
	key := types.NamespacedName{Namespace: ns, Name: "i-store"}
	if err := cluster.Get(t.Context(), key, &v1beta1.Instance{}); !apierrors.IsNotFound(err) {
		t.Fatalf("it is switched off: %v", err)
	}
	set := func(value string, run int64) {
		t.Helper()
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"STORE": value} }))
		status(t, await(t, ns, "i", env.PlanEnded("deploy", run)), "deploy", v1beta1.Complete)
	}
	set("true", 2)
	status(t, get(t, &v1beta1.Instance{}, ns, "i-store"), "deploy", v1beta1.Complete)
	set("false", 3)
	if err := cluster.Get(t.Context(), key, &v1beta1.Instance{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is switched off again: %v", err)
	}
	hasEvent(t, ns, "Execution of plan cleanup finished with status COMPLETE")
})

var _ = It("A parent that waits for the end of its child says what holds the child", func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	env.Must(t, cluster.Create(t.Context(), gen.Version(ns, "store-1.0.0", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"),
		gen.Task("fail", v1beta1.DummyTask, v1beta1.TaskSpec{WantErr: true, Fatal: true}), gen.Serial("cleanup", "fail"))))
	parent := gen.Version(ns, "app", gen.Param("STORE", "true", ""), func(ov *v1beta1.OperatorVersion) { ov.Spec.Parameters[0].Type = v1beta1.BooleanType },
		gen.Task("store", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "store", OperatorVersion: "1.0.0", EnablingParameter: "STORE"}), gen.Serial("deploy", "store"))
	status(t, deploy(t, parent, "i", nil), "deploy", v1beta1.Complete)
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"STORE": "false"} }))
	waits := await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return strings.Contains(i.Status.AggregatedStatus.Message, "its plan cleanup failed")
	})
	contains(t, waits.Status.AggregatedStatus.Message, "Instance "+ns+"/i-store is being deleted", "kubectl kudo plan retry --instance i-store -n "+ns)
	env.Must(t, edit(t, ns, "i-store", func(i *v1beta1.Instance) { i.Finalizers = nil }))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 2)), "deploy", v1beta1.Complete)
})

var _ = It("Who suspends a parent suspends its children", func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	env.Must(t, cluster.Create(t.Context(), store(ns, "1.0.0")))
	status(t, deploy(t, app(ns, "app", "1.0.0"), "i", nil), "deploy", v1beta1.Complete)
	for n, suspend := range []bool{true, false} {
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Suspend = suspend }))
		status(t, await(t, ns, "i", env.PlanEnded("deploy", int64(n+2))), "deploy", v1beta1.Complete)
		if child := get(t, &v1beta1.Instance{}, ns, "i-store"); child.Spec.Suspend != suspend || child.Status.Baseline.Suspended != suspend {
			t.Errorf("the parent's spec.suspend is %v, the child's %v", suspend, child.Spec.Suspend)
		}
	}
})

// store is an operator that others depend on, in a version.
func store(ns, version string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	ov := gen.Version(ns, "store-"+version, append([]gen.VersionMod{gen.Param("VALUE", "a", ""), gen.Param("MORE", "b", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm")}, mods...)...)
	ov.Spec.Operator.Name, ov.Spec.Version = "store", version
	return ov
}

// app is an operator that depends on a version of the store.
func app(ns, name, version string) *v1beta1.OperatorVersion {
	return gen.Version(ns, name, gen.Param("VALUE", "x", ""), gen.Param("MORE", "", ""),
		gen.Template("p.yaml", "VALUE: '{{ .Params.VALUE }}'\n{{ if .Params.MORE }}MORE: '{{ .Params.MORE }}'{{ end }}\n"),
		gen.Task("store", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "store", OperatorVersion: version, ParameterFile: "p.yaml"}), gen.Serial("deploy", "store"))
}

var _ = It("A child follows its parent: its parameters, also those that leave the file, its version, and its end", Label("dependency"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	env.Must(t, cluster.Create(t.Context(), store(ns, "1.0.0")))
	env.Must(t, cluster.Create(t.Context(), store(ns, "2.0.0", gen.Serial("upgrade", "cm"))))
	next := app(ns, "app-2", "2.0.0")
	env.Must(t, cluster.Create(t.Context(), next))
	i := deploy(t, app(ns, "app-1", "1.0.0"), "i", map[string]string{"MORE": "y"})
	status(t, i, "deploy", v1beta1.Complete)
	child := get(t, &v1beta1.Instance{}, ns, "i-store")
	if child.Spec.Parameters["VALUE"] != "x" || child.Spec.Parameters["MORE"] != "y" || child.OwnerReferences[0].UID != i.UID {
		t.Errorf("the child's parameters are %v, its owners %v", child.Spec.Parameters, child.OwnerReferences)
	}
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "z"} }))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 2)), "deploy", v1beta1.Complete)
	child = get(t, &v1beta1.Instance{}, ns, "i-store")
	if _, left := child.Spec.Parameters["MORE"]; left || child.Spec.Parameters["VALUE"] != "z" {
		t.Errorf("a parameter that left the file leaves the child: %v", child.Spec.Parameters)
	}
	if got := get(t, &corev1.ConfigMap{}, ns, "i-store-cm-0").Data["key"]; got != "z" {
		t.Errorf("the parent's run is complete, and the child has written %q", got)
	}
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = next.Name }))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 3)), "deploy", v1beta1.Complete)
	child = get(t, &v1beta1.Instance{}, ns, "i-store")
	status(t, child, "upgrade", v1beta1.Complete)
	if child.Spec.OperatorVersion.Name != "store-2.0.0" {
		t.Errorf("the child runs %s", child.Spec.OperatorVersion.Name)
	}
	kudo(t, 0, "uninstall", "-n", ns, "--instance", "i", "--wait")
	env.Eventually(t, "the child gone", env.Condition(func() bool {
		return apierrors.IsNotFound(cluster.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "i-store"}, &v1beta1.Instance{}))
	}))
})

var _ = It("Several Instances use one that is shared: it is awaited, and has a life of its own", Label("shared-dependency"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	common := store(ns, "1.2.0")
	using := func(name, versions string) *v1beta1.OperatorVersion {
		return gen.Version(ns, name, gen.Param("VALUE", "x", ""), gen.ConfigMaps("own", 1), gen.Task("store", v1beta1.KudoOperatorTask,
			v1beta1.TaskSpec{Package: "store", OperatorVersion: versions, InstanceName: "common", Shared: true}), gen.Serial("deploy", "store", "own"))
	}
	web := using("web", "^1.0")
	for _, o := range []client.Object{common, web, gen.Instance("i", web, nil), gen.Instance("j", web, nil)} {
		env.Must(t, cluster.Create(t.Context(), o))
	}
	waits := await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return strings.Contains(i.Status.AggregatedStatus.Message, "needs Instance")
	})
	contains(t, waits.Status.AggregatedStatus.Message, "needs Instance "+ns+"/common of operator store, operatorVersion ^1.0", "--instance common -n "+ns)
	if applied(ns, "i-own-0") {
		t.Error("a step that comes after the shared Instance has run")
	}

	By("it is installed, and all that wait continue")
	env.Must(t, cluster.Create(t.Context(), gen.Instance("common", common, nil)))
	for _, name := range []string{"i", "j"} {
		status(t, await(t, ns, name, env.PlanEnded(v1beta1.DeployPlan, 1)), "deploy", v1beta1.Complete)
	}
	before := get(t, &v1beta1.Instance{}, ns, "common")
	if len(before.OwnerReferences) > 0 || before.Status.PlanStatus["deploy"].Revision != 1 {
		t.Errorf("it was changed by those that use it: %+v", before)
	}

	By("a package that needs another version of it")
	status(t, deploy(t, using("late", "^2.0"), "k", nil), "deploy", v1beta1.FatalError, "Instance "+ns+"/common has operatorVersion 1.2.0, and the package needs ^2.0")
	other := using("other", "")
	other.Spec.Tasks[1].Spec.Package = "cache"
	status(t, deploy(t, other, "l", nil), "deploy", v1beta1.FatalError, "is of operator store, and the package needs one of cache")

	By("those that use it are uninstalled, and it stays")
	for _, name := range []string{"i", "j"} {
		kudo(t, 0, "uninstall", "-n", ns, "--instance", name, "--wait")
	}
	if after := get(t, &v1beta1.Instance{}, ns, "common"); after.UID != before.UID || after.DeletionTimestamp != nil || !applied(ns, "common-cm-0") {
		t.Errorf("it was uninstalled: %+v", after)
	}
})

var _ = It("A dependency whose OperatorVersion has not the locked content does not run, and runs once it has (S33)", Label("locked-dependency", "S33"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	locked := store(ns, "1.0.0")
	digest, err := content.Digest(locked)
	env.Must(t, err)
	other := locked.DeepCopy()
	for name, text := range other.Spec.Templates {
		other.Spec.Templates[name] = text + "# another byte\n"
	}
	env.Must(t, cluster.Create(t.Context(), other))
	parent := app(ns, "app", "1.0.0")
	parent.Spec.Tasks[0].Spec.Content = digest
	env.Must(t, cluster.Create(t.Context(), parent))
	env.Must(t, cluster.Create(t.Context(), gen.Instance("i", parent, nil)))
	child := await(t, ns, "i-store", unready(v1beta1.ReasonPackageNotVerified, digest, "kudo.dev/operator-version-content"))
	if child.Annotations[v1beta1.VersionContentAnnotation] != digest || child.Status.Baseline != nil || applied(ns, "i-store-cm-0") {
		t.Errorf("another content has run: %v, %+v", child.Annotations, child.Status)
	}
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return strings.Contains(i.Status.AggregatedStatus.Message, "i-store") })

	By("the locked content is installed")
	now := get(t, &v1beta1.OperatorVersion{}, ns, other.Name)
	now.Spec.Templates = locked.Spec.Templates
	env.Must(t, cluster.Update(t.Context(), now))
	status(t, await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1)), "deploy", v1beta1.Complete)

	By("a content that changes afterwards: the next run does not start")
	now.Spec.Templates = other.Spec.Templates
	env.Must(t, cluster.Update(t.Context(), now))
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "z"} }))
	await(t, ns, "i-store", unready(v1beta1.ReasonPackageNotVerified, digest))
	if got := get(t, &corev1.ConfigMap{}, ns, "i-store-cm-0").Data["key"]; got != "x" {
		t.Errorf("another content has written %q", got)
	}
	kudo(t, 0, "uninstall", "-n", ns, "--instance", "i", "--wait")
})

var _ = It("The failure of a child is its parent's, with the child's message, and a retry continues once it is mended", Label("failed-dependency"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	broken := store(ns, "1.0.0", gen.Task("fails", v1beta1.DummyTask, v1beta1.TaskSpec{WantErr: true, Fatal: true}), gen.Serial("deploy", "fails"))
	env.Must(t, cluster.Create(t.Context(), broken))
	failed := deploy(t, app(ns, "app", "1.0.0"), "i", nil)
	status(t, failed, "deploy", v1beta1.FatalError, "i-store", "deploy.main.step-0.fails failed")
	mended := get(t, &v1beta1.OperatorVersion{}, ns, "store-1.0.0")
	mended.Spec.Plans["deploy"].Phases[0].Steps[0].Tasks[0] = "cm"
	env.Must(t, cluster.Update(t.Context(), mended))
	contains(t, kudo(t, 0, "plan", "retry", "-n", ns, "--instance", "i-store", "--dry-run"), "plan 1: deploy (retry of run 1)", "+ ConfigMap "+ns+"/")
	if run := get(t, &v1beta1.Instance{}, ns, "i-store").Status.PlanStatus["deploy"].Revision; run != 1 {
		t.Errorf("the preview has started run %d", run)
	}
	kudo(t, 0, "plan", "retry", "-n", ns, "--instance", "i-store", "--wait")
	kudo(t, 0, "plan", "retry", "-n", ns, "--instance", "i", "--wait")
	status(t, get(t, &v1beta1.Instance{}, ns, "i"), "deploy", v1beta1.Complete)
})

var _ = It("An Instance that a user made is not taken for a dependency unless that was allowed", Label("foreign-dependency"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	env.Must(t, cluster.Create(t.Context(), store(ns, "1.0.0")))
	mine := deploy(t, store(ns, "0.9.0"), "i-store", map[string]string{"VALUE": "mine"})
	status(t, deploy(t, app(ns, "app", "1.0.0"), "i", nil), "deploy", v1beta1.FatalError, "Instance "+ns+"/i-store", "kudo.dev/adopt")
	now := get(t, &v1beta1.Instance{}, ns, "i-store")
	if now.UID != mine.UID || now.Spec.OperatorVersion.Name != "store-0.9.0" || now.Spec.Parameters["VALUE"] != "mine" {
		t.Errorf("the Instance was changed: %+v", now.Spec)
	}
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Annotations = map[string]string{v1beta1.AdoptAnnotation: "true"} }))
	kudo(t, 0, "plan", "retry", "-n", ns, "--instance", "i", "--wait")
	if now = get(t, &v1beta1.Instance{}, ns, "i-store"); now.Spec.OperatorVersion.Name != "store-1.0.0" || now.Spec.Parameters["VALUE"] != "x" {
		t.Errorf("the Instance was not taken over: %+v", now.Spec)
	}
})
