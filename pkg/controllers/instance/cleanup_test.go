package instance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// cleansUp gives the version a plan cleanup, which applies ConfigMap web-last-0.
func cleansUp(ov *v1beta1.OperatorVersion) {
	gen.ConfigMaps("last", 1)(ov)
	gen.Serial("cleanup", "last")(ov)
}

// cleanupFails gives the version a plan cleanup that fails.
func cleanupFails(ov *v1beta1.OperatorVersion) {
	gen.Task("fail", v1beta1.DummyTask, v1beta1.TaskSpec{WantErr: true, Fatal: true})(ov)
	gen.Serial("cleanup", "fail")(ov)
}

// delete asks for the deletion of the Instance, as a client does.
func (f *fixture) delete(t *testing.T) {
	t.Helper()
	if err := f.r.Client.Delete(t.Context(), f.instance()); err != nil {
		t.Fatal(err)
	}
	f.recorded()
	f.Requests()
}

// exists reports whether the Instance is stored.
func (f *fixture) exists() bool {
	return f.Get(&v1beta1.Instance{ObjectMeta: gen.Meta("ns", "web")}) != nil
}

// terminate has the namespace be deleted.
func (f *fixture) terminate() {
	ns := namespace("ns", nil)
	now := metav1.NewTime(time.Unix(1000, 0))
	ns.DeletionTimestamp, ns.Finalizers = &now, []string{"kubernetes"}
	f.Put(ns)
}

// TestFinalizer: an Instance has the finalizer while its OperatorVersion has a cleanup plan, and gets it before anything runs.
func TestFinalizer(t *testing.T) {
	f := newFixture(t, cleansUp)
	f.settle(t)
	requests := f.Requests()
	patched, created := slices.Index(requests, "patch Instance ns/web"), slices.Index(requests, "create ControllerRevision ns/")
	if patched < 0 || created < patched {
		t.Errorf("the finalizer comes after the start: %q", requests)
	}
	if got := f.instance().Finalizers; !cmp.Equal([]string{v1beta1.CleanupFinalizer}, got) {
		t.Errorf("finalizers %q", got)
	}
	without := webVersion("web-1.0")
	without.Generation = 2
	f.Put(without)
	f.settle(t)
	if got := f.instance().Finalizers; len(got) > 0 {
		t.Errorf("finalizers %q without a cleanup plan", got)
	}
}

