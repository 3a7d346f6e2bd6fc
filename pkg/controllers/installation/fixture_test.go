package installation

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/storedversions"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// fixture is a controller on an API server in memory, with the Installation of OperatorVersion ns/web-1.0.
type fixture struct {
	*apitest.Server
	*Reconciler
	t            *testing.T
	events       *record.FakeRecorder
	clock        *clocktesting.FakePassiveClock
	version      *v1beta1.OperatorVersion
	installation *v1beta1.Installation
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Server: apitest.Start(t), t: t, events: record.NewFakeRecorder(100), clock: clocktesting.NewFakePassiveClock(time.Now())}
	f.version = gen.Version("ns", "web-1.0", gen.InstallPlan("install"))
	f.version.UID, f.version.Finalizers = "web", []string{v1beta1.OperatorVersionFinalizer}
	f.Put(f.version)
	f.installation = &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: "ns-web-1.0", UID: "holder", Finalizers: []string{v1beta1.InstallationFinalizer}}}
	f.installation.Spec.Subject = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "ns", Name: "web-1.0", UID: "web"}
	client, errClient := dynamic.NewForConfig(f.Config())
	lists, errLists := metadata.NewForConfig(f.Config())
	served, errServed := discovery.NewDiscoveryClientForConfig(f.Config())
	migrator, errMigrator := storedversions.New(storedversions.Options{Config: f.Config(), Mapper: f.Mapper(), Clock: f.clock})
	if err := errors.Join(errClient, errLists, errServed, errMigrator); err != nil {
		t.Fatal(err)
	}
	kinds := apply.NewKinds(f.Mapper(), served, client)
	mirror := apply.NewMirror(t.Context(), client, f.Mapper(), logr.Discard(), func(*unstructured.Unstructured) {})
	engine := share.New(share.Options{
		Objects: apply.New(client, lists, kinds, mirror, nil), Kinds: kinds, Mirror: mirror, Reader: f.Server.Client(), Clock: clock.RealClock{},
	})
	f.Reconciler = &Reconciler{Client: f.Server.Client(), Reader: f.Server.Client(), Share: engine, Events: f.events, Clock: f.clock,
		Migrator: migrator}
	return f
}

// terminate sets the deletion timestamp of the OperatorVersion.
func (f *fixture) terminate() {
	now := metav1.Now()
	f.version.DeletionTimestamp = &now
	f.Put(f.version)
}

// release stores the Installation as being deleted, with the objects that it holds.
func (f *fixture) release(held ...v1beta1.HeldResource) {
	now := metav1.Now()
	f.installation.DeletionTimestamp, f.installation.Status.Resources = &now, held
	f.Put(f.installation)
}

// hold puts an object that the Installation and other owners hold, and returns its entry in the inventory.
func (f *fixture) hold(apiVersion, kind, name string, modify ...func(*unstructured.Unstructured)) v1beta1.HeldResource {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	obj.SetName(name)
	obj.SetUID(types.UID("uid-" + name))
	obj.SetAnnotations(map[string]string{v1beta1.ManagedAnnotation: "true"})
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: f.installation.Name, UID: f.installation.UID}})
	for _, m := range modify {
		m(obj)
	}
	f.Put(obj)
	return v1beta1.HeldResource{APIVersion: apiVersion, Kind: kind, Name: name, UID: obj.GetUID(), State: v1beta1.HoldCreated}
}

// reconcileOnce reconciles the Installation, and returns what follows and the events.
func (f *fixture) reconcileOnce() (ctrl.Result, []string) {
	f.t.Helper()
	reconciler := loop.New(loop.Options[*v1beta1.Installation]{Client: f.Reconciler.Client, Reader: f.Reader, Events: f.Events, Act: f.reconcile})
	result, err := reconciler.Reconcile(f.t.Context(), request(f.installation.Name)[0])
	if err != nil {
		f.t.Fatal(err)
	}
	var events []string
	for len(f.events.Events) > 0 {
		events = append(events, <-f.events.Events)
	}
	return result, events
}

// writes are the requests since the last call that change something.
func (f *fixture) writes() []string {
	return slices.DeleteFunc(f.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "get ") || strings.HasPrefix(r, "list ") || strings.HasPrefix(r, "watch ") || strings.HasPrefix(r, "/")
	})
}
