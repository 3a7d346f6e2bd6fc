// Package metrics has the metrics of the manager: one table of all of them, from which the code, docs/metrics.md, the alerts and the
// dashboard are made or checked.
package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Type is the type of a metric, as Prometheus names it.
type Type string

// Types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric is a line of the table.
type Metric struct {
	Name   string
	Type   Type
	Labels []string
	Help   string
	// Buckets are the upper bounds of a histogram, in seconds.
	Buckets []float64
}

// Names of the metrics.
const (
	PlanRuns                = "kudo_plan_runs_total"
	PlanRunDuration         = "kudo_plan_run_duration_seconds"
	PlanRunsActive          = "kudo_plan_runs_active"
	PlanQueueLength         = "kudo_plan_queue_length"
	PlanRunOldest           = "kudo_plan_run_oldest_seconds"
	InstanceStuck           = "kudo_instance_stuck_seconds"
	InstancesStuck          = "kudo_instances_stuck"
	ScheduleLastSuccess     = "kudo_schedule_last_success_seconds"
	Instances               = "kudo_instances"
	OperatorVersions        = "kudo_operatorversions"
	InstancesDrifted        = "kudo_instances_drifted"
	SharedObjectsMismatched = "kudo_shared_objects_mismatched"
	TaskErrors              = "kudo_task_errors_total"
	Writes                  = "kudo_writes_total"
	WriteConflicts          = "kudo_write_conflicts_total"
	APIRequests             = "kudo_api_requests_total"
	CertificateExpiry       = "kudo_webhook_certificate_expiry_timestamp_seconds"
	PrivilegedNamespaces    = "kudo_privileged_namespaces"
	PackageVerifications    = "kudo_package_verifications_total"
	VerificationDuration    = "kudo_package_verification_duration_seconds"
	VersionsUnverified      = "kudo_operatorversions_unverified"
	VersionsRefused         = "kudo_operatorversions_refused"
	InstancesRefused        = "kudo_instances_refused"
	PackagePolicies         = "kudo_package_policies"
	AuthorityExpiry         = "kudo_package_authority_expiry_timestamp_seconds"
	ExploreAnswers          = "kudo_explore_answers_total"
	ExploreDuration         = "kudo_explore_duration_seconds"
	TarballFetches          = "kudo_crd_tarball_fetches_total"
	TarballHits             = "kudo_crd_tarball_hits_total"
	TarballReceivedBytes    = "kudo_crd_tarball_received_bytes_total"
	TarballEvictions        = "kudo_crd_tarball_evictions_total"
	TarballFailures         = "kudo_crd_tarball_failures_total"
	TarballCacheEntries     = "kudo_crd_tarball_cache_entries"
	TarballCacheBytes       = "kudo_crd_tarball_cache_bytes"
	BuildInfo               = "kudo_build_info"
	Leader                  = "kudo_leader"
)

