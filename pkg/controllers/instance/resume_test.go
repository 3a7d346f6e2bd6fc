package instance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestFindActiveRun: what a manager remembers of a run counts only for that run of that Instance.
func TestFindActiveRun(t *testing.T) {
	known := &runner.Run{UID: "run", Plan: "deploy", Subject: runner.Subject{UID: "uid"}}
	for _, tc := range []struct {
		reason string
		plan   string
		uid    string
		key    string
		owner  string
		want   bool
	}{
		{"it is the run", "deploy", "run", "1", "uid", true},
		{"the run has no record", "deploy", "run", "", "uid", true},
		{"another run of the plan has not ended", "deploy", "other", "1", "uid", false},
		{"another plan runs", "update", "run", "1", "uid", false},
		{"the Instance was deleted and created again", "deploy", "run", "1", "other", false},
		{"the key of the record was dropped", "deploy", "run", "9", "uid", false},
	} {
		i := gen.Instance("web", webVersion("web-1.0"), nil)
		i.UID = "uid"
		a := pure(i)
		a.ring = ring(t, 1)
		a.setActiveRun(known, tc.key)
		a.Next.UID = types.UID(tc.owner)
		if got := a.findActiveRun(tc.plan, v1beta1.PlanStatus{UID: types.UID(tc.uid)}); (got != nil) != tc.want {
			t.Errorf("%s: found %v", tc.reason, got)
		}
	}
	if got := pure(gen.Instance("web", webVersion("web-1.0"), nil)).findActiveRun("deploy", v1beta1.PlanStatus{UID: "run"}); got != nil {
		t.Errorf("of a run that is not remembered, %v is found", got)
	}
}

// TestResume: another manager continues a run by its record, and fails a run whose record is missing or not authentic.
func TestResume(t *testing.T) {
	const forged = "run 1 of Instance ns/web cannot continue: ControllerRevision ns/web-1 was not written by this kudo; kubectl kudo plan retry starts it anew"
	record := func(f *fixture) *appsv1.ControllerRevision {
		r := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-1")}
		f.Read(r)
		return r
	}
	for _, tc := range []struct {
		reason string
		// happens is what happens before another manager takes over.
		happens func(*fixture)
		// message is the message of the run if it fails; empty if it continues.
		message string
	}{
		{"nothing has changed", func(*fixture) {}, ""},
		{"the OperatorVersion was deleted", func(f *fixture) { f.Remove(webVersion("web-1.0")) }, ""},
		{"the OperatorVersion has no plan deploy any more", func(f *fixture) {
			ov := webVersion("web-1.0", endless)
			ov.Spec.Plans, ov.Generation = map[string]v1beta1.Plan{"update": ov.Spec.Plans["deploy"]}, 2
			f.Put(ov)
		}, ""},
		{"the key was rotated", func(f *fixture) { f.Put(keySecret(2)) }, ""},
		{"the record was deleted", func(f *fixture) { f.dropRecord(1) },
			"run 1 of Instance ns/web cannot continue: ControllerRevision ns/web-1 is missing; kubectl kudo plan retry starts it anew"},
		{"the record was changed", func(f *fixture) {
			r := record(f)
			r.Data.Raw = []byte(strings.Replace(string(r.Data.Raw), `"serviceAccount":"kudo"`, `"serviceAccount":"admin"`, 1))
			f.Put(r)
		}, forged},
		{"the status names another run", func(f *fixture) {
			f.change(func(i *v1beta1.Instance) {
				done := i.Status.PlanStatus["deploy"]
				done.Name, done.Status = "update", v1beta1.Complete
				i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": renamed(i.Status.PlanStatus["deploy"], "other"), "update": done}
			})
		}, forged},
		{"the status names the run for another plan", func(f *fixture) {
			f.change(func(i *v1beta1.Instance) {
				i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"update": i.Status.PlanStatus["deploy"]}
			})
		}, forged},
		{"the number of the run was dropped from the status", func(f *fixture) {
			f.change(func(i *v1beta1.Instance) {
				st := i.Status.PlanStatus["deploy"]
				st.Revision = 0
				i.Status.PlanStatus["deploy"] = st
			})
		}, "run 0 of Instance ns/web cannot continue: ControllerRevision ns/web-0 is missing; kubectl kudo plan retry starts it anew"},
		{"the key was replaced", func(f *fixture) {
			secret := keySecret(1)
			secret.Data["1"] = []byte(strings.Repeat("z", 32))
			f.Put(secret)
		}, forged},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t, endless)
			f.settle(t)
			f.recorded()
			tc.happens(f)
			f.restart()
			f.settle(t)
			i := f.instance()
			var failed []string
			for _, st := range i.Status.PlanStatus {
				if st.Status == v1beta1.FatalError {
					failed = append(failed, st.Message)
				}
			}
			if tc.message == "" {
				if st := i.Status.PlanStatus["deploy"]; !st.Status.IsRunning() || st.Revision != 1 || len(failed) > 0 {
					t.Errorf("the run does not go on: %+v", i.Status.PlanStatus)
				}
				return
			}
			if diff := cmp.Diff([]string{tc.message}, failed); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			if base := i.Status.Baseline; base.Snapshot != "" || base.ContentHash != "" {
				t.Errorf("the next run refers to the snapshot %q of a run that is not proven", base.Snapshot)
			}
			if got := f.writes(); count(got, "create ControllerRevision ns/") != 1 {
				t.Errorf("a run was started: %q", got)
			}
		})
	}
}

