package clusters

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// randomHistory changes the reports of clusters at random while a change is rolled out, and records what C33 to C35 depend on.
type randomHistory struct {
	random   *rand.Rand
	instance *v1beta1.Instance
	members  map[string]*v1beta1.MemberStatus
	now      time.Time
	// okSince is since when each report had all members of the open wave ready, or failed.
	okSince time.Time
	// accepted are the failures that a user has seen, since the generation.
	accepted []string
	requests int
}

func newRandomHistory(random *rand.Rand) *randomHistory {
	h := &randomHistory{random: random, members: map[string]*v1beta1.MemberStatus{}, now: time.Unix(1000, 0)}
	var names []string
	for n := range 2 + random.IntN(5) {
		names = append(names, fmt.Sprintf("m%d", n))
	}
	h.instance = placed(names...)
	waves := &v1beta1.Waves{MaxFailures: int32(random.IntN(3))}
	if random.IntN(2) == 0 {
		waves.Soak = &metav1.Duration{Duration: time.Duration(random.IntN(10)) * time.Minute}
	}
	for _, name := range names[1:] { // what no group names is a last one
		if len(waves.Groups) == 0 || random.IntN(2) == 0 {
			waves.Groups = append(waves.Groups, nil)
		}
		last := len(waves.Groups) - 1
		waves.Groups[last] = append(waves.Groups[last], name)
	}
	h.instance.Spec.Placement.Waves = waves
	for _, name := range names {
		h.set(name, v1beta1.MemberHeld, "")
	}
	return h
}

func (h *randomHistory) set(name string, state v1beta1.MemberState, plan v1beta1.ExecutionStatus) {
	if m := h.members[name]; m != nil && m.State == state {
		m.PlanStatus = plan
		return
	}
	h.members[name] = &v1beta1.MemberStatus{Cluster: name, State: state, PlanStatus: plan, Since: &metav1.Time{Time: h.now}}
}

// happen lets time pass, and something happen to some of the members, or a user do something.
func (h *randomHistory) happen() {
	h.now = h.now.Add(time.Duration(h.random.IntN(240)) * time.Second)
	for name := range h.members {
		switch h.random.IntN(12) {
		case 0, 1, 2, 3, 4, 5:
			h.set(name, v1beta1.MemberReady, v1beta1.Complete)
		case 6:
			h.set(name, v1beta1.MemberReady, v1beta1.NeverRun)
		case 7:
			h.set(name, v1beta1.MemberFailed, v1beta1.FatalError)
		case 8:
			h.set(name, v1beta1.MemberLost, v1beta1.Complete)
		case 9:
			states := []v1beta1.MemberState{v1beta1.MemberProgressing, v1beta1.MemberLagging, v1beta1.MemberNotReady, v1beta1.MemberSilent,
				v1beta1.MemberNotApplied, v1beta1.MemberNotScheduled, v1beta1.MemberHeld}
			h.set(name, states[h.random.IntN(len(states))], v1beta1.Complete)
		}
	}
	switch h.random.IntN(25) {
	case 0:
		h.instance.Generation++
		h.accepted = nil
	case 1:
		h.instance.Generation++ // as each edit of spec does
		h.accepted = nil
		h.instance.Spec.Placement.Waves.Paused = !h.instance.Spec.Placement.Waves.Paused
	case 2, 3, 4:
		h.requests++
		h.instance.Annotations = map[string]string{v1beta1.ResumeAnnotation: strconv.Itoa(h.requests)}
	}
}

// hasFailed reports whether a member counts as failed: it is Failed, or has been lost for the soak time, and at least five minutes.
func (h *randomHistory) hasFailed(name string) bool {
	m, patience := h.members[name], 5*time.Minute
	if soak := h.instance.Spec.Placement.Waves.Soak; soak != nil {
		patience = max(patience, soak.Duration)
	}
	return m.State == v1beta1.MemberFailed || m.State == v1beta1.MemberLost && h.now.Sub(m.Since.Time) >= patience
}

