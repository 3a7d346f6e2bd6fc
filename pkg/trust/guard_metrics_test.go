package trust

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/test/apitest"
)

// counted is a Guard whose metrics are read.
type counted struct {
	*Guard
	registry *prometheus.Registry
	client   client.Client
	required bool
}

func newCounted(t *testing.T) *counted {
	t.Helper()
	c := &counted{registry: prometheus.NewPedanticRegistry()}
	server := apitest.Start(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	server.AddKind(configv1alpha1.GroupVersion.WithKind("PackagePolicy"), false)
	c.client = server.Client()
	counts, err := metrics.NewVerifications(c.registry)
	if err != nil {
		t.Fatal(err)
	}
	c.Guard = &Guard{Cache: c.client, Live: c.client, Clock: clocktesting.NewFakeClock(now), Metrics: counts,
		Required: func(context.Context) bool { return c.required }}
	return c
}

// series returns the series of checks that are above 0, and the number of durations.
func (c *counted) series(t *testing.T) (out []string, durations uint64) {
	t.Helper()
	families, err := c.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == metrics.VerificationDuration {
			durations = family.GetMetric()[0].GetHistogram().GetSampleCount()
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetCounter().GetValue() > 0 {
				out = append(out, fmt.Sprintf("%s %v", labelValues(m), m.GetCounter().GetValue()))
			}
		}
	}
	return out, durations
}

// labelValues returns caller, result and reason.
func labelValues(m *dto.Metric) string {
	values := map[string]string{}
	for _, label := range m.GetLabel() {
		values[label.GetName()] = label.GetValue()
	}
	return fmt.Sprintf("%s %s %q", values["caller"], values["result"], values["reason"])
}

func (c *counted) put(t *testing.T, policies ...*configv1alpha1.PackagePolicy) {
	t.Helper()
	for _, p := range policies {
		if err := c.client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func postgres() *v1beta1.OperatorVersion {
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "postgres-1.0.0"}}
	ov.Spec.Operator.Name, ov.Spec.Version = "postgres", "1.0.0"
	return ov
}

// TestGuardMetrics checks R29: each check counts once, by its result; a verdict that is remembered counts, and takes no time.
func TestGuardMetrics(t *testing.T) {
	s := newP256(t)
	p, err := PackageOf(postgres())
	if err != nil {
		t.Fatal(err)
	}
	signed := []string{string(sign(t, p, s))}
	action := func(a configv1alpha1.PolicyAction) *configv1alpha1.PackagePolicy {
		return with(policy("p", nil, s), func(spec *configv1alpha1.PackagePolicySpec) { spec.Action = a })
	}
	for _, tc := range []struct {
		reason   string
		prepare  func(*testing.T, *counted, *Request)
		want     string
		verified uint64
	}{
		{"there are no policies", nil, `instance no_policy "NoPolicy"`, 0},
		{"none is for it", func(t *testing.T, c *counted, _ *Request) { c.put(t, policy("p", []string{"redis"}, s)) }, `instance no_policy "NoPolicy"`, 1},
		{"one is required", func(_ *testing.T, c *counted, _ *Request) { c.required = true }, `instance refused "NoPolicy"`, 1},
		{"it is signed", func(t *testing.T, c *counted, r *Request) { c.put(t, policy("p", nil, s)); r.Signatures = signed }, `instance accepted "Verified"`, 1},
		{"no signature is required", func(t *testing.T, c *counted, _ *Request) { c.put(t, action(configv1alpha1.AllowPackages)) }, `instance accepted "SignatureNotRequired"`, 1},
		{"a policy warns", func(t *testing.T, c *counted, _ *Request) { c.put(t, action(configv1alpha1.WarnOfSignatures)) }, `instance warned "NoSignature"`, 1},
		{"it is not signed", func(t *testing.T, c *counted, _ *Request) { c.put(t, policy("p", nil, s)) }, `instance refused "NoSignature"`, 1},
		{"its tarball has no digest", func(t *testing.T, c *counted, r *Request) {
			c.put(t, policy("p", nil, s))
			r.UnpinnedTarball, r.Signatures = "remove it", signed
		}, `instance refused "CRDTarballNotPinned"`, 1},
		{"an authority has ended", func(t *testing.T, c *counted, r *Request) {
			ended := metav1.NewTime(now.Add(-time.Hour))
			c.put(t, with(policy("p", nil, s), func(spec *configv1alpha1.PackagePolicySpec) { spec.Authorities[0].NotAfter = &ended }))
			r.Signatures = signed
		}, `instance refused "Expired"`, 1},
		{"a policy cannot be used", func(t *testing.T, c *counted, _ *Request) { c.put(t, action("Perhaps")) }, `instance refused "PolicyInvalid"`, 1},
		{"the policies cannot be read", func(_ *testing.T, c *counted, _ *Request) { c.Cache = broken{c.client} }, `instance error ""`, 0},
		{"the namespace cannot be read", func(t *testing.T, c *counted, r *Request) {
			c.put(t, policy("p", nil, s))
			r.Namespace, c.Live = "absent", broken{c.client}
		}, `instance error ""`, 0},
	} {
		c := newCounted(t)
		request := Request{Caller: metrics.CallerInstance, Version: postgres(), Identity: "1", Namespace: "ns"}
		if tc.prepare != nil {
			tc.prepare(t, c, &request)
		}
		for n := 1; n <= 2; n++ {
			_, _ = c.Judge(t.Context(), request)
			got, durations := c.series(t)
			if want := []string{fmt.Sprintf("%s %d", tc.want, n)}; !slices.Equal(got, want) || durations != tc.verified {
				t.Errorf("%s: check %d: %q, %d durations, want %q, %d", tc.reason, n, got, durations, want, tc.verified)
			}
		}
	}
}

