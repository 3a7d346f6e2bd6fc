package faults

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// frozen freezes the manager in the middle of a write, which goes on only when the test says so: an old leader's write comes late.
func frozen(asleep chan *process, free chan struct{}) writeFault {
	return writeFault{name: "frozen", hit: func(l *managerProxy, r *http.Request, forward apiproxy.Forward, over func()) (*http.Response, error) {
		asleep <- l.freeze()
		over()
		<-free
		return forward(r)
	}}
}

// The leader freezes in the middle of a step, with a write on its way. Another takes over and ends the plan; the late
// write and the old leader, when it continues, change nothing.
func TestFrozenLeader(t *testing.T) {
	s := scenarios[0]
	want := undisturbed(t, s).end
	manager.kill()
	defer manager.kill() // those of other tests ask for no lease
	lease := &coordinationv1.Lease{ObjectMeta: gen.Meta("kudo-system", "kudo-manager")}
	env.Must(t, client.IgnoreNotFound(suite.Delete(ctx, lease))) // of a manager that is dead
	env.Must(t, manager.start("--leader-elect=true"))
	old := suite.AwaitLeader(t, "")
	next := &managerProxy{}
	env.Must(t, next.open(suite.Env, t.TempDir()))
	defer next.close()
	env.Must(t, next.start("--leader-elect=true"))
	w := newWorld(t)
	s.prepare(w)
	w.bystanders()
	asleep, free := make(chan *process, 1), make(chan struct{})
	w.aim(5, frozen(asleep, free))
	s.act(w)
	sleeper := receive(t, asleep)
	began := time.Now()
	suite.AwaitLeader(t, old)
	t.Logf("taken over after %s", time.Since(began).Round(time.Millisecond))
	s.ended(w)
	w.settle(want)
	versions := w.versions()
	close(free)
	env.Must(t, sleeper.Process.Signal(syscall.SIGCONT))
	<-sleeper.over // who has lost the lease ends
	manager.intercept(nil)
	w.settle(want)
	for key, version := range w.versions() {
		if versions[key] != version {
			t.Errorf("the old leader changed %s: %s, and was %s", key, version, versions[key])
		}
	}
	w.untouched()
}

// The leader cannot renew its lease any more, in the middle of a step whose answer it waits for. It ends by itself, and writes
// nothing once another leads; the other ends the plan, and what arrives late changes nothing.
func TestLeaseLost(t *testing.T) {
	s := scenarios[0]
	want := undisturbed(t, s).end
	manager.kill()
	defer manager.kill()
	lease := &coordinationv1.Lease{ObjectMeta: gen.Meta("kudo-system", "kudo-manager")}
	env.Must(t, client.IgnoreNotFound(suite.Delete(ctx, lease)))
	env.Must(t, manager.start("--leader-elect=true"))
	old := suite.AwaitLeader(t, "")
	exits := manager.exitCount()
	next := &managerProxy{}
	env.Must(t, next.open(suite.Env, t.TempDir()))
	defer next.close()
	env.Must(t, next.start("--leader-elect=true"))
	w := newWorld(t)
	s.prepare(w)
	w.bystanders()
	free, came := make(chan struct{}), make(chan struct{})
	count := w.aim(5, writeFault{name: "lease lost", hit: func(l *managerProxy, r *http.Request, forward apiproxy.Forward, over func()) (*http.Response, error) {
		l.intercept(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/leases") {
				return env.Refuse(r, http.StatusInternalServerError, metav1.StatusReasonInternalError)
			}
			return forward(r)
		})
		over()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		<-free
		defer close(came)
		r = r.WithContext(context.WithoutCancel(r.Context()))
		r.Body = io.NopCloser(bytes.NewReader(text))
		return forward(r)
	}})
	defer manager.intercept(nil)
	s.act(w)
	receive(t, count.occurred)
	suite.AwaitLeader(t, old)
	written := len(manager.writes(count))
	env.Eventually(t, "the end of the old leader", env.Condition(func() bool { return manager.exitCount() > exits }))
	s.ended(w)
	w.settle(want)
	versions := w.versions()
	close(free)
	<-came
	w.settle(want)
	for key, version := range w.versions() {
		if versions[key] != version {
			t.Errorf("what came late changed %s: %s, and was %s", key, version, versions[key])
		}
	}
	if now := manager.writes(count); len(now) != written {
		t.Errorf("the old leader wrote while another led: %q", now[written:])
	}
	w.untouched()
}

