package faults

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// testbed is a namespace of a test's own. Its name is in the name of all that the test makes outside of it, and in none of
// another testbed.
type testbed struct {
	testing.TB
	ns string
	// collected is set if the garbage collector may or may not take objects before they are held again, so that they are
	// either made anew or shared.
	collected bool
	// timeout is how long a plan may take.
	timeout time.Duration
	// foreign are objects of others, as they were.
	foreign map[string]string
}

func newWorld(t testing.TB) *testbed {
	t.Helper()
	ns, err := suite.Namespace(ctx)
	env.Must(t, err)
	return &testbed{TB: t, ns: ns, timeout: env.DefaultTimeout}
}

// limit bounds how long a plan may take with a fault in between.
const limit = 3 * time.Minute

func (w *testbed) create(objs ...client.Object) {
	w.Helper()
	for _, obj := range objs {
		env.Must(w, suite.Create(ctx, obj))
	}
}

func (w *testbed) instance(name string) *v1beta1.Instance {
	w.Helper()
	return env.Read(w, suite, &v1beta1.Instance{}, w.ns, name)
}

// edit changes the spec of an Instance.
func (w *testbed) edit(name string, change func(*v1beta1.Instance)) {
	w.Helper()
	i := w.instance(name)
	patch := client.MergeFrom(i.DeepCopy())
	change(i)
	env.Must(w, suite.Patch(ctx, i, patch))
}

// await waits for a state of an Instance.
func (w *testbed) await(name string, holds func(*v1beta1.Instance) bool) *v1beta1.Instance {
	w.Helper()
	i, err := suite.Await(ctx, w.ns, name, w.timeout, holds)
	if err != nil {
		w.Fatalf("%v\n%s\nthe manager said:\n%s", err, w.servers(), manager.tail())
	}
	return i
}

// receive waits for a value from the proxy of a test.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	var what T
	select {
	case what = <-from:
	case <-time.After(limit):
		t.Fatalf("after %s: the fault did not occur; the manager said:\n%s", limit, manager.tail())
	}
	return what
}

// servers tells how the servers of the testbed are, apart from what kudo makes of it.
func (w *testbed) servers() string {
	deployments, pods := &appsv1.DeploymentList{}, &corev1.PodList{}
	if err := errors.Join(suite.List(ctx, deployments, client.InNamespace(w.ns)), suite.List(ctx, pods, client.InNamespace(w.ns))); err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, d := range deployments.Items {
		fmt.Fprintf(&out, "Deployment %s: generation %d, %+v\n", d.Name, d.Generation, d.Status)
	}
	for _, p := range pods.Items {
		fmt.Fprintf(&out, "Pod %s: %s\n", p.Name, p.Status.Phase)
	}
	return out.String()
}

// complete is a predicate: the n-th run of an Instance, of a plan, has succeeded, and nothing else is asked for.
func complete(plan string, n int64) func(*v1beta1.Instance) bool {
	return func(i *v1beta1.Instance) bool {
		return env.PlanEnded(plan, n)(i) && i.Status.ObservedGeneration == i.Generation && i.Status.AggregatedStatus.ActivePlanName == ""
	}
}

func gone(i *v1beta1.Instance) bool { return i == nil }

// trigger asks for a run by hand.
func (w *testbed) trigger(name, plan string, n int64) {
	w.Helper()
	w.edit(name, func(i *v1beta1.Instance) {
		i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: plan, UID: types.UID(fmt.Sprintf("again-%s-%d", plan, n))}
	})
}

// bystanders puts objects of others beside those of the plans: of the same kinds, in the same namespace, some with names
// that look alike, a claim with a user's data among them.
func (w *testbed) bystanders() {
	w.Helper()
	labels := map[string]string{"app": "theirs"}
	container := corev1.Container{Name: "c", Image: "nginx"}
	template := corev1.PodTemplateSpec{ObjectMeta: gen.Meta("", ""), Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	template.Labels = labels
	objs := []client.Object{
		&corev1.ConfigMap{ObjectMeta: gen.Meta(w.ns, "i-one-9"), Data: map[string]string{"key": "theirs"}},
		&corev1.Secret{ObjectMeta: gen.Meta(w.ns, "i-theirs"), StringData: map[string]string{"key": "theirs"}},
		&corev1.ServiceAccount{ObjectMeta: gen.Meta(w.ns, "i-theirs")},
		&rbacv1.ClusterRole{ObjectMeta: gen.Meta("", w.ns+"-theirs")},
		&appsv1.ControllerRevision{ObjectMeta: gen.Meta(w.ns, "i-theirs"), Revision: 7, Data: runtime.RawExtension{Raw: []byte("{}")}},
		&appsv1.Deployment{ObjectMeta: gen.Meta(w.ns, "i-theirs"), Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
		}},
		&corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta(w.ns, "data-i-0"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
	}
	w.create(objs...)
	w.foreign = map[string]string{}
	for _, obj := range objs {
		w.foreign[fmt.Sprintf("%T %s", obj, obj.GetName())] = fingerprint(obj)
	}
	w.Cleanup(func() {
		if !w.Failed() {
			_ = suite.Delete(ctx, objs[3])
		}
	})
}

// fingerprint is what of a foreign object must not change: all of it where only its owner writes, else what the plans of others
// could have touched.
func fingerprint(obj client.Object) string {
	text := fmt.Sprint(obj.GetUID(), obj.GetGeneration(), obj.GetLabels(), obj.GetOwnerReferences(), obj.GetDeletionTimestamp())
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return text
	case *corev1.PersistentVolumeClaim:
		return text + fmt.Sprint(o.Spec.Resources)
	}
	return text + obj.GetResourceVersion() + fmt.Sprint(obj.GetAnnotations())
}

// untouched wants the objects of others as they were.
func (w *testbed) untouched() {
	w.Helper()
	for _, obj := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: gen.Meta(w.ns, "i-one-9")}, &corev1.Secret{ObjectMeta: gen.Meta(w.ns, "i-theirs")},
		&corev1.ServiceAccount{ObjectMeta: gen.Meta(w.ns, "i-theirs")}, &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", w.ns+"-theirs")},
		&appsv1.ControllerRevision{ObjectMeta: gen.Meta(w.ns, "i-theirs")}, &appsv1.Deployment{ObjectMeta: gen.Meta(w.ns, "i-theirs")},
		&corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta(w.ns, "data-i-0")},
	} {
		name := fmt.Sprintf("%T %s", obj, obj.GetName())
		if err := suite.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			w.Errorf("%s, which is of others: %v", name, err)
		} else if now := fingerprint(obj); now != w.foreign[name] {
			w.Errorf("%s, which is of others, was changed from\n%s to\n%s", name, w.foreign[name], now)
		}
	}
}
