package clusters

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// minLossPatience is how long a cluster may be lost before it counts as failed, at least (C34).
const minLossPatience = 5 * time.Minute

// BeginRollout returns the wave that a reconcile starts from: that of the status, or the first one of a new generation (C33, C35), or of
// other clusters that a decision names (C45). It is wave 0 of 0 if the decision names none.
func BeginRollout(instance *v1beta1.Instance, now time.Time) v1beta1.WaveStatus {
	of, decision := int32(len(instance.WaveGroups())), instance.DecisionFingerprint()
	first := min(1, of)
	if wave := instance.Status.Wave; wave != nil && wave.Generation == instance.Generation && wave.Decision == decision &&
		wave.Index >= first && wave.Index <= of {
		return *wave.DeepCopy()
	}
	wave := v1beta1.WaveStatus{Generation: instance.Generation, Decision: decision, Index: first, Of: of, State: v1beta1.WaveOpen,
		Since: &metav1.Time{Time: now}}
	if old := instance.Status.Wave; old != nil {
		wave.Resumed = old.Resumed
	}
	return wave
}

// Released returns the clusters of the waves that are open.
func Released(instance *v1beta1.Instance, wave v1beta1.WaveStatus) map[string]bool {
	released := map[string]bool{}
	for n, group := range instance.WaveGroups() {
		if int32(n) >= wave.Index {
			break
		}
		for _, name := range group {
			released[name] = true
		}
	}
	return released
}

// AdvanceRollout returns the wave that follows from the members, and the time after which the Instance is to be reconciled although nothing
// happens; 0 for never (C33 to C35).
func AdvanceRollout(instance *v1beta1.Instance, wave v1beta1.WaveStatus, members []v1beta1.MemberStatus,
	now time.Time) (v1beta1.WaveStatus, time.Duration) {
	r := &rollout{instance: instance, wave: wave, now: now, members: map[string]v1beta1.MemberStatus{}}
	if waves := instance.Spec.Placement.Waves; waves != nil {
		r.waves = *waves
	}
	for _, m := range members {
		r.members[m.Cluster] = m
	}
	r.advance()
	return r.wave, r.requeueAfter
}

// rollout is one step of a change over the clusters.
type rollout struct {
	instance     *v1beta1.Instance
	waves        v1beta1.Waves
	wave         v1beta1.WaveStatus
	members      map[string]v1beta1.MemberStatus
	now          time.Time
	requeueAfter time.Duration
}

func (r *rollout) advance() {
	r.findFailed()
	r.resume()
	switch {
	case r.wave.State == v1beta1.WaveDone:
		return
	case r.wave.Of == 0: // the decision names no cluster
		r.setState(v1beta1.WaveDone)
		return
	case r.wave.State == v1beta1.WaveStopped:
		if r.wave.Index >= r.wave.Of && len(r.wave.Failed) == 0 && r.isWaveReady() { // nothing is left to go on with
			r.setState(v1beta1.WaveDone)
		}
		return
	case r.countFailures() > int(r.waves.MaxFailures):
		r.setState(v1beta1.WaveStopped)
		return
	}
	if !r.isWaveReady() {
		r.setState(v1beta1.WaveOpen)
		return
	}
	if left := r.soakLeft(); left > 0 {
		r.requeueIn(left)
		return
	}
	switch {
	case r.wave.Index >= r.wave.Of:
		r.setState(v1beta1.WaveDone)
	case r.waves.Paused:
		r.setState(v1beta1.WavePaused)
	default:
		r.wave.Index++
		r.wave.State = ""
		r.setState(v1beta1.WaveOpen)
	}
}

// findFailed lists the members of open waves that have failed with this change, or have been lost for too long.
func (r *rollout) findFailed() {
	r.wave.Failed = nil
	for name := range Released(r.instance, r.wave) {
		member := r.members[name]
		switch member.State {
		case v1beta1.MemberFailed:
			r.wave.Failed = append(r.wave.Failed, name)
		case v1beta1.MemberLost:
			if left := r.lossPatience() - r.now.Sub(sinceOf(member)); left > 0 {
				r.requeueIn(left)
			} else {
				r.wave.Failed = append(r.wave.Failed, name)
			}
		}
	}
	slices.Sort(r.wave.Failed)
}

// resume goes on with a change that was stopped, if a user asks for it: the members that have failed so far do not count any more.
func (r *rollout) resume() {
	request := r.instance.Annotations[v1beta1.ResumeAnnotation]
	if request == "" || request == r.wave.Resumed {
		return
	}
	r.wave.Resumed = request
	if r.wave.State == v1beta1.WaveStopped {
		r.wave.Accepted = slices.Clone(r.wave.Failed)
		r.setState(v1beta1.WaveOpen)
	}
}

func (r *rollout) countFailures() int {
	count := 0
	for _, name := range r.wave.Failed {
		if !slices.Contains(r.wave.Accepted, name) {
			count++
		}
	}
	return count
}

// isWaveReady reports whether each member of the wave is ready with the change, or counts as failed within the bound.
func (r *rollout) isWaveReady() bool {
	for _, name := range r.instance.WaveGroups()[r.wave.Index-1] {
		member := r.members[name]
		isComplete := member.State == v1beta1.MemberReady && member.PlanStatus == v1beta1.Complete
		if !isComplete && !slices.Contains(r.wave.Failed, name) {
			return false
		}
	}
	return true
}

// soakLeft returns how long the members of the wave must still stay ready. It starts the time when they have become ready.
func (r *rollout) soakLeft() time.Duration {
	if r.waves.Soak == nil || r.waves.Soak.Duration <= 0 || r.wave.State == v1beta1.WavePaused {
		return 0
	}
	r.setState(v1beta1.WaveSoaking)
	return r.waves.Soak.Duration - r.now.Sub(r.wave.Since.Time)
}

func (r *rollout) lossPatience() time.Duration {
	if r.waves.Soak == nil {
		return minLossPatience
	}
	return max(minLossPatience, r.waves.Soak.Duration)
}

func (r *rollout) setState(s v1beta1.WaveState) {
	if r.wave.State != s || r.wave.Since == nil {
		r.wave.State, r.wave.Since = s, &metav1.Time{Time: r.now}
	}
}

func (r *rollout) requeueIn(d time.Duration) {
	if r.requeueAfter == 0 || d < r.requeueAfter {
		r.requeueAfter = d
	}
}

// sinceOf returns when the state of a member began.
func sinceOf(member v1beta1.MemberStatus) time.Time {
	if member.Since == nil {
		return time.Time{}
	}
	return member.Since.Time
}
