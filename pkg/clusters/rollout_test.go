package clusters

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// history is an Instance whose change goes over clusters, as the controller sees it.
type history struct {
	t        *testing.T
	instance *v1beta1.Instance
	members  map[string]Member
	now      time.Time
}

func newHistory(t *testing.T, waves v1beta1.Waves) *history {
	h := &history{t: t, instance: placed("m1", "m2", "m3"), now: time.Unix(1000, 0), members: map[string]Member{}}
	h.instance.Spec.Placement.Waves = &waves
	for _, name := range []string{"m1", "m2", "m3"} {
		h.set(name, func(m *Member) { m.Report.Released = "" })
	}
	return h
}

func (h *history) set(name string, edit func(m *Member)) {
	m := ready()
	edit(&m)
	h.members[name] = m
}

// step reconciles once, and expects a wave.
func (h *history) step(index int32, state v1beta1.WaveState) time.Duration {
	h.t.Helper()
	wave := BeginRollout(h.instance, h.now)
	s := Summarize(h.instance, observed(h.members), wave, h.now)
	h.instance.Status.Members = s.Members
	wave, again := AdvanceRollout(h.instance, wave, s.Members, h.now)
	h.instance.Status.Wave = &wave
	if wave.Index != index || wave.State != state {
		h.t.Fatalf("wave %d is %s, want %d %s: %+v", wave.Index, wave.State, index, state, s.Members)
	}
	return again
}

func (h *history) released() []string {
	return slices.Sorted(maps.Keys(Released(h.instance, *h.instance.Status.Wave)))
}

func nothing(*Member) {}

// TestWaves checks C33: a wave opens when the members of the one before are complete and ready.
func TestWaves(t *testing.T) {
	h := newHistory(t, v1beta1.Waves{Groups: [][]string{{"m2"}, {"m1"}}})
	h.step(1, v1beta1.WaveOpen)
	if got := h.released(); !slices.Equal(got, []string{"m2"}) {
		t.Fatalf("released %v", got)
	}
	h.set("m2", func(m *Member) { m.Report.PlanStatus = v1beta1.InProgress })
	h.step(1, v1beta1.WaveOpen)
	h.set("m2", nothing)
	h.step(2, v1beta1.WaveOpen)
	if got := h.released(); !slices.Equal(got, []string{"m1", "m2"}) {
		t.Fatalf("released %v", got)
	}
	h.set("m1", nothing)
	h.step(3, v1beta1.WaveOpen) // what no group names
	h.set("m3", nothing)
	h.step(3, v1beta1.WaveDone)
	h.set("m3", func(m *Member) { m.Report.PlanStatus = v1beta1.FatalError })
	h.step(3, v1beta1.WaveDone)
	h.instance.Generation++
	h.step(1, v1beta1.WaveOpen) // C35: anew
}

// TestSoak checks C33: the members stay ready for a time before the next wave, and one that does not starts it anew.
func TestSoak(t *testing.T) {
	h := newHistory(t, v1beta1.Waves{Groups: [][]string{{"m1"}}, Soak: &metav1.Duration{Duration: time.Minute}})
	h.set("m1", nothing)
	if again := h.step(1, v1beta1.WaveSoaking); again != time.Minute {
		t.Fatalf("requeued after %s", again)
	}
	h.now = h.now.Add(59 * time.Second)
	if again := h.step(1, v1beta1.WaveSoaking); again != time.Second {
		t.Fatalf("requeued after %s", again)
	}
	h.set("m1", func(m *Member) { m.Report.Ready = metav1.ConditionFalse })
	h.step(1, v1beta1.WaveOpen)
	h.set("m1", nothing)
	h.now = h.now.Add(time.Second)
	h.step(1, v1beta1.WaveSoaking)
	h.now = h.now.Add(time.Minute)
	h.step(2, v1beta1.WaveOpen)
}

// TestStopAndResume checks C34: more failures than the bound stop a change, and a user goes on.
func TestStopAndResume(t *testing.T) {
	fail := func(m *Member) { m.Report.PlanStatus = v1beta1.FatalError }
	h := newHistory(t, v1beta1.Waves{Groups: [][]string{{"m1"}, {"m2"}}})
	h.set("m1", fail)
	h.step(1, v1beta1.WaveStopped)
	s := Summarize(h.instance, observed(h.members), *h.instance.Status.Wave, h.now)
	if s.Ready.Status != metav1.ConditionFalse || s.Ready.Reason != v1beta1.ReasonWaveStopped || !s.Stalled {
		t.Errorf("%+v", s)
	}
	h.set("m1", nothing)
	h.step(1, v1beta1.WaveStopped) // no user has resumed it
	h.set("m1", fail)
	h.instance.Annotations = map[string]string{v1beta1.ResumeAnnotation: "1"}
	h.step(2, v1beta1.WaveOpen) // without m1, whose failure is accepted
	h.set("m2", fail)
	h.step(2, v1beta1.WaveStopped)
	h.step(2, v1beta1.WaveStopped) // the same request does not count again

	h = newHistory(t, v1beta1.Waves{Groups: [][]string{{"m1"}}, MaxFailures: 1})
	h.set("m1", fail)
	h.step(2, v1beta1.WaveOpen) // within the bound
}

// TestLossCounts checks C34: a cluster counts as failed when it has been lost for five minutes.
func TestLossCounts(t *testing.T) {
	h := newHistory(t, v1beta1.Waves{Groups: [][]string{{"m1"}}})
	h.set("m1", func(m *Member) { m.Unreachable = "gone" })
	if again := h.step(1, v1beta1.WaveOpen); again != 5*time.Minute {
		t.Fatalf("requeued after %s", again)
	}
	h.now = h.now.Add(5 * time.Minute)
	h.step(1, v1beta1.WaveStopped)
}

// TestPause checks C35: paused holds the next wave only.
func TestPause(t *testing.T) {
	h := newHistory(t, v1beta1.Waves{Groups: [][]string{{"m1"}}, Paused: true})
	h.step(1, v1beta1.WaveOpen)
	h.set("m1", nothing)
	h.step(1, v1beta1.WavePaused)
	h.instance.Spec.Placement.Waves.Paused = false
	h.step(2, v1beta1.WaveOpen)
}
