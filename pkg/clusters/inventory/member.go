package inventory

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"kudo.dev/kudo/pkg/clusters"
)

const (
	// grace is how long a cluster may not answer before it counts as unreachable, and probeEvery how often it is asked meanwhile.
	grace, probeEvery = 20 * time.Second, 10 * time.Second
	// driftDelay keeps two clients that both write a copy from doing so without pause.
	driftDelay = time.Second
	// deletionPoll is how often a deletion is read again, beside the watch.
	deletionPoll = 30 * time.Second
	// retryFirst and retryLast bound the time to the next attempt at what a cluster has refused.
	retryFirst, retryLast = time.Second, time.Minute
)

// notWritten is shown of a cluster that has not got its copy.
const notWritten = "the Instance has not been written yet"

// member is a cluster, what it shall have, and what it has.
type member struct {
	engine  *Engine
	profile types.NamespacedName
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// changed is marked when the member shall have something else.
	changed chan struct{}

	mu     sync.Mutex
	copies map[types.NamespacedName]*placedCopy
	seen   map[types.NamespacedName]*seenCopy
	// conn is nil while the cluster does not answer. since is when conn was set or became nil last. problem says why the cluster does not
	// answer; refused reports whether objects of the hub are the reason, and brief whether the last connection ended soon. announced is what
	// unreachable returned when the Instances were announced last.
	conn               *connection
	since              time.Time
	problem, announced string
	refused, brief     bool
}

// placedCopy is what a member shall have of an Instance.
type placedCopy struct {
	// uid of the Instance on the hub, and the name by which it knows the cluster.
	uid     types.UID
	cluster string
	// want is nil if the copy is to go; orphan lets it stay without the marks of the hub.
	want   *wanted
	orphan bool
	// token counts what was asked for; done is the one that the cluster has, and problem why it has not the last one.
	token, done int64
	problem     string
	// gone is set once the cluster has no copy any more, and given once it is not waited for.
	gone, given bool
	// written is the object that the last apply has left.
	written written
}

// written identifies what an apply has left.
type written struct {
	uid        types.UID
	generation int64
}

// seenCopy is what the watch of a member shows of a copy.
type seenCopy struct {
	written
	version            string
	template, released string
	report             *clusters.Report
}

// isOf reports whether the copy is one of an Instance.
func (s *seenCopy) isOf(uid types.UID) bool {
	return s != nil && strings.HasPrefix(s.template, string(uid)+"/")
}

func newMember(e *Engine, profile types.NamespacedName) *member {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryFirst, retryLast)
	return &member{
		engine: e, profile: profile, changed: make(chan struct{}, 1), since: e.Clock.Now(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Clock: e.Clock}),
		copies: map[types.NamespacedName]*placedCopy{}, seen: map[types.NamespacedName]*seenCopy{},
	}
}

// place records what the member shall have of an Instance.
func (m *member) place(key types.NamespacedName, want *wanted) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.copies[key]
	if c != nil && c.want.sameAs(want) {
		return
	}
	next := &placedCopy{uid: want.instance.UID, cluster: want.target.Name, want: want, token: 1}
	if c != nil {
		next.token, next.problem, next.written = c.token+1, c.problem, c.written
	}
	m.put(key, next)
}

func (w *wanted) sameAs(o *wanted) bool { return w != nil && w.same(o) }

// removal says how a copy is to go.
type removal struct {
	cluster string
	orphan  bool
}

// remove records that a copy is to go, and reports whether it has gone.
func (m *member) remove(key types.NamespacedName, uid types.UID, r removal) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.copies[key]
	if c != nil && c.want == nil && c.uid == uid && c.orphan == r.orphan {
		return c.gone
	}
	next := &placedCopy{uid: uid, cluster: r.cluster, orphan: r.orphan, token: 1}
	if c != nil {
		next.token, next.cluster = c.token+1, c.cluster
		next.gone, next.given = c.want == nil && c.gone, c.given
	}
	m.put(key, next)
	return next.gone
}

// put records a copy, and has the worker act upon it. The caller holds the lock.
func (m *member) put(key types.NamespacedName, c *placedCopy) {
	m.copies[key] = c
	m.queue.Forget(key)
	m.queue.Add(key)
	signal(m.changed)
}

// has reports whether the member has a copy of an Instance, or is to have one.
func (m *member) has(key types.NamespacedName, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.copies[key]; c != nil && c.uid == uid {
		return !c.gone
	}
	return m.seen[key].isOf(uid)
}

// knows reports whether the member was told what it shall have of an Instance.
func (m *member) knows(key types.NamespacedName, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.copies[key]
	return c != nil && c.uid == uid
}

// forget drops what is known of a copy that has gone.
func (m *member) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.copies[key]; c != nil && c.gone {
		delete(m.copies, key)
	}
}

// giveUp has a copy that is to go count as gone.
func (m *member) giveUp(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.copies[key]; c != nil && c.want == nil && !c.gone {
		c.gone, c.given = true, true
		m.engine.events.add(key)
	}
}

// observe returns what is known of a copy, and the name of the cluster; it reports whether the member is to have one, or to lose it.
func (m *member) observe(key types.NamespacedName, uid types.UID) (cluster string, out clusters.Member, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.copies[key]
	if c == nil || c.uid != uid || c.gone {
		return "", out, false
	}
	out.Leaving = c.want == nil
	out.Unreachable = m.unreachable()
	seen := m.seen[key]
	if seen != nil {
		out.Report = seen.report
	}
	switch {
	case c.problem != "":
		out.AppliedMessage = c.problem
	case seen == nil && c.want != nil:
		out.AppliedMessage = notWritten
	case c.want != nil && c.done != c.token && seen.isLike(c.want):
		out.AppliedMessage = "a change of what the Instance needs has not been written yet"
	default:
		out.Applied = seen != nil
	}
	return c.cluster, out, true
}

// isLike reports whether a copy has the template and the release that are wanted, so that its report does not show whether a change is
// missing.
func (s *seenCopy) isLike(w *wanted) bool {
	return s.template == w.instance.Template() && s.released == w.target.Released
}

// unreachable says why the cluster cannot be reached, or returns "" if it can, or has not answered for moments only. The caller holds the
// lock.
func (m *member) unreachable() string {
	if m.conn != nil || !m.refused && m.engine.Clock.Since(m.since) < grace {
		return ""
	}
	if m.problem == "" {
		return "the cluster does not answer"
	}
	return m.problem
}

// busy reports whether the member has a copy, is to have one, or is to lose one.
func (m *member) busy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.copies {
		if !c.gone {
			return true
		}
	}
	return false
}

// drifted reports whether a copy is not what the last apply has left. The caller holds the lock.
func (m *member) drifted(key types.NamespacedName, c *placedCopy) bool {
	seen := m.seen[key]
	return seen == nil || seen.written != c.written || !seen.isLike(c.want)
}

// notify announces all Instances of the member. The caller holds the lock.
func (m *member) notify() {
	for key := range m.copies {
		m.engine.events.add(key)
	}
}
