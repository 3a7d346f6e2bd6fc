package instance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/trust"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// instanceUID is the uid of the Instance of a fixture.
const instanceUID = types.UID("5c8c4ff1-0000-4000-8000-000000000002")

// fixture is a Reconciler on an API server that has the Instance ns/web, what it needs, and nothing that it has done.
type fixture struct {
	*apitest.Server
	r      *Reconciler
	loop   *loop.Reconciler[*v1beta1.Instance]
	clock  *clocktesting.FakeClock
	events *record.FakeRecorder
	// settings are what the administrator has decided.
	settings settings.Settings
	// judge answers for the PackagePolicies.
	judge func(trust.Request) trust.Verdict
	// quotas is set if the manager knows of ResourceQuotas.
	quotas bool
	// accounts make the engines of runs.
	accounts *apply.Accounts
}

// newFixture starts a fixture. The Instance runs OperatorVersion ns/web-1.0, which the modifiers change.
func newFixture(t *testing.T, mods ...gen.VersionMod) *fixture {
	t.Helper()
	ov := webVersion("web-1.0", mods...)
	instance := gen.Instance("web", ov, nil)
	instance.UID, instance.Generation = instanceUID, 1
	f := &fixture{
		Server: apitest.Start(t, namespace("ns", nil), account("ns", "kudo"), keySecret(1), ov, instance),
		clock:  clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), events: record.NewFakeRecorder(1000), settings: settings.Default(),
	}
	objects, errObjects := dynamic.NewForConfig(f.Config())
	lists, errLists := metadata.NewForConfig(f.Config())
	served, errServed := discovery.NewDiscoveryClientForConfig(f.Config())
	if err := errors.Join(errObjects, errLists, errServed); err != nil {
		t.Fatal(err)
	}
	c, mapper := f.Client(), f.Mapper()
	kinds := apply.NewKinds(mapper, served, objects)
	mirror := apply.NewMirror(t.Context(), objects, mapper, logr.Discard(), func(*unstructured.Unstructured) {})
	engine, accounts := apply.New(objects, lists, kinds, mirror, nil), apply.NewAccounts(f.Config(), lists, kinds, mirror, nil)
	f.accounts = accounts
	shared := share.New(share.Options{Objects: engine, Kinds: kinds, Mirror: mirror, Reader: c, Clock: f.clock})
	keys := history.NewKeys(c, "kudo-system")
	f.r = &Reconciler{
		Client: c, Reader: c, History: history.New(c, c, keys), Keys: keys, Mirror: mirror, Share: shared,
		Runner: runner.New(runner.Options{
			Engine: engine, Kinds: kinds, Mirror: mirror, Share: shared, Accounts: accounts, All: explore.Chain{}, External: explore.Chain{},
			Quotas: runner.NewQuotaReader(accounts, func(context.Context, string) (bool, error) { return f.quotas, nil }),
		}),
		Tarballs: fetch.New(t.Context(), fetch.Options{Clock: f.clock}, func(types.NamespacedName) {}),
		Sources:  paramsource.New(t.Context(), lists, c, f.clock, func(paramsource.Reference) {}),
		Versions: runner.NewVersions(), Events: f.events, Clock: f.clock, Installer: apply.Account{Namespace: "kudo-system", Name: "kudo-installer"},
		ScheduledRuns: 20, Enqueue: func(types.NamespacedName) {},
	}
	f.r.Judge = func(_ context.Context, r trust.Request) (trust.Verdict, error) { return f.judge(r), nil }
	f.judge = func(trust.Request) trust.Verdict { return trust.Verdict{Allowed: true} }
	f.r.Settings = func(context.Context) settings.Settings { return f.settings }
	f.loop = newLoop(f)
	f.Requests()
	return f
}

// newLoop returns the skeleton of the fixture's reconciles, which remembers nothing.
func newLoop(f *fixture) *loop.Reconciler[*v1beta1.Instance] {
	return loop.New(loop.Options[*v1beta1.Instance]{Client: f.r.Client, Reader: f.r.Reader, Events: f.events, Act: f.r.reconcile, Forget: f.r.forget})
}

