package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// monitor has a control plane of its own, whose manager it scrapes: the causes of alerts would disturb other specs.
type monitor struct {
	plane   *env.Env
	cluster *env.Cluster
	// namespace has an account with all rights in it.
	namespace string
	// proxy stands between the manager and the API server.
	proxy *apiproxy.Proxy
	// refuseNamespaces is set while the proxy fails requests for Namespaces.
	refuseNamespaces atomic.Bool
	// address is that of the metrics.
	address string
	manager *exec.Cmd
	folder  string
	// scrapes is how many scrapes there were, and alerts are those that have fired.
	scrapes int
	alerts  []string
}

// scrapeFile is a file with what the manager has served at a time.
type scrapeFile struct {
	file string
	at   time.Time
}

var _ = Describe("Each alert fires for what it is about, judged by Prometheus' engine:", Ordered, ContinueOnFailure, Label("alerts", "R31"), func() {
	m := &monitor{}
	ctx := context.Background()
	create := func(objects ...client.Object) {
		GinkgoHelper()
		for _, o := range objects {
			Expect(m.cluster.Create(ctx, o)).To(Succeed())
		}
	}
	// configMapPackage applies a ConfigMap, which is named after the Instance.
	configMapPackage := func(name string) *v1beta1.OperatorVersion {
		return gen.Version(m.namespace, name, gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	}
	complete := func(name string) {
		GinkgoHelper()
		_, err := m.cluster.Await(ctx, m.namespace, name, limit, env.PlanEnded("deploy", 1))
		Expect(err).NotTo(HaveOccurred())
	}
	policy := func(name string, change func(*configv1alpha1.PackagePolicySpec)) *configv1alpha1.PackagePolicy {
		p := &configv1alpha1.PackagePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.Action, p.Spec.Match.Operators = configv1alpha1.RequireSignatures, []string{name}
		p.Spec.Authorities = []configv1alpha1.PolicyAuthority{{Name: "release", Key: &configv1alpha1.AuthorityKey{PublicKey: publicKey()}}}
		if change != nil {
			change(&p.Spec)
		}
		return p
	}

	BeforeAll(func() {
		var err error
		m.plane, err = env.Start()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(m.stop)
		m.cluster, err = m.plane.Connect()
		Expect(err).NotTo(HaveOccurred())
		m.namespace = m.cluster.NewNamespace(GinkgoTB())
		m.folder, err = os.MkdirTemp("", "kudo-alerts-")
		Expect(err).NotTo(HaveOccurred())
		_, err = m.plane.Local("kill", "manager")
		Expect(err).NotTo(HaveOccurred())
	})

	It("none leads, while another client holds the lease; and the certificate of the webhooks ends in ten days", func() {
		lease := func(holder string) {
			GinkgoHelper()
			body := fmt.Sprintf(`{"spec":{"holderIdentity":%q,"leaseDurationSeconds":3600,"renewTime":%q}}`, holder, time.Now().UTC().Format(metav1.RFC3339Micro))
			Expect(m.cluster.Patch(ctx, &coordinationv1.Lease{ObjectMeta: gen.Meta("kudo-system", "kudo-manager")}, client.RawPatch(types.MergePatchType, []byte(body)))).To(Succeed())
		}
		lease("another")
		m.replaceCertificate()
		m.start()
		Consistently(m.leads).WithTimeout(20*time.Second).Should(BeFalse(), "the manager leads without its lease, which lasts 15 seconds otherwise")
		m.fire("KudoNoLeader", nil)
		m.fire("KudoCertificateExpires", nil)
		lease("")
	})

	It("no other one fires while a manager leads and nothing is wrong", func() {
		Eventually(m.leads).WithTimeout(limit).Should(BeTrue())
		Expect(m.between(m.scrape(), m.scrape())).To(Equal([]string{"KudoCertificateExpires"}))
	})

	It("another client changes an object", func() {
		ov := configMapPackage("drifting")
		create(ov, gen.Instance("drifting", ov, nil))
		complete("drifting")
		m.fire("KudoDrifted", once(func() {
			edited := &corev1.ConfigMap{ObjectMeta: gen.Meta(m.namespace, "drifting-cm-0")}
			Expect(m.cluster.Patch(ctx, edited, client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"mallory"}}`)))).To(Succeed())
		}))
	})

	It("a shared object differs from what a package needs", func() {
		create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "alerts-shared"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}})
		m.fire("KudoSharedObjectsMismatched", once(func() {
			ov := gen.Version(m.namespace, "mismatched", gen.Template("role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: alerts-shared}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [list]}]\n"),
				gen.Apply("role", "role.yaml"), gen.Serial("install", "role"), gen.InstallPlan("install"), gen.Serial("deploy", "role"))
			create(ov, gen.Instance("mismatched", ov, nil))
		}))
	})

	It("runs of plans fail", func() {
		ov := gen.Version(m.namespace, "failing", gen.Task("fail", "Dummy", v1beta1.TaskSpec{WantErr: true, Fatal: true}), gen.Serial("deploy", "fail"))
		create(ov)
		n := 0
		m.fire("KudoPlanFailures", func() {
			n++
			create(gen.Instance(fmt.Sprintf("failing-%d", n), ov, nil))
		})
	})

	It("a plan makes no progress, and others wait for it", func() {
		// Its pods find no node.
		mods := []gen.VersionMod{gen.Template("never.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"{{ .Name }}\"}\nspec: {selector: {matchLabels: {app: never}}, "+
			"template: {metadata: {labels: {app: never}}, spec: {nodeSelector: {none: none}, containers: [{name: c, image: none}]}}}\n"), gen.Apply("never", "never.yaml"), gen.Serial("deploy", "never")}
		const others = 20
		for n := range others {
			mods = append(mods, gen.Serial(fmt.Sprintf("other-%d", n), "never"))
		}
		ov := gen.Version(m.namespace, "endless", mods...)
		create(ov, gen.Instance("endless", ov, nil))
		running := func(i *v1beta1.Instance) bool {
			return i != nil && i.Status.PlanStatus["deploy"].Status == v1beta1.InProgress
		}
		_, err := m.cluster.Await(ctx, m.namespace, "endless", limit, running)
		Expect(err).NotTo(HaveOccurred())
		n := 0
		m.fire("KudoQueueGrowing", func() {
			Expect(n).To(BeNumerically("<", others), "the queue does not grow")
			m.plane.MustKudo(GinkgoTB(), 0, "plan", "trigger", "--instance", "endless", "--name", fmt.Sprintf("other-%d", n), "-n", m.namespace)
			n++
		})
		// The time of its last progress is put back: the alert waits for half an hour.
		m.fire("KudoPlanStuck", once(func() {
			i := &v1beta1.Instance{ObjectMeta: gen.Meta(m.namespace, "endless")}
			earlier := time.Now().Add(-10 * time.Minute).UTC().Format("2006-01-02T15:04:05.000000Z07:00")
			body := fmt.Sprintf(`{"status":{"planStatus":{"deploy":{"startedTimestamp":%q,"lastUpdatedTimestamp":%q}}}}`, earlier, earlier)
			Expect(m.cluster.Status().Patch(ctx, i, client.RawPatch(types.MergePatchType, []byte(body)))).To(Succeed())
		}))
	})

	It("two Instances write different values into one object", func() {
		privileged := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}}
		Expect(m.cluster.Patch(ctx, privileged, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"kudo.dev/privileged":"true"}}}`)))).To(Succeed())
		ov := gen.Version(m.namespace, "fighting", gen.Param("VALUE", "get", ""), gen.Template("role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: alerts-fight}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [{{ .Params.VALUE }}]}]\n"),
			gen.Apply("role", "role.yaml"), gen.Serial("deploy", "role"))
		create(ov, gen.Instance("fighting", ov, nil))
		complete("fighting")
		n := 0
		m.fire("KudoConflicts", func() {
			for range 10 {
				n++
				create(gen.Instance(fmt.Sprintf("fighting-%d", n), ov, map[string]string{"VALUE": "list"}))
			}
		})
	})

	It("the API server fails requests", func() {
		ov := configMapPackage("unlucky")
		create(ov, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "alerts-away"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "away.example.org", SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, FailurePolicy: new(admissionregistrationv1.Fail),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}},
		}}})
		DeferCleanup(func() {
			Expect(m.cluster.Delete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "alerts-away"}})).To(Succeed())
		})
		n := 0
		m.fire("KudoRequestErrors", func() {
			n++
			create(gen.Instance(fmt.Sprintf("unlucky-%d", n), ov, nil))
		})
	})

	It("tarballs of CustomResourceDefinitions cannot be fetched", func() {
		ov := configMapPackage("unfetched")
		create(ov)
		n := 0
		m.fire("KudoTarballFailures", func() {
			n++
			i := gen.Instance(fmt.Sprintf("unfetched-%d", n), ov, nil)
			i.Spec.CRDTarball = &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: fmt.Sprintf("http://127.0.0.1:1/%d.tgz", n), SHA256: strings.Repeat("0", 64)}}
			create(i)
		})
	})

	It("a policy refuses a package, one cannot be used, and an authority ends soon", func() {
		ov := configMapPackage("refused")
		create(ov)
		m.fire("KudoPackageRefused", once(func() {
			create(policy("refused", nil), gen.Instance("refused", ov, nil))
		}))
		m.fire("KudoPackagePolicyUnusable", once(func() {
			create(policy("unusable", func(p *configv1alpha1.PackagePolicySpec) {
				p.Authorities[0].Key.PublicKey = "-----BEGIN PUBLIC KEY-----\nbm8ga2V5\n-----END PUBLIC KEY-----\n"
			}))
		}))
		m.fire("KudoAuthorityExpires", once(func() {
			create(policy("ending", func(p *configv1alpha1.PackagePolicySpec) {
				p.Authorities[0].NotAfter = new(metav1.NewTime(time.Now().Add(10 * 24 * time.Hour)))
			}))
		}))
	})

	It("packages cannot be checked, since their Namespace cannot be read", func() {
		m.refuseNamespaces.Store(true)
		m.proxy.Cut() // the watch of Namespaces, too
		n := 0
		m.fire("KudoPackageChecksFail", func() {
			n++
			ns := fmt.Sprintf("alerts-unread-%d", n)
			ov := gen.Version(ns, "unread", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"), gen.InstallPlan("deploy"))
			create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, ov)
		})
	})

	It("no manager answers", func() {
		m.fire("KudoManagerDown", once(func() {
			Expect(m.manager.Process.Kill()).To(Succeed())
			_ = m.manager.Wait()
		}))
	})

	It("and there is no other alert", func() {
		rules, err := os.ReadFile(filepath.Join(root, "manifests", "monitoring", "rules.yaml"))
		Expect(err).NotTo(HaveOccurred())
		var all []string
		for line := range strings.Lines(string(rules)) {
			if _, name, found := strings.Cut(strings.TrimSpace(line), "- alert: "); found {
				all = append(all, name)
			}
		}
		Expect(m.alerts).To(ConsistOf(all))
	})
})

