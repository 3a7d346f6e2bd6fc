package hub

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
)

// front is the API server of the hub with Karmada's proxy, which leads to the clusters. It gives every client the rights of an
// administrator.
type front struct {
	kubeconfig string
	hub        http.Handler
	members    map[string]http.Handler

	mu sync.Mutex
	// answers are the codes that the proxy of a cluster answers with, in place of the cluster.
	answers map[string]int
}

var proxyPath = regexp.MustCompile(`^/apis/cluster\.karmada\.io/v1alpha1/clusters/([^/]+)/proxy(/.*)$`)

// newFront starts a front, which ends with the test.
func newFront(t *testing.T, p *planes) *front {
	t.Helper()
	f := &front{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), hub: forwardTo(t, p.hub), members: map[string]http.Handler{},
		answers: map[string]int{}}
	for name, member := range p.members {
		f.members[name] = forwardTo(t, member)
	}
	server := httptest.NewTLSServer(f)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: server.URL, InsecureSkipTLSVerify: true}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: "any"}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "admin"}
	config.CurrentContext = "hub"
	env.Must(t, clientcmd.WriteToFile(*config, f.kubeconfig))
	return f
}

// forwardTo returns a handler that sends requests to a control plane, as an administrator.
func forwardTo(t *testing.T, to plane) http.Handler {
	t.Helper()
	target, err := url.Parse(to.Config.Host)
	env.Must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, err = rest.TransportFor(to.Config)
	env.Must(t, err)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		proxy.ServeHTTP(w, r)
	})
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found := proxyPath.FindStringSubmatch(r.URL.Path)
	if found == nil {
		f.hub.ServeHTTP(w, r)
		return
	}
	f.mu.Lock()
	code := f.answers[found[1]]
	f.mu.Unlock()
	if code != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "played", "reason": %q, "code": %d}`,
			map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden}[code], code)
		return
	}
	r.URL.Path = found[2]
	f.members[found[1]].ServeHTTP(w, r)
}

// answer makes the proxy of a cluster answer with a code, or forward again with 0.
func (f *front) answer(cluster string, code int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[cluster] = code
}

// checkRuns checks C41: the plans of the clusters are shown, and retried and cancelled, through the hub.
func checkRuns(t *testing.T, p *planes) {
	f := newFront(t, p)
	i := create(t, p, func(i *v1beta1.Instance) { i.Spec.Placement.Clusters[1].Parameters["MODE"] = "wrong" })
	await(t, p, i, metav1.ConditionFalse, v1beta1.ReasonWaveStopped)
	_, err := p.members["m1"].Await(t.Context(), i.Namespace, i.Name, env.DefaultTimeout, env.PlanEnded("deploy", 1))
	env.Must(t, err)
	wait(t, "the hub has the status of m1", func() error {
		got, err := get(p.hub, &v1beta1.Instance{}, i.Namespace, i.Name)
		if err == nil && !slices.ContainsFunc(got.Status.Members, func(m v1beta1.MemberStatus) bool { return m.Cluster == "m1" && m.PlanStatus == v1beta1.Complete }) {
			err = fmt.Errorf("%+v", got.Status.Members)
		}
		return err
	})
	plan := func(code int, words ...string) string {
		return p.hub.MustKudo(t, code, append(append([]string{"plan"}, words...), "--instance", i.Name, "-n", i.Namespace, "--kubeconfig", f.kubeconfig)...)
	}
	env.Contains(t, plan(0, "status"), "m1", "COMPLETE", "m2", "Failed", "--clusters shows them")
	env.Contains(t, plan(0, "status", "--clusters"), "Cluster m1:", "deploy", "COMPLETE", "Cluster m2:", "FATAL_ERROR")
	env.Contains(t, plan(0, "status", "--cluster", "m1"), "deploy", "COMPLETE")
	env.Contains(t, plan(0, "history", "--clusters"), "CLUSTER", "m1", "m2", "FATAL_ERROR")
	env.Contains(t, plan(0, "history", "--cluster", "m2"), "1          deploy   FATAL_ERROR")
	for _, verb := range []string{"retry", "cancel"} {
		env.Contains(t, plan(1, verb), "each has runs of its own", "--cluster")
	}
	env.Contains(t, plan(1, "history"), "--clusters lists their runs")
	env.Contains(t, plan(1, "retry", "--cluster", "m3"), "no copy in cluster m3", "m1, m2")
	env.Contains(t, plan(1, "cancel", "--cluster", "m1"), "no plan", "is running")
	env.Contains(t, plan(3, "retry", "--cluster", "m2", "--wait"), "is being retried")
	env.Contains(t, plan(0, "history", "--cluster", "m2"), "2          deploy   FATAL_ERROR")
	f.answer("m2", http.StatusBadGateway)
	env.Contains(t, plan(1, "status", "--clusters"), "Cluster m1:", "COMPLETE", "Cluster m2:", "1 of 2 clusters cannot be read: m2")
	env.Contains(t, plan(1, "status", "--clusters", "-o", "json"), `"cluster": "m1"`, `"error": `)
}

// checkUninstall checks C36: uninstall --wait ends when no cluster has a copy, and says which clusters were not asked, or do not answer.
func checkUninstall(t *testing.T, p *planes) {
	f := newFront(t, p)
	ready := func(edit func(i *v1beta1.Instance)) *v1beta1.Instance {
		i := create(t, p, edit)
		await(t, p, i, metav1.ConditionTrue, v1beta1.ReasonMembersReady)
		return i
	}
	uninstall := func(i *v1beta1.Instance, code int, more ...string) string {
		return p.hub.MustKudo(t, code, append([]string{"uninstall", i.Name, "-n", i.Namespace, "--wait", "--kubeconfig", f.kubeconfig}, more...)...)
	}
	exists := func(i *v1beta1.Instance, member string) bool {
		_, err := get(p.members[member], &v1beta1.Instance{}, i.Namespace, i.Name)
		return err == nil
	}
	none := func(*v1beta1.Instance) {}

	i := ready(none)
	env.Contains(t, uninstall(i, 0), "to be deleted: instance "+i.Namespace+"/book in clusters m1, m2", "cluster m1: gone", "cluster m2: gone")
	if exists(i, "m1") || exists(i, "m2") {
		t.Error("a copy is left")
	}

	i = ready(none)
	f.answer("m2", http.StatusForbidden)
	env.Contains(t, uninstall(i, 0), "cluster m1: gone", "cluster m2: deletion sent, not verified")
	f.answer("m2", 0)

	i = ready(none)
	f.answer("m2", http.StatusBadGateway)
	p.faults.cut("m2")
	env.Contains(t, uninstall(i, 4, "--wait-time", "30s"), "cluster m1: gone", "cluster m2: unreachable: its Work waits", "still in m2")
	f.answer("m2", 0)
	p.faults.repair()
	wait(t, "m2 has no copy", func() error {
		if exists(i, "m2") {
			return fmt.Errorf("it is there")
		}
		return nil
	})
}
