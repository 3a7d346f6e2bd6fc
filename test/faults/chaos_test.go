package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kudo.dev/kudo/test/env"
)

const (
	// shortChaos is how long the random mix takes, unless CHAOS_TIME says otherwise.
	shortChaos = 15 * time.Second
	// longChaos is from where on the apiserver and its database are killed too: they take a while to come back.
	longChaos = time.Minute
	// outagesLimit is how long a plan may take where no moment without an outage is long, for the parts of the control plane
	// that are killed, too.
	outagesLimit = 5 * time.Minute
)

// A random mix of all faults, while scenarios run side by side: each ends as an undisturbed run does, and the model of
// plans has no objection to any state on the way. CHAOS_TIME is how long, and CHAOS_SEED repeats a mix.
func TestChaos(t *testing.T) {
	span, seed := shortChaos, uint64(time.Now().UnixNano())
	var err error
	if text := os.Getenv("CHAOS_TIME"); text != "" {
		span, err = time.ParseDuration(text)
		env.Must(t, err)
	}
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		env.Must(t, err)
	}
	t.Logf("%s of chaos; CHAOS_SEED=%d repeats it", span, seed)
	learn(t)
	troubles := troubles(stepClock(t), span >= longChaos)
	mixed := scenarios
	if span < longChaos {
		mixed = parts(false)[0]
	}
	env.Must(t, manager.start())
	ended := map[string]int{}
	session(t, func() {
		until := time.Now().Add(span)
		var storm, workers sync.WaitGroup
		over := make(chan struct{})
		storm.Go(func() { underOutages(t, troubles, rand.New(rand.NewPCG(seed, 0)), over) })
		var mu sync.Mutex
		for n := range side {
			random := rand.New(rand.NewPCG(seed, uint64(1+n)))
			workers.Go(func() {
				for time.Now().Before(until) && !t.Failed() {
					s := mixed[random.IntN(len(mixed))]
					t.Run(s.name, func(t *testing.T) { amid(t, s) })
					mu.Lock()
					ended[s.name]++
					mu.Unlock()
				}
			})
		}
		workers.Wait()
		close(over)
		storm.Wait()
	})
	t.Logf("%v; the manager ended by itself %d times", ended, manager.exitCount())
}

// amid runs a scenario in the middle of what goes on.
func amid(t *testing.T, s scenario) {
	w := newWorld(t)
	w.timeout = outagesLimit
	s.prepare(w)
	w.bystanders()
	s.act(w)
	s.ended(w)
	w.settle(undisturbed(t, s).end)
	w.untouched()
}

// trouble is something that befalls the manager for a while.
type trouble struct {
	name       string
	begin, end func() error
}

// troubles are all that are mixed.
func troubles(h clockFile, long bool) []trouble {
	well := func() error { return nil }
	kill := func() error { manager.kill(); return nil }
	endFault := func() error { manager.intercept(nil); return nil }
	out := []trouble{
		{"no fault", well, well},
		{"the manager is killed", kill, well},
		{"the manager is killed, and again", kill, kill},
		{"the manager is frozen", func() error { return manager.signal(syscall.SIGSTOP) }, func() error { return manager.signal(syscall.SIGCONT) }},
		{"the manager is asked to end", func() error { manager.stop(syscall.SIGTERM); return nil }, well},
		{"all connections are cut", func() error { manager.proxy.Cut(); return nil }, well},
	}
	for _, by := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, 0} {
		out = append(out, trouble{fmt.Sprintf("the clock is wrong by %s", by), func() error { return h.set(by) }, well})
	}
	for _, outage := range outageCases {
		out = append(out, trouble{outage.name, func() error { manager.intercept(outage.make()); return nil }, endFault})
	}
	for _, group := range groups {
		out = append(out, trouble{group + " is not served", func() error { manager.intercept(vanished(group)); manager.proxy.Cut(); return nil }, endFault})
	}
	if long {
		for _, component := range []string{"kube-apiserver", "etcd"} {
			out = append(out, trouble{component + " is killed", func() error { return bounce(component) }, well})
		}
	}
	return out
}

// bounce kills a part of the control plane, and starts it again. The tests' own requests wait meanwhile.
func bounce(component string) (err error) {
	connection.closed(func() {
		if err = local(component, "kill"); err == nil {
			err = started(component)
		}
	})
	return err
}

// underOutages has one trouble come after the other. There is time without any often enough for plans to go on.
func underOutages(t *testing.T, troubles []trouble, random *rand.Rand, over chan struct{}) {
	defer manager.intercept(nil)
	var met []string
	for {
		now := troubles[random.IntN(len(troubles))]
		met = append(met, now.name)
		if err := now.begin(); err != nil {
			t.Error(now.name, err)
		}
		ended := false
		select {
		case <-over:
			ended = true
		case <-time.After(time.Duration(200+random.IntN(1500)) * time.Millisecond):
		}
		if err := now.end(); err != nil {
			t.Error(now.name, err)
		}
		if err := manager.start(); err != nil {
			t.Error(err)
		}
		if ended {
			t.Logf("%d troubles: %s", len(met), strings.Join(met, "; "))
			return
		}
		select {
		case <-over: // the next trouble is the last
		case <-time.After(time.Duration(random.IntN(1500)) * time.Millisecond):
		}
	}
}
