package local

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kudo.dev/kudo/test/env"
)

// The specs share two instances, in the order in which they stand here, since a start takes seconds.
var _ = Describe("An instance of profile full beside one of profile api", Ordered, func() {
	var full, api *instance
	var client kubernetes.Interface
	BeforeAll(func() {
		t := GinkgoTB()
		state := t.TempDir()
		full, api = newInstance(t, state, "full"), newInstance(t, state, "api")
		full.run("up")
		api.run("up", "--profile", "api")
		client = full.client()
		makeNamespace(t, client, "work")
	})

	It("comes up once", func() { checkSecondUp(GinkgoTB(), full) })
	It("is listed", func() { Expect(api.run("list")).To(Equal("api\nfull\n")) })
	It("makes Deployments available", func() { checkDeployment(GinkgoTB(), client, "work") })
	It("gives StatefulSets their claims", func() { checkStatefulSet(GinkgoTB(), client, "work") })
	It("ends Jobs as their commands say", func() { checkJobs(GinkgoTB(), client, "work") })
	It("cannot pull some images", func() { checkBadImage(GinkgoTB(), client, "work") })
	It("has the logs that pods say", func() { checkLogs(GinkgoTB(), full, "work") })
	It("gives rights to administrators alone", func() { checkRights(GinkgoTB(), full) })
	It("has no controllers in profile api", func() { checkNoController(GinkgoTB(), api.client()) })
	It("ends namespaces, and volumes with them", func() { checkNamespaceEnds(GinkgoTB(), client, "work") })
	It("names what has died, and starts it again", func() { checkFault(GinkgoTB(), full) })
	It("keeps its data when it goes down, and deletes all on request", func() { checkDown(GinkgoTB(), full) })
	It("is reset to a cluster without data", func() { checkReset(GinkgoTB(), api) })
})

// checkSecondUp checks that another start of what runs says the same, and changes no process.
func checkSecondUp(t testing.TB, l *instance) {
	t.Helper()
	before, first := l.pids(), l.run("up")
	if second := l.run("up"); second != first {
		t.Errorf("another up prints\n%s\nthe one before printed\n%s", second, first)
	}
	if after := l.pids(); !maps.Equal(before, after) {
		t.Errorf("another up changes processes: %v, before %v", after, before)
	}
	l.run("status")
}

// checkRights checks that the metrics are for the administrator, and that a ServiceAccount's token works, and gives no rights by
// itself.
func checkRights(t testing.TB, l *instance) {
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

// checkNoController checks that no ReplicaSet is created. It need not wait: when the ServiceAccount of a new namespace exists, a controller
// would have had the time to act.
func checkNoController(t testing.TB, client kubernetes.Interface) {
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

func checkFault(t testing.TB, l *instance) {
	l.run("kill", "kube-scheduler")
	stdout, stderr, err := l.try("status")
	if err == nil {
		t.Error("status succeeds although the scheduler has ended")
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

func checkDown(t testing.TB, l *instance) {
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

func checkReset(t testing.TB, l *instance) {
	client := l.client()
	l.run("reset")
	env.Eventually(t, "a cluster without data", func() string {
		list, err := client.AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return "the kubeconfig of before does not work: " + err.Error()
		}
		if len(list.Items) > 0 {
			return "reset keeps data"
		}
		return ""
	})
}
