package clusters

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// Bounds of what the status of an Instance shows of its members.
const (
	maxMessage = 512
	maxNamed   = 5
)

// Summary is what the members of an Instance add up to.
type Summary struct {
	// Members sorted by cluster.
	Members []v1beta1.MemberStatus
	// Ready is the condition Ready, without time and generation.
	Ready metav1.Condition
	// Reconciling and Stalled are set if these conditions hold; Message of Ready goes with them.
	Reconciling, Stalled bool
	// Aggregated is the aggregated status of the worst member.
	Aggregated v1beta1.AggregatedStatus
}

// Summarize adds the members of an Instance up while a wave is open (C26 to C32).
func Summarize(template *v1beta1.Instance, o Observation, wave v1beta1.WaveStatus, now time.Time) Summary {
	s := &summary{template: template, observation: o, wave: wave, released: Released(template, wave), now: now,
		want: template.Template()}
	for _, c := range template.PlacedClusters() {
		s.members = append(s.members, s.member(c.Name))
	}
	s.addLeaving()
	slices.SortFunc(s.members, func(a, b v1beta1.MemberStatus) int { return cmp.Compare(a.Cluster, b.Cluster) })
	s.keepTimes()
	out := Summary{Members: s.members, Ready: s.ready()}
	out.Ready.Type = v1beta1.ReadyCondition
	out.Stalled = out.Ready.Status == metav1.ConditionFalse && out.Ready.Reason != v1beta1.ReasonMemberNotReady
	out.Reconciling = out.Ready.Status == metav1.ConditionUnknown && out.Ready.Reason != v1beta1.ReasonWavePaused
	out.Aggregated = s.aggregate(out.Ready)
	return out
}

// summary is one summing up.
type summary struct {
	template    *v1beta1.Instance
	observation Observation
	wave        v1beta1.WaveStatus
	released    map[string]bool
	now         time.Time
	// want is the template that members must have.
	want    string
	members []v1beta1.MemberStatus
	// wanted is how many of the members the Instance is placed on.
	wanted int
}

// member returns the status of one cluster: the first state that holds (C28).
func (s *summary) member(name string) v1beta1.MemberStatus {
	observed, known := s.observation.Members[name]
	out := v1beta1.MemberStatus{Cluster: name, Ready: metav1.ConditionUnknown}
	share, bound := s.observation.Bound[name]
	if share != nil {
		out.Replicas = share
	}
	report := observed.Report
	if report != nil {
		s.copyReport(&out, report)
	}
	switch {
	case !known:
		out.State, out.Message = v1beta1.MemberLost, "the hub knows no cluster of this name: join it, or remove it from spec.placement"
	case observed.Unreachable != "":
		out.State, out.Message = v1beta1.MemberLost, observed.Unreachable+s.reported(out)
	case !bound:
		out.State, out.Message = v1beta1.MemberNotScheduled, "the engine has not chosen the cluster yet"
	case !observed.Applied:
		out.State, out.Message = v1beta1.MemberNotApplied, cmp.Or(observed.AppliedMessage, "the cluster has not accepted the Instance yet")
	case report == nil:
		out.State, out.Message = v1beta1.MemberSilent, "no manager of kudo reports there: install kudo in the cluster"
	case observed.Suspended != "":
		out.State, out.Message = v1beta1.MemberHeld, observed.Suspended
	case !s.released[name]:
		out.State, out.Message = v1beta1.MemberHeld, fmt.Sprintf("waits for wave %d of %d", s.waveOf(name), s.wave.Of)
	default:
		out.State, out.Message = s.judge(report, share)
	}
	out.Message = text.Truncate(out.Message, maxMessage)
	return out
}

// addLeaving adds the clusters that are to lose their copy of the Instance and still have it.
func (s *summary) addLeaving() {
	s.wanted = len(s.members)
	for name, m := range s.observation.Members {
		if !m.Leaving || slices.ContainsFunc(s.members, func(known v1beta1.MemberStatus) bool { return known.Cluster == name }) {
			continue
		}
		message := cmp.Or(m.Unreachable, m.AppliedMessage, "the Instance is being deleted there")
		s.members = append(s.members, v1beta1.MemberStatus{Cluster: name, State: v1beta1.MemberLeaving, Ready: metav1.ConditionUnknown,
			Message: text.Truncate(message, maxMessage)})
	}
}

