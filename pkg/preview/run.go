package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/trigger"
)

// touch is what the tasks of the preview do to an object.
type touch struct {
	places []string
	// refused is why a write would be refused, and body what would be written; unknown is why its result is not known.
	refused, unknown string
	// blame says where parameters of the edit stand in an object whose write would be refused.
	blame []runner.Blame
	// kept is why an object that the version does not name would stay.
	kept string
	// shared is set if an install plan writes the object.
	shared bool
	// released is set if the object is deleted with the Instance.
	released bool
	// sameHash is set if nothing that the pods of the object depend on has changed when it is written last, and uncertain says why that is
	// not known.
	sameHash  bool
	uncertain string
	// written and deleted are the steps that do so.
	written, deleted []doer
}

// doer is a step of a run.
type doer struct {
	run         *runner.Run
	phase, step int
}

// follows reports whether one of two steps waits for the other to end.
func (d doer) follows(other doer) bool {
	if d.run != other.run {
		return true
	}
	plan := d.run.Version.Spec.Plans[d.run.Plan]
	if d.phase != other.phase {
		return plan.Strategy == v1beta1.Serial
	}
	return d.step != other.step && plan.Phases[d.phase].Strategy == v1beta1.Serial
}

// compete notes that it is not known what becomes of an object that steps write and delete side by side: a write whose object is not ready
// yet is done again.
func (t *touch) compete() {
	for _, writes := range t.written {
		if slices.ContainsFunc(t.deleted, func(deletes doer) bool { return !writes.follows(deletes) }) {
			t.unknown = "it is written and deleted by tasks that do not wait for each other"
		}
	}
}

// at notes a place for an object.
func (c *computation) at(id apply.ID, place string) *touch {
	t := c.touched[id]
	if t == nil {
		t = &touch{}
		c.touched[id] = t
		c.order = append(c.order, id)
	}
	if place != "" && !slices.Contains(t.places, place) {
		t.places = append(t.places, place)
	}
	return t
}

// follow previews the run that a decision starts, and leaves the Instance as the run would.
func (c *computation) follow(ctx context.Context, decision trigger.Decision) error {
	start := decision.Start
	run := c.newRun(start, c.runValues(decision.Deferred))
	st, err := c.execute(ctx, run, c.inventory)
	if err != nil {
		return err
	}
	if st.Status == v1beta1.Complete && start.Upgrade {
		if err := c.prune(ctx, run); err != nil {
			return err
		}
	}
	c.finish(decision, st)
	return nil
}

// execute previews a run, which changes the inventory as it would.
func (c *computation) execute(ctx context.Context, run *runner.Run, inventory runner.Inventory) (v1beta1.PlanStatus, error) {
	plan := run.Version.Spec.Plans[run.Plan]
	st := plans.Start(run.Plan, plan, run.UID, 0, c.Clock.Now())
	out := Run{Plan: run.Plan, Cause: c.mask.Text(run.Cause)}
	for _, phase := range plan.Phases {
		out.Steps += len(phase.Steps)
	}
	if run.Installation != nil {
		out.Of = "OperatorVersion " + run.Source
	} else {
		out.Capacity = c.capacityOf(ctx, run)
	}
	c.out.Runs, c.run = append(c.out.Runs, out), run
	if _, err := c.runner.Execute(ctx, run, inventory, &st, c.Clock, recorder{c, inventory}); err != nil {
		return st, err
	}
	switch {
	case ctx.Err() != nil:
		return st, ctx.Err()
	case st.Status == v1beta1.FatalError:
		c.out.Runs[len(c.out.Runs)-1].Failure = &Failure{Step: failedStep(st), Message: st.Message}
	case st.Status != v1beta1.Complete:
		c.unknown("plan %s would not end: %s", run.Plan, st.Message)
	}
	return st, nil
}

// newRun returns the run of a request, as the controller would start it.
func (c *computation) newRun(start *trigger.Request, values map[string]string) *runner.Run {
	i := c.instance
	uid := i.UID
	if uid == "" {
		uid = "00000000-0000-0000-0000-000000000000" // it is not created yet
	}
	return &runner.Run{
		Subject: runner.Subject{Kind: "Instance", Namespace: i.Namespace, Name: i.Name, UID: uid, Annotations: i.Annotations,
			Owners: i.OwnerReferences},
		Source: i.OperatorVersionKey().String(), Version: c.version, Plan: start.Plan, Cause: start.Cause, UID: "preview",
		Parameters: values, Sensitive: c.sensitive, Upgrade: start.Upgrade,
		Suspend: i.Spec.Suspend && plans.AppliesSpec(start.Plan),
		Account: apply.Account{Namespace: i.Namespace, Name: i.Spec.ServiceAccountName}, Privileged: i.Spec.ServiceAccountName == "",
		Keys: c.keys, InstanceExists: c.instanceExists,
	}
}

