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

// resume finds what the running plan was started with, after a restart of the manager:
//
//	this manager has started it                           what it remembers
//	its record is there, and sealed for this run          what the record says
//	the Instance comes from KUDO, which kept no records   what spec says, with the account of spec
//	else                                                  the run fails: the status alone is no proof that it was started
func (p *pass) resume(ctx context.Context, name string, st v1beta1.PlanStatus) error {
	if p.run != nil {
		return nil
	}
	if known := p.goingOn(name, st); known != nil {
		if lost := p.privilegeLost(known.run.Privileged, st.Revision); lost != "" {
			plans.Fail(&st, lost, p.Clock.Now())
			p.finish(name, st)
			return nil
		}
		known.run.Subject.Annotations, known.run.Keys = p.instance.Annotations, p.ring
		p.run, p.told = known.run, known.told
		return nil
	}
	record, version, err := p.recorded(ctx, name, st)
	switch {
	case history.Unusable(err):
		p.lose(name, st, err)
		return nil
	case err != nil:
		return err
	}
	if lost := cmp.Or(p.privilegeLost(record.Privileged, st.Revision), p.lost(record, version)); lost != "" {
		plans.Fail(&st, lost, p.Clock.Now())
		p.finish(name, st)
		return nil
	}
	p.remember(p.newRun(*record, version), record.Key)
	return nil
}

// recorded reads what the running plan was started with.
func (p *pass) recorded(ctx context.Context, name string, st v1beta1.PlanStatus) (*history.Run, *runner.Version, error) {
	if base := p.instance.Status.Baseline; st.Revision == 0 && (base == nil || base.Revision == 0) {
		now := p.values()
		return &history.Run{Plan: name, UID: st.UID, Parameters: now.given, Sensitive: now.sensitive}, p.live, nil
	}
	record, err := p.History.Read(ctx, p.instance, st.Revision)
	if err != nil {
		return nil, nil, err
	}
	if record.Plan != name || record.UID != st.UID {
		return nil, nil, &history.UnusableError{Namespace: p.instance.Namespace, Name: history.Name(p.instance.Name, st.Revision)}
	}
	version, err := p.kept(ctx, record.Snapshot)
	return record, version, err
}

// lose fails a run whose record is missing or not authentic. It clears the snapshot of the baseline, so that the record of
// the next run holds the OperatorVersion itself.
func (p *pass) lose(name string, st v1beta1.PlanStatus, cause error) {
	plans.Fail(&st, fmt.Sprintf("run %d of Instance %s/%s cannot go on: %s; kubectl kudo plan retry starts it anew",
		st.Revision, p.instance.Namespace, p.instance.Name, cause), p.Clock.Now())
	if base := p.instance.Status.Baseline; base != nil {
		base.Snapshot, base.Content = "", ""
	}
	p.finish(name, st)
}

// kept returns the content of an OperatorVersion that the record of a run of the Instance holds, or nil without a name.
func (p *pass) kept(ctx context.Context, name string) (*runner.Version, error) {
	if name == "" {
		return nil, nil
	}
	spec, err := p.History.Kept(ctx, p.instance, name)
	if err != nil {
		return nil, err
	}
	return p.Versions.Content(spec)
}

// lost says why a run of KUDO cannot go on: its OperatorVersion is not there any more.
func (p *pass) lost(record *history.Run, version *runner.Version) string {
	if version == nil {
		return fmt.Sprintf("OperatorVersion %s is gone, and no snapshot of it is left", p.instance.OperatorVersionKey())
	}
	if _, defined := version.Spec.Plans[record.Plan]; !defined {
		return fmt.Sprintf("OperatorVersion %s has no plan %s, and no snapshot of the one that the run was started with is left", p.instance.OperatorVersionKey(), record.Plan)
	}
	return ""
}