// judge returns the state of a member that is reachable and released, by its report.
func (s *summary) judge(r *Report, share *int64) (v1beta1.MemberState, string) {
	switch {
	case r.Template != s.want:
		return v1beta1.MemberLagging, "the cluster does not have this change yet"
	case r.Released != s.want:
		return v1beta1.MemberLagging, "the cluster does not have the release of this change yet"
	case r.ObservedGeneration != r.Generation || r.Generation == 0:
		return v1beta1.MemberLagging, "the manager of the cluster has not acted upon this change yet"
	case share != nil && r.Replicas != strconv.FormatInt(*share, 10):
		return v1beta1.MemberLagging, fmt.Sprintf("the cluster has %s=%s, and its share is %d", s.template.Spec.Placement.Divide,
			r.Replicas, *share)
	case r.PlanStatus == v1beta1.FatalError:
		return v1beta1.MemberFailed, cmp.Or(r.Message, fmt.Sprintf("plan %s failed", r.Plan))
	case r.PlanStatus.IsRunning() || r.Queued > 0:
		return v1beta1.MemberProgressing, fmt.Sprintf("plan %s is running", r.Plan)
	case r.Ready != metav1.ConditionTrue:
		return v1beta1.MemberNotReady, r.Message
	}
	return v1beta1.MemberReady, ""
}

// copyReport puts into the status of a member what its cluster has reported last.
func (s *summary) copyReport(out *v1beta1.MemberStatus, r *Report) {
	out.Ready, out.Reason = r.Ready, text.Truncate(r.Reason, maxName)
	switch r.Ready {
	case metav1.ConditionTrue, metav1.ConditionFalse:
	default:
		out.Ready = metav1.ConditionUnknown
	}
	out.Plan, out.PlanStatus = text.Truncate(r.Plan, maxName), v1beta1.ExecutionStatus(text.Truncate(string(r.PlanStatus), maxName))
	out.OperatorVersion = text.Truncate(r.OperatorVersion, maxName*4)
	uid, generation, found := strings.Cut(r.Template, "/")
	generation, _, _ = strings.Cut(generation, "/")
	if found && uid == string(s.template.UID) && r.ObservedGeneration == r.Generation && r.Released == r.Template {
		out.Generation, _ = strconv.ParseInt(generation, 10, 64)
	}
}

// reported says, for a cluster that is lost, which generation it has acted upon as far as is known.
func (s *summary) reported(m v1beta1.MemberStatus) string {
	if m.Generation == 0 {
		return ""
	}
	return fmt.Sprintf("; reported generation %d of %d", m.Generation, s.template.Generation)
}

// waveOf returns the number of the wave of a cluster, from 1.
func (s *summary) waveOf(name string) int {
	for n, group := range s.template.WaveGroups() {
		if slices.Contains(group, name) {
			return n + 1
		}
	}
	return 0
}

// keepTimes keeps the time of a state that a member had before.
func (s *summary) keepTimes() {
	before := map[string]v1beta1.MemberStatus{}
	for _, m := range s.template.Status.Members {
		before[m.Cluster] = m
	}
	for n := range s.members {
		m := &s.members[n]
		if old, had := before[m.Cluster]; had && old.State == m.State && old.Since != nil {
			m.Since = old.Since
		} else {
			m.Since = &metav1.Time{Time: s.now}
		}
	}
}

