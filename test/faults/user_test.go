package faults

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apiproxy"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// ready makes a testbed with a manager, and objects of others in it.
func ready(t *testing.T) *testbed {
	t.Helper()
	w := newWorld(t)
	manager.intercept(nil)
	env.Must(t, manager.start())
	w.bystanders()
	return w
}

// waiting is a package whose plans wait for a Deployment of an image that does not exist, until IMAGE is another.
func waiting(ns string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	server := strings.ReplaceAll(lifecycle.ServerYAML, "image: nginx", "image: {{ .Params.IMAGE }}")
	return lifecycle.Application(ns, "app", append([]gen.VersionMod{
		gen.Param("IMAGE", "does-not-exist:1", ""), gen.Template("server.yaml", server), gen.Serial("deploy", "one", "server", "extra"),
		func(ov *v1beta1.OperatorVersion) { delete(ov.Spec.Plans, v1beta1.UpdatePlan) },
	}, mods...)...)
}

func waitsFor(text string) func(*v1beta1.Instance) bool {
	return func(i *v1beta1.Instance) bool {
		return i != nil && i.Status.AggregatedStatus.ActivePlanName != "" && strings.Contains(i.Status.AggregatedStatus.Message, text)
	}
}

// An Instance is changed a hundred times as fast as the apiserver takes it: the last value stands in all objects, each run
// has a number of its own, and the history is bounded.
func TestChangedHundredTimes(t *testing.T) {
	w := ready(t)
	deployed(lifecycle.First)(w)
	for n := range 100 {
		patch := fmt.Sprintf(`{"spec":{"parameters":{"VALUE":"v%d"}}}`, n)
		env.Must(t, suite.Patch(ctx, gen.Instance("i", lifecycle.First(w.ns), nil), client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	i := w.await("i", func(i *v1beta1.Instance) bool {
		return complete("update", 2)(i) && len(i.Status.Queue) == 0
	})
	if st := i.Status.PlanStatus["update"]; st.Status != v1beta1.Complete {
		t.Fatalf("the update is %s: %s", st.Status, st.Message)
	}
	for n := range 3 {
		if cm := env.Read(t, suite, &corev1.ConfigMap{}, w.ns, fmt.Sprintf("i-one-%d", n)); cm.Data["key"] != "v99" {
			t.Errorf("ConfigMap %s has %v, want v99", cm.Name, cm.Data)
		}
	}
	list := &appsv1.ControllerRevisionList{}
	env.Must(t, suite.List(ctx, list, client.InNamespace(w.ns), client.MatchingLabels{v1beta1.InstanceLabel: "i"}))
	if len(list.Items) > 12 {
		t.Errorf("the history has %d entries", len(list.Items))
	}
	t.Logf("%d runs", i.Status.Baseline.Revision)
	w.untouched()
}

// The OperatorVersion is deleted in the middle of a plan: the run continues with what it was started with, over a restart of
// the manager too.
func TestVersionDeletedInPlan(t *testing.T) {
	w := ready(t)
	ov := held(w.ns)
	w.create(ov, gen.Instance("i", ov, nil))
	w.await("i", waitsFor("example.org/never"))
	env.Must(t, suite.Delete(ctx, ov))
	manager.kill()
	env.Must(t, manager.start())
	w.unhold()
	i := w.await("i", env.PlanEnded("deploy", 1))
	if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
		t.Errorf("the run is %s: %s", st.Status, st.Message)
	}
	env.Read(t, suite, &corev1.ConfigMap{}, w.ns, "i-extra")
	w.untouched()
}

// held is a package whose deploy plan deletes a Job with a finalizer that no controller removes.
func held(ns string) *v1beta1.OperatorVersion {
	at := strings.Index(lifecycle.JobYAML, "spec:")
	return lifecycle.Application(ns, "app", gen.Template("job.yaml", lifecycle.JobYAML[:at]+"  finalizers: [example.org/never]\n"+lifecycle.JobYAML[at:]))
}

// unhold takes that finalizer off.
func (w *testbed) unhold() {
	w.Helper()
	job := env.Read(w, suite, &batchv1.Job{}, w.ns, "i-deploy")
	patch := client.MergeFrom(job.DeepCopy())
	job.Finalizers = nil
	env.Must(w, suite.Patch(ctx, job, patch))
}

// A namespace goes in the middle of a plan, and of an Instance with a cleanup plan: nothing holds it up.
func TestNamespaceGoesInPlan(t *testing.T) {
	w := ready(t)
	ov := waiting(w.ns, gen.ConfigMaps("bye", 1), gen.Serial("cleanup", "bye"))
	w.create(ov, gen.Instance("i", ov, nil))
	w.await("i", waitsFor("Deployment"))
	env.Must(t, suite.Delete(ctx, &corev1.Namespace{ObjectMeta: gen.Meta("", w.ns)}))
	env.Eventually(t, "the end of the namespace", func() string {
		now := &corev1.Namespace{}
		if err := suite.Get(ctx, client.ObjectKey{Name: w.ns}, now); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%v %+v", err, now.Status.Conditions)
		}
		return ""
	})
	if err := suite.Get(ctx, client.ObjectKey{Name: w.ns + "-theirs"}, &rbacv1.ClusterRole{}); err != nil {
		t.Errorf("what is of others and outside of the namespace: %v", err)
	}
}

// What a plan waits for is deleted by the user: the plan makes it again, or ends and names it.
func TestAwaitedObjectDeleted(t *testing.T) {
	w := ready(t)
	ov := waiting(w.ns)
	w.create(ov, gen.Instance("i", ov, nil))
	w.await("i", waitsFor("Deployment"))
	old := env.Read(t, suite, &appsv1.Deployment{}, w.ns, "i")
	env.Must(t, suite.Delete(ctx, old))
	i := w.await("i", func(i *v1beta1.Instance) bool {
		now := &appsv1.Deployment{}
		made := suite.Get(ctx, client.ObjectKeyFromObject(old), now) == nil && now.UID != old.UID
		return made || env.PlanEnded("deploy", 1)(i)
	})
	if st := i.Status.PlanStatus["deploy"]; st.Status.IsTerminal() {
		env.Contains(t, st.Message, "Deployment "+w.ns+"/i")
	}
	w.edit("i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"IMAGE": "nginx"} })
	runs("deploy", 2)(w)
	w.untouched()
}

// before does something when the first request of a method for a path comes, dry runs aside, and then sends that on. The
// error comes over the channel.
func (w *testbed) before(method, path string, do func() error) <-chan error {
	w.Helper()
	done := make(chan error, 1)
	once := sync.OnceFunc(func() { done <- do() })
	manager.intercept(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
		if r.Method == method && r.URL.Path == path && r.URL.Query().Get("dryRun") == "" {
			once()
		}
		return forward(r)
	})
	w.Cleanup(func() { manager.intercept(nil) })
	return done
}

// An object is replaced by one of another client, after the manager looked at it and before its deletion arrives: the
// other object stays.
func TestReplacedBeforeDeletion(t *testing.T) {
	w := ready(t)
	w.create(lifecycle.First(w.ns), gen.Instance("i", lifecycle.First(w.ns), nil))
	w.await("i", complete("deploy", 1))
	theirs := &corev1.ConfigMap{ObjectMeta: gen.Meta(w.ns, "i-extra"), Data: map[string]string{"key": "theirs"}}
	replaced := w.before(http.MethodDelete, "/api/v1/namespaces/"+w.ns+"/configmaps/i-extra", func() error {
		return errors.Join(suite.Delete(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(w.ns, "i-extra")}), suite.Create(ctx, theirs))
	})
	w.edit("i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"EXTRA": "false"} })
	runs("update", 2)(w)
	env.Must(t, receive(t, replaced))
	now := env.Read(t, suite, &corev1.ConfigMap{}, w.ns, "i-extra")
	if now.UID != theirs.UID || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("the object of others was touched: %+v", now)
	}
	w.untouched()
}

