package instance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// fourObjects is a template. It makes four objects of four kinds, and the Deployment is not ready at once.
const fourObjects = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: "{{ .Name }}"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Name }}"}}
---
{apiVersion: v1, kind: Service, metadata: {name: "{{ .Name }}"}, spec: {clusterIP: None}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ .Name }}"}, spec: {replicas: 1, template: {}}}
`

// newHoldFixture starts a fixture whose Instances have four objects.
func newHoldFixture(t *testing.T, mods ...gen.VersionMod) *fixture {
	t.Helper()
	all := []gen.VersionMod{gen.Template("four.yaml", fourObjects), gen.Apply("four", "four.yaml"), gen.Serial("deploy", "four")}
	f := newFixture(t, append(all, mods...)...)
	f.r.ProgressDelay = time.Second
	f.After(func(r apitest.Request) (any, error) { // as an API server numbers the specs of Deployments
		if r.Verb != "apply" || r.Kind != "Deployment" {
			return nil, nil
		}
		live := f.Get(&appsv1.Deployment{ObjectMeta: gen.Meta(r.Namespace, r.Name)})
		live.SetGeneration(1)
		return f.Put(live).Object, nil
	})
	return f
}

// reconcileNamed reconciles an Instance until no other reconcile is to follow at once, and returns the requests for it: writes, and reads of
// its objects.
func (f *fixture) reconcileNamed(t *testing.T, name string) (requests []string) {
	t.Helper()
	for range 10 {
		result, err := f.loop.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		if result.RequeueAfter != 1 {
			break
		}
	}
	for _, r := range f.Requests() {
		verb, _, _ := strings.Cut(r, " ")
		if verb != "watch" && verb != "get" || strings.HasSuffix(r, " ns/"+name) && !strings.Contains(r, "Instance") {
			requests = append(requests, r)
		}
	}
	return requests
}

// makeReady has the controller of Deployments see the Deployment of an Instance, and waits until the mirror shows that.
func (f *fixture) makeReady(t *testing.T, name string) {
	t.Helper()
	live := &appsv1.Deployment{ObjectMeta: gen.Meta("ns", name)}
	f.Read(live)
	live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	f.Put(live)
	f.await(t, func() bool {
		seen, _ := f.r.Mirror.Get(apply.ID{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}})
		return seen != nil && strings.Contains(fmt.Sprint(seen.Object["status"]), "availableReplicas:1")
	})
}

// TestRequestsOfInstance: once the names of the kinds are known, an Instance of four objects that are ready soon costs the record of its run,
// the status before the first write and at the end, a write for each object, and no other request.
func TestRequestsOfInstance(t *testing.T) {
	f := newHoldFixture(t)
	lists, err := metadata.NewForConfig(f.Config())
	if err != nil {
		t.Fatal(err)
	}
	f.accounts.UseNames(apply.NewNames(t.Context(), lists, logr.Discard()))
	ov := webVersion("web-1.0")
	instance := func(n int) (string, []string) {
		name := fmt.Sprintf("web-%d", n)
		i := gen.Instance(name, ov, nil)
		i.UID, i.Generation = types.UID("uid-of-"+name), 1
		f.Put(i)
		return name, f.reconcileNamed(t, name)
	}
	n := 0
	apitest.Eventually(t, "an Instance without a look", func() bool {
		n++
		_, requests := instance(n)
		return !slices.ContainsFunc(requests, func(r string) bool { return strings.HasPrefix(r, "get ") || strings.HasPrefix(r, "list ") })
	})
	name, begin := instance(n + 1)
	f.makeReady(t, name)
	want := []string{
		"apply ConfigMap ns/" + name, "apply Deployment ns/" + name, "apply Service ns/" + name, "apply ServiceAccount ns/" + name,
		"create ControllerRevision ns/", "patch Instance ns/" + name + "/status", "patch Instance ns/" + name + "/status",
	}
	all := append(begin, f.reconcileNamed(t, name)...)
	slices.Sort(all)
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	i := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", name)}
	f.Read(i)
	if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete || st.Phases[0].Steps[0].Tasks[0].Total != 4 {
		t.Errorf("plan deploy is %+v", st)
	}
	for _, r := range i.Status.Resources {
		if r.UID == "" || r.Hash == "" {
			t.Errorf("the inventory has %+v", r)
		}
	}
}

// TestHoldProgress: what a step awaits is in the status once the delay has passed, and what is lost before is found again.
func TestHoldProgress(t *testing.T) {
	const status = "patch Instance ns/web/status"
	inventoried := func(f *fixture) bool {
		return !slices.ContainsFunc(f.instance().Status.Resources, func(r v1beta1.ResourceStatus) bool { return r.UID == "" })
	}
	t.Run("the delay passes", func(t *testing.T) {
		f := newHoldFixture(t)
		f.Requests()
		if got := f.reconcileNamed(t, "web"); count(got, status) != 1 || inventoried(f) {
			t.Errorf("the requests are %q", got)
		}
		f.clock.Step(999 * time.Millisecond)
		if result := f.reconcile(t); result.RequeueAfter != time.Millisecond || len(f.writes()) > 0 {
			t.Errorf("the next reconcile comes after %s", result.RequeueAfter)
		}
		f.clock.Step(time.Millisecond)
		if got := f.reconcileNamed(t, "web"); !slices.Equal(got, []string{status}) {
			t.Errorf("the requests are %q", got)
		}
		st := f.instance().Status.PlanStatus["deploy"]
		if task := st.Phases[0].Steps[0].Tasks[0]; task.Status != v1beta1.InProgress || task.Message == "" || task.Ready != 3 || !inventoried(f) {
			t.Errorf("the task is %+v", task)
		}
		if got := f.reconcileNamed(t, "web"); len(got) > 0 {
			t.Errorf("nothing has changed since, and the requests are %q", got)
		}
	})
	t.Run("the manager ends", func(t *testing.T) {
		f := newHoldFixture(t)
		f.reconcileNamed(t, "web")
		f.restart()
		f.loop = newLoop(f)
		f.makeReady(t, "web")
		f.reconcileNamed(t, "web")
		if st := f.instance().Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete || st.Revision != 1 || !inventoried(f) {
			t.Errorf("plan deploy is %+v", st)
		}
	})
	t.Run("a user changes the Instance", func(t *testing.T) {
		f := newHoldFixture(t)
		f.reconcileNamed(t, "web")
		f.change(func(i *v1beta1.Instance) {
			i.Annotations = texts{v1beta1.CancelAnnotation: string(i.Status.PlanStatus["deploy"].UID)}
		})
		f.reconcileNamed(t, "web")
		if st := f.instance().Status.PlanStatus["deploy"]; st.Message != "cancelled" {
			t.Errorf("plan deploy is %+v", st)
		}
	})
	t.Run("a task has failed for now", func(t *testing.T) {
		f := newHoldFixture(t)
		f.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "apply" && r.Kind == "Service" {
				return nil, errors.New("etcd is slow")
			}
			return nil, nil
		})
		if got := f.reconcileNamed(t, "web"); count(got, status) != 2 {
			t.Errorf("the requests are %q", got)
		}
	})
	t.Run("an object without a namespace is new", func(t *testing.T) {
		f := newHoldFixture(t, gen.Template("role.yaml", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: \"role-{{ .Name }}\"}}"),
			func(ov *v1beta1.OperatorVersion) {
				at := slices.IndexFunc(ov.Spec.Tasks, func(task v1beta1.Task) bool { return task.Name == "four" })
				ov.Spec.Tasks[at].Spec.Resources = append(ov.Spec.Tasks[at].Spec.Resources, "role.yaml")
			})
		if got := f.reconcileNamed(t, "web"); count(got, status) != 2 || !inventoried(f) {
			t.Errorf("the requests are %q, the inventory has %+v", got, f.instance().Status.Resources)
		}
		if got := f.reconcileNamed(t, "web"); len(got) > 0 {
			t.Errorf("it is known, and the requests are %q", got)
		}
	})
	t.Run("the step before is done", func(t *testing.T) {
		f := newHoldFixture(t, gen.Serial("deploy", "app", "four"))
		got := f.reconcileNamed(t, "web")
		if first := f.instance().Status.PlanStatus["deploy"].Phases[0].Steps[0].Status; first != v1beta1.Complete {
			t.Errorf("the first step is %s", first)
		}
		if count(got, status) != 2 || !inventoried(f) {
			t.Errorf("the requests are %q, the inventory has %+v", got, f.instance().Status.Resources)
		}
	})
}
