package inventory

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// world is a hub and its members, which are servers of the tests.
type world struct {
	hub     *apitest.Server
	members map[string]*cluster
	engine  *Engine
	clock   clock.WithTicker
}

// cluster is a member, which may be cut off, or accept connections and not answer.
type cluster struct {
	*apitest.Server
	tls     *httptest.Server
	address string
	hangs   atomic.Bool
	cut     atomic.Bool
	done    chan struct{}
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer abc" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if c.hangs.Load() {
		select {
		case <-r.Context().Done():
		case <-c.done:
		}
		return
	}
	if r.URL.Path == "/readyz" {
		return
	}
	c.Server.ServeHTTP(w, r)
}

// newWorld starts a hub and members. The engine is not started.
func newWorld(t *testing.T, time clock.WithTicker, names ...string) *world {
	t.Helper()
	w := &world{hub: apitest.Start(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "hub"}}),
		members: map[string]*cluster{}, clock: time}
	w.hub.AddKind(ProfileKind, true)
	for _, name := range names {
		c := &cluster{Server: apitest.Start(t), done: make(chan struct{})}
		c.tls = httptest.NewUnstartedServer(c)
		c.tls.EnableHTTP2 = true
		c.tls.StartTLS()
		c.address = strings.TrimPrefix(c.tls.URL, "https://")
		t.Cleanup(func() { close(c.done); c.tls.CloseClientConnections(); c.tls.Close() })
		w.members[name] = c
		w.hub.Put(&corev1.Secret{ObjectMeta: gen.Meta("system", name), Data: map[string][]byte{"token": []byte("abc"), "server": []byte(c.tls.URL)}})
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.tls.Certificate().Raw})
		profile := &unstructured.Unstructured{}
		text := strings.Replace(offers("certificate-authority-data: "+base64.StdEncoding.EncodeToString(ca)), server, c.tls.URL, 1)
		if err := yaml.Unmarshal([]byte(strings.Replace(text, "secretName: m1", "secretName: "+name, 1)), &profile.Object); err != nil {
			t.Fatal(err)
		}
		profile.SetGroupVersionKind(ProfileKind)
		profile.SetNamespace("fleet")
		profile.SetName(name)
		w.hub.Put(profile)
	}
	w.engine = w.newEngine(t)
	return w
}

func (w *world) newEngine(t *testing.T) *Engine {
	t.Helper()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		for _, c := range w.members {
			if c.address == address && c.cut.Load() {
				return nil, &net.OpError{Op: "dial", Err: errors.New("the network is cut")}
			}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	unused, err := dynamic.NewForConfig(&rest.Config{Host: "https://127.0.0.1:1"}) // no Instance here has a decision
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Hub: w.hub.Client(), Live: w.hub.Client(), Decisions: unused, Namespace: "system", ClusterNamespace: "fleet", Clock: w.clock, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// run starts an engine, and returns a function that stops it. It ends with the test, too.
func run(t *testing.T, e *Engine) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = e.Start(ctx) })
	all.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-e.Events():
			case <-ctx.Done():
			}
		}
	})
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(stop)
	return stop
}

// place places an Instance on clusters, as of a generation.
func (w *world) place(t *testing.T, e *Engine, i *v1beta1.Instance, names ...string) {
	t.Helper()
	placed := clusters.Placed{Instance: i}
	i.Spec.Placement.Clusters = nil
	for _, name := range names {
		i.Spec.Placement.Clusters = append(i.Spec.Placement.Clusters, v1beta1.PlacedCluster{Name: name})
		placed.Clusters = append(placed.Clusters, clusters.Target{Name: name, Weight: 1, Released: v1beta1.Template(i.UID, i.Generation)})
	}
	if err := e.Place(t.Context(), placed); err != nil {
		t.Fatal(err)
	}
}

