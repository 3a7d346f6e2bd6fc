package instance

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/runner"
)

// going is a run that is going on.
type going struct {
	run *runner.Run
	// key is the id of the key that the record of the run is sealed with; empty without a record.
	key string
	// told are the warnings that have been recorded.
	told map[string]bool
}

// remember makes a run the one that is going on.
func (p *pass) remember(run *runner.Run, key string) {
	known := &going{run: run, key: key, told: map[string]bool{}}
	p.run, p.told = known.run, known.told
	p.runs.Store(client.ObjectKeyFromObject(p.instance), known)
}

// goingOn is what is remembered of a run; nil if it was begun by another manager, or if another one is remembered, whose
// start was not committed, or if the key of its record has been dropped: whoever had it may have made the record.
func (p *pass) goingOn(plan string, st v1beta1.PlanStatus) *going {
	found, ok := p.runs.Load(client.ObjectKeyFromObject(p.instance))
	if !ok {
		return nil
	}
	known := found.(*going)
	if known.run.UID != st.UID || known.run.Plan != plan || known.run.Subject.UID != p.instance.UID || known.key != "" && !p.ring.Has(known.key) {
		return nil
	}
	return known
}

// once warns of something once in a run, however often its tasks are looked at.
func (p *pass) once(reason, message string) {
	if p.told == nil || p.told[reason+message] {
		return
	}
	p.told[reason+message] = true
	p.warn(reason, "%s", message)
}
