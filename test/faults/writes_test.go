package faults

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"kudo.dev/kudo/test/env"
)

// modes are the moments at which the manager dies. sample is how many of a scenario's writes are struck, unless all are
// wanted: for what is stored the moments are alike, so that one of the second is enough.
var modes = []struct {
	strike
	sample int
}{{killed, 2}, {answered, 1}}

// The manager is killed at each write of each scenario, and started again: the end is that of an undisturbed run.
func TestKilledAtEachWrite(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			want, writes := undisturbed(t, s)
			for i, m := range modes {
				struck := 0
				for _, n := range chosen(len(writes), m.sample, i) {
					if !struckAt(t, s, m.strike, n, want) {
						break
					}
					struck++
				}
				t.Logf("%s: at %d of %d writes (KUDO_FAULTS=all: at each)", m.name, struck, len(writes))
			}
		})
	}
}

// chosen are the writes that are struck: all, or an even sample, shifted by a number.
func chosen(writes, sample, shift int) []int {
	var out []int
	if thorough() {
		for n := 1; n <= 2*writes; n++ { // a run with a fault may have more; it ends where none is struck
			out = append(out, n)
		}
		return out
	}
	for i := range min(sample, writes) {
		out = append(out, 1+(i*writes/sample+shift)%writes)
	}
	return out
}

// reference is an undisturbed run of a scenario: the state in the end, and the writes.
type reference struct {
	end    state
	writes []string
}

// references of scenarios by name: one run of each is enough for all tests.
var references sync.Map

// undisturbed runs a scenario without a fault, unless that was done before.
func undisturbed(t *testing.T, s scenario) (state, []string) {
	t.Helper()
	if known, found := references.Load(s.name); found {
		return known.(reference).end, known.(reference).writes
	}
	line.set(nil)
	w := newWorld(t)
	env.Must(t, line.manage())
	s.prepare(w)
	w.bystanders()
	began := time.Now()
	count := line.aim(w.ns, 0, strike{})
	s.act(w)
	s.ended(w)
	took := time.Since(began)
	want := w.rest()
	line.set(nil)
	w.untouched()
	writes := count.writes()
	t.Logf("undisturbed: %d writes in %s", len(writes), took.Round(time.Millisecond))
	for n, write := range writes {
		t.Logf("  %d %s", n+1, write)
	}
	w.twice(s)
	references.Store(s.name, reference{want, writes})
	return want, writes
}

// struckAt runs a scenario in which the n-th write is struck, and tells whether it had so many.
func struckAt(t *testing.T, s scenario, hit strike, n int, want state) bool {
	t.Helper()
	struck := false
	t.Run(fmt.Sprintf("%s/%d", hit.name, n), func(t *testing.T) {
		began := time.Now()
		w := newWorld(t)
		env.Must(t, line.manage())
		s.prepare(w)
		w.bystanders()
		count := line.aim(w.ns, n, hit)
		s.act(w)
		over, restarted := make(chan struct{}), make(chan error, 1)
		go func() { restarted <- count.restart(hit, over) }()
		s.ended(w)
		close(over)
		env.Must(t, <-restarted)
		line.set(nil)
		select {
		case <-count.struck:
			struck = true
		default:
		}
		t.Logf("struck %q, over after %s", count.hit, time.Since(began).Round(time.Millisecond))
		w.settle(want)
		w.untouched()
		w.twice(s)
	})
	return struck
}

// restart starts the manager again once it was killed.
func (c *counter) restart(hit strike, over chan struct{}) error {
	select {
	case <-over:
		c.mu.Lock()
		at := c.hit
		c.mu.Unlock()
		if at == "" {
			return nil
		}
		<-c.struck // the last write was struck: what it commits is the end
	case <-c.struck:
	}
	if !hit.kills {
		return nil
	}
	line.kill()
	line.set(nil)
	return line.manage()
}

// twice runs the scenario's plan again: nothing that it wrote changes, and nothing is made anew.
func (w *world) twice(s scenario) {
	w.Helper()
	if s.again == nil {
		return
	}
	before := w.versions()
	s.again(w)
	for key, version := range w.versions() {
		if before[key] != version {
			w.Errorf("a second run changed %s: %q, and was %q", key, version, before[key])
		}
		delete(before, key)
	}
	for key := range before {
		w.Errorf("a second run deleted %s", key)
	}
	w.untouched()
}

// versions are uids and versions of what plans write: not of kudo's own kinds, nor of what a run makes and deletes.
func (w *world) versions() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, o := range w.objects() {
		switch o.GetKind() {
		case "Instance", "OperatorVersion", "Installation", "ControllerRevision", "Job", "Namespace":
			continue
		case "Deployment", "PersistentVolumeClaim":
			out[o.GetKind()+" "+o.GetName()] = fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetAnnotations())
		default:
			out[o.GetKind()+" "+o.GetName()] = string(o.GetUID()) + o.GetResourceVersion()
		}
	}
	return out
}
