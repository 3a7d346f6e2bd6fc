package faults

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/test/env"
)

// handler does something with a request.
type handler = func(r *http.Request, forward env.Forward) (*http.Response, error)

// weather is what befalls the connection for a while.
type weather struct {
	name string
	make func() handler
}

// span is how long bad weather lasts.
const span = 3 * time.Second

// all answers every request of a kind with an error.
func all(code int, reason metav1.StatusReason, which func(*http.Request) bool) func() handler {
	return func() handler {
		return func(r *http.Request, forward env.Forward) (*http.Response, error) {
			if which(r) {
				return env.Refuse(r, code, reason)
			}
			return forward(r)
		}
	}
}

func every(*http.Request) bool { return true }

func reads(r *http.Request) bool { return r.Method == http.MethodGet }

// weathers are those that the manager must come through.
var weathers = []weather{
	{"500 for all", all(http.StatusInternalServerError, metav1.StatusReasonInternalError, every)},
	{"429 for all", all(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, every)},
	{"503 for all", all(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, every)},
	{"403 for all", all(http.StatusForbidden, metav1.StatusReasonForbidden, every)},
	{"401 for all", all(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, every)},
	{"409 for all writes", all(http.StatusConflict, metav1.StatusReasonConflict, env.IsWrite)},
	{"410 for all reads", all(http.StatusGone, metav1.StatusReasonExpired, reads)},
	{"every third write lost", unlucky},
	{"watches that are slow", slowWatches},
	{"watches that are cut", cutWatches},
	{"stale reads", staleReads},
	{"no connection", func() handler {
		return func(*http.Request, env.Forward) (*http.Response, error) { return nil, env.ErrCut }
	}},
}

// unlucky loses each third write, before or after its commit.
func unlucky() handler {
	var mu sync.Mutex
	n := 0
	return func(r *http.Request, forward env.Forward) (*http.Response, error) {
		if !env.IsWrite(r) {
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
		return nil, env.ErrCut
	}
}

// slowWatches delays all that watches tell.
func slowWatches() handler {
	return func(r *http.Request, forward env.Forward) (*http.Response, error) {
		answer, err := forward(r)
		if err == nil && env.IsWatch(r) {
			answer.Body = &slow{answer.Body}
		}
		return answer, err
	}
}

type slow struct{ io.ReadCloser }

func (b *slow) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	time.Sleep(300 * time.Millisecond)
	return n, err
}

// cutWatches ends each watch soon after it began.
func cutWatches() handler {
	return func(r *http.Request, forward env.Forward) (*http.Response, error) {
		answer, err := forward(r)
		if err == nil && env.IsWatch(r) {
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
	return func(r *http.Request, forward env.Forward) (*http.Response, error) {
		if r.Method != http.MethodGet || env.IsWatch(r) {
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
func TestStruckAtEachWrite(t *testing.T) {
	turn, used := 0, 0
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			want, writes := undisturbed(t, s)
			struck := 0
			for n := 1; n <= len(writes); n++ {
				strikes := harmless
				if !thorough() {
					if n%6 != turn%6 {
						continue
					}
					strikes = harmless[used%len(harmless) : used%len(harmless)+1]
				}
				for _, hit := range strikes {
					used++
					if struckAt(t, s, hit, n, want) {
						struck++
					}
				}
			}
			turn++
			t.Logf("%d of %d cases (KUDO_FAULTS=all: all)", struck, len(writes)*len(harmless))
		})
	}
}

// The connection is bad for a while in the middle of each scenario: the end is that of an undisturbed run.
func TestWeather(t *testing.T) {
	for i, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			want, writes := undisturbed(t, s)
			for j, sky := range weathers {
				if !thorough() && (i+j)%len(scenarios) != 0 {
					continue
				}
				t.Run(sky.name, func(t *testing.T) {
					w := newWorld(t)
					env.Must(t, line.manage())
					s.prepare(w)
					w.bystanders()
					at := 1 + rand.IntN(len(writes))
					t.Logf("from write %d on", at)
					line.cloud(w.ns, at, sky)
					defer line.set(nil)
					s.act(w)
					s.ended(w)
					w.settle(want)
					w.untouched()
					w.twice(s)
				})
			}
		})
	}
}

// cloud begins bad weather with the n-th write that concerns a word; it ends by itself.
func (l *wire) cloud(word string, at int, sky weather) {
	count := &counter{word: word}
	var mu sync.Mutex
	var bad handler
	seen := 0
	l.set(func(r *http.Request, forward env.Forward) (*http.Response, error) {
		mu.Lock()
		if bad == nil && env.IsWrite(r) {
			concerns, err := count.concerns(r)
			if err != nil {
				mu.Unlock()
				return nil, err
			}
			if concerns {
				seen++
			}
			if seen >= at {
				bad = sky.make()
				time.AfterFunc(span, func() { l.set(nil) })
			}
		}
		now := bad
		mu.Unlock()
		if now != nil {
			return now(r, forward)
		}
		return forward(r)
	})
}

// The apiserver, or its database, is killed in the middle of a plan, and comes back.
func TestControlPlaneKilled(t *testing.T) {
	for _, component := range []string{"kube-apiserver", "etcd"} {
		t.Run(component, func(t *testing.T) {
			s := scenarios[0]
			want, writes := undisturbed(t, s)
			w := newWorld(t)
			s.prepare(w)
			w.bystanders()
			count := line.aim(w.ns, 1+len(writes)/2, strike{name: component, hit: func(_ *wire, _ *http.Request, _ env.Forward, over func()) (*http.Response, error) {
				defer over()
				if out, err := suite.Local("kill", component); err != nil {
					t.Errorf("%v: %s", err, out)
				}
				return nil, env.ErrCut
			}})
			s.act(w)
			<-count.struck
			time.Sleep(2 * time.Second) // the manager tries in vain
			if out, err := suite.Local("start", component); err != nil {
				t.Fatal(err, out)
			}
			line.set(nil)
			env.Eventually(t, "an apiserver that answers", func() string {
				if _, err := suite.Namespace(ctx); err != nil {
					return fmt.Sprint(err)
				}
				return ""
			})
			s.ended(w)
			w.settle(want)
			w.untouched()
			w.twice(s)
		})
	}
}
