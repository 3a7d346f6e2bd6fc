package controllers

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/plans"
)

// Version of kudo, set when linking.
var Version = "dev"

// Commit of the sources, set when linking.
var Commit = "unknown"

const (
	// stuckAfter is the time without progress from which an Instance counts as stuck.
	stuckAfter = 5 * time.Minute
	// maxStuck bounds the series that name an Instance.
	maxStuck = 200
)

// stateCollector measures the objects of kudo when the metrics are read, from the cache.
type stateCollector struct {
	// ctx ends with the manager: Prometheus gives a collector none.
	ctx    context.Context
	reader client.Reader
	clock  clock.PassiveClock
	// elected is closed once this manager leads. Only the leader measures objects, so that sums over all managers count each once.
	elected <-chan struct{}
	// certificate is the file of the webhooks' certificate; empty without webhooks.
	certificate string
}

// stateMetrics are the metrics that the collector makes.
var stateMetrics = []string{metrics.PlanRunsActive, metrics.PlanQueueLength, metrics.PlanRunOldest, metrics.InstanceStuck,
	metrics.InstancesStuck, metrics.ScheduleLastSuccess, metrics.Instances, metrics.OperatorVersions, metrics.InstancesDrifted,
	metrics.SharedObjectsMismatched, metrics.VersionsUnverified, metrics.VersionsRefused, metrics.InstancesRefused,
	metrics.PackagePolicies, metrics.AuthorityExpiry,
	metrics.CertificateExpiry, metrics.BuildInfo, metrics.Leader}