// TestDeletion: what becomes of an Instance that is being deleted.
func TestDeletion(t *testing.T) {
	const skipped = "Warning CleanupSkipped plan cleanup was skipped, since its run cannot be recorded: "
	retry := func(f *fixture, annotation string) {
		f.change(func(i *v1beta1.Instance) {
			i.Annotations = texts{annotation: string(i.Status.PlanStatus["cleanup"].UID)}
		})
	}
	failedCleanup := func(t *testing.T, f *fixture) {
		f.settle(t)
		f.recorded()
	}
	for _, tc := range []struct {
		reason  string
		version gen.VersionMod
		// before happens before the deletion, after once it was asked for.
		before func(*fixture)
		after  func(*testing.T, *fixture)
		kept   bool
		ready  string
		writes []string
		event  string
	}{
		{reason: "the cleanup plan is complete", version: cleansUp, writes: []string{"create ControllerRevision ns/", "apply ConfigMap ns/web-last-0", "patch Instance ns/web"},
			event: "Normal PlanFinished Execution of plan cleanup finished with status COMPLETE"},
		{reason: "the OperatorVersion was deleted, and the snapshot of the last run has the plan", version: cleansUp,
			after:  func(_ *testing.T, f *fixture) { f.Remove(webVersion("web-1.0")) },
			writes: []string{"create ControllerRevision ns/", "apply ConfigMap ns/web-last-0", "patch Instance ns/web"}},
		{reason: "neither the OperatorVersion nor its snapshot is there", version: cleansUp,
			after: func(_ *testing.T, f *fixture) {
				f.Remove(webVersion("web-1.0"))
				f.dropRecord(1)
			},
			writes: []string{"patch Instance ns/web"},
			event:  "Warning RecordUnusable plan cleanup does not run, since it is not known whether there is one: OperatorVersion ns/web-1.0 does not exist, and ControllerRevision ns/web-1 is missing"},
		{reason: "the cleanup plan fails", version: cleanupFails, kept: true, writes: []string{"create ControllerRevision ns/"},
			ready: "False PlanInFatalError plan cleanup failed: task cleanup.main.step-0.fail failed: task \"fail\" was told to fail with a fatal error",
			event: "Normal PlanFinished Execution of plan cleanup finished with status FATAL_ERROR"},
		{reason: "the cleanup plan has failed, and is given up", version: cleanupFails, after: func(t *testing.T, f *fixture) {
			failedCleanup(t, f)
			retry(f, v1beta1.CancelAnnotation)
		}, writes: []string{"create ControllerRevision ns/", "patch Instance ns/web"}},
		{reason: "the cleanup plan has failed, and is retried", version: cleanupFails, kept: true, after: func(t *testing.T, f *fixture) {
			failedCleanup(t, f)
			retry(f, v1beta1.RetryAnnotation)
		}, ready: "False PlanInFatalError ", writes: []string{"create ControllerRevision ns/", "create ControllerRevision ns/", "patch ControllerRevision ns/web-2"}, event: "Normal PlanStarted Execution of plan cleanup started"},
		{reason: "the cleanup plan has failed, and a retry of the run before was asked for", version: cleanupFails, kept: true, after: func(t *testing.T, f *fixture) {
			failedCleanup(t, f)
			f.change(func(i *v1beta1.Instance) { i.Annotations = texts{v1beta1.RetryAnnotation: "other"} })
		}, ready: "False PlanInFatalError ", writes: []string{"create ControllerRevision ns/"}},
		{reason: "the cleanup plan has failed, and the namespace terminates", version: cleanupFails, after: func(t *testing.T, f *fixture) {
			failedCleanup(t, f)
			f.terminate()
		}, writes: []string{"create ControllerRevision ns/", "patch Instance ns/web"}},
		{reason: "the namespace terminates", version: cleansUp, after: func(_ *testing.T, f *fixture) { f.terminate() }, writes: []string{"create ControllerRevision ns/", "patch Instance ns/web"}},
		{reason: "the account does not exist", version: cleansUp, kept: true, after: func(_ *testing.T, f *fixture) { f.Remove(account("ns", "kudo")) },
			ready: "False ServiceAccountNotFound plan cleanup cannot be started: it waits for ServiceAccount ns/kudo, with whose rights the plans run: kubectl kudo account create -n ns --instance web " +
				"shows the rights they need and makes it. Or remove the finalizer kudo.dev.instance.cleanup, which leaves what the plan would clean up",
			event: "Warning ServiceAccountMissing plan cleanup cannot be started: it waits for "},
		{reason: "the account does not exist, and it never ran", version: cleansUp, before: func(f *fixture) { f.Remove(account("ns", "kudo")) }, writes: []string{"patch Instance ns/web"}},
		{reason: "the account does not exist, and the namespace terminates", version: cleansUp, after: func(_ *testing.T, f *fixture) {
			f.Remove(account("ns", "kudo"))
			f.terminate()
		}, writes: []string{"patch Instance ns/web"}},
		{reason: "the name of the record is taken", version: cleansUp, kept: true,
			after: func(_ *testing.T, f *fixture) { f.Put(&appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-2")}) },
			ready: "False RecordNameTaken plan cleanup cannot be started: ControllerRevision ns/web-2 exists and is no record of kudo, so that the run cannot be recorded under that name: " +
				"it was not changed. Delete it, or remove the finalizer kudo.dev.instance.cleanup, which leaves what the plan would clean up",
			writes: []string{"create ControllerRevision ns/"}, event: "Warning RecordNameTaken plan cleanup cannot be started: ControllerRevision ns/web-2 exists"},
		{reason: "the run is too large to be recorded", version: cleansUp, after: func(_ *testing.T, f *fixture) {
			f.Before(func(r apitest.Request) (any, error) {
				if r.Kind == "ControllerRevision" && r.Verb == "create" {
					return nil, apierrors.NewRequestEntityTooLargeError("limit is 3145728")
				}
				return nil, nil
			})
		}, writes: []string{"create ControllerRevision ns/", "patch Instance ns/web"}, event: skipped},
		{reason: "the key is missing", version: cleansUp, kept: true, after: func(_ *testing.T, f *fixture) { f.Remove(keySecret(1)) },
			ready: "False HistoryKeyMissing Secret kudo-system/kudo-history-key, with whose key kudo seals the records of its runs, is missing"},
		{reason: "the key is missing, and the namespace terminates", version: cleansUp, after: func(_ *testing.T, f *fixture) {
			f.Remove(keySecret(1))
			f.terminate()
		}, writes: []string{"patch Instance ns/web"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t, tc.version)
			if tc.before != nil {
				tc.before(f)
			}
			f.settle(t)
			f.delete(t)
			if tc.after != nil {
				tc.after(t, f)
			}
			result := f.settle(t)
			if f.exists() != tc.kept {
				t.Fatalf("the Instance exists: %t, want %t", f.exists(), tc.kept)
			}
			if diff := cmp.Diff(tc.writes, f.writes(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("writes: -want +got: %s", diff)
			}
			if got := f.recorded(); !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, tc.event) }) && tc.event != "" {
				t.Errorf("events %q, want %q", got, tc.event)
			}
			if !tc.kept {
				return
			}
			if got := f.ready(); !strings.HasPrefix(got, tc.ready) {
				t.Errorf("Ready is %q, want %q", got, tc.ready)
			}
			if result.RequeueAfter == 0 || result.RequeueAfter > loop.RecheckInterval {
				t.Errorf("it is reconciled again after %s, though no watch shows that the namespace terminates", result.RequeueAfter)
			}
			f.Requests()
			f.settle(t)
			if got := f.recorded(); len(got) > 0 {
				t.Errorf("the second reconcile has the events %q", got)
			}
		})
	}
}

