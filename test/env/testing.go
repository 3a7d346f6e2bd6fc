package env

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultTimeout bounds every wait for something that takes moments; the garbage collector learns of kudo's kinds only after half
// a minute of a cluster's life.
const DefaultTimeout = 2 * time.Minute

// Suite is a control plane with kudo that the tests of a package share.
type Suite struct {
	*Env
	*Cluster
	// Setup is called before the tests, when the control plane is there. The function that it returns is called after them,
	// while the control plane still runs; its error fails the suite. Setup and the function may be nil.
	Setup func() (teardown func() error, err error)
}

// Main runs the tests of a package on a control plane of theirs. It is called by TestMain, and fills the suite in.
func (s *Suite) Main(m *testing.M, args ...string) {
	ctrllog.SetLogger(zap.New())
	os.Exit(s.run(m, args...))
}

func (s *Suite) run(m *testing.M, args ...string) int {
	var err error
	if s.Env, err = Start(args...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Stop()
	if s.Cluster, err = s.Connect(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var teardown func() error
	if s.Setup != nil {
		if teardown, err = s.Setup(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	code := m.Run()
	if teardown != nil {
		if err := teardown(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// Begin starts the control plane in the first process of a Ginkgo suite. It returns what each process gives to Join.
func (s *Suite) Begin(t testing.TB, args ...string) []byte {
	t.Helper()
	plane, err := Start(args...)
	Must(t, err)
	s.Env = plane // from here on, Stop stops it
	data, err := plane.Share()
	Must(t, err)
	return data
}

// Join connects a process of a Ginkgo suite to the control plane that the first process has started.
func (s *Suite) Join(t testing.TB, data []byte) {
	t.Helper()
	ctrllog.SetLogger(zap.New())
	var err error
	s.Env, err = Join(data)
	Must(t, err)
	s.Cluster, err = s.Connect()
	Must(t, err)
}

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NewBareNamespace makes a namespace for a test, which goes after it, and in which no plan may run yet.
func (c *Cluster) NewBareNamespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	Must(t, c.Create(context.Background(), ns))
	t.Cleanup(func() {
		_ = c.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}})
	})
	return ns.Name
}

// NewNamespace makes a namespace for a test, which goes after it, and in which plans run as ServiceAccount kudo.
func (c *Cluster) NewNamespace(t testing.TB, labels ...string) string {
	t.Helper()
	ns, err := c.Namespace(context.Background(), labels...)
	Must(t, err)
	t.Cleanup(func() {
		_ = c.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	})
	return ns
}

// Read reads an object.
func Read[T client.Object](t testing.TB, c client.Reader, obj T, ns, name string) T {
	t.Helper()
	Must(t, c.Get(context.Background(), types.NamespacedName{Namespace: ns, Name: name}, obj))
	return obj
}

// Eventually polls for what has no watch of ours. holds says why it does not; empty if it does.
func Eventually(t testing.TB, what string, holds func() string) {
	t.Helper()
	Within(t, DefaultTimeout, what, holds)
}

// Condition is for Eventually and Within, of what either holds or does not, for no reason that it could name.
func Condition(holds func() bool) func() string {
	return func() string {
		if holds() {
			return ""
		}
		return "it does not hold"
	}
}

// Sorted ranges over the cases of a table by their names: each process of a Ginkgo suite must have the same order of specs.
func Sorted[V any](cases map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			if !yield(name, cases[name]) {
				return
			}
		}
	}
}

// Within is Eventually for what may take more or less time.
func Within(t testing.TB, limit time.Duration, what string, holds func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		why := holds()
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: not yet %s: %s", limit, what, why)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// Consistently checks again and again, for some time, what is to stay as it is, and stops at the first failure.
func Consistently(t testing.TB, during time.Duration, check func()) {
	t.Helper()
	for end := time.Now().Add(during); !t.Failed(); <-time.After(100 * time.Millisecond) {
		check()
		if time.Now().After(end) {
			return
		}
	}
}

// Contains wants all texts in a text.
func Contains(t testing.TB, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("the text lacks %q:\n%s", w, text)
		}
	}
}

// MustKudo runs the command line, and wants an exit code.
func (e *Env) MustKudo(t testing.TB, code int, args ...string) string {
	t.Helper()
	out, got := e.Kudo(args...)
	if got != code {
		t.Fatalf("kubectl kudo %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return out
}

// FreeAddress returns an address of the loopback interface on which nothing listens. Its port is below those that systems give to outgoing
// connections, and that kudo-local takes, so that neither has it before the test listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000))); err == nil {
			Must(t, l.Close())
			return l.Addr().String()
		}
	}
	t.Fatalf("no port is free: %v", err)
	return ""
}
