package runner

import (
	"testing"
	"time"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/plans"
)

// TestFailure (C62): an object that the interpreter calls failed ends the step with the object's words if the failure counts for this run. An
// old failure never fails a new run.
func TestFailure(t *testing.T) {
	type call struct {
		action  apply.Action
		version string
		// failed is set if the interpreter calls the object failed; else it is progressing.
		failed bool
		// after is the time since the start of the step.
		after time.Duration
	}
	const same, later = "7", "9"
	for name, tc := range map[string]struct {
		reason     string
		generation any // status.observedGeneration of an object of generation 3; nil for none
		calls      []call
		fatal      bool
	}{
		"Created":      {"just created", nil, []call{{apply.Created, same, true, 0}}, false},
		"Configured":   {"just written, though the step began long ago", nil, []call{{apply.Configured, same, true, time.Hour}}, false},
		"Metadata":     {"only labels were written, so that the generation is the old one", int64(3), []call{{apply.Configured, same, true, 0}}, false},
		"OldFailure":   {"it had failed before the run, which writes nothing", nil, []call{{apply.Unchanged, same, true, 0}, {apply.Unchanged, same, true, 9 * time.Second}}, false},
		"OldObserved":  {"the same, with a generation", int64(3), []call{{apply.Unchanged, same, true, 0}, {apply.Unchanged, same, true, 9 * time.Second}}, false},
		"Late":         {"it has not changed for 10 s", nil, []call{{apply.Unchanged, same, true, 0}, {apply.Unchanged, same, true, 10 * time.Second}}, true},
		"ChangedSince": {"it has changed since it was written", nil, []call{{apply.Created, same, false, 0}, {apply.Unchanged, later, true, 0}}, true},
		"Observed":     {"the same, with a generation", int64(3), []call{{apply.Configured, same, false, 0}, {apply.Unchanged, later, true, 0}}, true},
		"SeenFirst":    {"it has changed since the first look", nil, []call{{apply.Unchanged, same, true, 0}, {apply.Unchanged, later, true, time.Second}}, true},
		"Rewritten":    {"it was written again after it had changed", nil, []call{{apply.Created, same, false, 0}, {apply.Configured, later, true, 0}}, false},
		"Older":        {"the status is of an older generation, however long ago", int64(2), []call{{apply.Configured, same, true, 0}, {apply.Unchanged, later, true, time.Hour}}, false},
		"Malformed":    {"a generation that is no number is none", "3", []call{{apply.Created, same, true, 0}}, false},
		"NewManager":   {"a manager that has just started judges by the time of the step", nil, []call{{apply.Unchanged, later, true, time.Hour}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			begun, r := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), run(nil)
			var got plans.Outcome
			var effects Effects
			for _, c := range tc.calls {
				change := wrote(named("a"))
				change.Action = c.action
				change.Live.SetResourceVersion(c.version)
				change.Live.SetGeneration(3)
				if tc.generation != nil {
					change.Live.Object["status"] = map[string]any{"observedGeneration": tc.generation}
				}
				i := interpreter{explore.Healthy: {"a": explore.Answer{Failed: c.failed, Message: "Error: no image"}}}
				w := &PreparedTask{run: r, writer: &scripted{changes: apply.ChangeSet{change}}, started: begun, now: begun.Add(c.after)}
				got, effects = (&Runner{all: i, external: i}).apply(t.Context(), w)
			}
			want := plans.Outcome{State: plans.Waiting, Total: 1, Message: "ConfigMap ns/a: waits for its controller to see the last change; " +
				"before that change, it reported: Error: no image"}
			if tc.fatal {
				want = plans.Outcome{State: plans.Fatal, Message: "ConfigMap ns/a: Error: no image", Total: 1}
			}
			if got != want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, want)
			}
			if older := tc.generation == int64(2); effects.Recheck == (older || tc.fatal) {
				t.Errorf("%s: checked again: %v", tc.reason, effects.Recheck)
			}
		})
	}
}

// TestFailureOfNextStep (C62): a step does not go by what an earlier one has seen of the object.
func TestFailureOfNextStep(t *testing.T) {
	first, r := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), run(nil)
	i := interpreter{explore.Healthy: {"a": explore.Answer{Failed: true, Message: "Error: no image"}}}
	for n, version := range []string{"7", "9"} {
		change := wrote(named("a"))
		change.Action = apply.Unchanged
		change.Live.SetResourceVersion(version)
		step := first.Add(time.Duration(n) * time.Minute)
		w := &PreparedTask{run: r, writer: &scripted{changes: apply.ChangeSet{change}}, started: step, now: step}
		if got, _ := (&Runner{all: i, external: i}).apply(t.Context(), w); got.State != plans.Waiting {
			t.Errorf("step %d: %+v", n, got)
		}
	}
}