// instance is one of the hub.
func (w *world) instance(name string) *v1beta1.Instance {
	version := gen.Version("ns", "v1")
	w.hub.Put(version)
	i := gen.Instance(name, version, map[string]string{"A": "1"})
	i.UID, i.Generation = types.UID("uid-"+name), 1
	i.Spec.Placement = &v1beta1.Placement{}
	return i
}

// template returns the template of a copy in a member, or "".
func (c *cluster) template(i *v1beta1.Instance) string {
	obj := c.Get(&v1beta1.Instance{ObjectMeta: gen.Meta(i.Namespace, i.Name)})
	if obj == nil {
		return ""
	}
	return obj.GetAnnotations()[v1beta1.TemplateAnnotation]
}

func (c *cluster) awaitCopy(t *testing.T, i *v1beta1.Instance) {
	t.Helper()
	want := v1beta1.Template(i.UID, i.Generation)
	apitest.Eventually(t, "the copy of "+i.Name, func() bool { return c.template(i) == want })
}

func observed(t *testing.T, e *Engine, i *v1beta1.Instance) map[string]clusters.Member {
	t.Helper()
	out, err := e.Observe(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	return out.Members
}

// TestNotStarted checks that an engine which is not started says so, and takes what is placed meanwhile (C44).
func TestNotStarted(t *testing.T) {
	w := newWorld(t, clock.RealClock{}, "m1")
	i := w.instance("book")
	w.place(t, w.engine, i, "m1")
	o, err := w.engine.Observe(t.Context(), i)
	if err != nil || o.Silent == "" || !o.Settled || o.Members["m1"].Applied {
		t.Errorf("%+v, %v", o, err)
	}
	run(t, w.engine)
	w.members["m1"].awaitCopy(t, i)
}

// TestNoDelay checks that a member which accepts requests and answers none delays no other (C47).
func TestNoDelay(t *testing.T) {
	w := newWorld(t, clock.RealClock{}, "m1", "m2")
	run(t, w.engine)
	w.members["m2"].hangs.Store(true)
	began := time.Now()
	for _, name := range []string{"a", "b", "c", "d"} {
		i := w.instance(name)
		w.place(t, w.engine, i, "m2", "m1")
		w.members["m1"].awaitCopy(t, i)
	}
	if took := time.Since(began); took > readyTimeout {
		t.Errorf("the member that answers has got its copies after %s", took)
	}
}

// TestUnreachable checks after which time a member that does not answer is reported, and that it gets what it has missed (C47).
func TestUnreachable(t *testing.T) {
	time := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, time, "m1")
	m1 := w.members["m1"]
	m1.cut.Store(true)
	run(t, w.engine)
	i := w.instance("book")
	w.place(t, w.engine, i, "m1")
	if m := observed(t, w.engine, i)["m1"]; m.Unreachable != "" || m.Applied || m.AppliedMessage != "the Instance has not been written yet" {
		t.Errorf("after a moment, the engine shows %+v", m)
	}
	last := ""
	apitest.Eventually(t, "the reason", func() bool {
		time.Step(grace)
		last = observed(t, w.engine, i)["m1"].Unreachable
		return last != "" && last != "the cluster does not answer"
	})
	if last != "the cluster cannot be reached: dial: the network is cut" {
		t.Errorf("the reason is %q", last)
	}
	m1.cut.Store(false)
	apitest.Eventually(t, "the copy, and its report", func() bool {
		time.Step(probeEvery)
		m := observed(t, w.engine, i)["m1"]
		return m.Unreachable == "" && m.Applied && m1.template(i) != ""
	})
}

