package instance

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/test/gen"
)

// TestIsSpecAnswered: all that spec asks for has been started only if nothing of it waits, is refused or was changed since.
func TestIsSpecAnswered(t *testing.T) {
	reason := func(reason string) func(*v1beta1.Instance) {
		return func(i *v1beta1.Instance) {
			i.Status.Conditions = []metav1.Condition{{Type: v1beta1.ReadyCondition, Reason: reason}}
		}
	}
	for _, tc := range []struct {
		reason string
		modify func(*v1beta1.Instance)
		want   bool
	}{
		{"it is idle", func(*v1beta1.Instance) {}, true},
		{"it is ready", reason(v1beta1.ReasonResourcesReady), true},
		{"its run has failed", reason(v1beta1.ReasonPlanInFatalError), true},
		{"its key was missing", reason(v1beta1.ReasonHistoryKeyMissing), true},
		{"its spec was refused", reason(v1beta1.ReasonInvalidSpec), false},
		{"the name of its record was taken", reason(v1beta1.ReasonRecordNameTaken), false},
		{"its version did not exist", reason(v1beta1.ReasonOperatorVersionNotFound), false},
		{"its sources could not be read", reason(v1beta1.ReasonWaitingForParameters), false},
		{"its account did not exist", reason(v1beta1.ReasonServiceAccountNotFound), false},
		{"it waited for the install plan", reason(v1beta1.ReasonWaitingForInstallPlan), false},
		{"it waited for its CRDs", reason(v1beta1.ReasonWaitingForCRDs), false},
		{"spec was changed", func(i *v1beta1.Instance) { i.Generation++ }, false},
		{"a plan is queued", func(i *v1beta1.Instance) { i.Status.Queue = []v1beta1.QueuedPlan{{PlanName: "update"}} }, false},
		{"it never ran", func(i *v1beta1.Instance) { i.Status.Baseline = nil }, false},
		{"it ran another version", func(i *v1beta1.Instance) { i.Status.Baseline.OperatorVersion = "ns/web-0.9" }, false},
		{"it ran the version of its name in another namespace", func(i *v1beta1.Instance) { i.Status.Baseline.OperatorVersion = "other/web-1.0" }, false},
	} {
		i := gen.Instance("web", webVersion("web-1.0"), nil)
		i.Generation, i.Status.ObservedGeneration, i.Status.Baseline = 2, 2, &v1beta1.Baseline{OperatorVersion: "ns/web-1.0"}
		tc.modify(i)
		if got := pure(i).isSpecAnswered(); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

// TestInstallPlanWait: what an Instance waits for before it may use what its version installs.
func TestInstallPlanWait(t *testing.T) {
	const waits = `waits for the install plan "install" of OperatorVersion ns/web-1.0`
	const deleted = "OperatorVersion ns/web-1.0 is being deleted, and what it installed is released: install it again once it is deleted, or name another one"
	installed := func(ov *v1beta1.OperatorVersion) {
		ov.Status.Conditions = []metav1.Condition{{Type: v1beta1.InstalledCondition, Status: metav1.ConditionTrue}}
	}
	releasing := func(finalizer string) gen.VersionMod {
		return func(ov *v1beta1.OperatorVersion) {
			installPlan(v1beta1.Complete, "")(ov)
			installed(ov)
			now := metav1.Now()
			ov.DeletionTimestamp, ov.Finalizers = &now, []string{finalizer}
		}
	}
	for _, tc := range []struct {
		reason   string
		mods     []gen.VersionMod
		baseline string
		want     string
	}{
		{"it has no install plan", nil, "", ""},
		{"it is installed", []gen.VersionMod{installPlan(v1beta1.Complete, ""), installed}, "", ""},
		{"the install plan has not begun", []gen.VersionMod{installPlan("", "")}, "", waits},
		{"the install plan runs", []gen.VersionMod{installPlan(v1beta1.InProgress, "")}, "", waits + " (IN_PROGRESS)"},
		{"the install plan has failed", []gen.VersionMod{installPlan(v1beta1.FatalError, "no rights")}, "", waits + " (FATAL_ERROR: no rights)"},
		{"the install plan runs again, and it runs the version", []gen.VersionMod{installPlan(v1beta1.InProgress, "")}, "ns/web-1.0", waits + " (IN_PROGRESS)"},
		{"the version is being deleted", []gen.VersionMod{releasing(v1beta1.OperatorVersionFinalizer)}, "", deleted},
		{"the version is being deleted, and it ran another one", []gen.VersionMod{releasing(v1beta1.OperatorVersionFinalizer)}, "ns/web-0.9", deleted},
		{"the version is being deleted, and it runs it", []gen.VersionMod{releasing(v1beta1.OperatorVersionFinalizer)}, "ns/web-1.0", ""},
		{"the version is being deleted, and holds nothing", []gen.VersionMod{releasing("example.org/held")}, "", ""},
	} {
		i := gen.Instance("web", webVersion("web-1.0"), nil)
		if tc.baseline != "" {
			i.Status.Baseline = &v1beta1.Baseline{OperatorVersion: tc.baseline}
		}
		a := pure(i)
		a.version = webVersion("web-1.0", tc.mods...)
		if diff := cmp.Diff(tc.want, a.installPlanWait()); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestVersionMissing: a version that does not exist blocks an Instance that asks for something, and no other one.
func TestVersionMissing(t *testing.T) {
	const missing = "False OperatorVersionNotFound waits for OperatorVersion ns/web-2.0, which does not exist: install the package or correct spec.operatorVersion"
	for _, tc := range []struct {
		reason string
		change func(*fixture)
		want   string
	}{
		{"spec names one that does not exist", func(f *fixture) {
			f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-2.0" })
		}, missing},
		{"spec names none", func(f *fixture) {
			f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "" })
		}, "False OperatorVersionNotFound spec.operatorVersion.name is empty: name the OperatorVersion to run"},
		{"the one that it runs was deleted", func(f *fixture) { f.Remove(webVersion("web-1.0")) }, "True ResourcesReady"},
		{"the one that it runs was deleted, and it asks for something", func(f *fixture) {
			f.Remove(webVersion("web-1.0"))
			f.change(func(i *v1beta1.Instance) { i.Spec.Suspend = true })
		}, "False OperatorVersionNotFound waits for OperatorVersion ns/web-1.0, which does not exist: install the package or correct spec.operatorVersion"},
	} {
		f := newFixture(t)
		f.settle(t)
		f.recorded()
		tc.change(f)
		for range 2 {
			f.settle(t)
		}
		if diff := cmp.Diff(tc.want, f.ready()); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
		if got := f.recorded(); tc.want != "True ResourcesReady" && len(got) != 1 {
			t.Errorf("%s: events %q, want one", tc.reason, got)
		}
		if i := f.instance(); i.Status.Baseline.Revision != 1 || len(i.Status.Resources) != 1 {
			t.Errorf("%s: status %+v", tc.reason, i.Status)
		}
	}
}

// TestVersionPrivate: an OperatorVersion of a namespace that keeps its versions to itself is refused to Instances of others.
func TestVersionPrivate(t *testing.T) {
	const refused = "spec.operatorVersion names catalog/web-1.0, and Namespace catalog is labeled kudo.dev/versions=private: name an OperatorVersion of namespace ns"
	private := texts{v1beta1.VersionsLabel: v1beta1.PrivateVersions}
	for _, tc := range []struct {
		reason, of string
		labels     map[string]texts
		want       string
		requests   int
	}{
		{"the version is of the Instance's own namespace", "", map[string]texts{"ns": private}, "", 0},
		{"the own namespace is named", "ns", map[string]texts{"ns": private}, "", 0},
		{"the other namespace is open", "catalog", map[string]texts{"catalog": nil, "ns": private}, "", 1},
		{"the other namespace has another value", "catalog", map[string]texts{"catalog": {v1beta1.VersionsLabel: "public"}}, "", 1},
		{"the other namespace is private", "catalog", map[string]texts{"catalog": private}, refused, 1},
		{"the other namespace is not in the cache: it is read live, and does not exist", "catalog", nil, "", 2},
	} {
		f := newFixture(t)
		for name, labels := range tc.labels {
			f.Put(namespace(name, labels))
		}
		i := f.instance()
		i.Spec.OperatorVersion.Namespace = tc.of
		a := pure(i)
		a.Reconciler = f.r
		refusal, err := a.versionPrivate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := errorText(refusal); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
		if got := len(f.Requests()); got != tc.requests {
			t.Errorf("%s: %d requests, want %d", tc.reason, got, tc.requests)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestPreviousVersion: an upgrade is compared with the snapshot of the last run, else with the version that has its name.
func TestPreviousVersion(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		prepare func(*fixture)
		upgrade bool
		// want is spec.version of the version that is found; empty for none.
		want string
		err  bool
	}{
		{"it is no upgrade", func(*fixture) {}, false, "", false},
		{"the version was edited since the last run", func(*fixture) {}, true, "0.1.0", false},
		{"the snapshot is not there", func(f *fixture) { f.dropRecord(1) }, true, "edited", false},
		{"neither the snapshot nor the version is there", func(f *fixture) {
			f.dropRecord(1)
			f.Remove(webVersion("web-1.0"))
		}, true, "", false},
		{"the version is not there", func(f *fixture) { f.Remove(webVersion("web-1.0")) }, true, "0.1.0", false},
		{"the snapshot cannot be read", func(f *fixture) { f.failReads("ControllerRevision") }, true, "", true},
	} {
		f := newFixture(t)
		f.settle(t)
		edited := webVersion("web-1.0")
		edited.Spec.Version, edited.Generation = "edited", 2
		f.Put(edited)
		f.Put(webVersion("web-2.0"))
		if tc.upgrade {
			f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Name = "web-2.0" })
		}
		a := f.action(t)
		tc.prepare(f)
		spec, err := a.previousVersion(t.Context())
		got := ""
		if spec != nil {
			got = spec.Version
		}
		if got != tc.want || (err != nil) != tc.err {
			t.Errorf("%s: version %q (%v), want %q", tc.reason, got, err, tc.want)
		}
	}
}

// TestObserveFails: what cannot be read now is an error that names it, and nothing is decided.
func TestObserveFails(t *testing.T) {
	for _, tc := range []struct{ kind, want string }{
		{"Secret", "read Secret kudo-system/kudo-history-key: "}, {"OperatorVersion", "OperatorVersion ns/web-1.0: "}, {"Namespace", ""}, {"ServiceAccount", ""},
	} {
		f := newFixture(t)
		f.failReads(tc.kind)
		before := f.instance()
		a := newAction(f.r, pure(before).Object)
		err := a.observe(t.Context())
		if got := errorText(err); len(got) < len(tc.want) || got[:len(tc.want)] != tc.want || err == nil {
			t.Errorf("%s: error %q, want %q", tc.kind, got, tc.want)
		}
		f.reconcile(t)
		if diff := cmp.Diff(before, f.instance()); diff != "" {
			t.Errorf("%s: the Instance was changed: %s", tc.kind, diff)
		}
	}
}

// TestResumeProblem: a run without a version, or whose version has no such plan, cannot continue.
func TestResumeProblem(t *testing.T) {
	version := &runner.ParsedVersion{Spec: &webVersion("web-1.0").Spec}
	a := pure(gen.Instance("web", webVersion("web-1.0"), nil))
	for _, tc := range []struct {
		plan    string
		version *runner.ParsedVersion
		want    string
	}{
		{"deploy", version, ""},
		{"backup", version, "OperatorVersion ns/web-1.0 has no plan backup, and no snapshot of the one that the run was started with is left"},
		{"deploy", nil, "OperatorVersion ns/web-1.0 does not exist, and no snapshot of it is left"},
	} {
		if diff := cmp.Diff(tc.want, a.resumeProblem(&history.Run{Plan: tc.plan}, tc.version)); diff != "" {
			t.Errorf("plan %s: -want +got: %s", tc.plan, diff)
		}
	}
}

// TestCannotBeStored: which answers say that a run can never be recorded.
func TestCannotBeStored(t *testing.T) {
	for text, want := range map[string]bool{"": false, "etcdserver: request is too large": true, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2158260 vs. 2097152)": true, "rpc error: code = ResourceExhausted desc = too many requests": false, "connection reset": false, "rpc error: request is too large for it": true} {
		var err error
		if text != "" {
			err = errors.New(text)
		}
		if got := cannotBeStored(err); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

// TestPrivateVersionRefused: no run of a private version of another namespace is started, and an active one continues to its end.
func TestPrivateVersionRefused(t *testing.T) {
	for _, tc := range []struct {
		reason string
		// running is set if the namespace is closed after the run has begun.
		running bool
		status  v1beta1.ExecutionStatus
	}{{"the namespace was closed before", false, ""}, {"the namespace was closed during the run", true, v1beta1.InProgress}} {
		f := newFixture(t)
		ov := webVersion("web-1.0", waiting)
		ov.Namespace, ov.UID = "catalog", "uid-of-catalog"
		f.Put(ov)
		f.change(func(i *v1beta1.Instance) { i.Spec.OperatorVersion.Namespace = "catalog" })
		if tc.running {
			f.settle(t)
		}
		f.Put(namespace("catalog", texts{v1beta1.VersionsLabel: v1beta1.PrivateVersions}))
		f.recorded()
		f.settle(t)
		if got := f.instance().Status.PlanStatus["deploy"].Status; got != tc.status {
			t.Errorf("%s: plan deploy is %q, want %q", tc.reason, got, tc.status)
		}
		const refused = "Warning InvalidSpec spec.operatorVersion names catalog/web-1.0, and Namespace catalog is labeled kudo.dev/versions=private: name an OperatorVersion of namespace ns"
		if diff := cmp.Diff([]string{refused}, f.recorded()); diff != "" {
			t.Errorf("%s: events: -want +got: %s", tc.reason, diff)
		}
	}
}