// Table has all metrics of kudo, in the order of docs/metrics.md. No label holds the name of an Instance but those of InstanceStuck
// and ScheduleLastSuccess, which have at most 200 series each.
var Table = []Metric{
	{PlanRuns, Counter, []string{"operator", "plan", "outcome", "cause"}, "Runs of plans that have ended, by outcome (complete, fatal, " +
		"cancelled, superseded) and by what started them.", nil},
	{PlanRunDuration, Histogram, []string{"operator", "plan", "outcome"}, "Time from the start to the end of runs of plans.",
		[]float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200}},
	{PlanRunsActive, Gauge, []string{"operator"}, "Instances and OperatorVersions with a plan that runs.", nil},
	{PlanQueueLength, Gauge, []string{"operator"}, "Plans that wait for the end of the running one.", nil},
	{PlanRunOldest, Gauge, []string{"operator"}, "Age of the oldest run that has not ended.", nil},
	{InstanceStuck, Gauge, []string{"namespace", "instance", "plan", "reason"}, "Time since the last progress of an Instance that runs a " +
		"plan or waits for something, if it is at least five minutes; for the 200 Instances with the longest times.", nil},
	{InstancesStuck, Gauge, nil, "Instances without progress for at least five minutes, beyond the 200 of kudo_instance_stuck_seconds too.",
		nil},
	{ScheduleLastSuccess, Gauge, []string{"namespace", "instance", "schedule"}, "Time since a run of a schedule was complete last, or since " +
		"the creation of its Instance; for at most 200 schedules: those whose last run has failed, then those with the longest times.", nil},
	{Instances, Gauge, []string{"operator", "ready"}, "Instances, by the condition Ready (true, false, unknown).", nil},
	{OperatorVersions, Gauge, []string{"operator", "installed"}, "OperatorVersions, by whether their install plan is complete.", nil},
	{InstancesDrifted, Gauge, []string{"operator"}, "Instances with objects that another client has changed or deleted.", nil},
	{SharedObjectsMismatched, Gauge, []string{"operator"}, "Shared objects that differ from what an OperatorVersion needs.", nil},
	{TaskErrors, Counter, []string{"kind", "class"}, "Errors of tasks, by the kind of the task and by class (transient, fatal). A " +
		"transient error counts at each attempt.", nil},
	{Writes, Counter, []string{"verb", "class"}, "Writes at the API server that were no dry runs, by verb and by the account: own (the " +
		"manager's), installer (install plans, and privileged namespaces), instance (the accounts of Instances).", nil},
	{WriteConflicts, Counter, []string{"reason"}, "Writes that the API server has refused as a conflict, by reason: version (the object " +
		"was changed meanwhile), fields (another client owns fields), exists (the object exists).", nil},
	{APIRequests, Counter, []string{"verb", "code", "group"}, "Requests to the API server, by verb, status code and API group.", nil},
	{CertificateExpiry, Gauge, nil, "When the certificate of the webhooks expires, in seconds since 1970.", nil},
	{PrivilegedNamespaces, Gauge, nil, "Namespaces that let Instances that name no ServiceAccount write with the rights of kudo; -1 if " +
		"this cannot be read.", nil},
	{PackageVerifications, Counter, []string{"caller", "result", "reason"}, "Checks of packages against PackagePolicies, by what runs or " +
		"writes the package (instance, operatorversion for its install plan, webhook), by result (accepted, warned, no_policy, refused, " +
		"error), and by the reason of the verdict. A verdict that is remembered counts at each check.", nil},
	{VerificationDuration, Histogram, nil, "Time of checks of packages whose verdict was not remembered.",
		[]float64{0.0001, 0.001, 0.01, 0.1, 1, 10}},
	{VersionsUnverified, Gauge, []string{"reason"}, "OperatorVersions whose condition Verified is False, which PackagePolicies refuse or " +
		"warn of, by the reason of the condition.", nil},
	{VersionsRefused, Gauge, []string{"operator"}, "OperatorVersions whose install plan or Instances wait because PackagePolicies refuse " +
		"the package.", nil},
	{InstancesRefused, Gauge, []string{"operator"}, "Instances that wait because PackagePolicies refuse their package.", nil},
	{PackagePolicies, Gauge, []string{"ready"}, "PackagePolicies, by the condition Ready (true, false, unknown). One that is not ready " +
		"refuses all that it matches.", nil},
	{AuthorityExpiry, Gauge, []string{"policy", "authority"}, "When an authority of a PackagePolicy ends, in seconds since 1970; for the " +
		"200 that end first.", nil},
	{ExploreAnswers, Counter, []string{"operation", "layer", "result"}, "Answers of explore layers, by operation, layer and result " +
		"(answer, none, unknown).", nil},
	{ExploreDuration, Histogram, []string{"operation"}, "Time of explore answers, by operation.",
		prometheus.ExponentialBuckets(1e-5, 10, 7)},
	{TarballFetches, Counter, nil, "Attempts to fetch a tarball of CRDs from its source.", nil},
	{TarballHits, Counter, nil, "Tarballs of CRDs that were in the cache.", nil},
	{TarballReceivedBytes, Counter, nil, "Bytes of tarballs that came from their sources.", nil},
	{TarballEvictions, Counter, nil, "Cache entries that were removed to make room.", nil},
	{TarballFailures, Counter, []string{"reason"}, "Tarballs of CRDs that could not be fetched or refreshed, by reason.", nil},
	{TarballCacheEntries, Gauge, nil, "Entries of the cache of CRD tarballs.", nil},
	{TarballCacheBytes, Gauge, nil, "Bytes of the entries of the cache of CRD tarballs.", nil},
	{BuildInfo, Gauge, []string{"version", "commit", "go"}, "1, with the version of kudo, its commit, and the version of Go.", nil},
	{Leader, Gauge, nil, "1 on the manager that leads, 0 on the others. Only the leader has the gauges of Instances and " +
		"OperatorVersions.", nil},
}

// Find returns a metric of the table. It panics if there is none of the name.
func Find(name string) Metric {
	for _, m := range Table {
		if m.Name == name {
			return m
		}
	}
	panic(fmt.Sprintf("metric %s is not in the table", name))
}

// Desc describes a metric of the table to Prometheus, for collectors that make it.
func Desc(name string) *prometheus.Desc {
	m := Find(name)
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

// NewCounter returns a counter of the table.
func NewCounter(name string) *prometheus.CounterVec {
	m := Find(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// NewGauge returns a gauge of the table.
func NewGauge(name string) *prometheus.GaugeVec {
	m := Find(name)
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// NewHistogram returns a histogram of the table.
func NewHistogram(name string) *prometheus.HistogramVec {
	m := Find(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets}, m.Labels)
}

// Register registers collectors, up to the first error.
func Register(registry prometheus.Registerer, collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}
