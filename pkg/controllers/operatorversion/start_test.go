package operatorversion

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/test/apitest"
)

// TestStartRun checks what is written before a run counts as started, and in which order.
func TestStartRun(t *testing.T) {
	newer := func(ov *v1beta1.OperatorVersion) {
		ov.Status.Revision = 1
		ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: "PASSWORD", Sensitive: true})
		ov.Spec.InstallParameters = map[string]string{"SIZE": "2", "PASSWORD": "secret"}
	}
	f := newFixture(t, version(v1beta1.PlanStatus{}, newer), &v1beta1.Installation{})
	f.Next.Status.PlanStatus = map[string]v1beta1.PlanStatus{"prepare": {Name: "prepare", Status: v1beta1.InProgress, UID: "old", Revision: 1}}
	started, err := f.startRun(t.Context(), "OperatorVersion changed")
	if !started || err != nil {
		t.Fatalf("started %t: %v", started, err)
	}
	if diff := cmp.Diff([]string{"create ControllerRevision ns/", "patch OperatorVersion ns/web/status"}, f.writes()); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	stored := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	f.Server.Read(stored)
	uid := history.RunUID(stored.UID, 2)
	if st := stored.Status.PlanStatus["install"]; stored.Status.Revision != 2 || st.UID != uid || st.Revision != 2 || st.Status.IsTerminal() {
		t.Errorf("revision %d, plan %+v: want run 2 of uid %s", stored.Status.Revision, st, uid)
	}
	if st := stored.Status.PlanStatus["prepare"]; st.Status != v1beta1.FatalError || st.Message != "given up: spec.installPlan is install now" {
		t.Errorf("the run of the former install plan: %s %q", st.Status, st.Message)
	}
	if stored.Status.InstallationUID != f.installation.UID || hasInputChanged(stored, f.ring) {
		t.Error("the status does not hold the inputs of the run")
	}
	run, err := f.History.Read(t.Context(), f.Next, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"SIZE": "2", "PASSWORD": "secret"}, run.Parameters); diff != "" || run.Cause != "OperatorVersion changed" || !cmp.Equal(run.Sensitive, []string{"PASSWORD"}) {
		t.Errorf("cause %q, sensitive %v, parameters -want +got: %s", run.Cause, run.Sensitive, diff)
	}
	f.Before(func(apitest.Request) (any, error) { return nil, errors.New("the record was read") })
	if lost, err := f.endUnrecordedRun(t.Context(), "install", f.Next.Status.PlanStatus["install"]); lost || err != nil {
		t.Errorf("the run that was just started has no proof: %t (%v)", lost, err)
	}
}

// TestStartRunFails checks that no run counts as started before its record and the status are written.
func TestStartRunFails(t *testing.T) {
	for _, refused := range []string{"create ControllerRevision ns/", "patch OperatorVersion ns/web/status"} {
		f := newFixture(t, version(v1beta1.PlanStatus{}, nil), &v1beta1.Installation{})
		f.Before(func(r apitest.Request) (any, error) {
			if r.String() == refused {
				return nil, errors.New("down")
			}
			return nil, nil
		})
		if started, err := f.startRun(t.Context(), "any"); started || err == nil {
			t.Errorf("%s: started %t (%v)", refused, started, err)
		}
		stored := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
		if f.Server.Read(stored); stored.Status.Revision != 0 || len(f.recorded()) > 0 {
			t.Errorf("%s: the status has run %d", refused, stored.Status.Revision)
		}
	}
}

