package integration

import (
	"context"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// managed is a control plane of a test's own, whose manager is one that the test starts, again and again.
type managed struct {
	*env.Cluster
	env *env.Env
	end func()
}

func newManaged(t testing.TB) *managed {
	t.Helper()
	if os.Getenv("KUDO_TEST_KUBECONFIG") != "" {
		t.Skip("needs a manager that may be killed, and KUDO_TEST_KUBECONFIG names a cluster")
	}
	e, err := env.Start()
	env.Must(t, err)
	t.Cleanup(e.Stop)
	if out, err := e.Local("kill", "manager"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c, err := e.Connect()
	env.Must(t, err)
	m := &managed{Cluster: c, env: e, end: func() {}}
	t.Cleanup(func() { m.end() })
	return m
}

// restart starts a manager with flags, after the end of the one before.
func (m *managed) restart(t testing.TB, flags ...string) {
	t.Helper()
	m.end()
	process := m.env.Manager(append([]string{"--leader-elect=false", "--webhook-port=0"}, flags...)...)
	env.Must(t, process.Start())
	m.end = func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	}
}

func (m *managed) await(t testing.TB, ns, name string, holds func(*v1beta1.Instance) bool) *v1beta1.Instance {
	t.Helper()
	i, err := m.Await(context.Background(), ns, name, long, holds)
	env.Must(t, err)
	return i
}

// unready reports whether the condition Ready of an Instance has the reason, and words that hold all texts.
func unready(reason string, texts ...string) func(*v1beta1.Instance) bool {
	return func(i *v1beta1.Instance) bool {
		if i == nil {
			return false
		}
		ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		for _, text := range texts {
			if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, text) {
				return false
			}
		}
		return true
	}
}

func gone(i *v1beta1.Instance) bool { return i == nil }

// edit patches an object.
func (m *managed) edit(t testing.TB, obj client.Object, change func()) {
	t.Helper()
	env.Must(t, m.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	patch := client.MergeFrom(obj.DeepCopyObject().(client.Object))
	change()
	env.Must(t, m.Patch(t.Context(), obj, patch))
}

var _ = It("Nothing of an Instance is started without an account, but in a namespace that an administrator has made privileged", Label("T1", "T4", "T6", "disruptive"), func() {
	t := GinkgoTB()
	m := newManaged(t)
	ctx := t.Context()
	ns, err := m.Namespace(ctx)
	env.Must(t, err)
	ov := gen.Version(ns, "op", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.ConfigMaps("bye", 1), gen.Serial("deploy", "cm"), gen.Serial("cleanup", "bye"))
	env.Must(t, m.Create(ctx, ov))
	m.restart(t)
	account := func() *corev1.ServiceAccount { return &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, "kudo")} }
	missing := unready(v1beta1.ReasonServiceAccountNotFound, "waits for ServiceAccount "+ns+"/kudo, with whose rights the plans run: kubectl kudo account create -n "+ns+" --instance ", " shows the rights they need and makes it")
	old := gen.Instance("old", ov, nil)
	env.Must(t, m.Create(ctx, old))
	m.await(t, ns, "old", env.PlanEnded("deploy", 1))

	t.Log("without its account, a new Instance waits, and starts once the account is there")
	env.Must(t, m.Delete(ctx, account()))
	m.restart(t) // One that runs may hear of the account's end after the Instance.
	env.Must(t, m.Create(ctx, gen.Instance("new", ov, nil)))
	if i := m.await(t, ns, "new", missing); i.Status.PlanStatus["deploy"].UID != "" {
		t.Errorf("a plan was started: %+v", i.Status.PlanStatus)
	}
	if err := m.Get(ctx, types.NamespacedName{Namespace: ns, Name: "new-cm-0"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("it has written: %v", err)
	}
	env.Must(t, m.Create(ctx, account()))
	status(t, m.await(t, ns, "new", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)

	t.Log("one that ran before is as it was, until something is to be started; and waits for an account to clean up with")
	env.Must(t, m.Delete(ctx, account()))
	m.restart(t)
	m.edit(t, old, func() { old.Spec.Parameters = map[string]string{"VALUE": "b"} })
	m.await(t, ns, "old", missing)
	env.Must(t, m.Create(ctx, gen.Instance("never", ov, nil)))
	m.await(t, ns, "never", missing)
	for _, name := range []string{"never", "old"} {
		env.Must(t, m.Delete(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(ns, name)}))
	}
	m.await(t, ns, "never", gone)
	m.await(t, ns, "old", unready(v1beta1.ReasonServiceAccountNotFound, "plan cleanup cannot be started", v1beta1.CleanupFinalizer))
	env.Must(t, m.Create(ctx, account()))
	m.await(t, ns, "old", gone)

	t.Log("in a privileged namespace, it runs with the rights of kudo, as long as that is so")
	env.Must(t, m.Delete(ctx, account()))
	space := &corev1.Namespace{ObjectMeta: gen.Meta("", ns)}
	m.edit(t, space, func() { space.Labels = map[string]string{v1beta1.PrivilegedLabel: "true"} })
	env.Must(t, m.Create(ctx, gen.Instance("trusted", ov, nil)))
	i := m.await(t, ns, "trusted", env.PlanEnded("deploy", 1))
	status(t, i, "deploy", v1beta1.Complete)
	m.edit(t, space, func() { delete(space.Labels, v1beta1.PrivilegedLabel) })
	m.edit(t, i, func() { i.Spec.Parameters = map[string]string{"VALUE": "b"} })
	ran := func(account string) func(*v1beta1.Instance) bool {
		return unready(v1beta1.ReasonServiceAccountNotFound, "waits for an account: it ran as ServiceAccount "+account+", which it does not name", "set spec.serviceAccountName, or kubectl kudo account create")
	}
	m.await(t, ns, "trusted", ran("kudo-system/kudo-installer"))

	t.Log("the settings name another account for those that name none: an Instance that has run has to name it")
	settings := &corev1.ConfigMap{ObjectMeta: gen.Meta("kudo-system", "kudo-config")}
	m.edit(t, settings, func() { settings.Data["default-account"] = "worker" })
	m.worker(t, ns)
	env.Must(t, m.Create(ctx, gen.Instance("later", ov, nil)))
	status(t, m.await(t, ns, "later", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
	m.edit(t, settings, func() { delete(settings.Data, "default-account") })
	m.restart(t) // One that runs may hear of the settings after the Instance.
	later := m.await(t, ns, "later", env.PlanEnded("deploy", 1))
	m.edit(t, later, func() { later.Spec.Parameters = map[string]string{"VALUE": "b"} })
	m.await(t, ns, "later", ran(ns+"/worker"))
	m.edit(t, i, func() { i.Spec.ServiceAccountName = "worker" })
	i = m.await(t, ns, "trusted", func(i *v1beta1.Instance) bool { return i != nil && env.PlanEnded("deploy", 2)(i) })
	status(t, i, "deploy", v1beta1.Complete)
	record := &appsv1.ControllerRevision{}
	env.Must(t, m.Get(ctx, types.NamespacedName{Namespace: ns, Name: "trusted-2"}, record))
	contains(t, string(record.Data.Raw), `"serviceAccount":"worker"`)
})