// failures are the members of the first waves that count as failed.
func (h *randomHistory) failures(waves int32) (names []string) {
	for _, group := range h.instance.WaveGroups()[:waves] {
		for _, name := range group {
			if h.hasFailed(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// isOK reports whether each member of a wave is ready with a complete plan, or counts as failed.
func (h *randomHistory) isOK(wave int32) bool {
	return !slices.ContainsFunc(h.instance.WaveGroups()[wave-1], func(name string) bool {
		m := h.members[name]
		return (m.State != v1beta1.MemberReady || m.PlanStatus != v1beta1.Complete) && !h.hasFailed(name)
	})
}

// step reconciles once, and returns the wave before and after.
func (h *randomHistory) step() (before, after v1beta1.WaveStatus) {
	before = BeginRollout(h.instance, h.now)
	if old := h.instance.Status.Wave; old == nil || old.Generation != before.Generation {
		h.okSince = time.Time{}
	}
	var members []v1beta1.MemberStatus
	for _, m := range h.members {
		members = append(members, *m)
	}
	after, _ = AdvanceRollout(h.instance, *before.DeepCopy(), members, h.now)
	h.instance.Status.Wave = after.DeepCopy() // all that the next reconcile knows of this one
	return before, after
}

// check returns what is wrong with one step, or "".
func (h *randomHistory) check(before, after v1beta1.WaveStatus) string {
	waves := h.instance.Spec.Placement.Waves
	request := h.instance.Annotations[v1beta1.ResumeAnnotation]
	resumes, failures := request != "" && request != before.Resumed, h.failures(before.Index)
	if resumes && before.State == v1beta1.WaveStopped {
		h.accepted = failures
	}
	counted := len(slices.DeleteFunc(slices.Clone(failures), func(name string) bool { return slices.Contains(h.accepted, name) }))
	ok := h.isOK(before.Index)
	switch {
	case !ok:
		h.okSince = time.Time{}
	case h.okSince.IsZero():
		h.okSince = h.now
	}
	switch opened := after.Index > before.Index; {
	case after.Generation != h.instance.Generation || after.Of != before.Of || after.Index < before.Index || after.Index > before.Index+1:
		return "the wave is none that follows"
	case opened && !ok:
		return "a wave opens before all members of the one before are ready and complete, or count as failed"
	case opened && counted > int(waves.MaxFailures):
		return "a wave opens, and more have failed than may"
	case opened && waves.Paused:
		return "a wave opens, and the change is paused"
	case opened && waves.Soak != nil && h.now.Sub(h.okSince) < waves.Soak.Duration:
		return "a wave opens before its time"
	case before.State == v1beta1.WaveStopped && !resumes && (opened || after.State != v1beta1.WaveStopped && after.State != v1beta1.WaveDone):
		return "a stopped change goes on, and no user has resumed it"
	case before.State != v1beta1.WaveDone && counted > int(waves.MaxFailures) && after.State != v1beta1.WaveStopped:
		return "a change goes on, and more have failed than may"
	case after.State == v1beta1.WaveDone && before.State != v1beta1.WaveDone && (!ok || after.Index != after.Of):
		return "a change is done, and not all members are ready or count as failed"
	case after.State == v1beta1.WaveStopped && before.State != v1beta1.WaveStopped && counted <= int(waves.MaxFailures):
		return "a change is stopped, and not more have failed than may"
	}
	if after.Index > before.Index {
		h.okSince = time.Time{}
	}
	return ""
}

// TestRandomHistories checks C33 to C35 over random histories, in which the hub remembers nothing but the status: no wave opens before all
// members of those before it were ready and complete, or counted as failed within the bound; a stopped change opens nothing until a user
// resumes it; and a change whose members all become ready ends.
func TestRandomHistories(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	opened, stopped, resumed, done := 0, 0, 0, 0
	for n := range 2000 {
		h := newRandomHistory(random)
		for range 40 {
			h.happen()
			before, after := h.step()
			if problem := h.check(before, after); problem != "" {
				t.Fatalf("history %d: %s:\n%+v\n%+v\nat %s: %v", n, problem, before, after, h.now, h.members)
			}
			switch {
			case after.Index > before.Index && before.State == v1beta1.WaveStopped:
				resumed++
			case after.Index > before.Index:
				opened++
			case after.State == v1beta1.WaveStopped && before.State != v1beta1.WaveStopped:
				stopped++
			case after.State == v1beta1.WaveDone && before.State != v1beta1.WaveDone:
				done++
			}
		}
		h.finish(t, n)
	}
	if min(opened, stopped, resumed, done) < 100 {
		t.Errorf("the histories show little: %d waves opened, %d stopped, %d resumed, %d changes done", opened, stopped, resumed, done)
	}
}

// finish has all members become ready with a change that is not paused, and expects its end.
func (h *randomHistory) finish(t *testing.T, n int) {
	t.Helper()
	h.instance.Generation++
	h.instance.Spec.Placement.Waves.Paused = false
	for name := range h.members {
		h.set(name, v1beta1.MemberReady, v1beta1.Complete)
	}
	for range 2*len(h.members) + 1 {
		if _, after := h.step(); after.State == v1beta1.WaveDone {
			return
		}
		h.now = h.now.Add(10 * time.Minute)
	}
	t.Fatalf("history %d: all are ready, and the change does not end: %+v", n, h.instance.Status.Wave)
}
