package instance

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/runner"
)

// activeRun is a run that is in progress.
type activeRun struct {
	run *runner.Run
	// key is the id of the key that the record of the run is sealed with; empty without a record.
	key string
	// usual is how long the steps usually take; nil until a step lasts so long that it is read.
	usual map[string]time.Duration
}

// setActiveRun makes a run the one that is in progress.
func (e *execution) setActiveRun(run *runner.Run, key string) {
	e.run = run
	e.runs.Store(client.ObjectKeyFromObject(e.Next), &activeRun{run: run, key: key})
}

// findActiveRun returns the remembered run, or nil. It returns nil if another manager has started the run, if another run is remembered
// whose start was not committed, or if the key of the run's record was dropped, since a client that knew the key may have made the record.
func (s *scope) findActiveRun(plan string, st v1beta1.PlanStatus) *activeRun {
	found, ok := s.runs.Load(client.ObjectKeyFromObject(s.Next))
	if !ok {
		return nil
	}
	known := found.(*activeRun)
	if known.run.UID != st.UID || known.run.Plan != plan || known.run.Subject.UID != s.Next.UID || known.key != "" && !s.ring.Has(known.key) {
		return nil
	}
	return known
}

// warnInRun records a warning once in the run that is active, however often its tasks are done.
func (e *execution) warnInRun(reason, message string) {
	if e.run != nil {
		e.WarnOnce(string(e.run.UID), reason, message)
	}
}

// RulesChanged reports whether the run of an Instance has a step in progress that renders objects of a kind that meets the condition. The
// condition says whether explore rules of a kind have changed. If so, the next execution of the run asks the rules again.
func (r *Reconciler) RulesChanged(key types.NamespacedName, condition func(schema.GroupVersionKind) bool) bool {
	found, ok := r.runs.Load(key)
	return ok && found.(*activeRun).run.RulesChanged(condition)
}
