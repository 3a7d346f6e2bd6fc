package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Caller is what has a package checked against PackagePolicies.
type Caller string

// Callers of checks.
const (
	// CallerInstance checks what the plans of an Instance run.
	CallerInstance Caller = "instance"
	// CallerOperatorVersion checks what an install plan runs.
	CallerOperatorVersion Caller = "operatorversion"
	// CallerWebhook checks an OperatorVersion that a user writes.
	CallerWebhook Caller = "webhook"
)

// Result is what a check of a package has found.
type Result string

// Results of checks.
const (
	ResultAccepted Result = "accepted"
	// ResultWarned: the package runs, and a policy warns of it.
	ResultWarned Result = "warned"
	// ResultNoPolicy: the package runs, since no policy is for it.
	ResultNoPolicy Result = "no_policy"
	ResultRefused  Result = "refused"
	// ResultError: the verdict is not known, and the package does not run.
	ResultError Result = "error"
)

// Verifications counts the checks of packages against PackagePolicies. A nil *Verifications counts nothing.
type Verifications struct {
	checks   *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewVerifications registers the metrics of checks.
func NewVerifications(registry prometheus.Registerer) (*Verifications, error) {
	v := &Verifications{checks: NewCounter(PackageVerifications), duration: NewHistogram(VerificationDuration)}
	// An alert takes the increase of errors, which does not see the first event of a series that begins with it.
	for _, caller := range []Caller{CallerInstance, CallerOperatorVersion, CallerWebhook} {
		v.checks.WithLabelValues(string(caller), string(ResultError), "")
	}
	v.duration.WithLabelValues()
	return v, Register(registry, v.checks, v.duration)
}

// Count counts a check. The reason is one of a fixed set, and empty for an error.
func (v *Verifications) Count(caller Caller, result Result, reason string) {
	if v != nil {
		v.checks.WithLabelValues(string(caller), string(result), reason).Inc()
	}
}

// Took measures a check whose verdict was not remembered.
func (v *Verifications) Took(duration time.Duration) {
	if v != nil {
		v.duration.WithLabelValues().Observe(duration.Seconds())
	}
}
