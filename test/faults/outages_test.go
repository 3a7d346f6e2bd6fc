package faults

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// outages is what befalls the connection for a while.
type outages struct {
	name string
	make func() handler
	// thorough is how long it lasts in the full form, if that is longer.
	thorough time.Duration
}

// span is how long the outages last.
const span = 2 * time.Second

// all answers every request of a kind with an error.
func all(code int, reason metav1.StatusReason, which func(*http.Request) bool) func() handler {
	return func() handler {
		return func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
			if which(r) {
				return env.Refuse(r, code, reason)
			}
			return forward(r)
		}
	}
}

func every(*http.Request) bool { return true }

func reads(r *http.Request) bool { return r.Method == http.MethodGet }

// outageCases are those that the manager must come through.
var outageCases = []outages{
	{"500 for all", all(http.StatusInternalServerError, metav1.StatusReasonInternalError, every), time.Minute},
	{"429 for all", all(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, every), 0},
	{"503 for all", all(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, every), 0},
	{"403 for all", all(http.StatusForbidden, metav1.StatusReasonForbidden, every), 0},
	{"401 for all", all(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, every), 0},
	{"409 for all writes", all(http.StatusConflict, metav1.StatusReasonConflict, apiproxy.IsWrite), 0},
	{"410 for all reads", all(http.StatusGone, metav1.StatusReasonExpired, reads), 0},
	{"every third write lost", loseThirdWrites, 0},
	{"watches that are slow", slowWatches, 0},
	{"watches that are cut", cutWatches, 0},
	{"stale reads", staleReads, 0},
	{"no connection", func() handler {
		return func(*http.Request, apiproxy.Forward) (*http.Response, error) { return nil, apiproxy.ErrCut }
	}, 0},
}

// loseThirdWrites loses each third write, before or after its commit.
func loseThirdWrites() handler {
	var mu sync.Mutex
	n := 0
	return func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		if !apiproxy.IsWrite(r) {
			return forward(r)
		}
		mu.Lock()
		n++
		now := n
		mu.Unlock()
		if now%3 != 0 {
			return forward(r)
		}
		if now%2 == 0 {
			if answer, err := forward(r); err == nil {
				_ = answer.Body.Close()
			}
		}
		return nil, apiproxy.ErrCut
	}
}

// slowWatches delays all that watches tell.
func slowWatches() handler {
	return func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		answer, err := forward(r)
		if err == nil && apiproxy.IsWatch(r) {
			answer.Body = &slow{answer.Body, r.Context()}
		}
		return answer, err
	}
}

type slow struct {
	io.ReadCloser
	ctx context.Context
}

// Read delays what was read, as long as the watch is asked for.
func (b *slow) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	pause(b.ctx, 300*time.Millisecond)
	return n, err
}

// cutWatches ends each watch soon after it began.
func cutWatches() handler {
	return func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		answer, err := forward(r)
		if err == nil && apiproxy.IsWatch(r) {
			body := answer.Body
			time.AfterFunc(300*time.Millisecond, func() { _ = body.Close() })
		}
		return answer, err
	}
}

// staleReads answers the reads of an object as they were answered the first time, for a second.
func staleReads() handler {
	type old struct {
		answer http.Response
		text   []byte
		until  time.Time
	}
	var mu sync.Mutex
	seen := map[string]old{}
	return func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		if r.Method != http.MethodGet || apiproxy.IsWatch(r) {
			return forward(r)
		}
		mu.Lock()
		known, found := seen[r.URL.String()]
		mu.Unlock()
		if !found || time.Now().After(known.until) {
			answer, err := forward(r)
			if err != nil {
				return nil, err
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil {
				return nil, err
			}
			known = old{*answer, text, time.Now().Add(time.Second)}
			mu.Lock()
			seen[r.URL.String()] = known
			mu.Unlock()
		}
		again := known.answer
		again.Header, again.Body = known.answer.Header.Clone(), io.NopCloser(bytes.NewReader(known.text))
		return &again, nil
	}
}

// Each write of each scenario is answered wrongly in some way: the end is that of an undisturbed run.
func TestFaultAtEachWrite(t *testing.T) {
	learn(t)
	env.Must(t, manager.start())
	used := 0
	for _, part := range parts(thorough()) {
		var cases []testing.InternalTest
		for turn, s := range part {
			for n := range undisturbed(t, s).writes {
				chosen := toleratedFaults
				if !thorough() {
					if n%7 != turn%7 {
						continue
					}
					chosen = toleratedFaults[used%len(toleratedFaults) : used%len(toleratedFaults)+1]
				}
				for _, by := range chosen {
					used++
					cases = append(cases, faultAt(s, by, n+1))
				}
			}
		}
		t.Logf("%d cases (KUDO_FAULTS=all: all)", len(cases))
		runParallel(t, cases)
	}
}

