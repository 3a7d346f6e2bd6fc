package faults

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/lifecycle"
)

// side is how many testbeds there are at a time. They share a manager, so that each fault hits all of them, in the middle of
// whatever they do. The manager works on eight Instances at a time: not all of its workers are ever held.
const side = 7

// runParallel runs cases as subtests, some at a time. Those that -run leaves out are over at once.
func runParallel(t *testing.T, cases []testing.InternalTest, over ...func()) {
	t.Helper()
	next := make(chan int)
	var workers sync.WaitGroup
	for range side {
		workers.Go(func() {
			for n := range next {
				t.Run(cases[n].Name, cases[n].F)
				if len(over) > 0 {
					over[n]()
				}
			}
		})
	}
	for n := range cases {
		next <- n
	}
	close(next)
	workers.Wait()
}

// killCase is a case of the manager's: a scenario, and the write at which it is to die.
type killCase struct {
	s      scenario
	n      int
	moment int
}

// The manager is killed at each write of each scenario, and started again: the end is that of an undisturbed run. Several
// scenarios share a kill.
func TestKilledAtEachWrite(t *testing.T) {
	learn(t)
	for _, part := range parts(true) {
		var deaths []killCase
		for turn := range moments {
			for i, s := range part {
				for _, n := range chosen(len(undisturbed(t, s).writes), 5*turn+3*i) {
					deaths = append(deaths, killCase{s, n, turn})
				}
			}
		}
		t.Logf("%d cases (KUDO_FAULTS=all: all)", len(deaths))
		for together := range slices.Chunk(deaths, side) {
			die(t, together)
		}
	}
}

// die runs scenarios in the middle of which the manager is killed.
func die(t *testing.T, together []killCase) {
	env.Must(t, manager.start())
	v := newWave(len(together))
	var cases []testing.InternalTest
	var over []func()
	for _, d := range together {
		arrive := sync.OnceFunc(v.arrive)
		over = append(over, arrive)
		by := moments[d.moment](v, arrive)
		cases = append(cases, testing.InternalTest{Name: fmt.Sprintf("%s/%s/%d", d.s.name, by.name, d.n), F: func(t *testing.T) {
			w := newWorld(t)
			d.s.prepare(w)
			w.bystanders()
			count := w.aim(d.n, by)
			d.s.act(w)
			d.s.ended(w)
			if manager.target(count) == "" {
				manager.leave(count)
				arrive() // it has fewer writes than without a fault
			}
			<-v.over
			env.Must(t, v.err)
			t.Logf("the fault was in %q", manager.target(count))
			d.s.ended(w)
			w.settle(undisturbed(t, d.s).end)
			w.untouched()
			w.twice(d.s)
		}})
	}
	runParallel(t, cases, over...)
}

// chosen are the writes that get the fault: all, or one, which a number shifts. A run with a fault may have more.
func chosen(writes, shift int) []int {
	if !thorough() {
		return []int{1 + shift%writes}
	}
	var out []int
	for n := 1; n <= writes+writes/4; n++ {
		out = append(out, n)
	}
	return out
}

// reference is an undisturbed run of a scenario: the state in the end, and the writes.
type reference struct {
	end    lifecycle.State
	writes []string
}

// references of scenarios by name: one run of each is enough for all tests.
var references sync.Map

// learn runs all scenarios without a fault that have not been run yet.
func learn(t *testing.T) {
	t.Helper()
	var cases []testing.InternalTest
	for _, s := range scenarios {
		if _, found := references.Load(s.name); !found {
			cases = append(cases, testing.InternalTest{Name: "undisturbed " + s.name, F: func(t *testing.T) { undisturbed(t, s) }})
		}
	}
	runParallel(t, cases)
	if t.Failed() {
		t.FailNow()
	}
}

// undisturbed runs a scenario without a fault, unless that was done before.
func undisturbed(t *testing.T, s scenario) reference {
	t.Helper()
	if known, found := references.Load(s.name); found {
		return known.(reference)
	}
	manager.intercept(nil)
	w := newWorld(t)
	env.Must(t, manager.start())
	s.prepare(w)
	w.bystanders()
	began := time.Now()
	count := w.aim(0, writeFault{})
	s.act(w)
	s.ended(w)
	took := time.Since(began)
	want := w.waitIdle()
	writes := manager.writes(count)
	w.untouched()
	t.Logf("undisturbed: %d writes in %s", len(writes), took.Round(time.Millisecond))
	for n, write := range writes {
		t.Logf("  %d %s", n+1, write)
	}
	w.twice(s)
	known := reference{want, writes}
	references.Store(s.name, known)
	return known
}

// aim injects the fault into the n-th write from now on that concerns the testbed; 0 injects none.
func (w *testbed) aim(n int, by writeFault) *counter {
	count := manager.aim(w.ns, n, by)
	w.Cleanup(func() { manager.leave(count) })
	return count
}

// faultAt is a scenario with the fault in its n-th write. A run with a fault may have more writes or fewer; if it has
// not so many, there is no fault, and its end is the same.
func faultAt(s scenario, by writeFault, n int) testing.InternalTest {
	return testing.InternalTest{Name: fmt.Sprintf("%s/%s/%d", s.name, by.name, n), F: func(t *testing.T) {
		w := newWorld(t)
		s.prepare(w)
		w.bystanders()
		count := w.aim(n, by)
		s.act(w)
		s.ended(w)
		manager.leave(count)
		if manager.target(count) != "" {
			<-count.occurred // the last write had the fault: what it commits is the end
		}
		t.Logf("the fault was in %q", manager.target(count))
		w.settle(undisturbed(t, s).end)
		w.untouched()
		w.eventsOnce()
		w.twice(s)
	}}
}

// eventsOnce wants no more events of starts and ends than there were runs: what a conflict has undone has no event.
func (w *testbed) eventsOnce() {
	w.Helper()
	runs := map[types.UID]int64{}
	instances, versions, events := &v1beta1.InstanceList{}, &v1beta1.OperatorVersionList{}, &corev1.EventList{}
	for _, list := range []client.ObjectList{instances, versions, events} {
		env.Must(w, suite.List(ctx, list, client.InNamespace(w.ns)))
	}
	for _, i := range instances.Items {
		if i.Status.Baseline != nil {
			runs[i.UID] = i.Status.Baseline.Revision
		}
	}
	for _, ov := range versions.Items {
		runs[ov.UID] = ov.Status.Revision
	}
	for _, reason := range []string{v1beta1.EventPlanStarted, v1beta1.EventPlanFinished} {
		counts := map[types.UID]int64{}
		for _, e := range events.Items {
			if e.Reason == reason {
				counts[e.InvolvedObject.UID] += int64(e.Count)
			}
		}
		for uid, count := range counts {
			if most, there := runs[uid]; there && count > most {
				w.Errorf("%d events %s of an object that has had %d runs", count, reason, most)
			}
		}
	}
}

// twice runs the scenario's plan again: nothing that it wrote changes, and nothing is made anew.
func (w *testbed) twice(s scenario) {
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

// versions are uids and versions of what plans write.
func (w *testbed) versions() map[string]string {
	w.Helper()
	return lifecycle.Versions(w.objects())
}
