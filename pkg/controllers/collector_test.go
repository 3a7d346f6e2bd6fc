package controllers

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func version(namespace, name, operator, installPlan string) *v1beta1.OperatorVersion {
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	ov.Spec.Operator.Name, ov.Spec.InstallPlan = operator, installPlan
	return ov
}

func condition(kind string, status metav1.ConditionStatus, reason string, age time.Duration) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-age))}
}

func instanceOf(namespace, name, version string, conditions ...metav1.Condition) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	i.Spec.OperatorVersion.Name, i.Status.Conditions = version, conditions
	return i
}

// running puts a run into the status of an Instance, with the ages of its start and of its last progress.
func running(i *v1beta1.Instance, plan string, started, progress time.Duration) *v1beta1.Instance {
	start, last := metav1.NewMicroTime(now.Add(-started)), metav1.NewTime(now.Add(-progress))
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{
		plan:    {Name: plan, Status: v1beta1.InProgress, UID: "run", StartedTimestamp: &start, LastUpdatedTimestamp: &last},
		"other": {Name: "other", Status: v1beta1.Complete, StartedTimestamp: &start, LastUpdatedTimestamp: &last},
	}
	return i
}

// scrape returns the lines of the metrics of kudo but those of the build, sorted.
func scrape(t *testing.T, c prometheus.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, metrics.BuildInfo) {
			out = append(out, strings.TrimPrefix(strings.TrimSpace(line), "kudo_"))
		}
	}
	slices.Sort(out)
	return out
}

// withoutPolicies removes the metrics of PackagePolicies from those of scrape, which TestPolicyMetrics compares.
func withoutPolicies(lines []string) []string {
	return slices.DeleteFunc(lines, isOfPolicies)
}