func renamed(st v1beta1.PlanStatus, uid string) v1beta1.PlanStatus {
	st.UID = types.UID(uid)
	return st
}

// TestResumeValues: a run that another manager continues has the values of its record, although spec has changed.
func TestResumeValues(t *testing.T) {
	f := newFixture(t, sensitive("TOKEN"), waiting, gen.Serial("other", "app"), gen.Param("OTHER", "1", "other"))
	f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = texts{"VALUE": "2", "TOKEN": "secret"} })
	f.settle(t)
	f.change(func(i *v1beta1.Instance) { i.Spec.Parameters["OTHER"] = "3" })
	f.restart()
	f.settle(t)
	found, ok := f.r.runs.Load(f.key())
	if !ok {
		t.Fatalf("nothing is remembered of the run: %+v", f.instance().Status)
	}
	run := found.(*activeRun).run
	if diff := cmp.Diff(texts{"VALUE": "2", "TOKEN": "secret"}, run.Parameters); diff != "" {
		t.Errorf("parameters: -want +got: %s", diff)
	}
	if run.Account.Name != "kudo" || run.Privileged || !cmp.Equal([]string{"TOKEN"}, run.Sensitive) || found.(*activeRun).key != "1" {
		t.Errorf("the run is %+v, of key %q", run, found.(*activeRun).key)
	}
	if queue := f.instance().Status.Queue; len(queue) != 1 || queue[0].PlanName != "other" {
		t.Errorf("the queue is %+v", queue)
	}
	text := string(f.Get(&appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-1")}).GetAnnotations()[v1beta1.SealAnnotation])
	if keyring.IDOf(text) != "1" {
		t.Errorf("the seal is %q", text)
	}
}

// TestResumeUnread: a record that cannot be read now does not end the run.
func TestResumeUnread(t *testing.T) {
	f := newFixture(t, endless)
	f.settle(t)
	f.restart()
	f.failReads("ControllerRevision")
	if result := f.reconcile(t); result.RequeueAfter == 0 {
		t.Error("the reconcile is not tried again")
	}
	f.Before(nil)
	f.settle(t)
	if st := f.instance().Status.PlanStatus["deploy"]; !st.Status.IsRunning() || st.Revision != 1 {
		t.Errorf("the run does not go on: %+v", st)
	}
}

// TestPrivilegesTakenBack: a run with the rights of kudo ends as soon as its namespace does not give them any more, whether or not the
// manager has started it itself.
func TestPrivilegesTakenBack(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		f := newFixture(t, endless)
		f.settings.Mode = settings.Privileged
		f.settle(t)
		f.settings.Mode = settings.Strict
		if restarted {
			f.restart()
		}
		f.recorded()
		f.settle(t)
		st := f.instance().Status.PlanStatus["deploy"]
		if st.Status != v1beta1.FatalError || !strings.Contains(st.Message, "which namespace ns does not give any more") {
			t.Errorf("restarted %t: the run is %s: %s", restarted, st.Status, st.Message)
		}
		if got := f.recorded(); count(got, "Normal PlanFinished Execution of plan deploy finished with status FATAL_ERROR") != 1 {
			t.Errorf("restarted %t: events %q", restarted, got)
		}
	}
}

// TestRunOfKUDO: a run that KUDO has started continues with the present spec, if there is a version that has its plan.
func TestRunOfKUDO(t *testing.T) {
	for _, tc := range []struct {
		reason, plan string
		version      bool
		message      string
	}{
		{"the version has the plan", "deploy", true, ""},
		{"the version has no such plan", "backup", true, "OperatorVersion ns/web-1.0 has no plan backup, and no snapshot of the one that the run was started with is left"},
		{"the version does not exist", "deploy", false, "OperatorVersion ns/web-1.0 does not exist, and no snapshot of it is left"},
	} {
		f := newFixture(t)
		f.change(func(i *v1beta1.Instance) {
			i.Spec.Parameters = texts{"VALUE": "2"}
			i.Status.PlanStatus = map[string]v1beta1.PlanStatus{tc.plan: {Name: tc.plan, Status: v1beta1.InProgress, UID: "kudo"}}
		})
		if !tc.version {
			f.Remove(webVersion("web-1.0"))
		}
		f.settle(t)
		st := f.instance().Status.PlanStatus[tc.plan]
		want := v1beta1.PlanStatus{Status: v1beta1.Complete}
		if tc.message != "" {
			want = v1beta1.PlanStatus{Status: v1beta1.FatalError, Message: tc.message}
		}
		if st.Status != want.Status || st.Message != want.Message || st.UID != "kudo" {
			t.Errorf("%s: the run %s is %s: %s", tc.reason, st.UID, st.Status, st.Message)
		}
	}
}

