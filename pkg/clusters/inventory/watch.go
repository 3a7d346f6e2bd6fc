package inventory

import (
	"context"
	"errors"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

const (
	// pageSize is how many copies a request lists, and watchTimeout how long a watch lasts, in seconds.
	pageSize, watchTimeout = 500, int64(540)
	// brief is the time below which a connection was none: the cluster is not asked again at once.
	brief = 30 * time.Second
	// retryAfter is the time to the first attempt to reach a cluster that has answered before.
	retryAfter = time.Second
)

var apiVersion = schema.GroupVersion{Version: "v1"}

// errIdle ends a connection that nothing needs.
var errIdle = errors.New("nothing is placed on the cluster")

// run works for the member until the context ends: it keeps a connection as long as anything is placed on it.
func (m *member) run(ctx context.Context) {
	m.restart()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m.next(ctx) {
		}
	}()
	for m.awaitWork(ctx) {
		conn, err := m.connect(ctx)
		if err == nil {
			err = m.follow(conn)
			conn.close(err)
		}
		m.lose(err)
		m.pause(ctx)
	}
	m.queue.ShutDown()
	<-done
}

// awaitWork waits until something is placed on the member, and reports whether the context has not ended.
func (m *member) awaitWork(ctx context.Context) bool {
	for ctx.Err() == nil && !m.busy() {
		select {
		case <-ctx.Done():
		case <-m.changed:
		}
		m.restart()
	}
	return ctx.Err() == nil
}

// restart begins the time in which the cluster has to answer.
func (m *member) restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since, m.problem, m.refused = m.engine.Clock.Now(), "", false
}

// lose records why there is no connection.
func (m *member) lose(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.brief = false
	if now := m.engine.Clock.Now(); m.conn != nil {
		m.brief = now.Sub(m.since) < brief
		m.conn, m.since = nil, now
	}
	m.refused = errors.As(err, new(*AccessError))
	m.problem = reason(err)
	m.announce()
}

// announce announces all Instances of the member if the cluster is unreachable for another reason than was announced last, or not any more.
// The caller holds the lock.
func (m *member) announce() {
	if now := m.unreachable(); now != m.announced {
		m.announced = now
		m.notify()
	}
}

// pause waits until the cluster is to be asked again, and announces when it becomes unreachable. A change ends the wait, but not before
// retryAfter: many changes do not make many attempts.
func (m *member) pause(ctx context.Context) {
	m.mu.Lock()
	lostFor, wait := m.engine.Clock.Since(m.since), probeEvery
	if lostFor < retryAfter && !m.brief {
		wait = retryAfter
	}
	m.mu.Unlock()
	select {
	case <-ctx.Done():
		return
	case <-m.engine.Clock.After(retryAfter):
	}
	m.mu.Lock()
	m.announce()
	m.mu.Unlock()
	lostFor, wait = lostFor+retryAfter, wait-retryAfter
	if wait == 0 {
		return
	}
	if rest := grace - lostFor; rest > 0 && rest < wait {
		if !m.sleep(ctx, rest) {
			return
		}
		m.mu.Lock()
		m.announce()
		m.mu.Unlock()
		wait -= rest
	}
	m.sleep(ctx, wait)
}

// sleep waits, and reports whether the time has passed rather than that there is something to do.
func (m *member) sleep(ctx context.Context, wait time.Duration) bool {
	timer := m.engine.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-m.changed:
		return false
	case <-timer.C():
		return true
	}
}

// follow lists and watches the copies of the hub until the connection ends, and returns why it has.
func (m *member) follow(conn *connection) error {
	for first := true; ; first = false {
		version, err := m.list(conn)
		if err != nil {
			return cause(conn, err)
		}
		if first {
			m.gain(conn)
		}
		if err := m.watch(conn, version); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return cause(conn, err)
		}
	}
}

// cause returns why a connection has ended, if it has, and else the error.
func cause(conn *connection, err error) error {
	if ended := context.Cause(conn.ctx); ended != nil {
		return ended
	}
	return err
}

// gain records a connection, by which all is written anew: the cluster may have been restored from a backup.
func (m *member) gain(conn *connection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conn, m.since, m.problem, m.announced, m.refused = conn, m.engine.Clock.Now(), "", "", false
	for key, c := range m.copies {
		c.written = written{}
		m.queue.Forget(key)
		m.queue.Add(key)
	}
	m.notify()
}