func isOfPolicies(line string) bool {
	for _, prefix := range []string{"package_", "instances_refused", "operatorversions_refused", "operatorversions_unverified"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

func newCollector(t *testing.T, objects ...client.Object) *stateCollector {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1beta1.AddToScheme(scheme), configv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	elected := make(chan struct{})
	close(elected)
	return &stateCollector{
		ctx: t.Context(), reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), clock: clocktesting.NewFakePassiveClock(now), elected: elected,
	}
}

// TestStateCollector checks R29: what the gauges say of Instances, OperatorVersions and shared objects.
func TestStateCollector(t *testing.T) {
	installed := version("a", "redis-2", "redis", "install")
	installed.Status.Conditions = []metav1.Condition{condition(v1beta1.InstalledCondition, metav1.ConditionTrue, "x", 0)}
	installing := version("a", "redis-3", "redis", "install")
	started := metav1.NewMicroTime(now.Add(-90 * time.Second))
	installing.Status.PlanStatus = map[string]v1beta1.PlanStatus{"install": {Status: v1beta1.InProgress, UID: "u", StartedTimestamp: &started}}
	queued := running(instanceOf("a", "queued", "redis-1", condition(v1beta1.ReadyCondition, metav1.ConditionFalse, v1beta1.ReasonPlanInProgress, time.Hour)), "deploy", time.Hour, time.Minute)
	queued.Status.Queue = []v1beta1.QueuedPlan{{PlanName: "backup"}, {PlanName: "update"}}
	drifted := instanceOf("a", "drifted", "redis-1", condition(v1beta1.ReadyCondition, metav1.ConditionTrue, v1beta1.ReasonResourcesReady, 0))
	drifted.Status.Drift = []v1beta1.ObjectDrift{{Kind: "ConfigMap", Name: "a"}, {Kind: "ConfigMap", Name: "b"}}
	held := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: "i"}}
	held.Spec.Subject = v1beta1.InstallationSubject{Namespace: "a", Name: "redis-2"}
	held.Status.Resources = []v1beta1.HeldResource{{Kind: "A", State: v1beta1.HoldMismatch}, {Kind: "B"}, {Kind: "C", State: v1beta1.HoldMismatch}}
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		want    []string
	}{
		{"an empty cluster", nil, []string{"instances_stuck 0", "leader 1"}},
		{"OperatorVersions and shared objects", []client.Object{version("a", "redis-1", "redis", ""), installed, installing, held}, []string{
			"instances_drifted{operator=\"redis\"} 0", "instances_stuck 0", "leader 1",
			"operatorversions{installed=\"false\",operator=\"redis\"} 1", "operatorversions{installed=\"true\",operator=\"redis\"} 2",
			"plan_queue_length{operator=\"redis\"} 0", "plan_run_oldest_seconds{operator=\"redis\"} 90", "plan_runs_active{operator=\"redis\"} 1",
			"shared_objects_mismatched{operator=\"redis\"} 2",
		}},
		{"Instances in all conditions", []client.Object{
			version("a", "redis-1", "redis", ""), queued,
			instanceOf("a", "well", "redis-1", condition(v1beta1.ReadyCondition, metav1.ConditionTrue, v1beta1.ReasonResourcesReady, time.Hour)),
			drifted,
			instanceOf("a", "new", "redis-1"),
		}, []string{
			"instances_drifted{operator=\"redis\"} 1", "instances_stuck 0",
			"instances{operator=\"redis\",ready=\"false\"} 1", "instances{operator=\"redis\",ready=\"true\"} 2", "instances{operator=\"redis\",ready=\"unknown\"} 1",
			"leader 1", "operatorversions{installed=\"true\",operator=\"redis\"} 1", "plan_queue_length{operator=\"redis\"} 2",
			"plan_run_oldest_seconds{operator=\"redis\"} 3600", "plan_runs_active{operator=\"redis\"} 1", "shared_objects_mismatched{operator=\"redis\"} 0",
		}},
		{"an OperatorVersion of the name in another namespace is not that of the Instance", []client.Object{version("b", "redis-1", "redis", ""), instanceOf("a", "x", "redis-1")}, []string{
			"instances_drifted{operator=\"\"} 0", "instances_drifted{operator=\"redis\"} 0", "instances_stuck 0", "instances{operator=\"\",ready=\"unknown\"} 1", "leader 1",
			"operatorversions{installed=\"true\",operator=\"redis\"} 1", "plan_queue_length{operator=\"\"} 0", "plan_queue_length{operator=\"redis\"} 0",
			"plan_run_oldest_seconds{operator=\"\"} 0", "plan_run_oldest_seconds{operator=\"redis\"} 0", "plan_runs_active{operator=\"\"} 0", "plan_runs_active{operator=\"redis\"} 0",
			"shared_objects_mismatched{operator=\"\"} 0", "shared_objects_mismatched{operator=\"redis\"} 0",
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := withoutPolicies(scrape(t, newCollector(t, tc.objects...)))
			if !slices.Equal(got, tc.want) {
				t.Errorf("the metrics are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// TestStuck checks which Instances count as without progress.
func TestStuck(t *testing.T) {
	blocked := func(reason string, age time.Duration) *v1beta1.Instance {
		return instanceOf("a", "x", "v", condition(v1beta1.ReadyCondition, metav1.ConditionFalse, reason, age))
	}
	unknown := running(blocked(v1beta1.ReasonPlanInProgress, time.Hour), "deploy", time.Hour, 0)
	unknown.Status.PlanStatus["deploy"] = v1beta1.PlanStatus{Status: v1beta1.InProgress, UID: "run"}
	onlyStart := running(blocked(v1beta1.ReasonPlanInProgress, time.Hour), "deploy", 7*time.Minute, 0)
	st := onlyStart.Status.PlanStatus["deploy"]
	st.LastUpdatedTimestamp = nil
	onlyStart.Status.PlanStatus["deploy"] = st
	for _, tc := range []struct {
		reason   string
		instance *v1beta1.Instance
		want     string
	}{
		{"it runs, and progressed a while ago", running(blocked(v1beta1.ReasonPlanInProgress, time.Hour), "deploy", time.Hour, 6*time.Minute), `instance="x",namespace="a",plan="deploy",reason="PlanInProgress"} 360`},
		{"it runs for long, and progresses", running(blocked(v1beta1.ReasonPlanInProgress, time.Hour), "deploy", time.Hour, 4*time.Minute), ""},
		{"its last progress is its start", onlyStart, `instance="x",namespace="a",plan="deploy",reason="PlanInProgress"} 420`},
		{"nothing is known of its progress", unknown, ""},
		{"it waits for an account", blocked(v1beta1.ReasonServiceAccountNotFound, 5*time.Minute), `instance="x",namespace="a",plan="",reason="ServiceAccountNotFound"} 300`},
		{"it waits for an account since a moment", blocked(v1beta1.ReasonServiceAccountNotFound, time.Second), ""},
		{"it has failed, which is not a wait", blocked(v1beta1.ReasonPlanInFatalError, time.Hour), ""},
		{"its pods are not ready, which no plan changes", blocked(v1beta1.ReasonResourceNotReady, time.Hour), ""},
		{"it is new", instanceOf("a", "x", "v"), ""},
	} {
		got := scrape(t, newCollector(t, tc.instance))
		i := slices.IndexFunc(got, func(line string) bool { return strings.HasPrefix(line, "instance_stuck_seconds") })
		line := ""
		if i >= 0 {
			line = strings.TrimPrefix(got[i], "instance_stuck_seconds{")
		}
		if line != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, line, tc.want)
		}
		if count := slices.Contains(got, "instances_stuck 1"); count != (tc.want != "") {
			t.Errorf("%s: the count is wrong: %v", tc.reason, got)
		}
	}
}

// TestBounds: the number of series is bounded, whatever the packages and the Instances without progress.
func TestBounds(t *testing.T) {
	var objects []client.Object
	for i := range metrics.MaxOperators + 50 {
		ov := version("a", fmt.Sprintf("v-%03d", i), fmt.Sprintf("operator-%03d", i), "")
		objects = append(objects, ov)
		stuck := instanceOf("a", fmt.Sprintf("i-%03d", i), "v-000", condition(v1beta1.ReadyCondition, metav1.ConditionFalse, v1beta1.ReasonWaitingForCRDs, 10*time.Minute+time.Duration(i)*time.Second))
		objects = append(objects, stuck)
	}
	got := scrape(t, newCollector(t, objects...))
	count := func(prefix string) int {
		n := 0
		for _, line := range got {
			if strings.HasPrefix(line, prefix) {
				n++
			}
		}
		return n
	}
	if n := count("plan_runs_active"); n != metrics.MaxOperators+1 {
		t.Errorf("%d packages, want %d and the others", n, metrics.MaxOperators)
	}
	if !slices.Contains(got, `operatorversions{installed="true",operator="other"} 50`) {
		t.Error("the other packages are not summed up")
	}
	if !slices.Contains(got, `instances{operator="operator-000",ready="false"} 250`) {
		t.Error("the package with the most Instances is not named")
	}
	if n := count("instance_stuck_seconds"); n != maxStuck || !slices.Contains(got, "instances_stuck 250") {
		t.Errorf("%d Instances are named, want the first %d of 250", n, maxStuck)
	}
	if count(`instance_stuck_seconds{instance="i-249"`) != 1 || count(`instance_stuck_seconds{instance="i-000"`) != 0 {
		t.Error("those with the longest times are not named first")
	}
}

// TestLongNames: the name of an operator, which whoever writes an OperatorVersion chooses, makes no label of any length.
func TestLongNames(t *testing.T) {
	var objects []client.Object
	for i, length := range []int{100, 101, 1 << 20} {
		objects = append(objects, version("a", fmt.Sprint("v-", i), strings.Repeat("x", length), ""))
	}
	got := scrape(t, newCollector(t, objects...))
	for _, want := range []string{
		`operatorversions{installed="true",operator="` + strings.Repeat("x", 100) + `"} 1`, `operatorversions{installed="true",operator="other"} 2`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, line := range got {
		if len(line) > 200 {
			t.Errorf("a line of %d bytes: %s…", len(line), line[:100])
		}
	}
}

// TestFollower: a manager that does not lead has no gauges of objects.
func TestFollower(t *testing.T) {
	c := newCollector(t, version("a", "v", "redis", ""))
	c.elected = make(chan struct{})
	if got := scrape(t, c); !slices.Equal(got, []string{"leader 0"}) {
		t.Errorf("the metrics are %v", got)
	}
}

// TestUnreadable: what cannot be read gives no numbers, rather than zeros.
func TestUnreadable(t *testing.T) {
	c := newCollector(t)
	broken := newReader()
	broken.fail = errors.New("down")
	c.reader = broken
	if got := scrape(t, c); !slices.Equal(got, []string{"leader 1"}) {
		t.Errorf("the metrics are %v", got)
	}
}

// TestExpiry reads the end of the webhooks' certificate from its file.
func TestExpiry(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	good := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for _, tc := range []struct {
		reason  string
		content []byte
		found   bool
	}{
		{"a certificate", good, true},
		{"with its authority behind it", slices.Concat(good, good), true},
		{"no PEM", []byte("x"), false},
		{"no certificate", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), false},
		{"no file", nil, false},
	} {
		c := newCollector(t)
		c.certificate = filepath.Join(t.TempDir(), "tls.crt")
		if tc.content != nil {
			if err := os.WriteFile(c.certificate, tc.content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, found := expiry(c.certificate)
		if found != tc.found || found && !got.Equal(end) {
			t.Errorf("%s: %v, %v", tc.reason, got, found)
		}
		line := fmt.Sprintf("webhook_certificate_expiry_timestamp_seconds %v", float64(end.Unix()))
		if sent := slices.Contains(scrape(t, c), line); sent != tc.found {
			t.Errorf("%s: the metric is there: %v", tc.reason, sent)
		}
	}
}
