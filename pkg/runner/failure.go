package runner

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/health"
)

// failureDelay is the time after the start of a step during which a reported failure may be from before the last write.
const failureDelay = 10 * time.Second

// observation is what a step has seen of an object first.
type observation struct {
	// step is the start of the step.
	step time.Time
	// version is the resourceVersion after the write of the step, or, if the step wrote nothing, of the first look.
	version string
}

// observedLag reports whether status.observedGeneration of an object is older than the generation of the object. known is false if the
// object has no status.observedGeneration.
func observedLag(live *unstructured.Unstructured) (lags, known bool) {
	observed, found, err := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	return observed < live.GetGeneration(), found && err == nil
}

// currentFailure returns the failed result of an object if the failure counts for this run, and a progressing result otherwise. The
// controller of an object may not have seen the last write yet, and the run may have changed another object on which this one depends:
//
//	status.observedGeneration is older       it does not count (see Health)
//	this call has written the object         it does not count
//	the object has changed since then        it counts
//	else                                     it counts 10 s after the start of the step
func (w *PreparedTask) currentFailure(change apply.Change, result health.Result) health.Result {
	first := w.observe(change)
	if result.State != health.Failed {
		return result
	}
	changed := first.version != change.Live.GetResourceVersion()
	if change.Action == apply.Unchanged && (changed || w.now.Sub(w.started) >= failureDelay) {
		return result
	}
	return staleFailure(result)
}

// observe returns the first observation of an object in this step, or the one of the last write.
func (w *PreparedTask) observe(change apply.Change) observation {
	first, known := w.run.observed[change.ID]
	if known && change.Action == apply.Unchanged && first.step.Equal(w.started) {
		return first
	}
	if w.run.observed == nil {
		w.run.observed = map[apply.ID]observation{}
	}
	first = observation{w.started, change.Live.GetResourceVersion()}
	w.run.observed[change.ID] = first
	return first
}

// staleFailure returns a progressing result that quotes the failure from before the last write.
func staleFailure(result health.Result) health.Result {
	return health.Result{State: health.Progressing,
		Message: "waits for its controller to see the last change; before that change, it reported: " + result.Message}
}
