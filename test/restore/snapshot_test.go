package restore

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// etcdPlane is a control plane whose etcd goes back to a snapshot. It has no controllers of workloads: the test says when a Deployment is
// ready.
type etcdPlane struct{ env.Suite }

func newEtcdPlane(t testing.TB) *etcdPlane {
	t.Helper()
	p := &etcdPlane{}
	t.Cleanup(func() { p.Stop() })
	p.Join(t, p.Begin(t, "--profile", "api"))
	return p
}

func (p *etcdPlane) local(t testing.TB, args ...string) {
	t.Helper()
	if out, err := p.Local(args...); err != nil {
		t.Fatalf("kudo-local %v: %v\n%s", args, err, out)
	}
}

// snapshot returns a folder with a copy of etcd's data, which is made while etcd does not run.
func (p *etcdPlane) snapshot(t testing.TB) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "etcd")
	p.local(t, "kill", "etcd")
	env.Must(t, os.CopyFS(folder, os.DirFS(p.EtcdData())))
	p.local(t, "up")
	return folder
}

// restoreSnapshot stops all components, puts a copy in the place of etcd's data, and starts them again.
func (p *etcdPlane) restoreSnapshot(t testing.TB, folder string) {
	t.Helper()
	p.local(t, "down")
	env.Must(t, os.RemoveAll(p.EtcdData()))
	env.Must(t, os.CopyFS(p.EtcdData(), os.DirFS(folder)))
	p.local(t, "up")
}

func (p *etcdPlane) await(t testing.TB, ns, name string, holds func(*v1beta1.Instance) bool) *v1beta1.Instance {
	t.Helper()
	i, err := p.Await(ctx, ns, name, env.DefaultTimeout, holds)
	env.Must(t, err)
	return i
}

