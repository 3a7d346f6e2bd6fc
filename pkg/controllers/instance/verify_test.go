package instance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/pkg/trust"
	"kudo.dev/kudo/test/gen"
)

// refuses answers all requests as a policy that requires signatures of what has none.
func refuses(trust.Request) trust.Verdict {
	return trust.Verdict{Reason: trust.NoSignature, Message: "web is not signed"}
}

func allows(trust.Request) trust.Verdict { return trust.Verdict{Allowed: true, Reason: trust.Verified} }

// unverified returns the message of the condition Ready, if policies refuse the package.
func unverified(i *v1beta1.Instance) string {
	ready := meta.FindStatusCondition(i.Status.Conditions, v1beta1.ReadyCondition)
	if ready == nil || ready.Reason != v1beta1.ReasonPackageNotVerified {
		return ""
	}
	return ready.Message
}

// TestPackageRefused checks S26 and S28: nothing is started of a package that policies refuse, and it starts once they allow it.
func TestPackageRefused(t *testing.T) {
	f := newFixture(t)
	f.judge = refuses
	if result := f.settle(t); result.RequeueAfter == 0 {
		t.Error("no watch shows that the labels of the namespace change, and yet it is not requeued")
	}
	i := f.instance()
	if unverified(i) != "web is not signed" || i.Status.AggregatedStatus.Status != v1beta1.Pending || i.Status.Baseline != nil {
		t.Errorf("%+v", i.Status)
	}
	if events := f.recorded(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "PackageNotVerified web is not signed") }) {
		t.Errorf("events: %q", events)
	}
	f.reconcile(t)
	if events := f.recorded(); len(events) > 0 {
		t.Errorf("the second reconcile has the events %q", events)
	}
	f.judge = allows
	f.settle(t)
	if i := f.instance(); i.Status.PlanStatus["deploy"].Status != v1beta1.Complete || unverified(i) != "" {
		t.Errorf("%+v", i.Status)
	}
}

// TestVersionContent checks S33: the content that an Instance wants is asked for before a run starts, and not of a run that continues.
func TestVersionContent(t *testing.T) {
	f := newFixture(t)
	f.change(func(i *v1beta1.Instance) {
		i.Annotations = map[string]string{v1beta1.VersionContentAnnotation: "sha256:wanted"}
	})
	asked := map[string]int{}
	f.judge = func(r trust.Request) trust.Verdict {
		asked[r.Content]++
		return allows(r)
	}
	f.settle(t)
	if i := f.instance(); i.Status.PlanStatus["deploy"].Status != v1beta1.Complete || asked["sha256:wanted"] == 0 || asked[""] == 0 || len(asked) != 2 {
		t.Errorf("asked for %v: %+v", asked, i.Status)
	}
}

// TestChecksCounted checks R29: what the controller asks of PackagePolicies is counted as asked by an Instance.
func TestChecksCounted(t *testing.T) {
	f := newFixture(t)
	f.AddKind(configv1alpha1.GroupVersion.WithKind("PackagePolicy"), false)
	policy := &configv1alpha1.PackagePolicy{ObjectMeta: gen.Meta("", "none")}
	policy.Spec.Action = configv1alpha1.RefusePackages
	f.Put(policy)
	registry := prometheus.NewPedanticRegistry()
	counts, err := metrics.NewVerifications(registry)
	if err != nil {
		t.Fatal(err)
	}
	guard := &trust.Guard{Cache: f.Client(), Live: f.Client(), Clock: f.clock, Metrics: counts, Required: func(context.Context) bool { return false }}
	checks := 0
	f.r.Judge = func(ctx context.Context, r trust.Request) (trust.Verdict, error) {
		checks++
		return guard.Judge(ctx, r)
	}
	f.settle(t)
	if i := f.instance(); !strings.Contains(unverified(i), "PackagePolicy none refuses all packages") {
		t.Fatalf("%+v", i.Status)
	}
	want := fmt.Sprintf(`
# HELP kudo_package_verifications_total %s
# TYPE kudo_package_verifications_total counter
kudo_package_verifications_total{caller="instance",reason="",result="error"} 0
kudo_package_verifications_total{caller="instance",reason="Refused",result="refused"} %d
kudo_package_verifications_total{caller="operatorversion",reason="",result="error"} 0
kudo_package_verifications_total{caller="webhook",reason="",result="error"} 0
`, metrics.Find(metrics.PackageVerifications).Help, checks)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), metrics.PackageVerifications); err != nil || checks == 0 {
		t.Errorf("%d checks: %v", checks, err)
	}
}

