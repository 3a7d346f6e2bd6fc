package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcome is how a run has ended.
type Outcome string

// Outcomes of runs.
const (
	OutcomeComplete   Outcome = "complete"
	OutcomeFatal      Outcome = "fatal"
	OutcomeCancelled  Outcome = "cancelled"
	OutcomeSuperseded Outcome = "superseded"
)

// Class is the class of an error of a task.
type Class string

// Classes of errors.
const (
	ClassTransient Class = "transient"
	ClassFatal     Class = "fatal"
)

// MaxOperators bounds the series that name a package, and maxPlans those that name a plan: the names come from packages.
const MaxOperators, maxPlans = 200, 100

// Run is a run that has ended.
type Run struct {
	// Operator is the name of the package.
	Operator, Plan string
	Outcome        Outcome
	// Cause is the class of the cause.
	Cause string
	// Duration from start to end; 0 if the start is not known.
	Duration time.Duration
}

// Runs counts runs of plans, and errors of their tasks. A nil *Runs counts nothing.
type Runs struct {
	runs, errors     *prometheus.CounterVec
	duration         *prometheus.HistogramVec
	operators, plans *Values
}

// NewRuns registers the metrics of runs.
func NewRuns(registry prometheus.Registerer) (*Runs, error) {
	r := &Runs{
		runs: NewCounter(PlanRuns), errors: NewCounter(TaskErrors), duration: NewHistogram(PlanRunDuration),
		operators: NewValues(MaxOperators), plans: NewValues(maxPlans),
	}
	return r, Register(registry, r.runs, r.errors, r.duration)
}

// End counts a run that has ended.
func (r *Runs) End(run Run) {
	if r == nil {
		return
	}
	operator, plan := r.operators.Bound(run.Operator), r.plans.Bound(run.Plan)
	r.runs.WithLabelValues(operator, plan, string(run.Outcome), run.Cause).Inc()
	if run.Duration > 0 {
		r.duration.WithLabelValues(operator, plan, string(run.Outcome)).Observe(run.Duration.Seconds())
	}
}

// TaskError counts an error of a task of a kind.
func (r *Runs) TaskError(kind string, class Class) {
	if r != nil {
		r.errors.WithLabelValues(kind, string(class)).Inc()
	}
}