// TestStartRunTaken checks that a ControllerRevision of the name that is not kudo's is neither changed nor an error.
func TestStartRunTaken(t *testing.T) {
	f := newFixture(t, version(v1beta1.PlanStatus{}, nil), &v1beta1.Installation{})
	foreign := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-install-1", Labels: map[string]string{"app": "other"}}}
	before := f.Put(foreign)
	if started, err := f.startRun(t.Context(), "any"); started || err != nil {
		t.Fatalf("started %t (%v)", started, err)
	}
	if diff := cmp.Diff(before, f.Server.Get(foreign)); diff != "" {
		t.Errorf("the ControllerRevision was changed: %s", diff)
	}
	if f.Next.Status.Revision != 0 || len(f.Next.Status.PlanStatus) > 0 {
		t.Errorf("the status has run %d, %v", f.Next.Status.Revision, f.Next.Status.PlanStatus)
	}
}

// TestCreateHolder checks that finalizer and Installation are there before anything is installed, and are written once.
func TestCreateHolder(t *testing.T) {
	f := newFixture(t, version(v1beta1.PlanStatus{}, nil), nil)
	for _, want := range [][]string{{"patch OperatorVersion ns/web", "create Installation"}, {}} {
		if err := f.createHolder(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := f.writes(); !cmp.Equal(got, want) {
			t.Errorf("writes %v, want %v", got, want)
		}
	}
	i := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: f.Next.InstallationName()}}
	f.Server.Read(i)
	if diff := cmp.Diff(v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "ns", Name: "web", UID: "ov"}, i.Spec.Subject); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if !cmp.Equal(i.Finalizers, []string{v1beta1.InstallationFinalizer}) || f.Next.Status.Installation != i.Name || f.installation.UID != i.UID {
		t.Errorf("finalizers %v, status %q", i.Finalizers, f.Next.Status.Installation)
	}
}

// TestEndUnrecordedRun checks that a run continues only with the record that its start has written.
func TestEndUnrecordedRun(t *testing.T) {
	uid := history.RunUID("ov", 1)
	start := func(f *fixture, modify func(*history.Run)) {
		run := history.Run{Plan: "install", Cause: "any", UID: uid, OperatorVersion: "ns/web", Started: metav1.NewMicroTime(f.clock.Now())}
		modify(&run)
		if err := f.History.RecordStart(t.Context(), f.Next, 1, run); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		reason string
		record func(*fixture)
		refuse error
		lost   bool
		err    bool
	}{
		{reason: "its record is there", record: func(f *fixture) { start(f, func(*history.Run) {}) }},
		{reason: "it has no record", lost: true},
		{reason: "the record is of another run", record: func(f *fixture) { start(f, func(r *history.Run) { r.UID = "other" }) }, lost: true},
		{reason: "the record is of another plan", record: func(f *fixture) { start(f, func(r *history.Run) { r.Plan = "other" }) }, lost: true},
		{reason: "the record cannot be read: the run is not ended for that", refuse: errors.New("down"), err: true},
		{reason: "this manager has started it", record: func(f *fixture) {
			f.begun.Store(f.key(), proof{uid, f.ring.Current(), ""})
		}, refuse: errors.New("the record was read")},
		{reason: "this manager has started another one", record: func(f *fixture) { f.begun.Store(f.key(), proof{"other", f.ring.Current(), ""}) }, lost: true},
		{reason: "this manager has started it with a key that is lost", record: func(f *fixture) { f.begun.Store(f.key(), proof{uid, "9", ""}) }, lost: true},
	} {
		f := newFixture(t, version(v1beta1.PlanStatus{Status: v1beta1.InProgress}, nil), &v1beta1.Installation{})
		st := f.Next.Status.PlanStatus["install"]
		if st.UID = uid; tc.record != nil {
			tc.record(f)
		}
		f.Before(func(apitest.Request) (any, error) { return nil, tc.refuse })
		lost, err := f.endUnrecordedRun(t.Context(), "install", st)
		if lost != tc.lost || (err != nil) != tc.err {
			t.Errorf("%s: lost %t (%v), want %t", tc.reason, lost, err, tc.lost)
		}
		if st := f.Next.Status.PlanStatus["install"]; (st.Status == v1beta1.FatalError) != tc.lost {
			t.Errorf("%s: status %s %q", tc.reason, st.Status, st.Message)
		}
	}
}
