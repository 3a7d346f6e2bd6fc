package ui

import (
	"fmt"
	"net/http"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestStream shows U3: after a change, the server sends one message, which has only the parts of the page that have changed. The server
// sends no request to the API server for it.
func TestStream(t *testing.T) {
	r := begin(t, "", instance("a", "one", nil), instance("a", "two", nil))
	next := r.events(t, "/instances", "")
	first, seen := next()
	if !strings.Contains(first["rows"], "a/one") || !strings.Contains(first["summary"], "2 Instances") {
		t.Fatalf("the first message has not all of the page: %v", first)
	}
	r.api.Requests() // those until now
	r.api.Put(instance("a", "two", fail))
	changed, id := next()
	if _, connection := changed["connection"]; connection || !strings.Contains(changed["rows"], "Job report") || !strings.Contains(changed["summary"], "1 failed") {
		t.Errorf("the message has %v", changed)
	}
	if id == seen {
		t.Error("another content has the same id")
	}
	if requests := r.api.Requests(); len(requests) > 0 {
		t.Errorf("U3, U12: the page asked the API server %v", requests)
	}
	// A browser that has the newest content gets nothing until the next change; one that has older content gets it.
	same, other := r.events(t, "/instances", id), r.events(t, "/instances", seen)
	if late, _ := other(); !strings.Contains(late["rows"], "Job report") {
		t.Errorf("a browser that was away misses a change: %v", late)
	}
	r.api.Put(instance("a", "three", nil))
	if news, _ := same(); !strings.Contains(news["rows"], "a/three") {
		t.Errorf("a browser that has all gets something else than the next change: %v", news)
	}
}

// TestStreamRate shows U3: many changes are few messages, at most ten in a second, and the last one has the last state.
func TestStreamRate(t *testing.T) {
	r := begin(t, "", instance("a", "one", nil))
	next := r.events(t, "/instances", "")
	_, _ = next()
	begun, messages := time.Now(), 0
	go func() {
		for n := range 60 {
			r.api.Put(instance("a", fmt.Sprintf("i-%02d", n), nil))
			<-time.After(5 * time.Millisecond) // one change at a time
		}
	}()
	for {
		parts, _ := next()
		messages++
		if strings.Contains(parts["summary"], "61 Instances") {
			break
		}
	}
	if most := int(time.Since(begun)/(100*time.Millisecond)) + 1; messages > most {
		t.Errorf("%d messages in %s, want %d at most", messages, time.Since(begun), most)
	}
}

// TestInstanceIsDeleted shows U10: the page of an Instance says that it was deleted while the page was open, and others say that it does not exist.
func TestInstanceIsDeleted(t *testing.T) {
	r := begin(t, "", instance("a", "one", nil))
	next := r.events(t, "/instances/a/one", "")
	parts, _ := next()
	if !strings.Contains(parts["state"], "ready") {
		t.Fatalf("the Instance is not shown: %v", parts)
	}
	r.api.Remove(instance("a", "one", nil))
	for !strings.Contains(parts["state"], "was deleted while the page was open") {
		parts, _ = next()
	}
	r.await(t, "the Instance is deleted", func() bool { status, _ := r.get(t, "/instances/a/one"); return status == http.StatusNotFound })
	if _, body := r.get(t, "/instances/a/one"); !strings.Contains(body, "This Instance does not exist.") {
		t.Error("the page of a deleted Instance does not say so")
	}
}

// TestDetailCloses shows U3: what the page of an Instance watches is shared by its pages, and ends with the last of them.
func TestDetailCloses(t *testing.T) {
	r := begin(t, "", instance("a", "one", nil))
	key := client.ObjectKey{Namespace: "a", Name: "one"}
	first, second := r.openDetail(key), r.openDetail(key)
	if first == nil || first != second || first.users != 2 {
		t.Fatalf("two pages of an Instance share no watches: %v %v", first, second)
	}
	first.close()
	if first.closing != nil {
		t.Error("the watches end while a page is open")
	}
	second.close()
	if first.closing == nil {
		t.Fatal("nothing ends the watches of a closed page")
	}
	if again := r.openDetail(key); again != first || again.closing != nil {
		t.Error("a page that is loaded again begins new watches")
	}
	first.close()
	first.closing.Reset(0)
	r.await(t, "the watches have ended", func() bool { return first.ctx.Err() != nil })
}

// TestChangesAreNotLost: a listener that is slow gets one value for many changes, and one that has stopped gets none.
func TestChangesAreNotLost(t *testing.T) {
	var c changes
	changed, stop := c.listen()
	c.notify()
	c.notify()
	<-changed
	select {
	case <-changed:
		t.Error("two changes at once are two values")
	default:
	}
	stop()
	c.notify()
	select {
	case <-changed:
		t.Error("a listener that has stopped is told")
	default:
	}
}

// TestTabs shows U12: ten tabs of 1,000 Instances need no more watches than one, and less than 100 MiB.
func TestTabs(t *testing.T) {
	heap := func() uint64 {
		goruntime.GC()
		var now goruntime.MemStats
		goruntime.ReadMemStats(&now)
		return now.HeapAlloc
	}
	r := begin(t, "", instance("a", "one", nil), version("a", "web-1.0.0", func(*v1beta1.OperatorVersion) {}))
	before := heap()
	r.fillInstances(t, 1000)
	r.api.Requests() // those until now
	for range 10 {
		next := r.events(t, "/instances", "")
		_, _ = next()
	}
	if requests := r.api.Requests(); len(requests) > 0 {
		t.Errorf("ten tabs have asked for %v", requests)
	}
	used := (int64(heap()) - int64(before)) >> 20
	t.Logf("ten tabs of 1,000 Instances have %d MiB", used)
	if used >= 100 {
		t.Errorf("ten tabs of 1,000 Instances have %d MiB", used)
	}
}
