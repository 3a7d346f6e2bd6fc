package test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// TestFullAndAPISideBySide is one long test, because a control plane is
// started once for all of it.
func TestFullAndAPISideBySide(t *testing.T) {
	state := t.TempDir()
	full, api := newLocal(t, state, "full"), newLocal(t, state, "api")

	first := full.run("up")
	before := full.pids()
	if second := full.run("up"); second != first {
		t.Errorf("a second up prints\n%s\nthe first printed\n%s", second, first)
	}
	if after := full.pids(); !maps.Equal(before, after) {
		t.Errorf("a second up changes processes: %v, before %v", after, before)
	}
	full.run("status")
	api.run("up", "--profile", "api")
	if list := api.run("list"); list != "api\nfull\n" {
		t.Errorf("list prints %q", list)
	}

	client := full.client()
	makeNamespace(t, client, "work")
	t.Run("deployment", func(t *testing.T) { checkDeployment(t, client, "work") })
	t.Run("statefulset", func(t *testing.T) { checkStatefulSet(t, client, "work") })
	t.Run("jobs", func(t *testing.T) { checkJobs(t, client, "work") })
	t.Run("bad image", func(t *testing.T) { checkBadImage(t, client, "work") })
	t.Run("logs", func(t *testing.T) { checkLogs(t, full, "work") })
	t.Run("rights", func(t *testing.T) { checkRights(t, full) })
	t.Run("no controllers in profile api", func(t *testing.T) { checkNoController(t, api.client()) })
	t.Run("namespace ends", func(t *testing.T) { checkNamespaceEnds(t, client, "work") })
	t.Run("fault", func(t *testing.T) { checkFault(t, full) })
	t.Run("down and up again", func(t *testing.T) { checkDown(t, full) })
	t.Run("reset", func(t *testing.T) { checkReset(t, api) })
}

// checkRights: the metrics are for the admin; a ServiceAccount's token works, and gives no rights by itself.
func checkRights(t *testing.T, l *local) {
	client := l.client()
	metrics, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(metrics), "apiserver_request_total") {
		t.Errorf("the admin cannot read /metrics: %v", err)
	}
	request := &authenticationv1.TokenRequest{}
	token := must(client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", request, metav1.CreateOptions{}))(t)
	config, err := clientcmd.BuildConfigFromFlags("", strings.TrimSpace(l.run("kubeconfig")))
	if err != nil {
		t.Fatal(err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token.Status.Token
	account, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review := must(account.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))(t)
	if review.Status.UserInfo.Username != "system:serviceaccount:default:default" {
		t.Errorf("the token is of %q", review.Status.UserInfo.Username)
	}
	if _, err := account.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a ServiceAccount without rights reads secrets")
	}
}

// checkNoController does not wait for nothing to happen: the ServiceAccount of a new namespace
// is made, so controllers had the time to act, and no ReplicaSet is.
func checkNoController(t *testing.T, client kubernetes.Interface) {
	must(client.AppsV1().Deployments("default").Create(t.Context(), parse[appsv1.Deployment](t, deployment), metav1.CreateOptions{}))(t)
	makeNamespace(t, client, "other")
	sets := must(client.AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{}))(t)
	nodes := must(client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}))(t)
	if len(sets.Items) != 0 || len(nodes.Items) != 0 {
		t.Errorf("profile api has %d ReplicaSets and %d nodes", len(sets.Items), len(nodes.Items))
	}
	d := must(client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{}))(t)
	if d.Status.ObservedGeneration != 0 {
		t.Error("a controller acts on Deployments in profile api")
	}
	checkNamespaceEnds(t, client, "other")
}

func checkFault(t *testing.T, l *local) {
	l.run("kill", "kube-scheduler")
	stdout, stderr, err := l.try("status")
	if err == nil {
		t.Error("status is content with a dead scheduler")
	}
	if !strings.Contains(stderr, "kube-scheduler is dead") || !strings.Contains(stdout, "kube-scheduler has died. The end of its log") {
		t.Errorf("status does not name the dead scheduler:\n%s%s", stdout, stderr)
	}
	l.run("start", "kube-scheduler")
	l.run("status")

	l.run("kill", "etcd")
	l.run("kill", "kwok")
	l.run("up")
	l.run("status")
	if log := l.run("logs", "etcd", "--tail", "1"); strings.Count(log, "\n") != 1 {
		t.Errorf("one line of log is %q", log)
	}
	if _, stderr, err := l.try("kill", "nonsense"); err == nil || !strings.Contains(stderr, "it has etcd, ") {
		t.Errorf("killing nonsense: %v %s", err, stderr)
	}
}

func checkDown(t *testing.T, l *local) {
	makeNamespace(t, l.client(), "kept")
	pids, ports := l.pids(), l.ports()
	if len(pids) != 5 {
		t.Errorf("%d processes: %v", len(pids), pids)
	}
	l.run("down")
	for name, pid := range pids {
		if running(pid) {
			t.Errorf("%s is left as process %d", name, pid)
		}
	}
	for use, port := range ports {
		if listening(port) {
			t.Errorf("port %d of %s is left", port, use)
		}
	}
	l.run("down")
	l.run("up")
	if _, err := l.client().CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("down has lost data: %v", err)
	}
	l.run("down", "--delete")
	if _, err := os.Stat(filepath.Join(l.state, l.name)); !os.IsNotExist(err) {
		t.Errorf("down --delete leaves the folder: %v", err)
	}
}

func checkReset(t *testing.T, l *local) {
	client := l.client()
	l.run("reset")
	eventually(t, 10*time.Second, func(ctx context.Context) string {
		list, err := client.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return "the kubeconfig of before does not work: " + err.Error()
		}
		if len(list.Items) > 0 {
			return "reset keeps data"
		}
		return ""
	})
}
