package faults

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// gauges reads what of the manager could leak from its metrics.
func gauges(t *testing.T, address string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	env.Eventually(t, "metrics", func() string {
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return err.Error()
		}
		for _, name := range []string{"go_goroutines", "process_open_fds"} {
			found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
			if found == nil {
				return name + " is not among the metrics"
			}
			if out[name], err = strconv.ParseFloat(string(found[1]), 64); err != nil {
				return err.Error()
			}
		}
		return ""
	})
	return out
}

// runLifecycles creates and deletes some Instances, side by side.
func runLifecycles(t *testing.T, n int) {
	t.Helper()
	w := newWorld(t)
	v := lifecycle.Cleaning(w.ns)
	w.create(v)
	for i := range n {
		w.create(gen.Instance(fmt.Sprintf("i%d", i), v, nil))
	}
	for i := range n {
		name := fmt.Sprintf("i%d", i)
		w.await(name, complete("deploy", 1))
		env.Must(t, suite.Delete(ctx, w.instance(name)))
	}
	for i := range n {
		w.await(fmt.Sprintf("i%d", i), gone)
	}
}

// visit has kinds come and go.
func visit(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	deployed(harbored)(w)
	env.Must(t, suite.Delete(ctx, w.instance("i")))
	w.await("i", gone)
	env.Eventually(t, "an end of the definitions", func() string {
		for _, o := range w.objects() {
			if o.GetKind() == "CustomResourceDefinition" {
				return o.GetName() + " is there"
			}
		}
		return ""
	})
}

// leakAllowance is how many goroutines and files more there may be for another reason than a leak, such as an open connection; the
// Instances of the test are far more, so that a leak of one of them each is found.
const leakAllowance = 10

// Faults leave no goroutine and no file behind in the manager.
func TestNothingLeaks(t *testing.T) {
	address := env.FreeAddress(t)
	manager.kill()
	defer manager.kill()
	manager.intercept(nil)
	env.Must(t, manager.start("--metrics-bind-address="+address, "--metrics-secure=false"))
	exits := manager.exitCount()
	runLifecycles(t, 4)             // some are needed until the names of their kinds are watched
	deployed(harbored)(newWorld(t)) // opens the cache, where managers that were killed have left something
	before := gauges(t, address)
	for _, outage := range []outages{outageCases[0], outageCases[9]} {
		manager.intercept(outage.make())
		endFault := time.AfterFunc(span, func() { manager.intercept(nil) })
		runLifecycles(t, 2*leakAllowance)
		endFault.Stop()
	}
	manager.intercept(nil)
	runLifecycles(t, 1)
	if thorough() {
		for range 3 {
			visit(t)
		}
	}
	env.Eventually(t, "as few goroutines and files as before", func() string {
		now := gauges(t, address)
		for name, n := range now {
			if n > before[name]+leakAllowance {
				return fmt.Sprintf("%s is %v, and was %v", name, n, before[name])
			}
		}
		return ""
	})
	left, err := filepath.Glob(filepath.Join(manager.cache, ".tmp-*"))
	env.Must(t, err)
	if len(left) > 0 {
		t.Errorf("the cache has files that no Instance needs: %q", left)
	}
	t.Logf("before %v, after %v; the manager ended by itself %d times", before, gauges(t, address), manager.exitCount()-exits)
}
