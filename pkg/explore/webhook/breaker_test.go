package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// gate is a webhook that answers only while it is open, and tells who has entered.
type gate struct {
	mu      sync.Mutex
	open    bool
	entered chan struct{}
	release chan struct{}
	running atomic.Int32
	most    atomic.Int32
}

func newGate(t *testing.T) *gate {
	g := &gate{entered: make(chan struct{}, 1000), release: make(chan struct{})}
	t.Cleanup(func() { close(g.release) })
	return g
}

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = open
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // the server notices that the client has closed the connection only after this
	r.Body = io.NopCloser(bytes.NewReader(body))
	now := g.running.Add(1)
	defer g.running.Add(-1)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	g.entered <- struct{}{}
	if !open {
		select {
		case <-g.release:
		case <-r.Context().Done():
		}
	}
	reply(`{"uid":"UID","healthy":true}`)(w, r)
}

// TestBreaker goes through all of the drawing's edges.
func TestBreaker(t *testing.T) {
	g := newGate(t)
	var changed []string
	client := secure(t, g)
	hook := hookOf(client, func(h *v1alpha1.ResourceExploringWebhook) { h.TimeoutSeconds = ptr.To[int32](1) })
	l, clock := layerOf(t, Options{Changed: func(c Change) { changed = append(changed, c.String()) }}, hook)
	r := requestOf(t, explore.Healthy)
	timeOut := func(reason string) {
		t.Helper()
		stepped := make(chan struct{})
		go func() {
			<-g.entered
			clock.Step(time.Second)
			close(stepped)
		}()
		refused(t, reason, l, r, "no whole answer within 1s")
		<-stepped
	}
	answers := func(reason string) {
		t.Helper()
		if _, known, err := l.Explore(t.Context(), r); !known || err != nil {
			t.Fatalf("%s: got known %v, error %v", reason, known, err)
		}
		<-g.entered
	}
	timeOut("first")
	timeOut("second")
	g.set(true)
	answers("an answer in between")
	g.set(false)
	for range tripAfter {
		if s := l.State("c"); !s.Ready {
			t.Errorf("only time-outs in a row count: got %+v", s)
		}
		timeOut("again and again")
	}
	state := l.State("c")
	if state.Ready || state.Reason != ReasonTimeouts || !strings.Contains(state.Message, "foo.example.com") {
		t.Errorf("the configuration says which webhook is not asked: got %+v", state)
	}
	refused(t, "nothing is asked", l, r, errOpen.Error())
	clock.Step(firstPause)
	timeOut("one probe is let through, and fails")
	if len(g.entered) != 0 {
		t.Error("while the breaker is open, the webhook gets requests")
	}
	clock.Step(firstPause)
	refused(t, "the pause is longer then", l, r, errOpen.Error())
	if diff := cmp.Diff(state, l.State("c")); diff != "" {
		t.Errorf("the state stays while the breaker is open:\n%s", diff)
	}
	g.set(true)
	clock.Step(firstPause)
	answers("a probe that is answered closes it")
	answers("and all is well")
	if diff := cmp.Diff(State{Ready: true, Reason: ReasonReady}, l.State("c")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"[c/foo.example.com] []", "[c/foo.example.com] []"}, changed); diff != "" {
		t.Errorf("it is told when the state changes, and only then:\n%s", diff)
	}
}

// TestBreakerProbes lets one probe through at a time, and bounds the pause.
func TestBreakerProbes(t *testing.T) {
	_, clock := layerOf(t, Options{})
	b := &breaker{clock: clock, changed: func() {}}
	for range tripAfter {
		record, err := b.allow()
		if err != nil {
			t.Fatal(err)
		}
		record(timedOut)
	}
	late, pause := func(outcome) {}, firstPause
	for range 10 {
		clock.Step(pause - 1)
		if _, err := b.allow(); err == nil {
			t.Fatalf("a probe before %s are over", pause)
		}
		clock.Step(1)
		probe, err := b.allow()
		if err != nil {
			t.Fatalf("no probe after %s: %v", pause, err)
		}
		if _, err := b.allow(); err == nil {
			t.Fatal("two probes at a time")
		}
		probe(abandoned)
		if probe, err = b.allow(); err != nil {
			t.Fatal("a probe that was given up must not keep the breaker open for ever")
		}
		probe(timedOut)
		pause = min(2*pause, maxPause)
	}
	late(finished)
	if !b.isOpen() {
		t.Error("closed without a probe that was answered")
	}
}

// TestBreakerLateAnswers: calls that began before the breaker opened neither close it nor lengthen the pause.
func TestBreakerLateAnswers(t *testing.T) {
	_, clock := layerOf(t, Options{})
	b := &breaker{clock: clock, changed: func() {}}
	var records []func(outcome)
	for range tripAfter + 2 {
		record, err := b.allow()
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	for _, record := range records[:tripAfter+1] {
		record(timedOut)
	}
	records[tripAfter+1](finished)
	if !b.isOpen() || b.pause != firstPause {
		t.Errorf("open %v, pause %s", b.isOpen(), b.pause)
	}
}

// TestQuickFailures do not open the breaker: they hold nothing up.
func TestQuickFailures(t *testing.T) {
	l, _ := layerOf(t, Options{}, hookOf(secure(t, http.NotFoundHandler())))
	for range 3 * tripAfter {
		refused(t, "a failure", l, requestOf(t, explore.Healthy), "status 404")
	}
	if s := l.State("c"); !s.Ready {
		t.Errorf("got %+v", s)
	}
}

// TestConcurrency is at most MaxCalls of a webhook at a time, also across a change of its configuration.
func TestConcurrency(t *testing.T) {
	g := newGate(t)
	client := secure(t, g)
	l, _ := layerOf(t, Options{}, hookOf(client))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wait sync.WaitGroup
	start := func() {
		for range 2 * MaxCalls {
			wait.Go(func() { _, _, _ = l.Explore(ctx, requestOf(t, explore.Healthy)) })
		}
	}
	start()
	for range MaxCalls {
		<-g.entered
	}
	l.Set([]v1alpha1.ResourceExploringWebhookConfiguration{configuration("c", hookOf(client, func(h *v1alpha1.ResourceExploringWebhook) {
		h.TimeoutSeconds = ptr.To[int32](7)
	}))})
	start()
	if n := len(g.entered); n != 0 {
		t.Errorf("%d calls more than %d entered", n, MaxCalls)
	}
	g.set(true)
	cancel()
	wait.Wait()
	if most := g.most.Load(); most > MaxCalls {
		t.Errorf("%d calls ran at a time: at most %d may", most, MaxCalls)
	}
}

// TestWaitingForASlot takes the time of the call that waits.
func TestWaitingForASlot(t *testing.T) {
	g := newGate(t)
	waits := make(chan struct{})
	newUID := func() types.UID {
		close(waits) // the budget runs by now
		return "u"
	}
	l, clock := layerOf(t, Options{NewUID: newUID}, hookOf(secure(t, g)))
	h := l.index.Load().hooks[0]
	for range MaxCalls {
		h.caller.slots <- struct{}{}
	}
	failed := make(chan error, 1)
	go func() {
		_, _, err := l.Explore(t.Context(), requestOf(t, explore.Healthy))
		failed <- err
	}()
	<-waits
	clock.Step(10 * time.Second)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "16 calls of it run already: no whole answer within 10s") {
		t.Errorf("got %v", err)
	}
	if len(g.entered) != 0 || h.caller.breaker.timeouts != 0 {
		t.Error("the webhook was not asked, and did not time out")
	}
}
