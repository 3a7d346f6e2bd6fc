package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

var _ = It("The manager serves metrics by TLS, to those who show a token and may get them", Label("T37"), func() {
	t := GinkgoTB()
	if !plane.IsDisposable() {
		t.Skip("needs the kubeconfig of the manager, and KUDO_TEST_KUBECONFIG names a cluster")
	}
	ns := namespace(t)
	reader, other := accountToken(t, ns, "reader"), accountToken(t, ns, "other")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns + "-metrics"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kudo-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "reader"}},
	}
	env.Must(t, cluster.Create(context.Background(), binding))
	t.Cleanup(func() { _ = cluster.Delete(context.Background(), binding) })
	address := freeAddress(t)
	// It waits for the lease of the manager that works, and serves its metrics meanwhile.
	process := plane.Manager("--leader-elect=true", "--webhook-port=0", "--cache-dir", t.TempDir(), "--metrics-bind-address="+address)
	env.Must(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	httpClient := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // made at each start
	ask := func(scheme, token string) (int, string, error) {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, scheme+"://"+address+"/metrics", nil)
		env.Must(t, err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := httpClient.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text), err
	}
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

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	env.Must(t, err)
	env.Must(t, l.Close())
	return l.Addr().String()
}