// TestRunHeld checks S27: a run that policies refuse writes nothing more, also after a restart of the manager, and continues when they
// allow it again. The verdict is on the content of the run, and not on the version that spec names by then.
func TestRunHeld(t *testing.T) {
	f := newFixture(t, gen.Template("job.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web-pod\nspec:\n  containers: [{name: a, image: b}]\n"),
		gen.Apply("pod", "job.yaml"), gen.ConfigMaps("last", 1), gen.Serial("deploy", "pod", "last"))
	f.settle(t)
	if st := f.instance().Status.PlanStatus["deploy"]; st.Status != v1beta1.InProgress {
		t.Fatalf("the plan is %s: %s", st.Status, st.Message)
	}
	other := webVersion("web-2.0", gen.Template("x", "y"))
	f.Put(other)
	f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = other.Name })
	var asked []string
	f.judge = func(r trust.Request) trust.Verdict {
		asked = append(asked, r.Version.Name)
		if r.Version.Name == "web-1.0" {
			return refuses(r)
		}
		return allows(r)
	}
	f.restart()
	f.settle(t)
	i := f.instance()
	if !slices.Contains(asked, "web-1.0") {
		t.Errorf("the content of the run was not judged: %q", asked)
	}
	if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.InProgress || st.Message != "web is not signed" || unverified(i) != st.Message {
		t.Errorf("the run: %+v, %+v", st, i.Status.Conditions)
	}
	f.judge = allows
	f.settle(t)
	if i := f.instance(); unverified(i) != "" || i.Status.PlanStatus["deploy"].Message == "web is not signed" {
		t.Errorf("the run is still held: %+v", i.Status)
	}
}

// TestRunHeldInPass checks S26 and S30: a policy that changes during a reconcile counts for the next writes of this reconcile.
func TestRunHeldInPass(t *testing.T) {
	f := newFixture(t, gen.ConfigMaps("second", 1), gen.ConfigMaps("third", 1), gen.Serial("deploy", "app", "second", "third"))
	exists := func(name string) bool { return f.Get(&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", name)}) != nil }
	f.judge = func(r trust.Request) trust.Verdict {
		if exists("web-second-0") {
			return refuses(r)
		}
		return allows(r)
	}
	f.settle(t)
	if i := f.instance(); !exists("web-second-0") || exists("web-third-0") || unverified(i) != "web is not signed" {
		t.Errorf("third step: %t, %+v", exists("web-third-0"), i.Status)
	}
	f.judge = allows
	f.settle(t)
	if !exists("web-third-0") || f.instance().Status.PlanStatus["deploy"].Status != v1beta1.Complete {
		t.Errorf("the run is still held: %+v", f.instance().Status)
	}
}

// TestUncoveredTarball checks S34: a request for a verdict names a tarball that no signature of the package covers.
func TestUncoveredTarball(t *testing.T) {
	source := &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://a.example/crds.tgz", SHA256: strings.Repeat("0", 64)}}
	for _, tc := range []struct {
		reason            string
		instance, version *v1beta1.CRDTarball
		plan              string
		url               string
		want              string
	}{
		{reason: "there is no tarball"},
		{reason: "the package has one", version: source, url: "https://b.example"},
		{reason: "the Instance has one", instance: source, want: "spec.crdTarball of Instance ns/web is sha256:000"},
		{reason: "the Instance has one without a digest", instance: &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://a.example/crds.tgz"}},
			want: "set httpSource.sha256 and spec.crdTarballSignatures"},
		{reason: "the default has one", plan: "install", url: "https://b.example", want: "default-crd-url-template"},
		{reason: "the default counts for packages with an install plan only", url: "https://b.example"},
	} {
		f := newFixture(t, func(ov *v1beta1.OperatorVersion) { ov.Spec.CRDTarball, ov.Spec.InstallPlan = tc.version, tc.plan })
		f.settings = settings.Settings{Mode: settings.Strict, DefaultAccount: "kudo", DefaultCRDURL: tc.url}
		f.change(func(i *v1beta1.Instance) { i.Spec.CRDTarball = tc.instance })
		var got string
		f.judge = func(r trust.Request) trust.Verdict {
			if got = r.UnpinnedTarball; r.Tarball != nil {
				got = cmp.Or(got, r.Tarball.Name+" is "+r.Tarball.Digest)
			}
			return refuses(r)
		}
		f.settle(t)
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestCleanupRefused checks S27: the cleanup plan of a refused package does not run, and the Instance waits with a message that names the way out.
func TestCleanupRefused(t *testing.T) {
	f := newFixture(t, cleansUp)
	f.settle(t)
	f.judge = refuses
	f.delete(t)
	f.settle(t)
	if !f.exists() || !strings.Contains(unverified(f.instance()), "web is not signed. Or remove the finalizer") {
		t.Fatalf("%+v", f.instance().Status.Conditions)
	}
	f.terminate()
	f.settle(t)
	if f.exists() {
		t.Error("it holds up the deletion of its namespace")
	}
}