// once returns a cause that acts at its first call only.
func once(cause func()) func() { return sync.OnceFunc(cause) }

// publicKey returns a new key.
func publicKey() string {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	Expect(err).NotTo(HaveOccurred())
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// start starts a manager that the monitor can scrape, and that does not renew the certificate of its webhooks.
func (m *monitor) start() {
	GinkgoHelper()
	var err error
	m.proxy, err = apiproxy.Start(m.plane.ManagerKubeconfig(), m.folder, func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		if m.refuseNamespaces.Load() && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces") && strings.Count(r.URL.Path, "/") <= 4 {
			return env.Refuse(r, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
		}
		return forward(r)
	})
	Expect(err).NotTo(HaveOccurred())
	m.address = env.FreeAddress(GinkgoTB())
	_, port, err := net.SplitHostPort(env.FreeAddress(GinkgoTB()))
	Expect(err).NotTo(HaveOccurred())
	m.manager = m.plane.Manager("--kubeconfig="+m.proxy.Kubeconfig, "--cache-dir="+filepath.Join(m.folder, "cache"), "--metrics-bind-address="+m.address, "--metrics-secure=false",
		"--webhook-bind-address=127.0.0.1", "--webhook-port="+port, "--webhook-cert-rotation=false", "--webhook-cert-dir="+filepath.Join(m.folder, "certificate"))
	m.manager.Stdout, m.manager.Stderr = GinkgoWriter, GinkgoWriter
	Expect(m.manager.Start()).To(Succeed())
	Eventually(m.text).Should(ContainSubstring("kudo_build_info"), "the manager serves its metrics")
}