// The connection is bad for a while in the middle of scenarios: the end is that of an undisturbed run.
func TestOutages(t *testing.T) {
	learn(t)
	for i, outage := range outageCases {
		t.Run(outage.name, func(t *testing.T) {
			for _, part := range parts(thorough()) {
				var under []scenario
				for j, s := range part {
					if thorough() || (i+j)%6 == 0 {
						under = append(under, s)
					}
				}
				runAmidOutage(t, outage, under)
			}
		})
	}
}

// runAmidOutage runs scenarios amid outages, which begin with some write of the first.
func runAmidOutage(t *testing.T, outage outages, under []scenario) {
	env.Must(t, manager.start())
	defer manager.intercept(nil)
	long := span
	if thorough() {
		long = max(span, outage.thorough)
	}
	over := make(chan struct{})
	begin := writeFault{name: outage.name, hit: func(l *managerProxy, r *http.Request, forward apiproxy.Forward, begun func()) (*http.Response, error) {
		defer begun()
		bad := outage.make()
		l.intercept(bad)
		time.AfterFunc(long, func() { l.intercept(nil); close(over) })
		return bad(r, forward)
	}}
	var cases []testing.InternalTest
	for n, s := range under {
		cases = append(cases, testing.InternalTest{Name: s.name, F: func(t *testing.T) {
			w := newWorld(t)
			s.prepare(w)
			w.bystanders()
			count := &counter{}
			if n == 0 {
				at := 1 + rand.IntN(len(undisturbed(t, s).writes))
				t.Logf("from write %d on", at)
				count = w.aim(at, begin)
			}
			s.act(w)
			s.ended(w)
			if manager.leave(count); manager.target(count) != "" {
				<-over
			}
			w.settle(undisturbed(t, s).end)
			w.untouched()
			w.twice(s)
		}})
	}
	runParallel(t, cases)
}

// The apiserver, or its database, is killed in the middle of a plan, and comes back.
func TestControlPlaneKilled(t *testing.T) {
	for _, component := range []string{"kube-apiserver", "etcd"} {
		t.Run(component, func(t *testing.T) {
			s := scenarios[0]
			known := undisturbed(t, s)
			w := newWorld(t)
			s.prepare(w)
			w.bystanders()
			inVain := make(chan struct{})
			count := w.aim(1+len(known.writes)/2, writeFault{name: component, hit: func(_ *managerProxy, _ *http.Request, _ apiproxy.Forward, over func()) (*http.Response, error) {
				defer over()
				if err := local(component, "kill"); err != nil {
					t.Error(err)
				}
				asked := sync.OnceFunc(func() { close(inVain) })
				manager.intercept(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
					asked()
					return forward(r)
				})
				return nil, apiproxy.ErrCut
			}})
			s.act(w)
			receive(t, count.occurred)
			receive(t, inVain) // the manager tries again, while the component is dead
			manager.intercept(nil)
			env.Must(t, started(component))
			s.ended(w)
			w.settle(known.end)
			w.untouched()
			w.twice(s)
		})
	}
}

// The answers to some writes do not come, each of the status of one of kudo's kinds. Nothing that concerns others waits for
// them; when they come, what they belong to goes on.
func TestAnswersDoNotCome(t *testing.T) {
	begin := func(w *testbed) { v := lifecycle.Fleet(w.ns, "fleet"); w.create(v, gen.Instance("i", v, nil)) }
	ended := runs("deploy", 1)
	other, held := ready(t), map[string]*testbed{}
	for _, path := range []string{"/namespaces/NS/instances/i/", "/namespaces/NS/operatorversions/fleet/", "/installations/NS-fleet-"} {
		w := ready(t)
		held[strings.ReplaceAll(path, "NS", w.ns)] = w
	}
	waits, free := make(chan string, len(held)), make(chan struct{})
	var seen sync.Map
	manager.intercept(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		answer, err := forward(r)
		for path := range held {
			if !apiproxy.IsWrite(r) || !strings.Contains(r.URL.Path, path) || !strings.HasSuffix(r.URL.Path, "/status") {
				continue
			}
			if _, again := seen.LoadOrStore(path, true); !again {
				waits <- path
				<-free
			}
		}
		return answer, err
	})
	defer manager.intercept(nil)
	release := sync.OnceFunc(func() { close(free) })
	defer release()
	for _, w := range held {
		begin(w)
	}
	for range held {
		t.Logf("no answer for %s", receive(t, waits))
	}
	begin(other)
	ended(other)
	release()
	for _, w := range held {
		ended(w)
		w.untouched()
	}
	other.untouched()
}
