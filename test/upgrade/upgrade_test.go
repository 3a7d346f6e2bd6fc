package upgrade

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
	"kudo.dev/kudo/test/sourcetree"
)

var _ = Describe("An upgrade of kudo", Label("upgrade"), Ordered, Serial, func() {
	var (
		kubeconfig string
		// m is the manager that works.
		m      *manager
		random *rand.Rand
		// ends are the states that undisturbed runs of the scenarios leave, by the version of the manager, and writes their writes.
		ends   map[string]map[string]lifecycle.State
		writes map[string]map[string][]string
	)

	AfterEach(func() {
		if CurrentSpecReport().Failed() {
			AddReportEntry("managers", saidByManagers(), ReportEntryVisibilityFailureOrVerbose)
		}
	})

	AfterAll(stopManagers)

	BeforeAll(func() {
		t := GinkgoTB()
		tarballs = lifecycle.ServeTarballs()
		DeferCleanup(tarballs.Close)
		seed := uint64(GinkgoRandomSeed())
		fmt.Fprintf(GinkgoWriter, "the writes are chosen by -ginkgo.seed=%d\n", seed)
		random = rand.New(rand.NewPCG(seed, seed))
		ends, writes = map[string]map[string]lifecycle.State{}, map[string]map[string][]string{}
		kubeconfig = filepath.Join(t.TempDir(), "manager.kubeconfig")
		earlier.kudo(t, 0, "init", "--external-manager", "--manager-kubeconfig", kubeconfig, "--crd-allowed-hosts", "127.0.0.1")
	})

	// learn runs all scenarios undisturbed.
	learn := func(m *manager) {
		GinkgoHelper()
		ends[m.version.Name], writes[m.version.Name] = undisturbed(m)
	}

	// stopped runs scenarios up to a write that is chosen at random. What is written before or after which moment may differ from run to
	// run: a run with fewer writes comes to its end.
	stopped := func(m *manager, all ...scenario) []*testbed {
		GinkgoHelper()
		beds := testbeds(all...)
		for _, b := range beds {
			b.stop = m.stopAt(b.ns, 1+random.IntN(len(writes[m.version.Name][b.name])), random.IntN(2) == 0)
		}
		return beds
	}

	// begin begins the scenarios, and waits until each is stopped or over.
	begin := func(m *manager, beds []*testbed) {
		GinkgoHelper()
		eachBed(beds, "the beginning", func(b *testbed) error {
			if err := b.act(b); err != nil {
				return err
			}
			over := make(chan error, 1)
			go func() { over <- b.ended(b) }()
			return poll(func() error {
				if reached, _ := m.isReached(b.stop); reached {
					return nil
				}
				select {
				case err := <-over:
					return err
				default:
					return fmt.Errorf("write %d has not come", b.stop.at)
				}
			})
		})
	}

	// install changes the installation to that of a version.
	install := func(v version, args ...string) {
		GinkgoHelper()
		v.kudo(GinkgoTB(), 0, append([]string{"init", "--upgrade", "--external-manager", "--wait"}, args...)...)
	}

	// change replaces the manager of one version by that of another one, while both run.
	change := func(old *manager, to version, args ...string) *manager {
		GinkgoHelper()
		t := GinkgoTB()
		install(to, args...)
		leads := suite.Leader(t)
		next := start(t, to, kubeconfig)
		env.Within(t, limit, "the start of the manager of "+to.Name, func() string {
			if !strings.Contains(next.tail(), "attempting to acquire leader lease") {
				return next.tail()
			}
			return ""
		})
		if now := suite.Leader(t); now != leads || next.writes() > 0 {
			t.Errorf("R21: while the manager of %s leads, that of %s has written %d times, and the lease is of %s, not %s", old.version.Name, to.Name,
				next.writes(), now, leads)
		}
		old.end(syscall.SIGTERM)
		suite.AwaitLeader(t, leads)
		return next
	}

	// finish checks the invariants of docs/reliability.md.
	finish := func(m *manager, beds []*testbed) {
		GinkgoHelper()
		eachBed(beds, "the end", func(b *testbed) error {
			if err := b.ended(b); err != nil {
				return err
			}
			if err := b.checkState(ends[m.version.Name]); err != nil {
				return err
			}
			if err := b.checkForeign(); err != nil {
				return err
			}
			return b.checkAgain()
		})
		eachBed(beds, "the objects of others", (*testbed).checkForeign)
	}

	It("goes on with what the earlier version has begun (R21)", func() {
		m = start(GinkgoTB(), earlier, kubeconfig)
		suite.AwaitLeader(GinkgoTB(), "")
		learn(m)
		deploys := slices.Repeat(scenarios[:1], len(writes[earlier.Name]["deploy"]))
		beds := stopped(m, slices.Concat(deploys, scenarios[1:], scenarios[1:])...)
		for n := range deploys {
			beds[n].stop.at = n + 1
		}
		begin(m, beds)
		m = change(m, current)
		eachBed(beds, "the end", func(b *testbed) error { return b.ended(b) })
		learn(m)
		finish(m, beds)
	})

	It("serves the command line of the version before (R19)", func() { useCommands(GinkgoTB(), earlier) })

	var back []*testbed

	It("goes back while nothing new is used (R21, R19)", func() {
		t := GinkgoTB()
		back = stopped(m, scenarios...)
		begin(m, back)
		env.Contains(t, earlier.kudo(t, 1, "init", "--upgrade", "--external-manager"), "kudo "+currentVersion+" is installed, and this is "+earlierVersion,
			"--allow-downgrade")
		m = change(m, earlier, "--allow-downgrade")
		finish(m, back)
		useCommands(t, current)
	})

	It("goes forward again, whatever a frozen manager of the earlier version still writes (R21)", func() {
		t := GinkgoTB()
		held := testbeds(scenarios[0])[0]
		m.holdNext(func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, held.ns+"/instances/i/status")
		})
		env.Must(t, held.act(held))
		late, frozen, leads := <-m.held, m, suite.Leader(t)
		env.Must(t, frozen.Process.Signal(syscall.SIGSTOP))
		install(current)
		m = start(t, current, kubeconfig)
		suite.AwaitLeader(t, leads)
		eachBed(back, "the next version", (*testbed).checkAgain)
		finish(m, []*testbed{held})
		before := held.state()
		close(late.free)
		if code := <-late.code; code != http.StatusConflict {
			t.Errorf("R21: the late write of the earlier version was answered with %d", code)
		}
		env.Must(t, frozen.Process.Signal(syscall.SIGCONT))
		<-frozen.over // it has lost the lease
		env.Must(t, held.checkState(map[string]lifecycle.State{held.name: before}))
	})

	It("is rolled back to a run of the earlier version (R22)", func() {
		t := GinkgoTB()
		b := back[slices.IndexFunc(back, func(b *testbed) bool { return b.name == "update" })]
		env.Contains(t, current.kudo(t, 0, "plan", "history", "--instance", "i", "-n", b.ns), "parameters changed: ", "COMPLETE")
		current.kudo(t, 0, "rollback", "--instance", "i", "-n", b.ns, "--to-revision", "1", "--wait")
		if got := env.Read(t, suite, &corev1.ConfigMap{}, b.ns, "i-one-0").Data["key"]; got != "a" {
			t.Errorf("R22: after the rollback to run 1, the ConfigMap has %q", got)
		}
	})

	It("refuses a version that is too old", func() {
		t := GinkgoTB()
		crd := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "instances.kudo.dev"}}
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"v0.1.9"}}}`, kudoinit.VersionAnnotation)
		env.Must(t, suite.Patch(ctx, crd, client.RawPatch(types.MergePatchType, []byte(patch))))
		env.Contains(t, current.kudo(t, 1, "init", "--upgrade", "--external-manager"), "kudo v0.1.9 is installed, and this is v0.4.0",
			"upgrade to v0.3 first")
	})

	It("keeps the Deployment of the manager as it was chosen", func() {
		t := GinkgoTB()
		image := func(v version) string {
			return "example.org/kudo/manager:" + v.Name + "@sha256:" + strings.Repeat("a", 64)
		}
		earlier.kudo(t, 0, "init", "--upgrade", "--allow-downgrade", "--kudo-image", image(earlier), "--manager-replicas", "3")
		for _, v := range []version{current, earlier, current} {
			out := v.kudo(t, 0, "init", "--upgrade", "--allow-downgrade", "--kudo-image", image(v))
			d := env.Read(t, suite, &appsv1.Deployment{}, "kudo-system", "kudo-controller-manager")
			if got := d.Spec.Template.Spec.Containers[0].Image; got != image(v) || *d.Spec.Replicas != 3 {
				t.Errorf("R21: after init of %s, the Deployment has %d replicas of %s\n%s", v.Name, *d.Spec.Replicas, got, out)
			}
		}
	})
})

// useCommands runs what users do most with the command line of a version.
func useCommands(t testing.TB, v version) {
	t.Helper()
	ns, err := suite.Namespace(ctx)
	env.Must(t, err)
	v.kudo(t, 0, "install", filepath.Join(sourcetree.Root(), "operators/catalog/hello/operator"), "--instance", "hello", "-n", ns, "--wait")
	env.Contains(t, v.kudo(t, 0, "get", "instances", "-n", ns), "hello")
	env.Contains(t, v.kudo(t, 0, "plan", "status", "--instance", "hello", "-n", ns), "deploy", "COMPLETE")
	v.kudo(t, 0, "update", "--instance", "hello", "-n", ns, "-p", "REPLICAS=2", "--wait")
	i := env.Read(t, suite, &v1beta1.Instance{}, ns, "hello")
	if i.Spec.Parameters["REPLICAS"] != "2" || i.Status.AggregatedStatus.Status != v1beta1.Complete {
		t.Errorf("R19: after an update by the command line of %s: %v, %+v", v.Name, i.Spec.Parameters, i.Status.AggregatedStatus)
	}
	env.Must(t, suite.Delete(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", ns)}))
}
