package operatorversion

import (
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/share"
)

// A held object whose content has changed is compared with the package when it has not changed again for settleAfter. A reported difference
// stays until the object has not changed for the longer clearAfter, so that a client that changes the object back and forth is reported
// once, and not each time:
//
//	unchanged --changed--> deferred --no change for settleAfter---> settled:  compared; a mismatch goes into inventory, event
//	                          |                                              and drift
//	                          +-----changes for unstableAfter-----> unstable: compared; a mismatch goes into drift, inventory
//	                                                                         and event, one of them each reportInterval
//	reported  --changed--> deferred --no change for clearAfter----> settled:  compared
//
// All of this is in memory: after a restart, the manager takes each difference that it finds for a change of that moment.
const (
	settleAfter    = time.Second
	unstableAfter  = 5 * time.Second
	reportInterval = 15 * time.Second
	clearAfter     = 30 * time.Second
)

// Comparing costs requests, and its result may have to be written: compareBurst comparisons are made at once, then one each
// compareEvery.
const (
	compareBurst = 4
	compareEvery = time.Minute
)

// driftTracker is what is known of the held objects of one OperatorVersion that have changed.
type driftTracker struct {
	objects     map[apply.ID]*driftingObject
	comparisons *rate.Limiter
	// next is the time from which on an unstable object may be reported again.
	next time.Time
}

// driftingObject is an object that has changed.
type driftingObject struct {
	content string
	// since is the first change after the object had settled, and moved the last one.
	since, moved time.Time
	due          comparisonState
	// found is a difference that is in status.drift already, and is put into the inventory by the next report.
	found string
	// event is set until the event of the difference is recorded.
	event bool
}

// comparisonState is whether an object that has changed is compared.
type comparisonState int

const (
	// deferred: it is not compared, since it may change again.
	deferred comparisonState = iota
	// settled: it is compared, and all of the result is reported.
	settled
	// unstable: it is compared though it keeps changing, and the result is reported in parts.
	unstable
)

// driftTracker returns what is known of the OperatorVersion's objects. Its reconciles come one after the other.
func (a *action) driftTracker() *driftTracker {
	known, _ := a.driftTrackers.LoadOrStore(client.ObjectKeyFromObject(a.Next), &driftTracker{
		objects: map[apply.ID]*driftingObject{}, comparisons: rate.NewLimiter(rate.Every(compareEvery), compareBurst),
	})
	return known.(*driftTracker)
}

// observe records the content of a held object. It reports whether the object is compared now, and after which time it is observed
// again; 0 for no time.
func (n *driftTracker) observe(now time.Time, r *v1beta1.HeldResource, content string) (compare bool, again time.Duration) {
	id := share.IDOf(*r)
	m, known := n.objects[id]
	reported := r.State == v1beta1.HoldMismatch || known && m.found != ""
	switch {
	case !known && !reported && content == r.ContentHash:
		return false, 0
	case !known:
		m = &driftingObject{content: content, since: now, moved: now}
		n.objects[id] = m
	case m.content != content:
		if now.Sub(m.moved) >= settleAfter {
			m.since = now
		}
		m.content, m.moved = content, now
	}
	if r.State == v1beta1.HoldMismatch {
		m.found = ""
	}
	wait, rest := settleAfter, now.Sub(m.moved)
	if reported {
		wait = clearAfter
	}
	switch {
	case rest >= wait && !reported && content == r.ContentHash:
		delete(n.objects, id)
		return false, 0
	case rest >= wait:
		m.due = settled
		return true, 0
	case !reported && content != r.ContentHash && now.Sub(m.since) >= unstableAfter && !now.Before(n.next):
		m.due = unstable
		return true, settleAfter
	}
	m.due = deferred
	return false, wait - rest
}

// allowCompare reports whether objects may be compared now; otherwise it requeues the OperatorVersion.
func (a *action) allowCompare() bool {
	now := a.Clock.Now()
	reservation := a.driftTracker().comparisons.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
		a.requeueAfter(wait)
	}
	return wait == 0
}

// requeueAfter requeues the OperatorVersion after a time, if not before.
func (a *action) requeueAfter(after time.Duration) {
	if after > 0 && (a.result.RequeueAfter == 0 || after < a.result.RequeueAfter) {
		a.result.RequeueAfter = after
	}
}

// recordMismatch records the difference that a comparison has found.
func (a *action) recordMismatch(r *v1beta1.HeldResource, message string) {
	n := a.driftTracker()
	m := n.objects[share.IDOf(*r)]
	if m != nil && m.due == unstable {
		m.found, m.event, n.next = message, true, a.Clock.Now().Add(reportInterval)
		return
	}
	news := r.State != v1beta1.HoldMismatch || r.Message != message
	if m != nil {
		news = news || m.event
		m.found, m.event = "", false
	}
	r.State, r.Message = v1beta1.HoldMismatch, message
	if news {
		a.Event(corev1.EventTypeWarning, v1beta1.EventObjectMismatch, "%s", message)
	}
}

// reportNext reports the next part of what was found of unstable objects.
func (a *action) reportNext() {
	n, now := a.driftTracker(), a.Clock.Now()
	for i := range a.inventory {
		r := &a.inventory[i]
		m := n.objects[share.IDOf(*r)]
		if m == nil || m.found == "" && !m.event {
			continue
		}
		if wait := n.next.Sub(now); wait > 0 {
			a.requeueAfter(wait)
			return
		}
		if n.next = now.Add(reportInterval); m.found != "" {
			r.State, r.Message = v1beta1.HoldMismatch, m.found
		} else {
			m.event = false
			a.Event(corev1.EventTypeWarning, v1beta1.EventObjectMismatch, "%s", r.Message)
		}
		a.requeueAfter(reportInterval)
		return
	}
}

// mismatchMessage says how a held object differs from the package; empty if it does not, as far as is known.
func (a *action) mismatchMessage(r v1beta1.HeldResource) string {
	if r.State == v1beta1.HoldMismatch {
		return r.Message
	}
	if known, found := a.driftTrackers.Load(client.ObjectKeyFromObject(a.Next)); found {
		if m := known.(*driftTracker).objects[share.IDOf(r)]; m != nil {
			return m.found
		}
	}
	return ""
}
