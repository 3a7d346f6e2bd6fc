package faults

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"kudo.dev/kudo/test/env"
)

// shortChaos is how long the random mix takes, unless CHAOS_TIME says otherwise.
const shortChaos = 15 * time.Second

// A random mix of all faults, while scenarios run side by side: each ends as an undisturbed run does. CHAOS_TIME is how
// long, and CHAOS_SEED repeats a mix.
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
	for _, s := range scenarios {
		undisturbed(t, s)
	}
	until := time.Now().Add(span)
	var storm, workers sync.WaitGroup
	over := make(chan struct{})
	storm.Go(func() { bad(t, rand.New(rand.NewPCG(seed, 0)), over) })
	var mu sync.Mutex
	ended := map[string]int{}
	const side = 3
	for n := range side {
		random := rand.New(rand.NewPCG(seed, uint64(1+n)))
		workers.Go(func() {
			for time.Now().Before(until) && !t.Failed() {
				s := scenarios[random.IntN(len(scenarios))]
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
	t.Logf("%v; the manager ended by itself %d times", ended, line.exits)
}

// amid runs a scenario in the middle of what goes on.
func amid(t *testing.T, s scenario) {
	want, _ := undisturbed(t, s)
	w := newWorld(t)
	s.prepare(w)
	w.bystanders()
	s.act(w)
	s.ended(w)
	w.settle(want)
	w.untouched()
}

// bad weather, deaths of the manager, and calm, one after the other. Calm comes often enough for plans to go on.
func bad(t *testing.T, random *rand.Rand, over chan struct{}) {
	defer line.set(nil)
	for {
		what := "calm"
		switch choice := random.IntN(4); choice {
		case 0:
			what = "the manager is killed"
			line.kill()
		case 1, 2:
			sky := weathers[random.IntN(len(weathers))]
			what = sky.name
			line.set(sky.make())
		default:
			line.set(nil)
		}
		t.Log(what)
		select {
		case <-over:
			_ = line.manage()
			return
		case <-time.After(time.Duration(200+random.IntN(1500)) * time.Millisecond):
		}
		line.set(nil)
		if err := line.manage(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
	}
}