// stop ends the manager and the control plane.
func (m *monitor) stop() {
	defer m.plane.Stop()
	if m.manager != nil && m.manager.Process != nil {
		_ = m.manager.Process.Kill()
		_ = m.manager.Wait()
	}
	if m.proxy != nil {
		m.proxy.Close()
	}
	Expect(os.RemoveAll(m.folder)).To(Succeed())
}

// replaceCertificate puts a certificate that ends in ten days, and its key, into the Secret of the webhooks, as a program beside kudo does.
func (m *monitor) replaceCertificate() {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(10 * 24 * time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{}
	Expect(m.cluster.Get(context.Background(), client.ObjectKey{Namespace: "kudo-system", Name: "kudo-webhook-server-secret"}, secret)).To(Succeed())
	secret.Data["tls.crt"] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	secret.Data["tls.key"] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	Expect(m.cluster.Update(context.Background(), secret)).To(Succeed())
}

// text returns what the manager serves; empty if it does not answer.
func (m *monitor) text() string {
	GinkgoHelper()
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + m.address + "/metrics")
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	Expect(answer.StatusCode).To(Equal(http.StatusOK), string(text))
	return string(text)
}

// leads reports whether the manager leads.
func (m *monitor) leads() bool {
	GinkgoHelper()
	return strings.Contains(m.text(), "kudo_leader 1\n")
}