// TestStartSurvivesCrash: a manager that crashes between the record and the status starts no second run.
func TestStartSurvivesCrash(t *testing.T) {
	f := newFixture(t)
	broken := true
	f.Before(func(r apitest.Request) (any, error) {
		if broken && r.Subresource == "status" {
			return nil, errSlow
		}
		return nil, nil
	})
	f.reconcile(t)
	if st := f.instance().Status; st.Baseline != nil {
		t.Fatalf("the start was committed: %+v", st)
	}
	if got := f.Get(&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "web-app-0")}); got != nil {
		t.Error("an object was written before the run was committed")
	}
	broken = false
	f.restart()
	f.recorded()
	f.settle(t)
	st := f.instance().Status.PlanStatus["deploy"]
	if st.Status != v1beta1.Complete || st.Revision != 1 || st.UID != history.RunUID(instanceUID, 1) {
		t.Errorf("the run is %+v", st)
	}
	want := []string{"Normal PlanStarted Execution of plan deploy started", "Normal PlanFinished Execution of plan deploy finished with status COMPLETE"}
	if diff := cmp.Diff(want, f.recorded()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
}

// reformat gives the record of run 1 a format, as a version of kudo that has this one would have written it.
func (f *fixture) reformat(t *testing.T, from, to string) {
	t.Helper()
	record := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-1")}
	f.Read(record)
	record.Data.Raw = []byte(strings.Replace(string(record.Data.Raw), `"format":`+from+`,`, `"format":`+to+`,`, 1))
	record.Annotations[v1beta1.SealAnnotation] = ring(t, 1).Seal("kudo/1", "ns", "web-1", "1", "Instance", string(instanceUID), string(record.Data.Raw))
	f.Put(record)
}

const formatUnread = "ControllerRevision ns/web-1 has format 2, and this version of kudo reads formats up to 1: a newer one has written it. " +
	"Upgrade kudo to that version with kubectl kudo init --upgrade"

// TestFormatUnknown shows R22: a run that a newer version of kudo has started neither fails nor continues, and its status says why; the
// version that can read its record continues it.
func TestFormatUnknown(t *testing.T) {
	f := newFixture(t, endless)
	f.settle(t)
	before := f.instance()
	f.reformat(t, "1", "2")
	f.recorded()
	f.writes()
	f.restart()
	for range 2 {
		if result := f.settle(t); result.RequeueAfter == 0 {
			t.Error("R22: the Instance is not requeued")
		}
	}
	if diff := cmp.Diff(before.Status.PlanStatus, f.instance().Status.PlanStatus); diff != "" {
		t.Errorf("R22: the run was changed: %s", diff)
	}
	if diff := cmp.Diff(before.Status.Baseline, f.instance().Status.Baseline); diff != "" {
		t.Errorf("R22: the baseline was changed: %s", diff)
	}
	if got, want := f.ready(), "False RecordFormatUnknown "+formatUnread; got != want {
		t.Errorf("R22: Ready is %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"Warning RecordFormatUnknown " + formatUnread}, f.recorded()); diff != "" {
		t.Errorf("R22: events: -want +got: %s", diff)
	}
	if got := f.writes(); len(got) > 0 {
		t.Errorf("R22: %q was written", got)
	}
	f.reformat(t, "2", "1")
	f.restart()
	f.settle(t)
	if st := f.instance().Status.PlanStatus["deploy"]; !st.Status.IsRunning() || strings.Contains(f.ready(), "RecordFormatUnknown") {
		t.Errorf("R22: the version that reads the record does not continue the run: %s, %s", st.Status, f.ready())
	}
}

// TestDeletedFormatUnknown shows R22: an Instance whose cleanup plan stands in a record of a newer version is kept, and said to be.
func TestDeletedFormatUnknown(t *testing.T) {
	f := newFixture(t, gen.Serial(v1beta1.CleanupPlan, "cm"))
	f.settle(t)
	f.reformat(t, "1", "2")
	f.Remove(webVersion("web-1.0"))
	f.delete(t)
	f.restart()
	f.settle(t)
	if want := "False RecordFormatUnknown plan cleanup cannot be started: " + formatUnread + ". Or remove the finalizer"; !strings.HasPrefix(f.ready(), want) {
		t.Errorf("R22: Ready is %s, want %s…", f.ready(), want)
	}
	f.terminate()
	f.settle(t)
	if f.exists() {
		t.Error("R22: the Instance keeps a namespace that terminates")
	}
}