// TestGuardMetricsCancelled: a check that its caller has cancelled is no error of the policies, nor is a Namespace that users delete.
func TestGuardMetricsCancelled(t *testing.T) {
	c := newCounted(t)
	c.Cache = broken{c.client}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Judge(ctx, Request{Caller: metrics.CallerWebhook, Version: postgres(), Namespace: "ns"}); err == nil {
		t.Error("policies that cannot be read allow something")
	}
	if got, _ := c.series(t); len(got) > 0 {
		t.Errorf("it counts: %q", got)
	}
	c.Cache = c.client
	c.put(t, policy("p", nil, newP256(t)))
	if _, err := c.Judge(t.Context(), Request{Caller: metrics.CallerInstance, Version: postgres(), Namespace: "absent"}); err == nil {
		t.Error("a package runs in a Namespace that does not exist")
	}
	if got, _ := c.series(t); len(got) > 0 {
		t.Errorf("a Namespace that does not exist counts: %q", got)
	}
}

// TestGuardMetricsHostile: nothing that whoever writes an OperatorVersion or an Instance chooses is a label: 300 packages with names,
// versions, signatures and tarballs of their own make three series.
func TestGuardMetricsHostile(t *testing.T) {
	c := newCounted(t)
	c.put(t, policy("p", nil, newP256(t)))
	for i := range 300 {
		hostile := fmt.Sprintf("%d\"} 1\nkudo_leader{a=\"\xff%s", i, strings.Repeat("x", i))
		ov := postgres()
		ov.Spec.Operator.Name = "postgres" + strconv.Itoa(i)
		request := Request{Caller: metrics.CallerInstance, Version: ov, Identity: hostile, Namespace: "ns"}
		switch i % 3 {
		case 0:
			ov.Name, ov.Spec.Operator.Name, ov.Spec.Version, ov.Spec.AppVersion = hostile, hostile, hostile, hostile
		case 1:
			request.Signatures = []string{hostile, `{"mediaType":"` + strconv.Itoa(i) + `"}`}
		case 2:
			request.UnpinnedTarball = hostile
		}
		if verdict, err := c.Judge(t.Context(), request); err != nil || verdict.Allowed {
			t.Fatalf("package %d: %+v, %v", i, verdict, err)
		}
	}
	got, _ := c.series(t)
	want := []string{`instance refused "CRDTarballNotPinned" 100`, `instance refused "ContentDiffers" 100`, `instance refused "WrongType" 100`}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the series are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestReasons compares Reasons with the constants of the package, and with the reference for users.
func TestReasons(t *testing.T) {
	var constants []string
	for _, file := range []string{"judge.go", "verify.go"} {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && fmt.Sprint(spec.Type) == "Reason" {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				constants = append(constants, value)
			}
			return true
		})
	}
	page, err := os.ReadFile("../../docs/package-policies.md")
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, r := range Reasons() {
		reasons = append(reasons, string(r))
		if !strings.Contains(string(page), "\n| `"+string(r)+"` | ") {
			t.Errorf("docs/package-policies.md does not explain %s", r)
		}
	}
	slices.Sort(constants)
	if slices.Sort(reasons); !slices.Equal(constants, reasons) || len(constants) < 14 {
		t.Errorf("the constants are %q, and Reasons returns %q", constants, reasons)
	}
}