// A write of a manager that was frozen in its middle arrives after its successor has gone on to newer values: it must not
// bring the old value back.
func TestLateWrite(t *testing.T) {
	w := ready(t)
	deployed(lifecycle.First)(w)
	late, free, came := make(chan struct{}), make(chan struct{}), make(chan int, 1)
	once := sync.OnceFunc(func() { close(late) })
	manager.intercept(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.URL.Path, w.ns+"/configmaps/i-one-0") {
			return forward(r)
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		once()
		<-free
		r = r.WithContext(context.WithoutCancel(r.Context()))
		r.Body = io.NopCloser(bytes.NewReader(text))
		answer, err := forward(r)
		if err == nil {
			came <- answer.StatusCode
		}
		return answer, err
	})
	set := func(value string) {
		w.edit("i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": value} })
	}
	set("b")
	receive(t, late)
	manager.kill()
	manager.intercept(nil)
	env.Must(t, manager.start())
	runs("update", 2)(w)
	set("c")
	runs("update", 3)(w)
	before := env.Read(t, suite, &corev1.ConfigMap{}, w.ns, "i-one-0")
	close(free)
	code := receive(t, came)
	now := env.Read(t, suite, &corev1.ConfigMap{}, w.ns, "i-one-0")
	if now.ResourceVersion != before.ResourceVersion {
		t.Errorf("the late write was answered with %d: the ConfigMap has %v, and had %v", code, now.Data, before.Data)
	}
	w.untouched()
}

// What must not be done twice in a run, such as a Delete or a Pipe, is recorded before anything else of the run: who
// takes over from a manager that was killed goes on from there.
func TestNothingDoneTwice(t *testing.T) {
	for kind, plan := range map[string]string{"Instance": v1beta1.DeployPlan, "OperatorVersion": "install"} {
		for moment, method := range map[string]string{"deleted": http.MethodDelete, "next written": http.MethodPatch} {
			t.Run(kind+"/"+moment, func(t *testing.T) { nothingDoneTwice(t, plan, method) })
		}
	}
}

// nothingDoneTwice kills the manager when a plan has deleted what a task before it has made, or when it writes what comes after that.
func nothingDoneTwice(t *testing.T, plan, method string) {
	w := ready(t)
	config := func(name string) gen.VersionMod {
		return gen.Template(name+".yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+"}\n")
	}
	ov := gen.Version(w.ns, "once", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), config("passing"), config("lasting"),
		gen.Apply("make", "passing.yaml"), gen.Task("drop", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"passing.yaml"}}), gen.Apply("end", "lasting.yaml"),
		gen.Serial(v1beta1.DeployPlan, "cm"), gen.Serial(plan, "make", "drop", "end"))
	if plan == "install" {
		gen.InstallPlan(plan)(ov)
	}
	path := "/api/v1/namespaces/" + w.ns + "/configmaps/"
	occurred := w.before(method, path+map[string]string{http.MethodDelete: "passing", http.MethodPatch: "lasting"}[method], func() error {
		manager.kill()
		if method == http.MethodDelete { // it has arrived, and its answer has not
			return suite.Delete(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(w.ns, "passing")})
		}
		return nil
	})
	w.create(ov, gen.Instance("i", ov, nil))
	env.Must(t, receive(t, occurred))
	var again atomic.Int32
	manager.intercept(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		if r.Method == http.MethodPatch && apiproxy.IsWrite(r) && r.URL.Path == path+"passing" {
			again.Add(1)
		}
		return forward(r)
	})
	env.Must(t, manager.start())
	runs(v1beta1.DeployPlan, 1)(w)
	if n := again.Load(); n > 0 {
		t.Errorf("what the plan had deleted was made again: %d writes", n)
	}
	w.untouched()
}

// SIGTERM with fifty plans running ends the manager in less time than a pod is given; the next one ends the plans.
func TestTerminatedWithFiftyPlans(t *testing.T) {
	w := ready(t)
	ov := gen.Version(w.ns, "app", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Apply("hold", "held.yaml"),
		gen.Template("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Name }}-held, finalizers: [example.org/never]}\n"),
		gen.Task("free", v1beta1.DeleteTask, v1beta1.TaskSpec{Resources: []string{"held.yaml"}}), gen.Serial("deploy", "hold", "free", "cm"))
	w.create(ov)
	const plans = 50
	name := func(n int) string { return fmt.Sprintf("i%d", n) }
	for n := range plans {
		w.create(gen.Instance(name(n), ov, nil))
	}
	for n := range plans {
		w.await(name(n), waitsFor("example.org/never"))
	}
	took, code := manager.terminate()
	t.Logf("ended after %s with code %d", took.Round(time.Millisecond), code)
	if took > time.Minute || code != 0 {
		t.Errorf("the manager ended after %s with code %d, want 0 in under a minute", took, code)
	}
	env.Must(t, manager.start())
	for n := range plans {
		held := &corev1.ConfigMap{ObjectMeta: gen.Meta(w.ns, name(n)+"-held")}
		env.Must(t, suite.Patch(ctx, held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	}
	for n := range plans {
		i := w.await(name(n), func(i *v1beta1.Instance) bool {
			return env.PlanEnded("deploy", 1)(i) && i.Status.ObservedGeneration == i.Generation
		})
		if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
			t.Errorf("%s is %s: %s", i.Name, st.Status, st.Message)
		}
	}
	w.untouched()
}
