package command_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/clusters/karmada/remote"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// placed returns an Instance of a hub on cluster m1, which leaves cluster m2.
func placed() *v1beta1.Instance {
	i := gen.Instance("book", gen.Version("lab", "guestbook-1"), nil)
	i.UID, i.Generation = "book-uid", 2
	i.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
	i.Status.Members = []v1beta1.MemberStatus{{Cluster: "m1"}, {Cluster: "m2", State: v1beta1.MemberLeaving}}
	return i
}

// copied returns the copy of an Instance.
func copied(of *v1beta1.Instance) *v1beta1.Instance {
	i := of.DeepCopy()
	i.Annotations = map[string]string{v1beta1.TemplateAnnotation: v1beta1.Template(of.UID, of.Generation)}
	i.Status = v1beta1.InstanceStatus{}
	return i
}

// recorder records the headers of requests, and passes the requests on.
type recorder struct {
	mu      sync.Mutex
	headers []http.Header
	paths   []string
	to      http.Handler
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	r.headers, r.paths = append(r.headers, request.Header.Clone()), append(r.paths, request.URL.Path)
	r.mu.Unlock()
	r.to.ServeHTTP(w, request)
}

// has reports whether any request had a value of a header.
func (r *recorder) has(header, value string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.headers, func(h http.Header) bool { return strings.Contains(h.Get(header), value) })
}

// useContexts writes a kubeconfig. Its current context is hub, and each cluster has a context of its name.
func useContexts(t *testing.T, hub string, clusters map[string]string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "hub"
	for name, server := range clusters {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		config.Clusters[name] = &clientcmdapi.Cluster{Server: server, InsecureSkipTLSVerify: strings.HasPrefix(server, "https")}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Username: name, Password: "own"}
	}
	config.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", Namespace: "lab"}
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: hub}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	t.Setenv("KUDO_HOME", t.TempDir())
}

// inCluster returns a command that notes the Instance which it works on.
func inCluster(found *string) commandtest.Constructor {
	return func(env *command.Env) *cobra.Command {
		var cluster string
		cmd := command.NewInstanceCommand(env, "show NAME", "Show", env.InCluster(&cluster, func(_ context.Context, _ client.WithWatch,
			i *v1beta1.Instance) error {
			*found = string(i.UID) + " " + i.PlacedTemplate()
			return nil
		}))
		command.AddClusterFlag(cmd, &cluster)
		return cmd
	}
}

// TestInCluster checks C41: a command works on the copy in a cluster, by the context of its name. A token and a server that were given for
// the hub stay with the hub; an impersonated user is the same everywhere.
func TestInCluster(t *testing.T) {
	hub, m1 := apitest.Start(t, placed()), &recorder{to: apitest.Start(t, copied(placed()))}
	server := httptest.NewTLSServer(m1)
	t.Cleanup(server.Close)
	useContexts(t, "http://none.invalid", map[string]string{"m1": server.URL})
	var found string
	args := []string{"show", "book", "--server", hub.Config().Host, "--token", "of-the-hub", "--as", "jane"}
	commandtest.Expect(t, inCluster(&found), 0, "", append(args, "--cluster", "m1")...)
	if !strings.HasSuffix(found, " book-uid/2") {
		t.Errorf("the command works on %q", found)
	}
	if len(m1.headers) == 0 || m1.has("Authorization", "of-the-hub") || !m1.has("Authorization", "Basic") || !m1.has("Impersonate-User", "jane") {
		t.Errorf("the cluster got %v", m1.headers)
	}
	for cluster, want := range map[string]string{"m2": "no context of this name", "m3": "it is placed on m1, m2"} {
		found = ""
		_, errs := commandtest.Expect(t, inCluster(&found), 1, "", append(args, "--cluster", cluster)...)
		if found != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: works on %q: %s", cluster, found, errs)
		}
	}
	hub.Put(gen.Instance("page", gen.Version("lab", "guestbook-1"), nil))
	if _, errs := commandtest.Expect(t, inCluster(&found), 1, "", "show", "page", "--server", hub.Config().Host, "--cluster", "m1"); !strings.Contains(
		errs, "leave --cluster out") {
		t.Errorf("an Instance that is not placed: %s", errs)
	}
}

// TestInClusterOfKarmada checks C41: on a hub of Karmada, a cluster is reached by its proxy, with the identity that the user has on the hub,
// also where the kubeconfig has a context of its name.
func TestInClusterOfKarmada(t *testing.T) {
	api, member := apitest.Start(t, placed()), apitest.Start(t, copied(placed()))
	api.AddKind(remote.ClusterKind, false)
	const proxy = "/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy"
	hub := &recorder{to: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, proxy+"/") {
			http.StripPrefix(proxy, member).ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})}
	server := httptest.NewServer(hub)
	t.Cleanup(server.Close)
	useContexts(t, server.URL, map[string]string{"m1": "http://none.invalid"})
	var found string
	commandtest.Expect(t, inCluster(&found), 0, "", "show", "book", "--cluster", "m1")
	if !strings.HasSuffix(found, " book-uid/2") || !slices.Contains(hub.paths, proxy+"/apis/kudo.dev/v1beta1/namespaces/lab/instances/book") {
		t.Errorf("works on %q by %v", found, hub.paths)
	}
}

// TestClustersOf checks which clusters have copies: those of the placement, and those that the Instance leaves.
func TestClustersOf(t *testing.T) {
	if diff := cmp.Diff([]string{"m1", "m2"}, command.ClustersOf(placed())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := command.ClustersOf(copied(placed())); got != nil {
		t.Errorf("a copy has copies in %v", got)
	}
}

// TestIsCopy checks that only what has the uid of the Instance of the hub is its copy.
func TestIsCopy(t *testing.T) {
	other := placed()
	other.UID = "other"
	for _, tc := range []struct {
		reason          string
		found, template *v1beta1.Instance
		want            bool
	}{
		{"its copy", copied(placed()), placed(), true},
		{"that of another Instance", copied(other), placed(), false},
		{"an Instance without a hub", gen.Instance("book", gen.Version("lab", "guestbook-1"), nil), placed(), false},
		{"a template without a uid", gen.Instance("book", gen.Version("lab", "guestbook-1"), nil), &v1beta1.Instance{}, false},
	} {
		if got := command.IsCopy(tc.found, tc.template); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}
