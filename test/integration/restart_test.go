package integration

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/pkg/controllers"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// heard are the writes of a manager, its lease's apart.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) pass(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
	event := r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, "/events")
	if event || apiproxy.IsWrite(r) {
		h.mu.Lock()
		h.lines = append(h.lines, r.Method+" "+r.URL.Path)
		h.mu.Unlock()
	}
	return forward(r)
}

// take returns what has been written since it was asked last.
func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.lines
	h.lines = nil
	slices.Sort(out)
	return out
}

// configurations are those of the webhooks.
func (m *managed) configurations() []client.Object {
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: gen.Meta("", "kudo-manager-instance-admission-webhook-config")},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: gen.Meta("", "kudo-manager-instance-validation-webhook-config")},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: gen.Meta("", "kudo-manager-explore-validation-webhook-config")},
	}
}

// bundles are the CAs in a configuration of webhooks.
func bundles(configuration client.Object) []*[]byte {
	var out []*[]byte
	switch c := configuration.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			out = append(out, &c.Webhooks[i].ClientConfig.CABundle)
		}
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			out = append(out, &c.Webhooks[i].ClientConfig.CABundle)
		}
	}
	return out
}

// trusted waits until a configuration of webhooks has the CA.
func (m *managed) trusted(t testing.TB, configuration client.Object, ca []byte) {
	t.Helper()
	env.Eventually(t, configuration.GetName()+" with the CA", func() string {
		env.Must(t, m.Get(context.Background(), client.ObjectKeyFromObject(configuration), configuration))
		for _, bundle := range bundles(configuration) {
			if !bytes.Equal(*bundle, ca) {
				return fmt.Sprintf("it has %q", *bundle)
			}
		}
		return ""
	})
}

// serving starts a manager that leads and serves its webhooks, and waits for both.
func (m *managed) serving(t testing.TB, flags ...string) {
	t.Helper()
	m.end()
	lease := &coordinationv1.Lease{ObjectMeta: gen.Meta("kudo-system", "kudo-manager")}
	env.Must(t, client.IgnoreNotFound(m.Delete(context.Background(), lease))) // of the one before
	address := env.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	env.Must(t, err)
	m.restart(t, append(flags, "--leader-elect=true", "--webhook-port="+port, "--webhook-cert-dir="+t.TempDir())...)
	env.Eventually(t, "webhooks that are served", func() string { // they are once the CA is looked after
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err.Error()
		}
		env.Must(t, connection.Close())
		return ""
	})
	env.Eventually(t, "a manager that leads", func() string {
		err := m.Get(context.Background(), client.ObjectKeyFromObject(lease), lease)
		if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return fmt.Sprint(err)
		}
		return ""
	})
}

// It puts back what is missing.
var _ = It("A manager that starts again with nothing changed writes its lease and the event of the election", Label("restart-writes-nothing", "slow", "disruptive"), func() {
	t := GinkgoTB()
	ctx, m := context.Background(), newManaged(t)
	m.restart(t)
	ns := m.NewNamespace(t)
	role := "restart-" + ns
	ov := gen.Version(ns, "app", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 2), gen.Serial("deploy", "cm"),
		gen.Template("role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: "+role+"\nrules: []\n"),
		gen.Apply("role", "role.yaml"), gen.Serial("install", "role"), gen.InstallPlan("install"))
	env.Must(t, m.Create(ctx, ov))
	env.Must(t, m.Create(ctx, gen.Instance("i", ov, nil)))
	m.await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1))

	seen := &heard{}
	proxy, err := apiproxy.Start(m.env.ManagerKubeconfig(), t.TempDir(), seen.pass)
	env.Must(t, err)
	t.Cleanup(proxy.Close)
	through := "--kubeconfig=" + proxy.Kubeconfig
	m.serving(t, through) // makes good what the start and end of others left half done
	ca := env.Read(t, m.Cluster, &corev1.Secret{}, "kudo-system", controllers.WebhookSecret).Data["ca.crt"]
	for _, configuration := range m.configurations() {
		m.trusted(t, configuration, ca)
	}
	election := []string{"POST /api/v1/namespaces/kudo-system/events"}
	probes := map[string]bool{} // the events of a probe may be posted after its plan is complete, when the next start is counted
	for range 2 {
		seen.take()
		m.serving(t, through)
		other := m.NewNamespace(t)
		probe := gen.Version(other, "app", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
		env.Must(t, m.Create(ctx, probe))
		env.Must(t, m.Create(ctx, gen.Instance("i", probe, nil)))
		m.await(t, other, "i", env.PlanEnded(v1beta1.DeployPlan, 1)) // by then it has looked at what was there
		probes[other] = true
		before := slices.DeleteFunc(seen.take(), func(line string) bool {
			_, namespaced, _ := strings.Cut(line, "/namespaces/")
			namespace, _, _ := strings.Cut(namespaced, "/")
			return probes[namespace]
		})
		if diff := cmp.Diff(election, before); diff != "" {
			t.Errorf("the writes of a start, but for the lease: %s", diff)
		}
	}

	for _, tc := range []struct {
		reason string
		ca     []byte
	}{{"it is missing", nil}, {"it is another's", bytes.Repeat(ca, 2)}} {
		for _, configuration := range m.configurations() {
			t.Logf("%s: %s", configuration.GetName(), tc.reason)
			env.Eventually(t, "an edit", func() string {
				env.Must(t, m.Get(ctx, client.ObjectKeyFromObject(configuration), configuration))
				for _, bundle := range bundles(configuration) {
					*bundle = tc.ca
				}
				if err := m.Update(ctx, configuration); err != nil {
					return err.Error()
				}
				return ""
			})
			m.trusted(t, configuration, ca)
		}
	}
	t.Log("also what happened while there was none")
	m.end()
	gone := m.configurations()[1]
	env.Must(t, m.Get(ctx, client.ObjectKeyFromObject(gone), gone))
	*bundles(gone)[0] = nil
	env.Must(t, m.Update(ctx, gone))
	m.serving(t, through)
	m.trusted(t, gone, ca)
})
