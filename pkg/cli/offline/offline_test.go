package offline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestServed checks that the newest stable API of each kind is served, with the right scope, and none that Kubernetes has removed.
func TestServed(t *testing.T) {
	transport, err := rest.HTTPClientFor(Config())
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(Config(), transport)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, version, want string
	}{
		{"Deployment.apps", "v1", "deployments, namespaced"},
		{"ConfigMap", "v1", "configmaps, namespaced"},
		{"Endpoints", "v1", "endpoints, namespaced"},
		{"NetworkPolicy.networking.k8s.io", "v1", "networkpolicies, namespaced"},
		{"Namespace", "v1", "namespaces"},
		{"ClusterRole.rbac.authorization.k8s.io", "v1", "clusterroles"},
		{"CustomResourceDefinition.apiextensions.k8s.io", "v1", "customresourcedefinitions"},
		{"Instance.kudo.dev", "v1beta1", "instances, namespaced"},
		{"Installation.kudo.dev", "v1beta1", "installations"},
		{"PodDisruptionBudget.policy", "v1beta1", "not served"},
		{"CronJob.batch", "v1beta1", "not served"},
		{"Pool.example.com", "v1", "not served"},
	} {
		got := "not served"
		if mapping, err := mapper.RESTMapping(schema.ParseGroupKind(c.kind), c.version); err == nil {
			got = mapping.Resource.Resource
			if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				got += ", namespaced"
			}
		} else if !meta.IsNoMatchError(err) {
			t.Errorf("%s: %v", c.kind, err)
		}
		if got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.version, got, c.want)
		}
	}
	d, err := discovery.NewDiscoveryClientForConfig(Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.ServerPreferredResources(); err != nil {
		t.Errorf("discovery is not complete: %v", err)
	}
}

// TestEmpty checks that no object exists but namespace kube-system, and that nothing can be written.
func TestEmpty(t *testing.T) {
	c, err := client.New(Config(), client.Options{Scheme: apitest.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	at := client.ObjectKey{Namespace: "ns", Name: "x"}
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}, &v1beta1.Instance{}, &corev1.Namespace{}} {
		if err := c.Get(t.Context(), at, obj); !apierror.IsObjectNotFound(err) {
			t.Errorf("%T: %v, want that the object is not found", obj, err)
		}
	}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &v1beta1.InstanceList{}} {
		if err := c.List(t.Context(), list, client.InNamespace("ns")); err != nil || meta.LenList(list) != 0 {
			t.Errorf("%T: %d objects, %v, want none", list, meta.LenList(list), err)
		}
	}
	system := &corev1.Namespace{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil || system.UID == "" {
		t.Errorf("namespace kube-system: %v, uid %q", err, system.UID)
	}
	m, err := metadata.NewForConfig(Config())
	if err != nil {
		t.Fatal(err)
	}
	pods, err := m.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 0 {
		t.Errorf("metadata of pods: %v, %v, want none", pods, err)
	}
	config := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "x")}
	got := map[string]bool{
		"create": apierrors.IsForbidden(c.Create(t.Context(), config)),
		"update": apierrors.IsForbidden(c.Update(t.Context(), config)),
		"delete": apierrors.IsForbidden(c.Delete(t.Context(), config)),
	}
	if diff := cmp.Diff(map[string]bool{"create": true, "update": true, "delete": true}, got); diff != "" {
		t.Errorf("writes are not forbidden: %s", diff)
	}
}