// webVersion is an OperatorVersion of namespace ns whose plan deploy applies ConfigMap web-app-0.
func webVersion(name string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	all := []gen.VersionMod{gen.Param("VALUE", "1", ""), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app")}
	ov := gen.Version("ns", name, append(all, mods...)...)
	ov.Spec.Operator.Name, ov.UID, ov.Generation = "web", types.UID("uid-of-"+name), 1
	return ov
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func account(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: gen.Meta(namespace, name)}
}

// keySecret is the Secret of the keys with the ids up to a number, of which the last one is the current one.
func keySecret(current byte) *corev1.Secret {
	data := map[string][]byte{"current": {'0' + current}}
	for id := byte(1); id <= current; id++ {
		data[string('0'+id)] = []byte(strings.Repeat(string('a'+id), 32))
	}
	return &corev1.Secret{ObjectMeta: gen.Meta("kudo-system", keyring.SecretName), Data: data}
}

// ring returns the keys of keySecret.
func ring(t *testing.T, current byte) *keyring.Ring {
	t.Helper()
	out, err := keyring.Parse(keySecret(current).Data)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// instance reads the Instance as it is stored.
func (f *fixture) instance() *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "web")}
	f.Read(i)
	return i
}

// change changes the Instance as another client would; a change of spec makes a new generation.
func (f *fixture) change(modify func(*v1beta1.Instance)) {
	before, i := f.instance(), f.instance()
	modify(i)
	if !equality.Semantic.DeepEqual(before.Spec, i.Spec) {
		i.Generation++
	}
	f.Put(i)
}

// reconcile reconciles the Instance once.
func (f *fixture) reconcile(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := f.loop.Reconcile(t.Context(), ctrl.Request{NamespacedName: f.key()})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// settle reconciles the Instance until no other reconcile is to follow at once.
func (f *fixture) settle(t *testing.T) ctrl.Result {
	t.Helper()
	for range 10 {
		if result := f.reconcile(t); result.RequeueAfter != 1 {
			return result
		}
	}
	t.Fatalf("the Instance is reconciled again and again: %+v", f.instance().Status)
	return ctrl.Result{}
}

// action returns an action on the Instance as it is stored, whose inputs are read.
func (f *fixture) action(t *testing.T) *action {
	t.Helper()
	a := newAction(f.r, loop.NewObject(f.r.Client, f.r.Reader, f.events, f.instance()))
	if err := errors.Join(a.observeKeys(t.Context()), a.observeInputs(t.Context())); err != nil {
		t.Fatal(err)
	}
	return a
}

// restart makes the manager forget what it remembers, as another replica that takes over.
func (f *fixture) restart() { f.r.runs.Clear() }

// recorded returns the events since the last call.
func (f *fixture) recorded() []string {
	var out []string
	for len(f.events.Events) > 0 {
		out = append(out, <-f.events.Events)
	}
	return out
}

// writes returns the requests since the last call that have changed something, without the status.
func (f *fixture) writes() []string {
	return slices.DeleteFunc(f.Requests(), func(r string) bool {
		verb, _, _ := strings.Cut(r, " ")
		return !slices.Contains([]string{"apply", "patch", "delete", "create", "update"}, verb) || strings.HasSuffix(r, "(dry run)") || strings.HasSuffix(r, "/status")
	})
}

// ready returns the condition Ready of the Instance in short.
func (f *fixture) ready() string { return conditionText(f.instance(), v1beta1.ReadyCondition) }

// conditionText returns a condition in short; empty if it is not there.
func conditionText(i *v1beta1.Instance, kind string) string {
	for _, c := range i.Status.Conditions {
		if c.Type == kind {
			return strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
		}
	}
	return ""
}

// driftText is what the status says of drift.
func driftText(i *v1beta1.Instance) string {
	var out []string
	for _, d := range i.Status.Drift {
		out = append(out, d.Message)
	}
	return strings.Join(out, "; ")
}

// pure returns an action on an Instance that needs no cluster.
func pure(i *v1beta1.Instance) *action {
	return newAction(&Reconciler{Clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}, loop.NewObject[*v1beta1.Instance](nil, nil, record.NewFakeRecorder(100), i))
}

// dropRecord deletes the record of a run.
func (f *fixture) dropRecord(revision int64) {
	f.Remove(&appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", history.Name("web", revision))})
}

// errSlow is an error that may not occur at the next attempt.
var errSlow = errors.New("etcd is slow")

// key names the Instance.
func (f *fixture) key() types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: "web"}
}

// failReads fails each read of an object of a kind.
func (f *fixture) failReads(kind string) {
	f.Before(func(r apitest.Request) (any, error) {
		if r.Kind == kind && r.Verb == "get" {
			return nil, errSlow
		}
		return nil, nil
	})
}

// count returns how often a text is in a list.
func count(all []string, text string) int {
	return len(all) - len(slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == text }))
}

// await waits until what a watch shows is as a test needs it.
func (f *fixture) await(t *testing.T, is func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return is(), nil }); err != nil {
		t.Fatal(err)
	}
}

func uidOf(text string) types.UID { return types.UID(text) }

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
