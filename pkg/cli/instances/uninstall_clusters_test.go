package instances

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/clusters/karmada/remote"
	"kudo.dev/kudo/test/apitest"
)

// useKarmada starts the API server of a hub with Karmada's proxy, which leads to cluster m1.
func useKarmada(t *testing.T, template *v1beta1.Instance, version *v1beta1.OperatorVersion, m1 http.Handler) *apitest.Server {
	t.Helper()
	hub := onServer(t, template, version)
	hub.AddKind(remote.ClusterKind, false)
	hub.AddKind(remote.WorkKind, true)
	config, err := remote.Access(&rest.Config{Host: "http://hub"}, "m1")
	if err != nil {
		t.Fatal(err)
	}
	proxy := strings.TrimPrefix(config.Host, "http://hub")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, proxy+"/") {
			http.StripPrefix(proxy, m1).ServeHTTP(w, r)
			return
		}
		hub.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	file := hub.Kubeconfig(t, "lab")
	kubeconfig, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig.Clusters["c"].Server = front.URL
	if err := clientcmd.WriteToFile(*kubeconfig, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	return hub
}

// onlyM1 returns an Instance of a hub on cluster m1.
func onlyM1(version *v1beta1.OperatorVersion) *v1beta1.Instance {
	i := book(version)
	i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
	i.Status.Members = i.Status.Members[:1]
	return i
}

// workOf returns the Work of an Instance in cluster m1.
func workOf(i *v1beta1.Instance) *unstructured.Unstructured {
	work := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
		"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": map[string]any{"namespace": i.Namespace, "name": i.Name}}}}}}}
	work.SetGroupVersionKind(remote.WorkKind)
	work.SetNamespace(remote.WorkNamespace("m1"))
	work.SetName("book")
	return work
}

// TestUninstallByKarmada checks C36: the command says what a cluster waits for, and ends with 4 if that takes too long. The Works of a
// cluster, which may be many, are listed once.
func TestUninstallByKarmada(t *testing.T) {
	version := web("1.0.0")
	template := onlyM1(version)
	leaving := copyOf(template)
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{}, []string{"kudo.dev/cleanup"}
	*leaving.DeletionTimestamp = metav1.Now()
	for _, tc := range []struct {
		reason string
		copied *v1beta1.Instance
		work   bool
		code   int
		want   string
	}{
		{"the copy and its Work do not exist any more", nil, false, 0, "cluster m1: gone\n"},
		{"the Work waits", nil, true, command.ExitTimeout, "cluster m1: its Work is still on the hub\n"},
		{"the deletion has not arrived", copyOf(template), true, command.ExitTimeout, "cluster m1: the deletion has not arrived\n"},
		{"the plan cleanup says nothing", leaving, false, command.ExitTimeout, "cluster m1: cleaning up\n"},
	} {
		m1 := apitest.Start(t)
		if tc.copied != nil {
			m1.Put(tc.copied)
		}
		hub := useKarmada(t, template, version, m1)
		if tc.work {
			hub.Put(workOf(template))
		}
		out, errs := commandtest.Expect(t, NewUninstall, tc.code, "", "uninstall", "book", "--wait", "--wait-time", "3s")
		if !strings.Contains(out, tc.want) || (tc.code != 0) != strings.Contains(errs, "after 3s it is still in m1") {
			t.Errorf("%s: no %q in\n%s%s", tc.reason, tc.want, out, errs)
		}
		lists := slices.DeleteFunc(hub.Requests(), func(r string) bool { return !strings.HasPrefix(r, "list Work") })
		if len(lists) > 1 && tc.work {
			t.Errorf("%s: the Works are listed %d times", tc.reason, len(lists))
		}
	}
}

// TestUninstallUnverified checks C36: a cluster that the user may not look into is not said to be empty, and neither is one of a hub that
// does not say whether it has Karmada.
func TestUninstallUnverified(t *testing.T) {
	version := web("1.0.0")
	template := onlyM1(version)
	m1 := apitest.Start(t)
	m1.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "" {
			return nil, nil
		}
		return nil, apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("instances").GroupResource(), "book", errors.New("no right"))
	})
	useKarmada(t, template, version, m1)
	if out, _ := commandtest.Expect(t, NewUninstall, 0, "", "uninstall", "book", "--wait"); !strings.Contains(out,
		"cluster m1: deletion sent, not verified") {
		t.Errorf("without a right in the cluster: %s", out)
	}
	hub := onServer(t, template, version)
	hub.Before(func(r apitest.Request) (any, error) {
		if strings.HasPrefix(r.String(), "/apis/cluster.karmada.io") || r.String() == "/apis" || r.String() == "/api" {
			return nil, apierrors.NewInternalError(errors.New("discovery is away"))
		}
		return nil, nil
	})
	out, errs := commandtest.Expect(t, NewUninstall, 1, "", "uninstall", "book", "--wait")
	if strings.Contains(out, "gone") || !strings.Contains(errs, "what the clusters do is not known") {
		t.Errorf("without discovery: %s%s", out, errs)
	}
}