// addStateCollector registers the metrics of state.
func (p *parts) addStateCollector(ctx context.Context, registry prometheus.Registerer) error {
	c := &stateCollector{ctx: ctx, reader: p.mgr.GetCache(), clock: p.options.Clock, elected: p.mgr.Elected()}
	if p.options.WebhookPort != 0 {
		c.certificate = filepath.Join(p.options.WebhookCertDir, "tls.crt")
	}
	return metrics.Register(registry, c)
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(out chan<- *prometheus.Desc) {
	for _, name := range stateMetrics {
		out <- metrics.Desc(name)
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(out chan<- prometheus.Metric) {
	send := func(name string, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(metrics.Desc(name), prometheus.GaugeValue, value, labels...)
	}
	send(metrics.BuildInfo, 1, Version, Commit, runtime.Version())
	if end, ok := expiry(c.certificate); ok {
		send(metrics.CertificateExpiry, float64(end.Unix()))
	}
	select {
	case <-c.elected:
		send(metrics.Leader, 1)
	default:
		send(metrics.Leader, 0)
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, 10*time.Second)
	defer cancel()
	m, err := c.measure(ctx)
	if err != nil {
		ctrl.Log.Error(err, "cannot measure the objects of kudo")
		return
	}
	m.send(send)
}

// expiry returns the end of the first certificate of a file.
func expiry(file string) (time.Time, bool) {
	if file == "" {
		return time.Time{}, false
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return time.Time{}, false
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}, false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return certificate.NotAfter, true
}

// measure reads all objects from the cache, without copying them: it changes none.
func (c *stateCollector) measure(ctx context.Context) (*measurement, error) {
	shared := &client.ListOptions{UnsafeDisableDeepCopy: ptr.To(true)}
	versions, instances, installations := &v1beta1.OperatorVersionList{}, &v1beta1.InstanceList{}, &v1beta1.InstallationList{}
	policies := &configv1alpha1.PackagePolicyList{}
	for _, list := range []client.ObjectList{versions, instances, installations, policies} {
		if err := c.reader.List(ctx, list, shared); err != nil {
			return nil, err
		}
	}
	m := &measurement{now: c.clock.Now(), operators: map[string]*operatorState{}, refused: map[client.ObjectKey]bool{},
		unverified: map[string]int{}}
	names := map[client.ObjectKey]string{}
	for i := range versions.Items {
		ov := &versions.Items[i]
		names[client.ObjectKeyFromObject(ov)] = ov.Spec.Operator.Name
		m.addVersion(ov)
	}
	for i := range instances.Items {
		instance := &instances.Items[i]
		m.addInstance(instance, names[instance.OperatorVersionKey()])
	}
	for i := range installations.Items {
		subject := installations.Items[i].Spec.Subject
		m.addHeld(&installations.Items[i], names[client.ObjectKey{Namespace: subject.Namespace, Name: subject.Name}])
	}
	m.addRefused(names)
	m.addPolicies(policies.Items)
	return m, nil
}

// measurement is what the objects of kudo add up to.
type measurement struct {
	now time.Time
	// operators by the name of the package; empty for Instances whose OperatorVersion does not exist.
	operators map[string]*operatorState
	stuck     []stuckInstance
	schedules []measuredSchedule
	// refused are the OperatorVersions whose install plan or Instances wait because policies refuse the package.
	refused map[client.ObjectKey]bool
	// unverified counts OperatorVersions by the reason of the condition Verified, policies counts PackagePolicies by the label ready.
	unverified, policies map[string]int
	authorities          []measuredAuthority
}

// operatorState sums up the objects of one package.
type operatorState struct {
	// ready and installed count by the value of the label.
	ready, installed                    map[string]int
	active, queued, drifted, mismatched int
	// refusedVersions and refusedInstances wait because policies refuse the package.
	refusedVersions, refusedInstances int
	oldest                            time.Duration
}

// size is how many objects a package has.
func (s *operatorState) size() int {
	out := 0
	for _, n := range s.ready {
		out += n
	}
	for _, n := range s.installed {
		out += n
	}
	return out
}

// stuckInstance is an Instance without progress.
type stuckInstance struct {
	namespace, name, plan, reason string
	since                         time.Duration
}

func (m *measurement) operator(name string) *operatorState {
	if !metrics.IsLabelValue(name) { // whoever writes an OperatorVersion chooses it, of any length
		name = metrics.Other
	}
	s, found := m.operators[name]
	if !found {
		s = &operatorState{ready: map[string]int{}, installed: map[string]int{}}
		m.operators[name] = s
	}
	return s
}

// conditionValue is the value of a condition as a label: true, false or unknown.
func conditionValue(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return strings.ToLower(string(c.Status))
	}
	return strings.ToLower(string(metav1.ConditionUnknown))
}

func (m *measurement) addVersion(ov *v1beta1.OperatorVersion) {
	s := m.operator(ov.Spec.Operator.Name)
	installed := "false"
	if ov.Installed() {
		installed = "true"
	}
	s.installed[installed]++
	m.addVerdict(ov)
	m.addRun(s, ov.Status.PlanStatus)
}

// addRun adds the run of the plan that is running, if there is one, and returns that plan.
func (m *measurement) addRun(s *operatorState, all map[string]v1beta1.PlanStatus) string {
	name := plans.Running(all)
	if name == "" {
		return ""
	}
	s.active++
	if started := all[name].StartedTimestamp; started != nil {
		s.oldest = max(s.oldest, m.now.Sub(started.Time))
	}
	return name
}

func (m *measurement) addInstance(instance *v1beta1.Instance, operator string) {
	s, status := m.operator(operator), &instance.Status
	s.ready[conditionValue(status.Conditions, v1beta1.ReadyCondition)]++
	s.queued += len(status.Queue)
	if len(status.Drift) > 0 {
		s.drifted++
	}
	if isRefused(status.Conditions) {
		s.refusedInstances++
		m.refused[instance.OperatorVersionKey()] = true
	}
	m.addSchedules(instance)
	plan := m.addRun(s, status.PlanStatus)
	since, reason := lastProgress(instance, plan)
	if stuck := m.now.Sub(since); !since.IsZero() && stuck >= stuckAfter {
		m.stuck = append(m.stuck, stuckInstance{instance.Namespace, instance.Name, plan, reason, stuck})
	}
}

// lastProgress returns when an Instance that runs a plan, or waits for something before it runs one, has progressed last, and the reason
// of its condition Ready. The time is zero for an Instance that is idle.
func lastProgress(instance *v1beta1.Instance, plan string) (time.Time, string) {
	ready := meta.FindStatusCondition(instance.Status.Conditions, v1beta1.ReadyCondition)
	reason := ""
	if ready != nil {
		reason = ready.Reason
	}
	if plan != "" {
		st := instance.Status.PlanStatus[plan]
		switch {
		case st.LastUpdatedTimestamp != nil:
			return st.LastUpdatedTimestamp.Time, reason
		case st.StartedTimestamp != nil:
			return st.StartedTimestamp.Time, reason
		}
		return time.Time{}, reason
	}
	if ready == nil || ready.Status == metav1.ConditionTrue || reason == v1beta1.ReasonPlanInFatalError ||
		reason == v1beta1.ReasonResourceNotReady || reason == v1beta1.ReasonResourceFailed {
		return time.Time{}, reason
	}
	return ready.LastTransitionTime.Time, reason
}

func (m *measurement) addHeld(installation *v1beta1.Installation, operator string) {
	for i := range installation.Status.Resources {
		if installation.Status.Resources[i].State == v1beta1.HoldMismatch {
			m.operator(operator).mismatched++
		}
	}
}

// bound merges the packages with the fewest objects into one if there are too many.
func (m *measurement) bound() {
	if len(m.operators) <= metrics.MaxOperators {
		return
	}
	names := make([]string, 0, len(m.operators))
	for name := range m.operators {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(m.operators[b].size()-m.operators[a].size(), strings.Compare(a, b))
	})
	rest := names[metrics.MaxOperators:]
	for _, name := range rest {
		from := m.operators[name]
		delete(m.operators, name)
		into := m.operator(metrics.Other)
		for value, n := range from.ready {
			into.ready[value] += n
		}
		for value, n := range from.installed {
			into.installed[value] += n
		}
		into.active += from.active
		into.queued += from.queued
		into.drifted += from.drifted
		into.mismatched += from.mismatched
		into.refusedVersions += from.refusedVersions
		into.refusedInstances += from.refusedInstances
		into.oldest = max(into.oldest, from.oldest)
	}
}

// send sends the metrics.
func (m *measurement) send(send func(name string, value float64, labels ...string)) {
	m.bound()
	for name, s := range m.operators {
		for value, n := range s.ready {
			send(metrics.Instances, float64(n), name, value)
		}
		for value, n := range s.installed {
			send(metrics.OperatorVersions, float64(n), name, value)
		}
		send(metrics.PlanRunsActive, float64(s.active), name)
		send(metrics.PlanQueueLength, float64(s.queued), name)
		send(metrics.PlanRunOldest, s.oldest.Seconds(), name)
		send(metrics.InstancesDrifted, float64(s.drifted), name)
		send(metrics.SharedObjectsMismatched, float64(s.mismatched), name)
		send(metrics.VersionsRefused, float64(s.refusedVersions), name)
		send(metrics.InstancesRefused, float64(s.refusedInstances), name)
	}
	send(metrics.InstancesStuck, float64(len(m.stuck)))
	slices.SortFunc(m.stuck, func(a, b stuckInstance) int {
		return cmp.Or(cmp.Compare(b.since, a.since), strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
	for _, s := range m.stuck[:min(len(m.stuck), maxStuck)] {
		send(metrics.InstanceStuck, s.since.Seconds(), s.namespace, s.name, s.plan, s.reason)
	}
	m.sendSchedules(send)
	m.sendPolicies(send)
}