// scrape writes what the manager serves into a file. A second passes before, so that a single event is not extrapolated to a high rate.
func (m *monitor) scrape() scrapeFile {
	GinkgoHelper()
	<-time.After(time.Second)
	m.scrapes++
	out := scrapeFile{filepath.Join(m.folder, fmt.Sprintf("scrape-%d.txt", m.scrapes)), time.Now()}
	Expect(os.WriteFile(out.file, []byte(m.text()), 0o600)).To(Succeed())
	return out
}

// between returns the alerts that fire if the metrics go on as between two scrapes.
func (m *monitor) between(before, after scrapeFile) []string {
	GinkgoHelper()
	out := command("firing", "-rules", filepath.Join(root, "manifests", "monitoring", "rules.yaml"), "-interval", after.at.Sub(before.at).String(), before.file, after.file)
	return strings.Fields(out)
}

// fire waits until an alert fires, if the metrics go on as between the first scrape and the last one, or as between the last two. The cause is
// called before each scrape; the alert must not fire before its first call. A nil cause is one that is there already.
func (m *monitor) fire(alert string, cause func()) {
	GinkgoHelper()
	first := m.scrape()
	before := first
	if cause != nil {
		before = m.scrape()
		Expect(m.between(first, before)).NotTo(ContainElement(alert), "it fires before its cause")
	}
	Eventually(func() []string {
		if cause != nil {
			cause()
		}
		now := m.scrape()
		alerts := m.between(before, now)
		if !slices.Contains(alerts, alert) {
			alerts = m.between(first, now)
		}
		before = now
		return alerts
	}).WithTimeout(limit).Should(ContainElement(alert))
	m.alerts = append(m.alerts, alert)
}
