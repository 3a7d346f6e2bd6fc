package faults

import (
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/pkg/controllers"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// handsFile is the variable that makes the test's program a manager whose clock is wrong by the duration in a file.
const handsFile = "KUDO_FAULTS_CLOCK"

// stepped is a clock that the test sets while it goes. Timers go on as ever, as they do where a kernel's clock is set;
// no reading knows more than the clock file shows, as after a restart.
type stepped struct {
	clock.RealClock
	file string
}

// Now implements clock.PassiveClock.
func (c *stepped) Now() time.Time {
	text, err := os.ReadFile(c.file)
	if err != nil {
		panic(err) // a test without its clock shows nothing
	}
	offset, err := time.ParseDuration(string(text))
	if err != nil {
		panic(err)
	}
	return time.Now().Round(0).Add(offset)
}

// Since implements clock.PassiveClock.
func (c *stepped) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// steppedManager is the manager as its own program makes it, with another clock.
func steppedManager(hands string) int {
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	o := controllers.Options{Namespace: "kudo-system", Workers: 8, PipeImage: "kudo-manager:dev", Clock: &stepped{file: hands}}
	o.Tarballs.Cache.Limits, o.Tarballs.Cache.MaxBytes = crdtarball.DefaultLimits(), crdtarball.DefaultMaxBytes
	kubeconfig := flags.String("kubeconfig", "", "")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", "0", "")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", "0", "")
	flags.StringVar(&o.Tarballs.Cache.Dir, "cache-dir", "", "")
	flags.BoolVar(&o.LeaderElection, "leader-elect", false, "")
	flags.IntVar(&o.WebhookPort, "webhook-port", 0, "")
	flags.StringVar(&o.WebhookAddress, "webhook-bind-address", "", "")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return 2
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return failed(err)
	}
	ctx := ctrl.SetupSignalHandler()
	mgr, err := controllers.NewManager(ctx, config, o)
	if err != nil {
		return failed(err)
	}
	if err := mgr.Start(ctx); err != nil {
		return failed(err)
	}
	return 0
}

// clockFile are those of the clock of all managers of a test.
type clockFile string

// stepClock gives the managers a clock that can be set, until the end of the test.
func stepClock(t *testing.T) clockFile {
	t.Helper()
	self, err := os.Executable()
	env.Must(t, err)
	h := clockFile(filepath.Join(t.TempDir(), "hands"))
	env.Must(t, h.set(0))
	manager.kill()
	whole := manager.program
	manager.program = func(args ...string) *exec.Cmd {
		m := exec.Command(self, args...)
		m.Env = append(os.Environ(), handsFile+"="+string(h))
		return m
	}
	t.Cleanup(func() {
		manager.kill()
		manager.program = whole
	})
	return h
}

// set sets the clock.
func (h clockFile) set(offset time.Duration) error {
	next := string(h) + ".next"
	if err := os.WriteFile(next, []byte(offset.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(next, string(h))
}

// The clock of the manager jumps at each write of each scenario, an hour on or back, or to and fro: the end is that of an
// undisturbed run, and nothing waits for the time to come again.
func TestClockJumps(t *testing.T) {
	learn(t)
	h := stepClock(t)
	for i, tc := range []struct {
		name string
		to   func(n int) time.Duration
	}{
		{"forward", func(n int) time.Duration { return time.Duration(n) * time.Hour }},
		{"back", func(n int) time.Duration { return time.Duration(-n) * time.Hour }},
		{"to and fro", func(n int) time.Duration { return time.Duration(n%3-1) * 24 * time.Hour }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env.Must(t, h.set(0))
			manager.kill()
			env.Must(t, manager.start())
			var mu sync.Mutex
			n := 0
			step := func() error {
				mu.Lock()
				defer mu.Unlock()
				n++
				return h.set(tc.to(n))
			}
			manager.intercept(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
				if apiproxy.IsWrite(r) {
					if err := step(); err != nil {
						return nil, err
					}
				}
				return forward(r)
			})
			defer manager.intercept(nil)
			for _, part := range parts(thorough()) {
				var cases []testing.InternalTest
				for j, s := range part {
					if thorough() || (i+j)%2 == 0 {
						cases = append(cases, testing.InternalTest{Name: s.name, F: func(t *testing.T) { amid(t, s) }})
					}
				}
				runParallel(t, cases)
			}
			t.Logf("the clock was set %d times", n)
		})
	}
}

// The clock was an hour ahead when an install plan ended, and was put right since: what is missing is restored at once,
// and not when the hour is over.
func TestClockPutRight(t *testing.T) {
	h := stepClock(t)
	env.Must(t, h.set(time.Hour))
	w := ready(t)
	w.create(lifecycle.Fleet(w.ns, "fleet"))
	w.installed("fleet")
	env.Must(t, h.set(0))
	env.Must(t, suite.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", lifecycle.FleetNamespace(w.ns))}))
	w.ran("fleet", 2)
	w.untouched()
}
