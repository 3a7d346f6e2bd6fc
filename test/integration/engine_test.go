package integration

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Name }}
spec:
  replicas: {{ .Params.REPLICAS }}
  selector: {matchLabels: {app: {{ .Name }}}}
  template:
    metadata: {labels: {app: {{ .Name }}}}
    spec:
      containers:
      - name: app
        image: {{ .Params.IMAGE }}
        resources: {requests: {cpu: "0.1", memory: 128Mi}}
`

func web(ns string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	return gen.Version(ns, "web", append([]gen.VersionMod{
		gen.Template("app.yaml", deployment), gen.Param("REPLICAS", "1", ""), gen.Param("IMAGE", "nginx:1.27", ""),
		gen.Apply("app", "app.yaml"), gen.Serial("deploy", "app"),
	}, mods...)...)
}

var _ = It("Objects are applied with kudo's metadata, owner, labels and annotations", Label("metadata", "rule-23", "rule-24"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	i := deploy(t, web(ns), "i", nil)
	d := get(t, &appsv1.Deployment{}, ns, "i")
	owner := metav1.GetControllerOf(d)
	if owner == nil || owner.UID != i.UID {
		t.Errorf("the Instance is not the controller: %+v", d.OwnerReferences)
	}
	for key, want := range map[string]string{"heritage": "kudo", "kudo.dev/operator": "web", "kudo.dev/instance": "i"} {
		if d.Labels[key] != want || d.Spec.Template.Labels[key] != want {
			t.Errorf("label %s is %q and %q on the pods, want %q", key, d.Labels[key], d.Spec.Template.Labels[key], want)
		}
	}
	for key, want := range map[string]string{"kudo.dev/plan": "deploy", "kudo.dev/phase": "main", "kudo.dev/step": "step-0", "kudo.dev/last-plan-execution-uid": string(i.Status.PlanStatus["deploy"].UID)} {
		if d.Annotations[key] != want {
			t.Errorf("annotation %s is %q, want %q", key, d.Annotations[key], want)
		}
	}
	if d.Spec.Template.Annotations["kudo.dev/operator-version"] != "0.1.0" {
		t.Errorf("pod annotations are %v", d.Spec.Template.Annotations)
	}
	if m := d.ManagedFields[0].Manager; m != "kudo/"+ns+"/i" {
		t.Errorf("field manager is %s", m)
	}
	if len(i.Status.Conditions) != 1 || i.Status.Conditions[0].Type != "Ready" || i.Status.Conditions[0].Status != "True" {
		t.Errorf("rule 19: an idle Instance has exactly one condition: %+v", i.Status.Conditions)
	}
})

var _ = It("A plan waits for what is not ready, says for what, and goes on with other values when they change", Label("wait-and-restart", "rule-3", "rule-16"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := web(ns)
	env.Must(t, cluster.Create(context.Background(), ov))
	env.Must(t, cluster.Create(context.Background(), gen.Instance("i", ov, map[string]string{"IMAGE": "does-not-exist:1"})))
	i := await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, "Deployment "+ns+"/i")
	})
	if c := i.Status.Conditions; len(c) != 2 {
		t.Errorf("rule 19: conditions while a plan runs: %+v", c)
	}
	out := kudo(t, 4, "plan", "wait", "--instance", "i", "-n", ns, "--wait-time", "1")
	contains(t, out, "is not ready after 1s", "Deployment "+ns+"/i")
	out = kudo(t, 4, "plan", "status", "--instance", "i", "-n", ns, "--wait", "--wait-time", "1")
	contains(t, out, "Plan deploy (serial strategy) [IN_PROGRESS]", "is not ready after 1s")
	first := i.Status.PlanStatus["deploy"].UID
	kudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "IMAGE=nginx:1.28", "--wait")
	i = await(t, ns, "i", env.PlanEnded("deploy", 2))
	status(t, i, "deploy", v1beta1.Complete)
	if i.Status.PlanStatus["deploy"].UID == first {
		t.Error("rule 3: the running plan was not restarted")
	}
})

var _ = It("Plans of other triggers are queued behind the running one, and run in order; reverting empties the queue", Label("queue", "rule-3"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := web(ns, gen.Param("A", "1", "plan-a"), gen.Param("B", "1", "plan-b"), gen.Task("done", "Dummy", v1beta1.TaskSpec{Done: true}),
		gen.Serial("plan-a", "done"), gen.Serial("plan-b", "done"))
	env.Must(t, cluster.Create(context.Background(), ov))
	env.Must(t, cluster.Create(context.Background(), gen.Instance("i", ov, map[string]string{"IMAGE": "does-not-exist:1"})))
	await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return i != nil && i.Status.AggregatedStatus.ActivePlanName == "deploy"
	})
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters["B"], i.Spec.Parameters["A"] = "2", "2" }))
	i := await(t, ns, "i", func(i *v1beta1.Instance) bool { return len(i.Status.Queue) == 2 })
	if i.Status.Queue[0].PlanName != "plan-a" || i.Status.Queue[1].PlanName != "plan-b" {
		t.Errorf("queue is %+v, want the order of the parameters", i.Status.Queue)
	}
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { delete(i.Spec.Parameters, "B") }))
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return len(i.Status.Queue) == 1 })
	contains(t, kudo(t, 0, "plan", "cancel", "--instance", "i", "-n", ns), "is being cancelled")
	i = await(t, ns, "i", env.PlanEnded("plan-a", 1))
	status(t, i, "deploy", v1beta1.FatalError, "cancelled")
	status(t, i, "plan-a", v1beta1.Complete)
	status(t, i, "plan-b", v1beta1.NeverRun)
	contains(t, kudo(t, 1, "plan", "cancel", "--instance", "i", "-n", ns), "no plan of instance")
})

var _ = It("A run uses the old values of parameters that wait for a plan of their own: taken back in time, a change leaves nothing", Label("values-of-queued-plans", "rule-3"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := gen.Version(ns, "held", gen.Param("A", "1", ""), gen.Param("B", "1", "plan-b"),
		gen.Template("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm\ndata:\n  a: \"{{ .Params.A }}\"\n  b: \"{{ .Params.B }}\"\n"),
		gen.Template("job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: job-{{ .PlanName }}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - {name: c, image: busybox, command: [sleep, \"1000\"]}\n"),
		gen.Apply("cm", "cm.yaml"), gen.Apply("job", "job.yaml"), gen.Serial("deploy", "cm"), gen.Serial("update", "cm", "job"), gen.Serial("plan-b", "cm"))
	deploy(t, ov, "i", nil)
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"A": "2", "B": "2"} }))
	await(t, ns, "i", func(i *v1beta1.Instance) bool {
		return len(i.Status.Queue) == 1 && strings.Contains(i.Status.AggregatedStatus.Message, "Job")
	})
	if data := get(t, &corev1.ConfigMap{}, ns, "cm").Data; data["a"] != "2" || data["b"] != "1" {
		t.Errorf("plan update ran with %v, want the new A and the old B", data)
	}
	kudo(t, 0, "plan", "cancel", "--instance", "i", "-n", ns)
	status(t, await(t, ns, "i", env.PlanEnded("plan-b", 3)), "plan-b", v1beta1.Complete)
	if data := get(t, &corev1.ConfigMap{}, ns, "cm").Data; data["b"] != "2" {
		t.Errorf("plan-b ran with %v", data)
	}
})

var _ = It("A Dummy that is never done holds its plan until another plan is asked for", Label("never-done", "rule-10"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := gen.Version(ns, "never", gen.Param("FORBIDDEN", "1", "not-allowed"), gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1),
		gen.Task("never", "Dummy", v1beta1.TaskSpec{}), gen.Serial("deploy", "cm"), gen.Serial("not-allowed", "never"))
	deploy(t, ov, "i", nil)
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"FORBIDDEN": "2"} }))
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["not-allowed"].Status == v1beta1.InProgress })
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters["VALUE"] = "b" }))
	i := await(t, ns, "i", env.PlanEnded("deploy", 2))
	status(t, i, "not-allowed", v1beta1.FatalError, "never done")
	status(t, i, "deploy", v1beta1.Complete)
})

var _ = It("Toggle applies and deletes, and Delete leaves foreign objects and unknown kinds alone, and says so", Label("toggle-and-delete", "rule-11"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	env.Must(t, cluster.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "theirs")}))
	ov := gen.Version(ns, "toggle", gen.Param("ON", "true", ""),
		gen.Template("cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n"),
		gen.Template("foreign.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: theirs\n---\napiVersion: no.such/v1\nkind: Thing\nmetadata:\n  name: x\n"),
		gen.Task("toggle", "Toggle", v1beta1.TaskSpec{Parameter: "ON", Resources: []string{"cm.yaml"}}),
		gen.Task("delete", "Delete", v1beta1.TaskSpec{Resources: []string{"foreign.yaml"}}), gen.Serial("deploy", "toggle", "delete"))
	i := deploy(t, ov, "i", nil)
	status(t, i, "deploy", v1beta1.Complete)
	get(t, &corev1.ConfigMap{}, ns, "mine")
	get(t, &corev1.ConfigMap{}, ns, "theirs")
	hasEvent(t, ns, "ConfigMap "+ns+"/theirs belongs to another client")
	kudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "ON=false", "--wait")
	if err := cluster.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: "mine"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("the toggled object is still there: %v", err)
	}
	out := kudo(t, 3, "update", "--instance", "i", "-n", ns, "-p", "ON=maybe", "--wait")
	contains(t, out, "parameter ON is \"maybe\"", "set it to true or false")
})

var _ = It("An Instance may come before its OperatorVersion, and is refused with what to do if it can never run", Label("order", "rule-5", "rule-8"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := web(ns)
	env.Must(t, cluster.Create(context.Background(), gen.Instance("i", ov, nil)))
	i := await(t, ns, "i", func(i *v1beta1.Instance) bool { return i != nil && len(i.Status.Conditions) == 1 })
	if c := i.Status.Conditions[0]; c.Reason != v1beta1.ReasonOperatorVersionNotFound || !strings.Contains(c.Message, "waits for OperatorVersion "+ns+"/web") {
		t.Errorf("condition is %+v", c)
	}
	env.Must(t, cluster.Create(context.Background(), ov))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)

	t.Log("a CustomResourceDefinition and its resource may stand in one task")
	group := strings.ReplaceAll(ns, "-", "") + ".example.org"
	crd := "apiVersion: example.org/v1\nkind: Thing\nmetadata:\n  name: thing\nspec: {size: 1}\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: things.example.org\nspec:\n  group: example.org\n  names: {kind: Thing, plural: things}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}\n"
	crd = strings.ReplaceAll(crd, "example.org", group)
	cluster.Grant(t, ns, "apiextensions.k8s.io", "customresourcedefinitions")
	t.Cleanup(func() {
		_, _ = plane.Kudo("uninstall", "--instance", "c", "-n", ns)
	})
	i = deploy(t, gen.Version(ns, "crd", gen.Template("crd.yaml", crd), gen.Apply("crd", "crd.yaml"), gen.Serial("deploy", "crd")), "c", nil)
	status(t, i, "deploy", v1beta1.Complete)
	contains(t, kudo(t, 0, "uninstall", "--instance", "c", "-n", ns), "customresourcedefinition things."+group+" stays")
})

var _ = It("Fields that the schema lacks are left out and named, duplicate keys too, and stringData does not stay", Label("fields-that-the-schema-lacks", "rule-21"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := gen.Version(ns, "fields", gen.Param("V", "1", ""),
		gen.Template("svc.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\nspec:\n  nonsense: true\n  selector: {a: b}\n  ports:\n  - {port: 80, name: a, protocol: TCP, wrong: 1}\n"),
		gen.Template("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  {{ if eq .Params.V \"1\" }}old: x{{ else }}new: z{{ end }}\n"),
		gen.Apply("app", "svc.yaml", "secret.yaml"), gen.Serial("deploy", "app"))
	i := deploy(t, ov, "i", nil)
	status(t, i, "deploy", v1beta1.Complete)
	hasEvent(t, ns, "Service "+ns+"/s: .spec.nonsense is left out")
	hasEvent(t, ns, ".spec.ports[0].wrong is left out")
	kudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "V=2", "--wait")
	if data := get(t, &corev1.Secret{}, ns, "s").Data; len(data) != 1 || string(data["new"]) != "z" {
		t.Errorf("a key that left stringData stays: %v", data)
	}
})

var _ = It("An upgrade runs one plan, with the new parameters, and removes what no task names any more", Label("upgrade-and-prune", "rule-2", "rule-12"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	text := func(name string, keep bool) string {
		annotations := ""
		if keep {
			annotations = "\n  annotations: {kudo.dev/keep: \"\"}"
		}
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + annotations + "\n"
	}
	one := gen.Version(ns, "up-1", gen.Template("a.yaml", text("a", false)), gen.Template("b.yaml", text("b", false)), gen.Template("c.yaml", text("c", true)),
		gen.Template("p.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: p\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"),
		gen.Apply("app", "a.yaml", "b.yaml", "c.yaml", "p.yaml"), gen.Serial("deploy", "app"))
	deploy(t, one, "i", nil)
	two := gen.Version(ns, "up-2", gen.Template("a.yaml", text("a", false)), gen.Apply("app", "a.yaml"), gen.Serial("deploy", "app"), gen.Serial("upgrade", "app"))
	two.Spec.Version = "0.2.0"
	env.Must(t, cluster.Create(context.Background(), two))
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "up-2" }))
	i := await(t, ns, "i", env.PlanEnded("upgrade", 2))
	status(t, i, "upgrade", v1beta1.Complete)
	env.Eventually(t, "ConfigMap b pruned", env.Condition(func() bool {
		return apierrors.IsNotFound(cluster.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: "b"}, &corev1.ConfigMap{}))
	}))
	get(t, &corev1.ConfigMap{}, ns, "a")
	get(t, &corev1.ConfigMap{}, ns, "c")
	get(t, &corev1.PersistentVolumeClaim{}, ns, "p")
	hasEvent(t, ns, "ConfigMap "+ns+"/b is no longer part of the operator and was deleted")
	hasEvent(t, ns, "PersistentVolumeClaim "+ns+"/p is no longer part of the operator and was kept")
})

var _ = It("The cleanup plan runs on deletion, and one that failed holds the Instance until it is retried or given up", Label("cleanup"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ctx := context.Background()
	ov := gen.Version(ns, "clean", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1),
		gen.Task("fail", "Dummy", v1beta1.TaskSpec{WantErr: true, Fatal: true}), gen.Serial("deploy", "cm"), gen.Serial("cleanup", "fail"))
	i := deploy(t, ov, "i", nil)
	if len(i.Finalizers) != 1 || i.Finalizers[0] != v1beta1.CleanupFinalizer {
		t.Fatalf("finalizers are %v", i.Finalizers)
	}
	env.Must(t, cluster.Delete(ctx, ov))
	contains(t, kudo(t, 3, "uninstall", "--instance", "i", "-n", ns, "--wait"), "plan cleanup failed, so the Instance stays", "plan retry", "plan cancel")
	await(t, ns, "i", env.PlanEnded("cleanup", 2))
	kudo(t, 0, "plan", "retry", "--instance", "i", "-n", ns)
	await(t, ns, "i", env.PlanEnded("cleanup", 3))
	kudo(t, 0, "plan", "cancel", "--instance", "i", "-n", ns)
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return i == nil })
})

var _ = It("A namespace that is deleted takes its Instances along, also ones with a cleanup plan", Label("namespace-deleted", "rule-15"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ctx := context.Background()
	ov := gen.Version(ns, "clean", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.ConfigMaps("more", 1), gen.Serial("deploy", "cm"), gen.Serial("cleanup", "more"))
	deploy(t, ov, "i", nil)
	env.Must(t, cluster.Delete(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", ns)}))
	env.Eventually(t, "the namespace gone", env.Condition(func() bool {
		return apierrors.IsNotFound(cluster.Get(ctx, types.NamespacedName{Name: ns}, &corev1.Namespace{}))
	}))
})

var _ = It("A reinstall right after an uninstall waits for the old objects to go, and works", Label("reinstall", "rule-20"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := web(ns)
	old := deploy(t, ov, "i", nil)
	kudo(t, 0, "uninstall", "--instance", "i", "-n", ns)
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return i == nil })
	env.Must(t, cluster.Create(context.Background(), gen.Instance("i", ov, nil)))
	i := await(t, ns, "i", env.PlanEnded("deploy", 1))
	status(t, i, "deploy", v1beta1.Complete)
	if d := get(t, &appsv1.Deployment{}, ns, "i"); i.UID == old.UID || metav1.GetControllerOf(d).UID != i.UID {
		t.Errorf("the Deployment belongs to %v", d.OwnerReferences)
	}
})

var _ = It("An Instance that KUDO left goes on: while idle nothing starts, and an unfinished plan of the same uid ends", Label("instance-of-kudo", "rule-1"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ctx := context.Background()
	ov := gen.Version(ns, "old", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	for name, state := range map[string]v1beta1.ExecutionStatus{"resting": v1beta1.Complete, "running": v1beta1.InProgress} {
		i := gen.Instance(name, ov, nil)
		env.Must(t, cluster.Create(ctx, i))
		await(t, ns, name, func(i *v1beta1.Instance) bool { return len(i.Status.Conditions) == 1 }) // waits for its OperatorVersion
		env.Must(t, cluster.Get(ctx, client.ObjectKeyFromObject(i), i))
		patch := client.MergeFrom(i.DeepCopy())
		i.Status = v1beta1.InstanceStatus{PlanStatus: map[string]v1beta1.PlanStatus{"deploy": {
			Name: "deploy", Status: state, UID: "of-kudo", Phases: []v1beta1.PhaseStatus{{Name: "main", Status: state, Steps: []v1beta1.StepStatus{{Name: "step-0", Status: state}}}},
		}}}
		env.Must(t, cluster.Status().Patch(ctx, i, patch))
	}
	env.Must(t, cluster.Create(ctx, ov))
	i := await(t, ns, "running", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["deploy"].Status == v1beta1.Complete })
	if i.Status.PlanStatus["deploy"].UID != "of-kudo" {
		t.Errorf("the run was started again: %+v", i.Status.PlanStatus["deploy"])
	}
	get(t, &corev1.ConfigMap{}, ns, "running-cm-0")
	await(t, ns, "resting", func(i *v1beta1.Instance) bool { return i.Status.Baseline != nil })
	if err := cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: "resting-cm-0"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("a plan was started for an idle Instance: %v", err)
	}
})

var _ = It("The webhooks deny what can never be right, and nothing else", Label("admission", "rule-4", "rule-5", "rule-6"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	yes := true
	ov := web(ns, func(ov *v1beta1.OperatorVersion) {
		fixed := "small"
		ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: "SIZE", Immutable: &yes, Default: &fixed})
	})
	i := deploy(t, ov, "i", nil)
	if i.Spec.Parameters["SIZE"] != "small" {
		t.Errorf("rule 6: the default of an immutable parameter was not written: %v", i.Spec.Parameters)
	}
	for _, tc := range []struct {
		reason string
		change func(*v1beta1.Instance)
		want   string
	}{
		{"an unknown parameter", func(i *v1beta1.Instance) { i.Spec.Parameters["NOPE"] = "1" }, "NOPE not defined by OperatorVersion"},
		{"an immutable parameter", func(i *v1beta1.Instance) { i.Spec.Parameters["SIZE"] = "big" }, "immutable"},
		{"a plan that does not exist", func(i *v1beta1.Instance) { i.Spec.PlanExecution.PlanName = "nope" }, "plan \"nope\" does not exist"},
		{"cleanup by hand", func(i *v1beta1.Instance) { i.Spec.PlanExecution.PlanName = "cleanup" }, "kubectl kudo uninstall"},
	} {
		err := edit(t, ns, "i", tc.change)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: want a denial with %q, got %v", tc.reason, tc.want, err)
		}
	}
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Labels["x"] = "y" }))
})

var _ = It("Readiness shows drift, which is not corrected outside a run", Label("readiness", "rule-13"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	deploy(t, web(ns), "i", nil)
	env.Must(t, cluster.Delete(context.Background(), &appsv1.Deployment{ObjectMeta: gen.Meta(ns, "i")}))
	i := await(t, ns, "i", func(i *v1beta1.Instance) bool { return i.Status.Conditions[0].Status == "False" })
	contains(t, i.Status.Conditions[0].Message, "Deployment "+ns+"/i is missing")
	env.Consistently(t, time.Second, func() {
		if err := cluster.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: "i"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
			t.Errorf("the Deployment was made again outside a run: %v", err)
		}
	})
	kudo(t, 0, "plan", "trigger", "--instance", "i", "-n", ns, "--name", "deploy", "--wait")
	get(t, &appsv1.Deployment{}, ns, "i")
})