// failedStep names the step of a run that has failed, as `phase/step`; empty if none has.
func failedStep(st v1beta1.PlanStatus) string {
	for _, phase := range st.Phases {
		for _, step := range phase.Steps {
			if step.Status == v1beta1.FatalError {
				return plans.StepKey(phase.Name, step.Name)
			}
		}
	}
	return ""
}

// finish leaves the Instance as the end of a run would.
func (c *computation) finish(decision trigger.Decision, st v1beta1.PlanStatus) {
	status := &c.instance.Status
	if status.PlanStatus == nil {
		status.PlanStatus = map[string]v1beta1.PlanStatus{}
	}
	if !st.Status.IsTerminal() {
		st.Status = v1beta1.Complete
	}
	status.PlanStatus[st.Name] = st
	status.Queue, status.Baseline = decision.Queue, decision.Baseline
}

// prune previews what happens to objects that the new version does not name.
func (c *computation) prune(ctx context.Context, run *runner.Run) error {
	left, err := runner.AbandonedObjects(run, c.inventory)
	if err != nil {
		c.warn("objects of the old version would stay, since the objects of the new version cannot be determined: %s", err)
		return nil
	}
	for _, id := range left {
		t := c.at(id, "")
		kept, err := c.runner.Prune(ctx, run, c.inventory, id)
		switch {
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			t.unknown = err.Error()
		default:
			t.kept = kept
		}
		delete(c.inventory, id)
	}
	return nil
}

// recorder takes what the tasks of a run do.
type recorder struct {
	*computation
	inventory runner.Inventory
}

// RecordIntent implements runner.ProgressRecorder: nothing is committed.
func (r recorder) RecordIntent(_ context.Context, _ v1beta1.PlanStatus, ids []apply.ID, _ bool) error {
	for _, id := range ids {
		if _, known := r.inventory[id]; !known {
			r.inventory[id] = apply.Record{}
		}
	}
	return nil
}

// RecordEffects implements runner.ProgressRecorder.
func (r recorder) RecordEffects(effects runner.Effects) {
	for _, change := range effects.Written {
		r.inventory[change.ID] = change.Record
	}
	for _, id := range effects.Deleted {
		delete(r.inventory, id)
	}
	plan := r.run.Plan
	for _, event := range effects.Events { // the event of a run that exceeds a quota says that it was started
		r.warn("%s", strings.Replace(event[1], "Plan "+plan+" was started, and needs", "plan "+plan+" would need", 1))
	}
}

// judge notes what a task does, and regards as done what only has to be awaited.
//
//	done                                             done
//	waiting                                          done: what is awaited comes about once it is really written
//	waits for ever                                   fatal
//	failed, and all that failed is not known here    done
//	refused, since kinds come with the same run      done
//	failed for a transient reason                    fatal: the plan would retry until the reason has passed
//	failed with a fatal error                        fatal
func (c *computation) judge(w *runner.PreparedTask, outcome plans.Outcome, effects runner.Effects) plans.Outcome {
	place, step := c.place(w), doer{c.run, w.Place.Phase, w.Place.Step}
	for _, change := range effects.Written {
		t := c.at(change.ID, place)
		t.shared = c.run.Installation != nil
		t.sameHash, t.uncertain = c.settleHash(change.ID)
		t.written = append(t.written, step)
		t.compete()
	}
	for _, id := range effects.Deleted {
		t := c.at(id, place)
		t.deleted = append(t.deleted, step)
		t.compete()
	}
	for _, artifact := range w.Artifacts() {
		t := c.at(apply.IDOf(artifact), place)
		t.unknown = fmt.Sprintf("its content is made by the pod of task %s", w.Name)
		c.inventory[apply.IDOf(artifact)] = apply.Record{}
	}
	if needs := w.Needs(); needs != "" && outcome.State == plans.Waiting && len(effects.Written)+len(effects.Failed) == 0 {
		c.unknown("what task %s would write, which waits: %s", w.Name, needs)
	} else if needs != "" {
		c.warn("%s", needs)
	}
	if outcome.State == plans.Waiting && len(effects.Written)+len(effects.Failed) == 0 && !w.NeverCompletes() {
		c.warn("task %s would wait: %s", w.Name, outcome.Message)
	}
	refused := c.noteFailures(effects.Failed, place)
	c.blame(w, effects.Failed)
	done := plans.Outcome{State: plans.Done, Ready: outcome.Ready, Total: outcome.Total}
	switch {
	case outcome.State == plans.Waiting && w.NeverCompletes():
		outcome.State = plans.Fatal
		return outcome
	case outcome.State == plans.Done, outcome.State == plans.Waiting:
		return done
	case len(effects.Failed) > 0 && !refused:
		c.noteRest(w, place)
		return done
	case len(effects.Failed) == 0 && c.noteNewKinds(w, place):
		return done
	case outcome.State == plans.Transient && len(effects.Failed) == 0:
		c.unknown("task %s could not be previewed: %s", w.Name, outcome.Message)
		return done
	}
	outcome.State = plans.Fatal
	return outcome
}