// An object that a new version abandons is marked as one to keep in the last moment: it stays.
func TestKeptInTheLastMoment(t *testing.T) {
	w := ready(t)
	deployed(lifecycle.First)(w)
	w.create(lifecycle.Second(w.ns))
	kept := &corev1.ConfigMap{ObjectMeta: gen.Meta(w.ns, "i-one-0")}
	marked := w.before(http.MethodGet, "/api/v1/namespaces/"+w.ns+"/configmaps/i-one-0", func() error {
		return suite.Patch(ctx, kept, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1beta1.KeepAnnotation+`":"true"}}}`)))
	})
	w.edit("i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "app-2" })
	runs("upgrade", 2)(w)
	env.Must(t, receive(t, marked))
	env.Within(t, limit, "the other objects of the old version gone", func() string {
		for _, name := range []string{"i-one-1", "i-one-2"} {
			if err := suite.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: name}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%s: %v", name, err)
			}
		}
		return ""
	})
	if now := env.Read(t, suite, &corev1.ConfigMap{}, w.ns, "i-one-0"); now.UID != kept.UID || now.DeletionTimestamp != nil {
		t.Errorf("what was to be kept is %+v", now.ObjectMeta)
	}
	w.untouched()
}

// An object that an OperatorVersion holds is taken over, and given back before the manager comes to release it: it stays
// held.
func TestGivenBackInTheLastMoment(t *testing.T) {
	w := ready(t)
	w.create(lifecycle.Fleet(w.ns, "fleet"))
	w.installed("fleet")
	name := lifecycle.FleetNamespace(w.ns)
	managed := func(value string) error {
		patch := `{"metadata":{"annotations":{"` + v1beta1.ManagedAnnotation + `":` + value + `}}}`
		return suite.Patch(ctx, &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", name)}, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	was := env.Read(t, suite, &rbacv1.ClusterRole{}, "", name)
	back := w.before(http.MethodGet, "/apis/rbac.authorization.k8s.io/v1/clusterroles/"+name, func() error { return managed(`"true"`) })
	env.Must(t, managed("null"))
	env.Must(t, receive(t, back))
	env.Must(t, suite.Delete(ctx, &corev1.ConfigMap{ObjectMeta: gen.Meta(name, "harbor")})) // so that the manager looks at all again
	w.ran("fleet", 2)
	now := env.Read(t, suite, &rbacv1.ClusterRole{}, "", name)
	if now.UID != was.UID || now.DeletionTimestamp != nil || len(now.OwnerReferences) != 1 || now.Annotations[v1beta1.ManagedAnnotation] != "true" {
		t.Errorf("the ClusterRole is %+v", now.ObjectMeta)
	}
	env.Must(t, suite.Delete(ctx, env.Read(t, suite, &v1beta1.OperatorVersion{}, w.ns, "fleet")))
	w.released("fleet")
	if err := suite.Get(ctx, client.ObjectKeyFromObject(now), now); !apierrors.IsNotFound(err) {
		t.Errorf("it was held, and yet it is there after the release: %v", err)
	}
	w.untouched()
}

// A finalizer that never finishes holds a Delete task, which names object and finalizer; the plan can be cancelled.
func TestFinalizerNeverFinishes(t *testing.T) {
	w := ready(t)
	ov := held(w.ns)
	w.create(ov, gen.Instance("i", ov, nil))
	i := w.await("i", waitsFor("example.org/never"))
	env.Contains(t, i.Status.AggregatedStatus.Message, "Job "+w.ns+"/i-deploy")
	suite.MustKudo(t, 0, "plan", "cancel", "--instance", "i", "-n", w.ns)
	i = w.await("i", env.PlanEnded("deploy", 1))
	env.Contains(t, i.Status.PlanStatus["deploy"].Message, "cancelled")
	w.unhold()
	w.edit("i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "b"} })
	runs("update", 2)(w)
	w.untouched()
}

// A right is withdrawn in the middle of a plan, the account's own or that of the manager to act as it: the plan says what
// lacks, and goes on when it is back.
func TestRightsWithdrawn(t *testing.T) {
	for _, tc := range []struct{ reason, binding, says string }{
		{"the account may write nothing", "kudo", "cannot "},
		{"the manager may not act as the account", "kudo-run-as", "cannot impersonate"},
	} {
		t.Run(tc.binding, func(t *testing.T) {
			w := ready(t)
			deployed(lifecycle.First)(w)
			w.create(lifecycle.Second(w.ns))
			taken := env.Read(t, suite, &rbacv1.RoleBinding{}, w.ns, tc.binding)
			env.Must(t, suite.Delete(ctx, taken))
			w.edit("i", func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "app-2" })
			i := w.await("i", waitsFor("forbidden"))
			env.Contains(t, i.Status.AggregatedStatus.Message, "ConfigMap", tc.says)
			env.Must(t, suite.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(w.ns, tc.binding), RoleRef: taken.RoleRef, Subjects: taken.Subjects}))
			runs("upgrade", 2)(w)
			w.untouched()
		})
	}
}

