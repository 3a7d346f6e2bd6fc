package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// long bounds every wait for something that takes moments; the garbage collector learns of kudo's kinds only after
// half a minute of a cluster's life.
const long = 2 * time.Minute

// kudo runs the command line, and wants an exit code.
func kudo(t testing.TB, code int, args ...string) string {
	t.Helper()
	out, got := plane.Kudo(args...)
	if got != code {
		t.Fatalf("kubectl kudo %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return out
}

// contains wants all texts in the output.
func contains(t testing.TB, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("the output lacks %q:\n%s", text, out)
		}
	}
}

// deploy creates an OperatorVersion and an Instance of it, and waits for the end of the deploy plan.
func deploy(t testing.TB, ov *v1beta1.OperatorVersion, name string, parameters map[string]string) *v1beta1.Instance {
	t.Helper()
	env.Must(t, cluster.Create(context.Background(), ov))
	env.Must(t, cluster.Create(context.Background(), gen.Instance(name, ov, parameters)))
	return await(t, ov.Namespace, name, env.PlanEnded(v1beta1.DeployPlan, 1))
}

func await(t testing.TB, ns, name string, holds func(*v1beta1.Instance) bool) *v1beta1.Instance {
	t.Helper()
	i, err := cluster.Await(context.Background(), ns, name, long, holds)
	env.Must(t, err)
	return i
}

// edit patches an Instance.
func edit(t testing.TB, ns, name string, change func(*v1beta1.Instance)) error {
	t.Helper()
	i := &v1beta1.Instance{}
	env.Must(t, cluster.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: name}, i))
	patch := client.MergeFrom(i.DeepCopy())
	change(i)
	return cluster.Patch(context.Background(), i, patch)
}

// status wants a plan's status.
func status(t testing.TB, i *v1beta1.Instance, plan string, want v1beta1.ExecutionStatus, texts ...string) {
	t.Helper()
	st := i.Status.PlanStatus[plan]
	if st.Status != want {
		t.Fatalf("plan %s is %s, want %s: %s", plan, st.Status, want, st.Message)
	}
	contains(t, st.Message, texts...)
}

// get reads an object.
func get[T client.Object](t testing.TB, obj T, ns, name string) T {
	t.Helper()
	env.Must(t, cluster.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: name}, obj))
	return obj
}

// events lists the events of a namespace as "reason: message".
func events(t testing.TB, ns string) []string {
	t.Helper()
	list := &corev1.EventList{}
	env.Must(t, cluster.List(context.Background(), list, client.InNamespace(ns)))
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Reason+": "+e.Message)
	}
	return out
}

func hasEvent(t testing.TB, ns string, text string) {
	t.Helper()
	env.Eventually(t, "an event with "+text, env.Condition(func() bool { return strings.Contains(strings.Join(events(t, ns), "\n"), text) }))
}

// leftovers lists what is in a namespace that a fresh one does not have.
func leftovers(t testing.TB, ns string) []string {
	t.Helper()
	var out []string
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PodList{},
		&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.ControllerRevisionList{}, &v1beta1.InstanceList{},
	} {
		env.Must(t, cluster.List(context.Background(), list, client.InNamespace(ns)))
		for _, item := range items(t, list) {
			if item.GetName() != "kube-root-ca.crt" {
				out = append(out, fmt.Sprintf("%T %s", item, item.GetName()))
			}
		}
	}
	return out
}

func items(t testing.TB, list client.ObjectList) []client.Object {
	t.Helper()
	objects, err := meta.ExtractList(list)
	env.Must(t, err)
	var out []client.Object
	for _, o := range objects {
		out = append(out, o.(client.Object))
	}
	return out
}

// write makes a package folder of files.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		env.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		env.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return dir
}