// TestRefusedCredentials checks what is said of credentials that the member or the hub does not accept (C49).
func TestRefusedCredentials(t *testing.T) {
	time := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, time, "m1")
	secret := &corev1.Secret{ObjectMeta: gen.Meta("system", "m1"), Data: map[string][]byte{"token": []byte("old"), "server": []byte(w.members["m1"].tls.URL)}}
	w.hub.Put(secret)
	run(t, w.engine)
	i := w.instance("book")
	w.place(t, w.engine, i, "m1")
	await := func(want string) {
		t.Helper()
		apitest.Eventually(t, want, func() bool {
			time.Step(probeEvery)
			return strings.Contains(observed(t, w.engine, i)["m1"].Unreachable, want)
		})
	}
	await("the cluster does not accept the credentials")
	w.hub.Remove(secret)
	await("Secret system/m1: does not exist: create it")
	if _, err := w.engine.Access(t.Context(), "m1"); err == nil {
		t.Error("there is a way to the cluster without credentials")
	}
	secret.Data["token"] = []byte("abc")
	w.hub.Put(secret)
	apitest.Eventually(t, "the copy", func() bool {
		time.Step(probeEvery)
		return w.members["m1"].template(i) != ""
	})
}

// TestForbiddenSource checks that a source of values which the manager must not read is named with its remedy, and that nothing is placed
// before (C52).
func TestForbiddenSource(t *testing.T) {
	w := newWorld(t, clock.RealClock{}, "m1")
	var allowed atomic.Bool
	w.hub.Before(func(r apitest.Request) (any, error) {
		if r.String() == "get Secret ns/login" && !allowed.Load() {
			return nil, apierrors.NewForbidden(corev1.Resource("secrets"), "login", errors.New("no right"))
		}
		return nil, nil
	})
	w.hub.Put(&corev1.Secret{ObjectMeta: gen.Meta("ns", "login"), Data: map[string][]byte{"PASSWORD": []byte("p")}})
	run(t, w.engine)
	i := w.instance("book")
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "login"}}
	refusal := new(clusters.RefusedError)
	err := w.engine.Place(t.Context(), clusters.Placed{Instance: i, Clusters: []clusters.Target{{Name: "m1"}}})
	if want := "the manager of the hub must not read Secret ns/login, which the clusters need: kubectl create rolebinding kudo-hub-sources -n ns " +
		"--clusterrole kudo-hub-sources --serviceaccount system:kudo-manager"; !errors.As(err, &refusal) || refusal.Message != want ||
		refusal.Reason != v1beta1.ReasonWaitingForParameters {
		t.Errorf("got %v", err)
	}
	allowed.Store(true)
	w.place(t, w.engine, i, "m1")
	w.members["m1"].awaitCopy(t, i)
}

// TestLostDuringAttempt checks C47: a cluster that becomes unreachable while an attempt to reach it runs is announced, once.
func TestLostDuringAttempt(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, clock, "m1")
	m, key := newMember(w.engine, types.NamespacedName{Namespace: "fleet", Name: "m1"}), types.NamespacedName{Namespace: "ns", Name: "book"}
	m.copies[key] = &placedCopy{uid: "u", cluster: "m1"}
	announced := func() bool { _, found := w.engine.events.take(); return found }
	for _, step := range []struct {
		after time.Duration
		err   error
		want  bool
	}{{0, errors.New("refused"), false}, {12 * time.Second, errors.New("refused"), false}, {10 * time.Second, errors.New("refused"), true},
		{time.Second, errors.New("refused"), false}, {time.Second, errors.New("another reason"), true}} {
		clock.Step(step.after)
		if m.lose(step.err); announced() != step.want {
			t.Errorf("%s after that, with %v, announced is %t", step.after, step.err, !step.want)
		}
	}
}

// TestForgottenDecision checks C45: an Instance that has a list in place of its decision is not announced by the decision any more.
func TestForgottenDecision(t *testing.T) {
	w := newWorld(t, clock.RealClock{}, "m1")
	i := w.instance("book")
	w.engine.decisions.follow(client.ObjectKeyFromObject(i), types.NamespacedName{Namespace: "ns", Name: "prod"})
	w.place(t, w.engine, i, "m1")
	if len(w.engine.decisions.users)+len(w.engine.decisions.uses) > 0 {
		t.Errorf("users %v, uses %v", w.engine.decisions.users, w.engine.decisions.uses)
	}
}