// TestDeletionEndsRun: the deletion ends the plan that runs and drops the queue, with a message, before the cleanup plan starts.
func TestDeletionEndsRun(t *testing.T) {
	f := newFixture(t, cleanupFails, waiting, gen.Param("OTHER", "1", "other"), gen.Serial("other", "app"))
	f.settle(t)
	f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = texts{"OTHER": "2"} })
	f.settle(t)
	if len(f.instance().Status.Queue) != 1 {
		t.Fatal("nothing is queued")
	}
	f.delete(t)
	f.settle(t)
	status := f.instance().Status
	if st := status.PlanStatus["deploy"]; st.Status != v1beta1.FatalError || st.Message != "ended, since the Instance is being deleted" {
		t.Errorf("plan deploy is %s: %s", st.Status, st.Message)
	}
	if len(status.Queue) > 0 || status.PlanStatus["other"].Status != v1beta1.NeverRun || status.PlanStatus["cleanup"].Revision != 2 {
		t.Errorf("queue %v, plans %+v", status.Queue, status.PlanStatus)
	}
}

// TestCleanupCanceled: a user who cancels the cleanup plan while it runs gives the cleanup up.
func TestCleanupCanceled(t *testing.T) {
	f := newFixture(t, func(ov *v1beta1.OperatorVersion) {
		waiting(ov)
		ov.Spec.Plans["cleanup"] = ov.Spec.Plans["deploy"]
		gen.Serial("deploy", "app")(ov)
	})
	f.settle(t)
	f.delete(t)
	f.settle(t)
	st := f.instance().Status.PlanStatus["cleanup"]
	if !st.Status.IsRunning() {
		t.Fatalf("cleanup is %+v", st)
	}
	f.recorded()
	f.change(func(i *v1beta1.Instance) { i.Annotations = texts{v1beta1.CancelAnnotation: string(st.UID)} })
	f.settle(t)
	if f.exists() {
		t.Errorf("the Instance is kept: %+v", f.instance().Status)
	}
	if got := f.recorded(); count(got, "Normal PlanCancelled Execution of plan cleanup was cancelled") != 1 {
		t.Errorf("events %q", got)
	}
}

// TestForeignFinalizer: an Instance that another controller holds is left alone once kudo has released it.
func TestForeignFinalizer(t *testing.T) {
	f := newFixture(t, cleansUp)
	f.change(func(i *v1beta1.Instance) { i.Finalizers = []string{"example.org/held"} })
	f.settle(t)
	f.delete(t)
	f.settle(t)
	if got := f.instance().Finalizers; !cmp.Equal([]string{"example.org/held"}, got) {
		t.Fatalf("finalizers %q", got)
	}
	f.writes()
	f.Put(keySecret(2))
	f.settle(t)
	f.Remove(&corev1.Secret{ObjectMeta: keySecret(1).ObjectMeta})
	f.settle(t)
	if got := f.writes(); len(got) > 0 {
		t.Errorf("a released Instance costs %q", got)
	}
	if st := f.instance().Status.PlanStatus["cleanup"]; st.Status != v1beta1.Complete || st.Revision != 2 {
		t.Errorf("cleanup is %+v", st)
	}
}