func (m *member) selector(conn *connection) string { return PlacedLabel + "=" + string(conn.hub) }

// list reads all copies, and returns the version that a watch begins at.
func (m *member) list(conn *connection) (string, error) {
	seen := map[types.NamespacedName]*seenCopy{}
	options := metav1.ListOptions{LabelSelector: m.selector(conn), Limit: pageSize}
	for {
		ctx, cancel := context.WithTimeout(conn.ctx, requestTimeout)
		page, err := conn.dynamic.Resource(resources["Instance"]).List(ctx, options)
		cancel()
		if err != nil {
			return "", err
		}
		for i := range page.Items {
			obj := &page.Items[i]
			seen[types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}] = see(obj)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			m.replace(seen)
			return page.GetResourceVersion(), nil
		}
	}
}

// replace records all that a list shows.
func (m *member) replace(seen map[types.NamespacedName]*seenCopy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.seen {
		if seen[key] == nil {
			m.seeLocked(key, nil)
		}
	}
	for key, s := range seen {
		delete(m.seen, key) // a list may be older than what was seen: the cluster may have been restored
		m.seeLocked(key, s)
	}
}

// watch follows the copies from a version on, by one watch after the other.
func (m *member) watch(conn *connection, version string) error {
	for {
		timeout := watchTimeout
		w, err := conn.dynamic.Resource(resources["Instance"]).Watch(conn.ctx, metav1.ListOptions{
			LabelSelector: m.selector(conn), ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &timeout,
		})
		if err != nil {
			return err
		}
		began := m.engine.Clock.Now()
		version, err = m.events(conn, w, version)
		w.Stop()
		switch {
		case err != nil:
			return err
		case m.engine.Clock.Since(began) < retryAfter:
			m.sleep(conn.ctx, retryAfter)
		}
	}
}

// events takes the events of a watch until it ends, and returns the version that it has come to.
func (m *member) events(conn *connection, w watch.Interface, version string) (string, error) {
	for {
		select {
		case <-conn.ctx.Done():
			return version, context.Cause(conn.ctx)
		case <-m.changed:
			if !m.busy() {
				return version, errIdle
			}
		case event, open := <-w.ResultChan():
			if !open {
				return version, nil
			}
			if event.Type == watch.Error {
				return version, apierrors.FromObject(event.Object)
			}
			obj, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			version = obj.GetResourceVersion()
			key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
			switch event.Type {
			case watch.Added, watch.Modified:
				m.see(key, see(obj))
			case watch.Deleted:
				m.see(key, nil)
			}
		}
	}
}

// see returns what the engine keeps of a copy.
func see(obj *unstructured.Unstructured) *seenCopy {
	annotations := obj.GetAnnotations()
	out := &seenCopy{
		written: written{obj.GetUID(), obj.GetGeneration()}, version: obj.GetResourceVersion(),
		template: annotations[v1beta1.TemplateAnnotation], released: annotations[v1beta1.ReleasedAnnotation],
	}
	instance := &v1beta1.Instance{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, instance); err == nil {
		out.report = ReportOf(instance)
	}
	return out
}

func (m *member) see(key types.NamespacedName, s *seenCopy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seeLocked(key, s)
}

// seeLocked records what is seen of a copy; nil is a copy that is not there. The caller holds the lock.
func (m *member) seeLocked(key types.NamespacedName, s *seenCopy) {
	before := m.seen[key]
	if s == nil {
		delete(m.seen, key)
	} else if before == nil || !s.isOlder(before) {
		m.seen[key] = s
	}
	m.engine.events.add(key)
	c := m.copies[key]
	switch {
	case c == nil || c.given:
	case c.want == nil:
		c.gone = c.gone && s == nil
		m.queue.Add(key)
	case s == nil:
		m.queue.Add(key)
	case c.done == c.token && m.drifted(key, c):
		m.queue.AddAfter(key, driftDelay)
	}
}

// isOlder reports whether a copy was seen before another. Versions of one object can be compared as numbers.
func (s *seenCopy) isOlder(other *seenCopy) bool {
	a, errA := strconv.ParseUint(s.version, 10, 64)
	b, errB := strconv.ParseUint(other.version, 10, 64)
	return errA == nil && errB == nil && s.uid == other.uid && a < b
}
