package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// formerInstance creates an Instance, with its status and its objects as KUDO v0.19 leaves them after its plan deploy.
func formerInstance(t testing.TB, c client.Client, instance *v1beta1.Instance) {
	t.Helper()
	env.Must(t, c.Create(context.Background(), instance, client.FieldOwner("kubectl-kudo")))
	instance.Status = lifecycle.FormerStatus()
	env.Must(t, c.Status().Update(context.Background(), instance, client.FieldOwner("manager")))
	for _, object := range lifecycle.FormerObjects(t, instance) {
		env.Must(t, c.Create(context.Background(), object, client.FieldOwner("manager")))
	}
}

// podStarts are the uids of the pods of a namespace by their names, with the times at which they started.
func podStarts(t testing.TB, c client.Client, ns string) map[string]string {
	t.Helper()
	list := &corev1.PodList{}
	env.Must(t, c.List(context.Background(), list, client.InNamespace(ns)))
	out := map[string]string{}
	for _, pod := range list.Items {
		if pod.Status.StartTime != nil {
			out[pod.Name] = fmt.Sprintf("%s %s", pod.UID, pod.Status.StartTime)
		}
	}
	return out
}

var _ = It("The next plan of an Instance of KUDO takes over its Deployment, StatefulSet, Job and child, and no pod is started anew", Label("from-kudo"), func() {
	t := GinkgoTB()
	m := newManaged(t)
	ns := m.NewNamespace(t)
	parent, child := lifecycle.FormerVersions(ns)
	env.Must(t, m.Create(t.Context(), child))
	env.Must(t, m.Create(t.Context(), parent))
	site := gen.Instance("site", parent, nil)
	formerInstance(t, m, site)
	formerInstance(t, m, lifecycle.FormerCacheInstance(site, child))
	env.Eventually(t, "the pods of KUDO's objects", func() string {
		if n := len(podStarts(t, m, ns)); n != lifecycle.FormerPods {
			return fmt.Sprintf("%d have started, of %d", n, lifecycle.FormerPods)
		}
		return ""
	})
	before := podStarts(t, m, ns)

	m.restart(t)
	old := m.await(t, ns, "site", func(i *v1beta1.Instance) bool { return i != nil && i.Status.ObservedGeneration == i.Generation })
	if st := old.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete || st.UID != site.Status.PlanStatus["deploy"].UID {
		t.Errorf("without a change, a plan was started: %+v", st)
	}
	patch := client.MergeFrom(old.DeepCopy())
	old.Spec.Parameters = map[string]string{"VALUE": "b"}
	env.Must(t, m.Patch(t.Context(), old, patch))
	for _, name := range []string{"site", "site-cache"} {
		i := m.await(t, ns, name, func(i *v1beta1.Instance) bool {
			st := i.Status.PlanStatus["deploy"]
			return st.Revision > 0 && st.Status.IsTerminal()
		})
		if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
			t.Fatalf("deploy of %s is %s: %s", name, st.Status, st.Message)
		}
		if got := env.Read(t, m, &corev1.ConfigMap{}, ns, name+"-notes").Data["key"]; got != "b" {
			t.Errorf("the plan of %s has not written the new value, but %q", name, got)
		}
	}
	if diff := cmp.Diff(before, podStarts(t, m, ns)); diff != "" {
		t.Errorf("pods were started anew: -before +after:\n%s", diff)
	}
	for _, of := range []struct{ apiVersion, kind, name string }{
		{"apps/v1", "Deployment", "site-web"}, {"apps/v1", "StatefulSet", "site-store"}, {"batch/v1", "Job", "site-init"},
		{"apps/v1", "Deployment", "site-cache-web"}, {"v1", "ConfigMap", "site-page"}, {"v1", "Secret", "site-key"},
	} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(of.apiVersion)
		object.SetKind(of.kind)
		env.Must(t, m.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: of.name}, object))
		if object.GetAnnotations()[v1beta1.LastAppliedAnnotation] != "" {
			t.Errorf("%s %s was not taken over: it has KUDO's annotation still", of.kind, of.name)
		}
		if !slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Operation == metav1.ManagedFieldsOperationApply && strings.HasPrefix(entry.Manager, "kudo/")
		}) {
			t.Errorf("%s %s was not taken over: its managed fields are %+v", of.kind, of.name, object.GetManagedFields())
		}
	}
	if owners := env.Read(t, m, &v1beta1.Instance{}, ns, "site-cache").OwnerReferences; len(owners) != 1 || owners[0].UID != site.UID {
		t.Errorf("the owners of the child are %+v, want the parent", owners)
	}
})