// TestAttempts checks that many changes make few attempts to reach a cluster that refuses them: whoever may edit Instances has no way to have
// the hub flood an address.
func TestAttempts(t *testing.T) {
	time := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, time, "m1")
	var attempts atomic.Int64
	w.engine.Dial = func(context.Context, string, string) (net.Conn, error) {
		attempts.Add(1)
		return nil, errors.New("refused")
	}
	run(t, w.engine)
	i := w.instance("book")
	change := func() {
		i.Generation++
		w.place(t, w.engine, i, "m1")
	}
	change()
	apitest.Eventually(t, "an attempt", func() bool { return attempts.Load() == 1 && time.HasWaiters() })
	for range 100 {
		change()
	}
	apitest.Eventually(t, "one more attempt after a second", func() bool {
		time.Step(retryAfter / 4)
		return attempts.Load() == 2
	})
	for range 100 {
		change()
	}
	if n := attempts.Load(); n != 2 {
		t.Errorf("201 changes in a second have made %d attempts", n)
	}
}

// TestRestart checks that an engine which has just started leaves the clusters that the status of an Instance names, or that have a copy,
// and that are not wanted any more (C47).
func TestRestart(t *testing.T) {
	w := newWorld(t, clock.RealClock{}, "m1", "m2", "m3")
	stop := run(t, w.engine)
	i, other := w.instance("book"), w.instance("other")
	w.place(t, w.engine, i, "m1", "m2", "m3")
	w.place(t, w.engine, other, "m3")
	for _, c := range w.members {
		c.awaitCopy(t, i)
	}
	stop()
	e := w.newEngine(t)
	run(t, e)
	i.Generation = 2
	i.Status.Members = []v1beta1.MemberStatus{{Cluster: "m1"}, {Cluster: "m2"}}
	w.place(t, e, i, "m1")
	w.place(t, e, other, "m3") // which shows the copy that no status names
	w.members["m1"].awaitCopy(t, i)
	apitest.Eventually(t, "m2 and m3 are left", func() bool {
		w.place(t, e, i, "m1") // as the controller does on each event
		return w.members["m2"].template(i) == "" && w.members["m3"].template(i) == "" && len(observed(t, e, i)) == 1
	})
	w.members["m3"].awaitCopy(t, other)
}

// TestLeaving checks that Observe shows a cluster as leaving from the change of the placement until the cluster has lost its copy: also before
// Place is called with the change, and in a new Engine, which knows the cluster by the status only.
func TestLeaving(t *testing.T) {
	w := newWorld(t, clock.RealClock{}, "m1", "m2")
	stop := run(t, w.engine)
	i := w.instance("book")
	w.place(t, w.engine, i, "m1", "m2")
	for _, c := range w.members {
		c.awaitCopy(t, i)
	}
	i.Spec.Placement.Clusters, i.Generation = i.Spec.Placement.Clusters[:1], 2
	if got := observed(t, w.engine, i); got["m1"].Leaving || !got["m2"].Leaving {
		t.Errorf("the engine was not told of the change, and shows %+v", got)
	}
	stop()
	e := w.newEngine(t)
	run(t, e)
	i.Status.Members = []v1beta1.MemberStatus{{Cluster: "m1"}, {Cluster: "m2"}}
	reconcile := func() []string { // as the controller: it writes what Observe shows into the status, and then calls Place
		got := observed(t, e, i)
		i.Status.Members = nil
		for _, name := range slices.Sorted(maps.Keys(got)) {
			i.Status.Members = append(i.Status.Members, v1beta1.MemberStatus{Cluster: name})
		}
		w.place(t, e, i, "m1")
		return slices.Sorted(maps.Keys(got))
	}
	if got := reconcile(); !slices.Equal(got, []string{"m1", "m2"}) {
		t.Errorf("after a restart, the engine shows %v", got)
	}
	apitest.Eventually(t, "m2 is left, and no longer shown", func() bool {
		return w.members["m2"].template(i) == "" && slices.Equal(reconcile(), []string{"m1"})
	})
	w.members["m1"].awaitCopy(t, i)
}