// A group of the API is not served for a while, also over a restart of the manager. What is not served is unknown, and
// never gone: nothing is deleted, released or started anew.
func TestGroupVanishes(t *testing.T) {
	sample := groups
	if !thorough() {
		sample = groups[:2]
	}
	for _, group := range sample {
		t.Run(group, func(t *testing.T) {
			w := ready(t)
			v := lifecycle.Fleet(w.ns, "fleet")
			w.create(v, gen.Instance("i", v, nil))
			w.await("i", complete("deploy", 1))
			want := w.waitIdle()
			before := w.versions()
			unchanged := func() {
				if diff := cmp.Diff(before, w.versions()); diff != "" {
					t.Errorf("while %s is not served: -before +now: %s", group, diff)
				}
			}
			manager.intercept(vanished(group))
			manager.proxy.Cut()
			env.Consistently(t, time.Second, unchanged)
			manager.kill()
			_ = manager.start()
			env.Consistently(t, 4*time.Second, unchanged)
			manager.intercept(nil)
			manager.kill() // it may have given up, as it should where its own kinds are not there
			env.Must(t, manager.start())
			w.settle(want)
			unchanged()
			w.untouched()
		})
	}
}

// A manager that comes back in the middle of a run cannot read the record of the run, since the group of records is not served from then
// on: the run waits, and goes on when the group is served again.
func TestGroupVanishesInRun(t *testing.T) {
	s := scenarios[0]
	want := undisturbed(t, s).end
	w := newWorld(t)
	s.prepare(w)
	w.bystanders()
	refused, handle := make(chan struct{}), vanished("/apis/apps")
	var reads atomic.Int32
	cut := newWave(1)
	w.aim(6, killed(cut, func() {
		manager.intercept(func(r *http.Request, forward apiproxy.Forward) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/controllerrevisions/") && reads.Add(1) == 3 {
				close(refused)
			}
			if reads.Load() == 0 {
				return forward(r)
			}
			return handle(r, forward)
		})
		cut.arrive()
	}))
	s.act(w)
	receive(t, refused)
	manager.intercept(nil)
	manager.proxy.Cut()
	s.ended(w)
	w.settle(want)
	w.untouched()
}
