package instance

import (
	"slices"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans/trigger"
)

// maxRequester bounds the name of a user in status, records and events, in bytes.
const maxRequester = 256

// specRequester is the user who wrote spec as it is now; empty if the user is not known.
func (s *scope) specRequester() string { return s.requester(v1beta1.RequestedByAnnotation) }

// runRequester is the user who asked last to cancel or retry a run; empty if the user is not known.
func (s *scope) runRequester() string { return s.requester(v1beta1.RunRequestedByAnnotation) }

func (s *scope) requester(annotation string) string {
	return text.Truncate(text.OneLine(s.ring.Requester(annotation, s.Next)), maxRequester)
}

// isSpecNew reports whether a user has written spec since the manager acted upon it last. If not, something else asks for the plans that
// are due, such as a Secret that has changed.
func (s *scope) isSpecNew() bool {
	status := s.Committed.Status
	if status.Baseline == nil || status.ObservedGeneration != s.Next.Generation {
		return true
	}
	return status.Baseline.Generation != 0 && status.Baseline.Generation != s.Next.Generation
}

// startRequester is the user who asked for the run that is to be started; empty if the user is not known.
func (s *scope) startRequester(plan, cause string) string {
	switch {
	case strings.HasPrefix(cause, trigger.CauseRetry):
		return s.runRequester()
	case cause == trigger.CauseDeletion, trigger.IsScheduled(cause): // no write has asked for it
		return ""
	}
	return s.planRequesters(plan)
}

// planRequesters returns the users who asked for a plan: the users in the queue, if the plan waits there, and the user who wrote spec
// last, if the manager has not acted upon spec yet. A plan that waits runs with the values that spec has at the start of the run, and each
// of these users may have changed them.
func (s *scope) planRequesters(plan string) string {
	var users string
	if queued := queuedPlan(s.Committed.Status.Queue, plan); queued != nil {
		users = queued.RequestedBy
	}
	if s.isSpecNew() {
		users = joinUsers(users, s.specRequester())
	}
	return users
}

// joinUsers adds a user to the list of those who have asked for a plan. If the list has the user already, joinUsers
// replaces the client of that entry by the client of the last request.
func joinUsers(users, user string) string {
	if users == "" || user == "" {
		return users + user
	}
	all := strings.Split(users, ", ")
	if at := slices.IndexFunc(all, func(one string) bool { return withoutClient(one) == withoutClient(user) }); at >= 0 {
		all[at] = user
		return text.Truncate(strings.Join(all, ", "), maxRequester)
	}
	return text.Truncate(users+", "+user, maxRequester)
}

// withoutClient returns a user without the client that sent the request, which the user chooses.
func withoutClient(user string) string {
	if at := strings.LastIndex(user, " with "); at >= 0 {
		return user[:at]
	}
	return user
}

// setQueueRequesters writes the users who asked for the plans of the queue into the queue.
func (s *scope) setQueueRequesters() {
	for i := range s.Next.Status.Queue {
		plan := &s.Next.Status.Queue[i]
		if !trigger.IsScheduled(plan.Cause) {
			plan.RequestedBy = s.planRequesters(plan.PlanName)
		}
	}
}

// setBaselineGeneration writes the generation of spec into the baseline, once the manager has acted upon spec. While spec.suspend waits for
// the end of a run, the manager has not.
func (a *action) setBaselineGeneration() {
	base := a.Next.Status.Baseline
	if base != nil && a.isSpecNew() && (a.start != nil || base.Suspended == a.Next.Spec.Suspend) {
		base.Generation = a.Next.Generation
	}
}

// queuedPlan finds the entry of a plan; it returns nil if there is none.
func queuedPlan(queue []v1beta1.QueuedPlan, plan string) *v1beta1.QueuedPlan {
	i := slices.IndexFunc(queue, func(q v1beta1.QueuedPlan) bool { return q.PlanName == plan })
	if i < 0 {
		return nil
	}
	return &queue[i]
}

// byUser is the end of a message on what a user asked for; empty if the user is not known.
func byUser(user string) string {
	if user == "" {
		return ""
	}
	return "; requested by " + user
}