// blame notes where the parameters of the edit stand in objects that would be refused (P8).
func (c *computation) blame(w *runner.PreparedTask, failed []apply.Change) {
	changed := c.changedParameters()
	for _, change := range failed {
		if t := c.touched[change.ID]; t.refused != "" {
			t.blame = slices.DeleteFunc(w.Blame(change, func(name string) bool { return slices.Contains(changed, name) }),
				func(b runner.Blame) bool { return len(b.Parameters) == 0 })
		}
	}
}

// noteRest notes the objects of a task that were not tried, since those before them are not known.
func (c *computation) noteRest(w *runner.PreparedTask, place string) {
	for _, obj := range w.Rendered() {
		id := apply.IDOf(obj)
		if _, tried := c.touched[id]; !tried {
			c.at(id, place).unknown = "it is written after objects that are not known"
		}
	}
}

// noteNewKinds reports whether the kind of an object of a task is defined in the same run, and notes that its objects are not known then.
func (c *computation) noteNewKinds(w *runner.PreparedTask, place string) bool {
	objs := w.Rendered()
	isUnknown := func(obj *unstructured.Unstructured) bool {
		return !c.cluster.IsDefined(apply.IDOf(obj)) && c.definesKind(apply.IDOf(obj))
	}
	if !slices.ContainsFunc(objs, isUnknown) {
		return false
	}
	for _, obj := range objs {
		id := apply.IDOf(obj)
		if id.Namespace == "" {
			id.Namespace = c.run.Subject.Namespace
		}
		c.at(id, place).unknown = "its kind, or that of an object beside it, is defined or changed in the same run"
	}
	return true
}

// place names the place of a task, as `plan/phase/step/task`.
func (c *computation) place(w *runner.PreparedTask) string {
	phase := c.run.Version.Spec.Plans[c.run.Plan].Phases[w.Place.Phase]
	return strings.Join([]string{c.run.Plan, phase.Name, phase.Steps[w.Place.Step].Name, w.Name}, "/")
}

// noteFailures notes objects that could not be written, and reports whether one of them would be refused in a real run, too.
func (c *computation) noteFailures(failed []apply.Change, place string) (refused bool) {
	for _, change := range failed {
		t := c.at(change.ID, place)
		if why := c.unknowable(change); why != "" {
			t.unknown = why
			continue
		}
		t.refused, refused = c.mask.Text(change.Err.Error()), true
		c.out.noteMismatch(change)
	}
	return refused
}

// unknowable says why an error of a dry run says nothing about a real run; empty if it does.
func (c *computation) unknowable(change apply.Change) string {
	err, text := change.Err, c.mask.Text(change.Err.Error())
	switch {
	case apierror.IsNamespaceNotFound(err) && (c.newNamespace || c.createsNamespace(change.ID.Namespace)):
		return "its namespace does not exist yet"
	case isLate(err):
		return "the API server did not answer in time"
	case isUnanswered(err):
		return "it could not be asked: " + text
	case (meta.IsNoMatchError(err) || apply.IsFatal(err)) && !c.cluster.IsDefined(change.ID) && c.definesKind(change.ID):
		return "its kind is defined or changed in the same run"
	}
	return ""
}

// createsNamespace reports whether the runs would create a Namespace.
func (c *computation) createsNamespace(name string) bool {
	id := apply.ID{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}}
	id.Name = name
	change, _ := c.cluster.Find(id)
	return change.Before == nil && change.After != nil
}

// isUnanswered reports whether an answer of the API server says that it does not tell, and nothing of what it would do for others or later.
func isUnanswered(err error) bool {
	text := err.Error()
	return apierrors.IsForbidden(err) && !strings.Contains(text, "exceeded quota") && !strings.Contains(text, "admission webhook") &&
		!strings.Contains(text, "ValidatingAdmissionPolicy") && !strings.Contains(text, "violates PodSecurity") ||
		strings.Contains(text, "does not support dry run") || isLate(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

// ErrLate is the error of a request that was not answered before the time of the preview was over.
var ErrLate = errors.New("the time of the preview is over")

func isLate(err error) bool { return errors.Is(err, ErrLate) }

// definesKind reports whether the runs write a definition of the kind of an object, or may do so by a tarball that is not known.
func (c *computation) definesKind(id apply.ID) bool {
	if _, err := c.Client.RESTMapper().RESTMapping(id.GroupKind(), id.Version); c.tarballUnknown && meta.IsNoMatchError(err) {
		return true
	}
	return c.cluster.Defines(id)
}
