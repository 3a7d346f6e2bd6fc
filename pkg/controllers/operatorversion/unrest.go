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

// A held object whose content has changed is compared with the package once it rests. What was told of it stays until it
// has rested for longer, so that somebody who changes it to and fro is told of once, and not each time:
//
//	at rest --changed--> moves --rests for still----------> compared: right, or Mismatch: inventory, event and condition
//	                       |
//	                       +-----moves on for patience----> compared: right, or told one by one, spacing apart:
//	                                                        condition, inventory, event
//	Mismatch --changed--> stays as told --rests for quiet-> compared
//
// All of this is in memory: a manager that starts anew takes what it finds for changed just now.
const (
	still    = time.Second
	patience = 5 * time.Second
	spacing  = 15 * time.Second
	quiet    = 30 * time.Second
)

// Comparing costs requests, and what it finds may have to be written: it is done at once a few times, then rarely.
const (
	comparisons = 4
	comparison  = time.Minute
)

// unrest is what is known of the held objects of one OperatorVersion that have changed.
type unrest struct {
	objects     map[apply.ID]*motion
	comparisons *rate.Limiter
	// next is when something may be written again of objects that do not rest.
	next time.Time
}

// motion is an object that has changed.
type motion struct {
	content string
	// since is the first change after a rest, and moved the last one.
	since, moved time.Time
	due          due
	// found is the difference that the condition tells and the inventory does not yet.
	found string
	// event is set while the event is to come.
	event bool
}

// due says what is to be done about an object that has changed.
type due int

const (
	// later: it may come to rest.
	later due = iota
	// rests: it is compared, and all is told.
	rests
	// moves: it is compared as it does not come to rest, and told one by one.
	moves
)

// unrest returns what is known of the OperatorVersion's objects. One pass at a time works on it.
func (p *pass) unrest() *unrest {
	known, _ := p.unrests.LoadOrStore(client.ObjectKeyFromObject(p.ov), &unrest{
		objects: map[apply.ID]*motion{}, comparisons: rate.NewLimiter(rate.Every(comparison), comparisons),
	})
	return known.(*unrest)
}

// see notes the content of a held object. It tells whether it is to be compared now; if not, but later, again says when.
func (n *unrest) see(now time.Time, r *v1beta1.HeldResource, content string) (compare bool, again time.Duration) {
	id := share.IDOf(*r)
	m, known := n.objects[id]
	told := r.State == v1beta1.HoldMismatch || known && m.found != ""
	switch {
	case !known && !told && content == r.Content:
		return false, 0
	case !known:
		m = &motion{content: content, since: now, moved: now}
		n.objects[id] = m
	case m.content != content:
		if now.Sub(m.moved) >= still {
			m.since = now
		}
		m.content, m.moved = content, now
	}
	if r.State == v1beta1.HoldMismatch {
		m.found = ""
	}
	wait, rest := still, now.Sub(m.moved)
	if told {
		wait = quiet
	}
	switch {
	case rest >= wait && !told && content == r.Content:
		delete(n.objects, id)
		return false, 0
	case rest >= wait:
		m.due = rests
		return true, 0
	case !told && content != r.Content && now.Sub(m.since) >= patience && !now.Before(n.next):
		m.due = moves
		return true, still
	}
	m.due = later
	return false, wait - rest
}

// worthwhile tells whether to compare now; if not, it is done later.
func (p *pass) worthwhile() bool {
	now := p.Clock.Now()
	reservation := p.unrest().comparisons.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
		p.again(wait)
	}
	return wait == 0
}

// again has the OperatorVersion looked at after a time, if not before.
func (p *pass) again(after time.Duration) {
	if after > 0 && (p.result.RequeueAfter == 0 || after < p.result.RequeueAfter) {
		p.result.RequeueAfter = after
	}
}

// differs notes what a comparison has found wrong with an object.
func (p *pass) differs(r *v1beta1.HeldResource, message string) {
	n := p.unrest()
	m := n.objects[share.IDOf(*r)]
	if m != nil && m.due == moves {
		m.found, m.event, n.next = message, true, p.Clock.Now().Add(spacing)
		return
	}
	news := r.State != v1beta1.HoldMismatch || r.Message != message
	if m != nil {
		news = news || m.event
		m.found, m.event = "", false
	}
	r.State, r.Message = v1beta1.HoldMismatch, message
	if news {
		p.event(corev1.EventTypeWarning, v1beta1.EventMismatch, "%s", message)
	}
}

// tell goes on with one thing that is to be told of the objects that do not rest.
func (p *pass) tell() {
	n, now := p.unrest(), p.Clock.Now()
	for i := range p.held {
		r := &p.held[i]
		m := n.objects[share.IDOf(*r)]
		if m == nil || m.found == "" && !m.event {
			continue
		}
		if wait := n.next.Sub(now); wait > 0 {
			p.again(wait)
			return
		}
		if n.next = now.Add(spacing); m.found != "" {
			r.State, r.Message = v1beta1.HoldMismatch, m.found
		} else {
			m.event = false
			p.event(corev1.EventTypeWarning, v1beta1.EventMismatch, "%s", r.Message)
		}
		p.again(spacing)
		return
	}
}

// wrong is what is told of a held object that is not as it should be; empty if it is.
func (p *pass) wrong(r v1beta1.HeldResource) string {
	if r.State == v1beta1.HoldMismatch {
		return r.Message
	}
	if known, found := p.unrests.Load(client.ObjectKeyFromObject(p.ov)); found {
		if m := known.(*unrest).objects[share.IDOf(r)]; m != nil {
			return m.found
		}
	}
	return ""
}