// ready returns the condition Ready (C29, C30).
func (s *summary) ready() metav1.Condition {
	o := s.observation
	unknown := func(reason, message string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: reason, Message: message}
	}
	refused := func(reason, message string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	message := s.message()
	switch {
	case o.Refused != nil:
		return refused(o.Refused.Reason, o.Refused.Message)
	case o.Silent != "":
		return unknown(v1beta1.ReasonEngineSilent, o.Silent)
	case o.Undecided != "":
		return unknown(v1beta1.ReasonDecisionHeld, strings.TrimSuffix(o.Undecided+"; "+message, "; "))
	case o.Unschedulable != "":
		return refused(v1beta1.ReasonNotScheduled, o.Unschedulable)
	case s.wave.State == v1beta1.WaveStopped:
		return refused(v1beta1.ReasonWaveStopped, fmt.Sprintf("wave %d of %d is stopped, since %s failed: %s", s.wave.Index, s.wave.Of,
			text.List(s.wave.Failed, maxNamed), message))
	case s.has(v1beta1.MemberFailed):
		return refused(v1beta1.ReasonMemberFailed, message)
	case s.has(v1beta1.MemberNotReady):
		return refused(v1beta1.ReasonMemberNotReady, message)
	case s.has(v1beta1.MemberLost):
		return unknown(v1beta1.ReasonMembersLost, message)
	case s.wanted == 0 && len(s.members) == 0:
		return refused(v1beta1.ReasonNotScheduled, s.nowhere())
	case !s.isBound():
		return unknown(v1beta1.ReasonNotScheduled, cmp.Or(message, "the engine still has clusters that spec.placement does not name"))
	case s.allReady():
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1beta1.ReasonMembersReady}
	case s.wave.State == v1beta1.WavePaused:
		return unknown(v1beta1.ReasonWavePaused, message)
	case s.has(v1beta1.MemberHeld):
		return unknown(v1beta1.ReasonWaveInProgress, message)
	}
	return unknown(v1beta1.ReasonMembersLagging, message)
}

// nowhere says why the Instance runs in no cluster.
func (s *summary) nowhere() string {
	if d := s.template.Spec.Placement.Decision; d != nil {
		return fmt.Sprintf("the decision %s names no cluster, so that the Instance runs nowhere: let the scheduler choose some, or name them in "+
			"spec.placement.clusters", d.Name)
	}
	return "spec.placement names no cluster"
}

// isBound reports whether the engine has chosen exactly the clusters of spec.
func (s *summary) isBound() bool {
	if len(s.observation.Bound) != s.wanted {
		return false
	}
	for _, m := range s.members {
		if m.State == v1beta1.MemberLeaving {
			continue
		}
		if _, bound := s.observation.Bound[m.Cluster]; !bound {
			return false
		}
	}
	return true
}

func (s *summary) has(state v1beta1.MemberState) bool {
	return slices.ContainsFunc(s.members, func(m v1beta1.MemberStatus) bool { return m.State == state })
}

func (s *summary) allReady() bool {
	return len(s.members) > 0 && !slices.ContainsFunc(s.members, func(m v1beta1.MemberStatus) bool { return m.State != v1beta1.MemberReady })
}

// severity orders states, the worst first.
var severity = []v1beta1.MemberState{v1beta1.MemberFailed, v1beta1.MemberLost, v1beta1.MemberNotApplied, v1beta1.MemberSilent,
	v1beta1.MemberNotReady, v1beta1.MemberLeaving, v1beta1.MemberNotScheduled, v1beta1.MemberLagging, v1beta1.MemberProgressing,
	v1beta1.MemberHeld}

// worst returns the members that are not ready, the worst first.
func (s *summary) worst() []v1beta1.MemberStatus {
	out := slices.DeleteFunc(slices.Clone(s.members), func(m v1beta1.MemberStatus) bool { return m.State == v1beta1.MemberReady })
	slices.SortStableFunc(out, func(a, b v1beta1.MemberStatus) int {
		return cmp.Compare(slices.Index(severity, a.State), slices.Index(severity, b.State))
	})
	return out
}

// message names the members that are not ready, the worst first, and how many of all are ready.
func (s *summary) message() string {
	worst := s.worst()
	if len(worst) == 0 {
		return ""
	}
	var parts []string
	for _, m := range worst[:min(len(worst), maxNamed)] {
		parts = append(parts, fmt.Sprintf("%s is %s: %s", m.Cluster, m.State, text.Truncate(m.Message, maxMessage/maxNamed*2)))
	}
	if more := len(worst) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%d of %d clusters are ready; %s", len(s.members)-len(worst), len(s.members), strings.Join(parts, "; "))
}

// aggregate returns the aggregated status of the worst member, which is that of any if all are ready.
func (s *summary) aggregate(ready metav1.Condition) v1beta1.AggregatedStatus {
	worst := s.worst()
	if len(worst) == 0 {
		worst = s.members
	}
	if len(worst) == 0 {
		return v1beta1.AggregatedStatus{Message: ready.Message}
	}
	out := v1beta1.AggregatedStatus{Status: worst[0].PlanStatus, Message: ready.Message}
	if out.Status.IsRunning() {
		out.ActivePlanName = worst[0].Plan
	}
	return out
}
