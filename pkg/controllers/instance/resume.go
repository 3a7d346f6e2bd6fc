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
func (e *execution) resumeRun(ctx context.Context, name string, st v1beta1.PlanStatus) error {
	if e.run != nil {
		return nil
	}
	if known := e.findActiveRun(name, st); known != nil {
		if lost := e.privilegeProblem(known.run.Privileged, st.Revision); lost != "" {
			plans.Fail(&st, lost, e.Clock.Now())
			e.finishRun(name, st)
			return nil
		}
		known.run.Subject.Annotations, known.run.Keys = e.Next.Annotations, e.ring
		e.run = known.run
		return nil
	}
	record, version, err := e.readRecord(ctx, name, st)
	switch {
	case history.Unusable(err):
		e.endUnrecordedRun(name, st, err)
		return nil
	case err != nil:
		return err
	}
	if lost := cmp.Or(e.privilegeProblem(record.Privileged, st.Revision), e.resumeProblem(record, version)); lost != "" {
		plans.Fail(&st, lost, e.Clock.Now())
		e.finishRun(name, st)
		return nil
	}
	e.setActiveRun(e.buildRun(*record, version), record.Key)
	return nil
}

// readRecord reads what the running plan was started with.
func (e *execution) readRecord(ctx context.Context, name string, st v1beta1.PlanStatus) (*history.Run, *runner.ParsedVersion, error) {
	if base := e.Next.Status.Baseline; st.Revision == 0 && (base == nil || base.Revision == 0) {
		now := e.runValues()
		return &history.Run{Plan: name, UID: st.UID, Parameters: now.given, Sensitive: now.sensitive}, e.content, nil
	}
	record, err := e.History.Read(ctx, e.Next, st.Revision)
	if err != nil {
		return nil, nil, err
	}
	if record.Plan != name || record.UID != st.UID {
		return nil, nil, &history.UnusableError{Namespace: e.Next.Namespace, Name: history.Name(e.Next.Name, st.Revision)}
	}
	version, err := e.keptVersion(ctx, record.Snapshot)
	return record, version, err
}

// endUnrecordedRun fails a run whose record is missing or not authentic. It clears the snapshot of the baseline, so that the record of
// the next run holds the OperatorVersion itself.
func (e *execution) endUnrecordedRun(name string, st v1beta1.PlanStatus, cause error) {
	plans.Fail(&st, fmt.Sprintf("run %d of Instance %s/%s cannot continue: %s; kubectl kudo plan retry starts it anew",
		st.Revision, e.Next.Namespace, e.Next.Name, cause), e.Clock.Now())
	if base := e.Next.Status.Baseline; base != nil {
		base.Snapshot, base.ContentHash = "", ""
	}
	e.finishRun(name, st)
}

// resumeProblem says why a run of KUDO cannot continue: its OperatorVersion is not there any more.
func (e *execution) resumeProblem(record *history.Run, version *runner.ParsedVersion) string {
	if version == nil {
		return fmt.Sprintf("OperatorVersion %s does not exist, and no snapshot of it is left", e.Next.OperatorVersionKey())
	}
	if _, defined := version.Spec.Plans[record.Plan]; !defined {
		return fmt.Sprintf("OperatorVersion %s has no plan %s, and no snapshot of the one that the run was started with is left",
			e.Next.OperatorVersionKey(), record.Plan)
	}
	return ""
}
