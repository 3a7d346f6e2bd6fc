package instance

import (
	"cmp"
	"context"
	"fmt"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
)

// resumeRun finds what the running plan was started with, after a restart of the manager:
//
//	this manager has started it                           what it remembers
//	its record is there, and sealed for this run          what the record says
//	the Instance comes from KUDO, which kept no records   what spec says, with the account of spec
//	else                                                  the run fails: the status alone is no proof that it was started
func (a *action) resumeRun(ctx context.Context, name string, st v1beta1.PlanStatus) error {
	if a.run != nil {
		return nil
	}
	if known := a.findActiveRun(name, st); known != nil {
		if lost := a.privilegeProblem(known.run.Privileged, st.Revision); lost != "" {
			plans.Fail(&st, lost, a.Clock.Now())
			a.finishRun(name, st)
			return nil
		}
		known.run.Subject.Annotations, known.run.Keys = a.Next.Annotations, a.ring
		a.run = known.run
		return nil
	}
	record, version, err := a.readRecord(ctx, name, st)
	switch {
	case history.Unusable(err):
		a.endUnrecordedRun(name, st, err)
		return nil
	case err != nil:
		return err
	}
	if lost := cmp.Or(a.privilegeProblem(record.Privileged, st.Revision), a.resumeProblem(record, version)); lost != "" {
		plans.Fail(&st, lost, a.Clock.Now())
		a.finishRun(name, st)
		return nil
	}
	a.setActiveRun(a.buildRun(*record, version), record.Key)
	return nil
}

// readRecord reads what the running plan was started with.
func (a *action) readRecord(ctx context.Context, name string, st v1beta1.PlanStatus) (*history.Run, *runner.ParsedVersion, error) {
	if base := a.Next.Status.Baseline; st.Revision == 0 && (base == nil || base.Revision == 0) {
		now := a.runValues()
		return &history.Run{Plan: name, UID: st.UID, Parameters: now.given, Sensitive: now.sensitive}, a.content, nil
	}
	record, err := a.History.Read(ctx, a.Next, st.Revision)
	if err != nil {
		return nil, nil, err
	}
	if record.Plan != name || record.UID != st.UID {
		return nil, nil, &history.UnusableError{Namespace: a.Next.Namespace, Name: history.Name(a.Next.Name, st.Revision)}
	}
	version, err := a.keptVersion(ctx, record.Snapshot)
	return record, version, err
}

// endUnrecordedRun fails a run whose record is missing or not authentic. It clears the snapshot of the baseline, so that the record of
// the next run holds the OperatorVersion itself.
func (a *action) endUnrecordedRun(name string, st v1beta1.PlanStatus, cause error) {
	plans.Fail(&st, fmt.Sprintf("run %d of Instance %s/%s cannot go on: %s; kubectl kudo plan retry starts it anew",
		st.Revision, a.Next.Namespace, a.Next.Name, cause), a.Clock.Now())
	if base := a.Next.Status.Baseline; base != nil {
		base.Snapshot, base.ContentHash = "", ""
	}
	a.finishRun(name, st)
}

// keptVersion returns the content of an OperatorVersion that the record of a run of the Instance holds, or nil without a name.
func (a *action) keptVersion(ctx context.Context, name string) (*runner.ParsedVersion, error) {
	if name == "" {
		return nil, nil
	}
	spec, err := a.History.ReadVersion(ctx, a.Next, name)
	if err != nil {
		return nil, err
	}
	return a.Versions.ForSpec(spec)
}

// resumeProblem says why a run of KUDO cannot go on: its OperatorVersion is not there any more.
func (a *action) resumeProblem(record *history.Run, version *runner.ParsedVersion) string {
	if version == nil {
		return fmt.Sprintf("OperatorVersion %s does not exist, and no snapshot of it is left", a.Next.OperatorVersionKey())
	}
	if _, defined := version.Spec.Plans[record.Plan]; !defined {
		return fmt.Sprintf("OperatorVersion %s has no plan %s, and no snapshot of the one that the run was started with is left",
			a.Next.OperatorVersionKey(), record.Plan)
	}
	return ""
}
