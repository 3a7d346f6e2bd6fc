package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// accountToken makes a ServiceAccount, and returns a token of it.
func accountToken(t testing.TB, ns, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: gen.Meta(ns, name)}
	env.Must(t, cluster.Create(context.Background(), account))
	request := &authenticationv1.TokenRequest{}
	env.Must(t, cluster.SubResource("token").Create(context.Background(), account, request))
	return request.Status.Token
}

// allowMetrics lets a ServiceAccount get the metrics.
func allowMetrics(t testing.TB, ns, name string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns + "-metrics"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kudo-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: name}},
	}
	env.Must(t, cluster.Create(context.Background(), binding))
	t.Cleanup(func() { _ = cluster.Delete(context.Background(), binding) })
}

// askMetrics returns the status code and the text of the metrics at an address.
func askMetrics(scheme, address, token string) (int, string, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // made at each start
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, scheme+"://"+address+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// rareMetrics are those of the table that no run of this suite has for sure, each with the test that shows it.
var rareMetrics = map[string]string{
	metrics.ScheduleLastSuccess: "no Instance has schedules: TestScheduleMetric of pkg/controllers",
	metrics.InstanceStuck:       "five minutes without progress: TestStuck of pkg/controllers",
	metrics.WriteConflicts:      "two clients at the same time: TestRequests of pkg/metrics",
	metrics.TarballFailures:     "test/crdtarball",
	metrics.VersionsUnverified:  "there are policies: label package-policies",
	metrics.AuthorityExpiry:     "there are policies: label package-policies",
}

var _ = It("The metrics that a manager serves are those of the table", Label("R29"), func() {
	t := GinkgoTB()
	if !plane.IsDisposable() {
		t.Skip("needs the metrics of the manager, and KUDO_TEST_KUBECONFIG names a cluster")
	}
	ns := cluster.NewNamespace(t)
	token := accountToken(t, ns, "reader")
	allowMetrics(t, ns, "reader")
	name := "metrics-" + ns
	deploy(t, web(ns), "asked", nil) // a Deployment is asked about
	deploy(t, gen.Version(ns, name, gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm")), "well", nil)
	broken := gen.Version(ns, name+"-broken", gen.Task("fail", "Dummy", v1beta1.TaskSpec{WantErr: true, Fatal: true}), gen.Serial("deploy", "fail"))
	env.Must(t, cluster.Create(context.Background(), broken))
	env.Must(t, cluster.Create(context.Background(), gen.Instance("ill", broken, nil)))
	await(t, ns, "ill", func(i *v1beta1.Instance) bool { return i.Status.PlanStatus["deploy"].Status == v1beta1.FatalError })
	address, err := plane.ManagerMetrics()
	env.Must(t, err)
	table := map[string]metrics.Metric{}
	for _, m := range metrics.Table {
		table[m.Name] = m
	}
	env.Eventually(t, "the metrics", func() string {
		code, text, err := askMetrics("https", address, token)
		if err != nil || code != http.StatusOK {
			return fmt.Sprintf("the answer is %d (%v)", code, err)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			return err.Error()
		}
		for served, family := range families {
			if !strings.HasPrefix(served, "kudo_") {
				continue
			}
			m, known := table[served]
			if !known || m.Help != family.GetHelp() || !strings.EqualFold(string(m.Type), family.GetType().String()) {
				return fmt.Sprintf("%s, a %s with the help %q, is not so in the table", served, family.GetType(), family.GetHelp())
			}
			var labels []string
			for _, label := range family.GetMetric()[0].GetLabel() {
				labels = append(labels, label.GetName())
			}
			if !slices.Equal(slices.Sorted(slices.Values(labels)), slices.Sorted(slices.Values(m.Labels))) {
				return fmt.Sprintf("%s has the labels %v, and the table has %v", served, labels, m.Labels)
			}
		}
		var missing []string
		for _, m := range metrics.Table {
			if families[m.Name] == nil && rareMetrics[m.Name] == "" {
				missing = append(missing, m.Name)
			}
		}
		for _, line := range []string{
			`kudo_plan_runs_total{cause="created",operator="` + name + `",outcome="complete",plan="deploy"} 1`,
			`kudo_plan_runs_total{cause="created",operator="` + name + `-broken",outcome="fatal",plan="deploy"} 1`,
			`kudo_instances{operator="` + name + `",ready="true"} 1`,
			`kudo_instances{operator="` + name + `-broken",ready="false"} 1`,
			`kudo_plan_runs_active{operator="` + name + `"} 0`,
			`kudo_plan_run_duration_seconds_count{operator="` + name + `",outcome="complete",plan="deploy"} 1`,
			`kudo_operatorversions_refused{operator="` + name + `"} 0`,
			`kudo_instances_refused{operator="` + name + `"} 0`,
			"kudo_leader 1",
		} {
			if !strings.Contains(text, line+"\n") {
				missing = append(missing, line)
			}
		}
		if len(missing) > 0 {
			return "the manager does not serve " + strings.Join(missing, "\n")
		}
		return ""
	})
})

var _ = It("The manager serves metrics by TLS, to those who show a token and may get them", Label("T37"), func() {
	t := GinkgoTB()
	if !plane.IsDisposable() {
		t.Skip("needs the kubeconfig of the manager, and KUDO_TEST_KUBECONFIG names a cluster")
	}
	ns := cluster.NewNamespace(t)
	reader, other := accountToken(t, ns, "reader"), accountToken(t, ns, "other")
	allowMetrics(t, ns, "reader")
	address := env.FreeAddress(t)
	// It waits for the lease of the manager that works, and serves its metrics meanwhile.
	process := plane.Manager("--leader-elect=true", "--webhook-port=0", "--cache-dir", t.TempDir(), "--metrics-bind-address="+address)
	env.Must(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	ask := func(scheme, token string) (int, string, error) { return askMetrics(scheme, address, token) }
	for _, tc := range []struct {
		reason, scheme, token string
		code                  int
		shown                 bool
	}{
		{"who may get them", "https", reader, http.StatusOK, true},
		{"an account without the right", "https", other, http.StatusForbidden, false},
		{"a client without a token", "https", "", http.StatusUnauthorized, false},
		{"a token that is none, which controller-runtime takes for a failure", "https", "x", http.StatusInternalServerError, false},
		{"plain http", "http", reader, http.StatusBadRequest, false},
	} {
		env.Eventually(t, tc.reason, func() string {
			code, text, err := ask(tc.scheme, tc.token)
			// The server may hang up on plain http before its answer is read.
			if (err == nil || tc.scheme == "http") && code == tc.code && strings.Contains(text, "go_goroutines") == tc.shown {
				return ""
			}
			return fmt.Sprintf("the answer is %d, want %d (%v)", code, tc.code, err)
		})
	}

	env.Must(t, cluster.Patch(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kudo.dev/privileged":"true"}}}`))))
	env.Eventually(t, "the metric of privileged namespaces", func() string {
		_, text, err := ask("https", reader)
		if regexp.MustCompile(`(?m)^kudo_privileged_namespaces [1-9]`).MatchString(text) {
			return ""
		}
		return fmt.Sprintf("it is not there (%v)", err)
	})
})

// metricsReader returns what waits until the metrics of the manager have all of these lines, or beginnings of lines, and none that begins
// with one of the absent ones.
func metricsReader(t testing.TB, ns string) func(what string, lines, absent []string) {
	t.Helper()
	if !plane.IsDisposable() { // the metrics of the manager of a cluster that is named cannot be reached
		return func(string, []string, []string) {}
	}
	token := accountToken(t, ns, "metrics-reader")
	allowMetrics(t, ns, "metrics-reader")
	address, err := plane.ManagerMetrics()
	env.Must(t, err)
	return func(what string, lines, absent []string) {
		env.Eventually(t, "metrics: "+what, func() string {
			code, text, err := askMetrics("https", address, token)
			if err != nil || code != http.StatusOK {
				return fmt.Sprintf("the answer is %d (%v)", code, err)
			}
			for _, line := range lines {
				if !strings.Contains(text, "\n"+line) {
					return "the manager does not serve " + line
				}
			}
			for _, line := range absent {
				if strings.Contains(text, "\n"+line) {
					return "the manager serves " + line
				}
			}
			return ""
		})
	}
}
