package integration

import (
	"context"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

func newManaged(t *testing.T) *managed {
	t.Helper()
	if os.Getenv("KUDO_TEST_KUBECONFIG") != "" {
		t.Skip("needs a manager that may be killed, and KUDO_TEST_KUBECONFIG names a cluster")
	}
	e, err := env.Start()
	must(t, err)
	t.Cleanup(e.Stop)
	if out, err := e.Local("kill", "manager"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c, err := e.Connect()
	must(t, err)
	m := &managed{Cluster: c, env: e, end: func() {}}
	t.Cleanup(func() { m.end() })
	return m
}

// restart starts a manager with flags, after the end of the one before.
func (m *managed) restart(t *testing.T, flags ...string) {
	t.Helper()
	m.end()
	process := m.env.Manager(append([]string{"--leader-elect=false", "--webhook-port=0"}, flags...)...)
	must(t, process.Start())
	m.end = func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	}
}

func (m *managed) await(t *testing.T, ns, name string, holds func(*v1beta1.Instance) bool) *v1beta1.Instance {
	t.Helper()
	i, err := m.Await(context.Background(), ns, name, long, holds)
	must(t, err)
	return i
}

// refused tells whether the condition Ready refuses the Instance, in words that hold all texts.
func refused(texts ...string) func(*v1beta1.Instance) bool {
	return func(i *v1beta1.Instance) bool {
		if i == nil {
			return false
		}
		ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
		for _, text := range texts {
			if ready == nil || ready.Reason != v1beta1.ReasonInvalidSpec || !strings.Contains(ready.Message, text) {
				return false
			}
		}
		return true
	}
}

func gone(i *v1beta1.Instance) bool { return i == nil }

// TestRequireServiceAccount: with --require-service-account, nothing of an Instance is started with the manager's rights:
// neither the first plan, nor an update, nor the cleanup.
func TestRequireServiceAccount(t *testing.T) {
	t.Parallel()
	m := newManaged(t)
	ctx := t.Context()
	ns, err := m.Namespace(ctx)
	must(t, err)
	must(t, m.Create(ctx, &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, "worker")}))
	must(t, m.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "worker"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "worker"}},
	}))
	ov := gen.Version(ns, "op", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.ConfigMaps("bye", 1), gen.Serial("deploy", "cm"), gen.Serial("cleanup", "bye"))
	must(t, m.Create(ctx, ov))
	change := func(name string, to func(*v1beta1.Instance)) {
		t.Helper()
		i := &v1beta1.Instance{}
		must(t, m.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, i))
		patch := client.MergeFrom(i.DeepCopy())
		to(i)
		must(t, m.Patch(ctx, i, patch))
	}

	m.restart(t)
	must(t, m.Create(ctx, gen.Instance("old", ov, nil)))
	m.await(t, ns, "old", env.Ended("deploy", 1))

	m.restart(t, "--require-service-account")
	t.Log("a new Instance is refused, and starts once it names an account")
	must(t, m.Create(ctx, gen.Instance("new", ov, nil)))
	i := m.await(t, ns, "new", refused("spec.serviceAccountName is empty", "--require-service-account", "of namespace "+ns))
	if i.Status.PlanStatus["deploy"].UID != "" {
		t.Errorf("a plan was started: %+v", i.Status.PlanStatus)
	}
	if err := m.Get(ctx, types.NamespacedName{Namespace: ns, Name: "new-cm-0"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("it has written: %v", err)
	}
	change("new", func(i *v1beta1.Instance) { i.Spec.ServiceAccountName = "worker" })
	status(t, m.await(t, ns, "new", env.Ended("deploy", 1)), "deploy", v1beta1.Complete)

	t.Log("one that ran before is as it was, until something is to be started")
	change("old", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "b"} })
	m.await(t, ns, "old", refused("spec.serviceAccountName is empty"))
	change("old", func(i *v1beta1.Instance) { i.Spec.Parameters = nil })
	m.await(t, ns, "old", func(i *v1beta1.Instance) bool { return !refused("spec.serviceAccountName")(i) })

	t.Log("one that never ran goes at once; another waits for an account to clean up with")
	must(t, m.Create(ctx, gen.Instance("never", ov, nil)))
	m.await(t, ns, "never", refused("spec.serviceAccountName is empty"))
	for _, name := range []string{"never", "old"} {
		must(t, m.Delete(ctx, &v1beta1.Instance{ObjectMeta: gen.Meta(ns, name)}))
	}
	m.await(t, ns, "never", gone)
	m.await(t, ns, "old", refused("plan cleanup cannot be started", "spec.serviceAccountName is empty", v1beta1.CleanupFinalizer))
	change("old", func(i *v1beta1.Instance) { i.Spec.ServiceAccountName = "worker" })
	m.await(t, ns, "old", gone)

	t.Log("a default is an account, too")
	m.restart(t, "--require-service-account", "--default-service-account=worker")
	must(t, m.Create(ctx, gen.Instance("default", ov, nil)))
	status(t, m.await(t, ns, "default", env.Ended("deploy", 1)), "deploy", v1beta1.Complete)
}