// TestForget checks that a cluster which is given up is neither waited for nor left when it is back (C47).
func TestForget(t *testing.T) {
	w := newWorld(t, clock.RealClock{}, "m1", "m2")
	run(t, w.engine)
	i := w.instance("book")
	w.place(t, w.engine, i, "m1", "m2")
	for _, c := range w.members {
		c.awaitCopy(t, i)
	}
	w.members["m2"].cut.Store(true)
	w.members["m2"].tls.CloseClientConnections()
	i.Status.Members = []v1beta1.MemberStatus{{Cluster: "m2"}}
	w.place(t, w.engine, i, "m1")
	if m := observed(t, w.engine, i)["m2"]; !m.Leaving {
		t.Errorf("the engine shows %+v", m)
	}
	apitest.Eventually(t, "m2 alone is left", func() bool {
		left, err := w.engine.Remove(t.Context(), i)
		return err == nil && slices.Equal(left, []string{"m2"})
	})
	if err := w.engine.Forget(client.ObjectKeyFromObject(i), "m2"); err != nil {
		t.Fatal(err)
	}
	if left, err := w.engine.Remove(t.Context(), i); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if w.members["m2"].template(i) == "" {
		t.Error("the copy of the cluster that is cut off has gone")
	}
}

// TestRestored checks that a member which comes back from an old backup gets what it should have (C46).
func TestRestored(t *testing.T) {
	w := newWorld(t, clock.RealClock{}, "m1")
	m1 := w.members["m1"]
	run(t, w.engine)
	i := w.instance("book")
	w.place(t, w.engine, i, "m1")
	m1.awaitCopy(t, i)
	old := m1.Get(&v1beta1.Instance{ObjectMeta: gen.Meta("ns", "book")})
	i.Generation = 2
	w.place(t, w.engine, i, "m1")
	m1.awaitCopy(t, i)
	m1.cut.Store(true)
	m1.tls.CloseClientConnections()
	m1.Put(old)
	m1.cut.Store(false)
	m1.awaitCopy(t, i)
}

// TestRefusedWrite checks that what a member refuses is shown, and tried again (C46).
func TestRefusedWrite(t *testing.T) {
	w := newWorld(t, clock.RealClock{}, "m1")
	m1 := w.members["m1"]
	var refuse atomic.Bool
	refuse.Store(true)
	m1.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "OperatorVersion" && r.Verb != "get" && refuse.Load() {
			return nil, &unauthorized
		}
		return nil, nil
	})
	run(t, w.engine)
	i := w.instance("book")
	w.place(t, w.engine, i, "m1")
	apitest.Eventually(t, "the refusal is shown", func() bool {
		m := observed(t, w.engine, i)["m1"]
		return !m.Applied && strings.HasPrefix(m.AppliedMessage, "write OperatorVersion ns/v1: no right")
	})
	refuse.Store(false)
	m1.awaitCopy(t, i)
}

var unauthorized = forbidden{}

// forbidden is an answer of a member.
type forbidden struct{}

func (*forbidden) Error() string { return "no right" }

// Status implements errors.APIStatus.
func (*forbidden) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no right"}
}

// TestTogether checks that calls for several Instances at the same time end with what was asked for last (C44).
func TestTogether(t *testing.T) {
	w := newWorld(t, clock.RealClock{}, "m1", "m2")
	run(t, w.engine)
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		i := w.instance(name)
		all.Go(func() {
			for n := range int64(10) {
				now := i.DeepCopy()
				now.Generation = n + 1
				names := []string{"m1", "m2"}
				if n%3 == 1 {
					names = names[:1]
				}
				w.place(t, w.engine, now, names...)
				observed(t, w.engine, now)
			}
			i.Generation = 10
			for _, c := range w.members {
				c.awaitCopy(t, i)
			}
		})
	}
	all.Wait()
}
