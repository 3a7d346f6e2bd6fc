package preview

import (
	"slices"
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
)

// warned reports whether the preview has said that something is not there for which the plan would wait.
func (o outcome) warned() bool {
	return slices.ContainsFunc(o.preview.Warnings, func(w string) bool { return strings.Contains(w, " needs ") || strings.Contains(w, " would wait") })
}

// settle waits until the last plan of the preview has ended, retries a step, or waits as the preview has warned, and returns the exit code of a
// command that waits for the plan.
func (o outcome) settle(t *testing.T) (code int) {
	t.Helper()
	if len(o.preview.Runs) == 0 {
		return 4
	}
	plan := o.preview.Runs[len(o.preview.Runs)-1].Plan
	env.Eventually(t, "the end of plan "+plan+", or a step that is retried", func() string {
		st := env.Read(t, suite, &v1beta1.Instance{}, o.ns, "i").Status.PlanStatus[plan]
		switch {
		case st.Status == v1beta1.Complete:
			code = 0
		case st.Status.IsTerminal():
			code = 3
		case stepIn(st, v1beta1.TransientError) != "" || o.warned():
			code = 4
		default:
			return string(st.Status) + ": " + st.Message
		}
		return ""
	})
	return code
}

// lacksRights reports whether the preview has said that the account lacks rights, or that it is not known which it needs.
func (o outcome) lacksRights() bool {
	r := o.preview.Rights
	return r != nil && len(r.Missing)+len(r.MissingCluster)+len(r.Unknown) > 0
}

// failsUnknown reports whether the upgrade failed at an object that the preview calls unknown.
func (o outcome) failsUnknown(out string) bool {
	return slices.ContainsFunc(o.preview.Objects, func(object preview.Object) bool {
		return object.Effect == preview.Unknown && strings.Contains(out, object.ID()+":")
	})
}

// compareWaiting checks that a plan which waits before its start has changed no object that the preview names.
func (o outcome) compareWaiting(t *testing.T) {
	t.Helper()
	for _, object := range o.preview.Objects {
		id := object.ID()
		if changed := compareObject(preview.Object{Effect: preview.Keep}, o.before[id], o.after[id]); changed != "" {
			t.Errorf("%s: said %s, and the plan waits, but %s\n%s", id, object.Effect, changed, o.texts)
		}
	}
}

// isTemporary reports whether a plan creates an object and deletes it later: a plan that stops may leave it.
func (o outcome) isTemporary(object preview.Object) bool {
	return object.Effect == preview.Unchanged && len(object.Places) > 1 && o.before[object.ID()] == nil
}

// compareStopped compares an upgrade whose plan retries, or has failed at an object that the preview did not know: the place and the cause,
// that each object is unchanged or as the preview says, and that the audit log has no other write.
func (o outcome) compareStopped(t *testing.T) {
	t.Helper()
	o.leaveClaims()
	if len(o.preview.Runs) == 0 {
		t.Fatalf("the preview has no run:\n%s", o.texts)
	}
	run, st := o.preview.Runs[len(o.preview.Runs)-1], v1beta1.PlanStatus{}
	env.Eventually(t, "a plan that does not wait for a deletion", func() string { // which passes
		st = env.Read(t, suite, &v1beta1.Instance{}, o.ns, "i").Status.PlanStatus[run.Plan]
		if strings.Contains(st.Message, "is being deleted") {
			return st.Message
		}
		return ""
	})
	switch forbidden := strings.Contains(st.Message, "forbidden: User"); {
	case st.Status.IsTerminal() && o.failsUnknown(st.Message):
	case st.Status.IsTerminal():
		t.Errorf("plan %s is %s: %s\n%s", run.Plan, st.Status, st.Message, o.texts)
	case forbidden && o.lacksRights(), !forbidden && o.warned():
	case run.Failure == nil:
		t.Errorf("the preview does not say why the plan waits: %s\n%s", st.Message, o.texts)
	default:
		why := run.Failure.Message
		if _, after, found := strings.Cut(why, " failed: "); found {
			why = after
		}
		if step := stepIn(st, v1beta1.TransientError); step != run.Failure.Step || !strings.Contains(st.Message, why) {
			t.Errorf("it waits at %s: %s\n%s", step, st.Message, o.texts)
		}
	}
	for _, object := range o.preview.Objects {
		id := object.ID()
		asSaid := compareObject(object, o.before[id], o.after[id])
		asBefore := compareObject(preview.Object{Effect: preview.Keep}, o.before[id], o.after[id])
		if asSaid != "" && asBefore != "" && !o.isTemporary(object) {
			t.Errorf("%s: said %s, but %s\n%s", id, object.Effect, asSaid, o.texts)
		}
	}
	o.compareWritten(t, false)
	o.compareOthers(t)
}