func (p *etcdPlane) setValue(t testing.TB, i *v1beta1.Instance, value string) {
	t.Helper()
	env.Must(t, p.Patch(ctx, i.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"VALUE":"`+value+`"}}}`))))
}

// makeReady writes the status of a Deployment, which completes the step that waits for it.
func (p *etcdPlane) makeReady(t testing.TB, ns, name string) {
	t.Helper()
	server := env.Read(t, p.Cluster, &appsv1.Deployment{}, ns, name)
	server.Status = appsv1.DeploymentStatus{ObservedGeneration: server.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	env.Must(t, p.Status().Update(ctx, server))
}

// wantValues checks the ConfigMaps of a namespace: their value, or an empty text for one that does not exist.
func (p *etcdPlane) wantValues(t testing.TB, ns string, want map[string]string) {
	t.Helper()
	for name, value := range env.Sorted(want) {
		cm := &corev1.ConfigMap{}
		env.Must(t, client.IgnoreNotFound(p.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, cm)))
		if got := cm.Data["key"]; got != value {
			t.Errorf("ConfigMap %s has the value %q, not %q", name, got, value)
		}
	}
}

// isHeld is a predicate: the first step of plan deploy is complete, and the second one waits.
func isHeld(i *v1beta1.Instance) bool {
	deploy := i.Status.PlanStatus[v1beta1.DeployPlan]
	if deploy.Status != v1beta1.InProgress {
		return false
	}
	steps := deploy.Phases[0].Steps
	return steps[0].Status == v1beta1.Complete && steps[1].Status == v1beta1.InProgress
}

func version(t testing.TB, obj client.Object) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	env.Must(t, err)
	return n
}

var _ = It("R34: a plan continues where a snapshot of etcd was, and what was written after the snapshot is undone", Label("R34", "etcd"), func() {
	t := GinkgoTB()
	p := newEtcdPlane(t)
	ns := p.NewNamespace(t)
	held := web(ns, gen.ConfigMaps("last", 1), gen.Template("server.yaml", serverYAML), gen.Serial("deploy", "cm", "server", "last"))
	plain := gen.Version(ns, "plain-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	for _, obj := range []client.Object{held, plain, gen.Instance("x", held, nil), gen.Instance("y", plain, nil), gen.Instance("lost", plain, nil)} {
		env.Must(t, p.Create(ctx, obj))
	}

	By("the plan of x waits for its second step, and the others are Ready, when the snapshot is taken")
	x := p.await(t, ns, "x", isHeld)
	env.Eventually(t, "the Deployment", func() string {
		if err := p.Get(ctx, client.ObjectKey{Namespace: ns, Name: "x"}, &appsv1.Deployment{}); err != nil {
			return err.Error()
		}
		return ""
	})
	y, lost := p.await(t, ns, "y", isReady), p.await(t, ns, "lost", isReady)
	server := env.Read(t, p.Cluster, &appsv1.Deployment{}, ns, "x")
	folder := p.snapshot(t)

	By("the plan of x ends, a parameter of y and x changes, lost is deleted, and late is created")
	p.makeReady(t, ns, "x")
	p.await(t, ns, "x", env.PlanEnded(v1beta1.DeployPlan, 1))
	p.setValue(t, x, "b")
	p.setValue(t, y, "b")
	after := p.await(t, ns, "x", env.PlanEnded(v1beta1.DeployPlan, 2))
	p.await(t, ns, "y", env.PlanEnded(v1beta1.DeployPlan, 2))
	env.Must(t, p.Delete(ctx, lost))
	p.await(t, ns, "lost", func(i *v1beta1.Instance) bool { return i == nil })
	env.Must(t, p.Create(ctx, gen.Instance("late", plain, nil)))
	p.await(t, ns, "late", isReady)
	p.wantValues(t, ns, map[string]string{"x-cm-0": "b", "x-last-0": "b", "y-cm-0": "b", "late-cm-0": "a"})

	By("all is as it was at the snapshot, and the run continues")
	p.restoreSnapshot(t, folder)
	before := p.await(t, ns, "x", isHeld)
	if version(t, before) >= version(t, after) {
		t.Errorf("the resourceVersion of Instance x is %s, and was %s before the restore", before.ResourceVersion, after.ResourceVersion)
	}
	p.wantValues(t, ns, map[string]string{"x-cm-0": "a", "x-last-0": "", "y-cm-0": "a", "lost-cm-0": "a", "late-cm-0": ""})
	p.await(t, ns, "late", func(i *v1beta1.Instance) bool { return i == nil })
	p.makeReady(t, ns, "x")
	ended := p.await(t, ns, "x", env.PlanEnded(v1beta1.DeployPlan, 1))
	was, is := x.Status.PlanStatus[v1beta1.DeployPlan], ended.Status.PlanStatus[v1beta1.DeployPlan]
	if is.Status != v1beta1.Complete || is.Revision != 1 || is.UID != was.UID || ended.Spec.Parameters["VALUE"] != "" {
		t.Errorf("plan deploy of Instance x is %+v, and was %+v; the parameters are %v", is, was, ended.Spec.Parameters)
	}
	p.wantValues(t, ns, map[string]string{"x-cm-0": "a", "x-last-0": "a"})
	for _, i := range []*v1beta1.Instance{y, lost} {
		if now := p.await(t, ns, i.Name, isReady); now.UID != i.UID || now.ResourceVersion != i.ResourceVersion {
			t.Errorf("Instance %s was written: %+v", i.Name, now.Status)
		}
	}
	if now := env.Read(t, p.Cluster, &appsv1.Deployment{}, ns, "x"); now.UID != server.UID || now.Generation != server.Generation {
		t.Errorf("the Deployment was written: %+v", now.ObjectMeta)
	}

	By("changes start plans, and take numbers and names that were given after the snapshot")
	p.setValue(t, x, "c")
	p.setValue(t, y, "c")
	env.Must(t, p.Create(ctx, gen.Instance("late", plain, map[string]string{"VALUE": "c"})))
	p.await(t, ns, "late", isReady)
	for _, name := range []string{"x", "y"} {
		if i := p.await(t, ns, name, env.PlanEnded(v1beta1.DeployPlan, 2)); i.Status.PlanStatus[v1beta1.DeployPlan].Status != v1beta1.Complete {
			t.Errorf("Instance %s: %+v", name, i.Status)
		}
	}
	p.wantValues(t, ns, map[string]string{"x-cm-0": "c", "x-last-0": "c", "y-cm-0": "c", "lost-cm-0": "a", "late-cm-0": "c"})
})

// serverYAML is a Deployment that does not depend on parameters.
const serverYAML = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Name }}
spec:
  replicas: 1
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec:
      containers:
      - name: server
        image: nginx
`
