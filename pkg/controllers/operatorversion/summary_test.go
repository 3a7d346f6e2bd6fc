package operatorversion

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/share"
)

// TestDeriveConditions checks what the status of the install plan and of what it installed adds up to.
func TestDeriveConditions(t *testing.T) {
	complete, fatal := v1beta1.PlanStatus{Status: v1beta1.Complete}, v1beta1.PlanStatus{Status: v1beta1.FatalError, Message: "no rights"}
	runs := v1beta1.PlanStatus{Status: v1beta1.InProgress}
	mismatch := func(message string) v1beta1.HeldResource {
		return v1beta1.HeldResource{Kind: "ConfigMap", Name: message, State: v1beta1.HoldMismatch, Message: message}
	}
	stalled := func(ov *v1beta1.OperatorVersion) {
		installed(ov)
		meta.SetStatusCondition(&ov.Status.Conditions, metav1.Condition{Type: v1beta1.StalledCondition, Status: metav1.ConditionTrue, Reason: "Before"})
		ov.Status.Drift = []v1beta1.ObjectDrift{{Kind: "ConfigMap", Name: "before"}}
	}
	for _, tc := range []struct {
		reason                      string
		ov                          *v1beta1.OperatorVersion
		inventory                   []v1beta1.HeldResource
		installed, stalled, drifted string
	}{
		{reason: "it never ran", ov: version(v1beta1.PlanStatus{}, nil)},
		{reason: "it runs for the first time", ov: version(runs, nil), installed: "False InstallPlanInProgress plan install is running"},
		{reason: "the first run has failed", ov: version(fatal, nil), installed: "False InstallPlanFailed no rights", stalled: "True PlanInFatalError plan install failed: no rights"},
		{reason: "it has succeeded", ov: version(complete, nil), installed: "True InstallPlanComplete"},
		{reason: "it has succeeded after all", ov: version(complete, stalled), installed: "True InstallPlanComplete"},
		{reason: "it runs again: what it installed is there", ov: version(runs, stalled), installed: "True InstallPlanComplete"},
		{reason: "a later run has failed: what it installed is there", ov: version(fatal, installed), installed: "True InstallPlanComplete",
			stalled: "True PlanInFatalError plan install failed: no rights"},
		{reason: "objects have changed", ov: version(complete, nil), inventory: []v1beta1.HeldResource{mismatch("a differs"), {Kind: "ConfigMap", Name: "b", State: v1beta1.HoldExisting, Message: "it was taken over"}, mismatch("c differs")},
			installed: "True InstallPlanComplete", drifted: "a differs; c differs"},
		{reason: "objects have changed, and a run will correct or report them", ov: version(runs, stalled), inventory: []v1beta1.HeldResource{mismatch("a differs")}, installed: "True InstallPlanComplete"},
	} {
		f := newFixture(t, tc.ov, nil)
		f.inventory = tc.inventory
		f.deriveConditions()
		got := []string{f.condition(v1beta1.InstalledCondition), f.condition(v1beta1.StalledCondition), ""}
		for _, d := range f.Next.Status.Drift {
			got[2] = strings.TrimPrefix(got[2]+"; "+d.Message, "; ")
		}
		if diff := cmp.Diff([]string{tc.installed, tc.stalled, tc.drifted}, got); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestDriftOf shows P30: fields and writer are those of the comparison, and stay for as long as the message does, which alone is in the
// inventory; a manager that takes over does not list the object anew.
func TestDriftOf(t *testing.T) {
	r := heldConfigMap("a", v1beta1.HoldMismatch)
	mismatch := &share.MismatchError{ID: share.IDOf(r), Drifted: true, By: "mallory\n", Differences: []share.Difference{{Path: "data.key", Live: `"z"`, Wanted: `"a"`}}}
	r.Message = mismatch.Error()
	f := newFixture(t, version(v1beta1.PlanStatus{Status: v1beta1.Complete}, nil), nil)
	f.inventory, f.mismatches = share.Inventory{r}, map[apply.ID]*share.MismatchError{share.IDOf(r): mismatch}
	f.deriveConditions()
	first := f.Next.Status.DeepCopy().Drift
	if len(first) != 1 || first[0].Name != "a" || first[0].Writer != "mallory" || first[0].Since == nil {
		t.Fatalf("the drift is %+v", first)
	}
	if diff := cmp.Diff([]string{".data.key"}, first[0].Fields); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	f.mismatches = nil
	f.deriveConditions()
	if diff := cmp.Diff(first, f.Next.Status.Drift); diff != "" {
		t.Errorf("without a comparison: -want +got: %s", diff)
	}
	f.inventory[0].Message = "it differs in another way"
	f.deriveConditions()
	if got := f.Next.Status.Drift; len(got) != 1 || len(got[0].Fields) > 0 || got[0].Writer != "" {
		t.Errorf("fields and writer of another comparison are listed: %+v", got)
	}
}

// TestConditionMessage checks that a long message is cut between two runes: the API server replaces a part of one, so that the status
// would differ with each reconcile.
func TestConditionMessage(t *testing.T) {
	for _, tc := range []struct {
		reason, message string
		whole           bool
	}{
		{"a short message", "a differs", true},
		{"one of the longest", strings.Repeat("x", maxCondition), true},
		{"one byte more", strings.Repeat("x", maxCondition+1), false},
		{"runes of two bytes", "x" + strings.Repeat("ä", maxCondition), false},
		{"messages that were cut before", strings.Repeat(strings.Repeat("x", maxMessage-4)+"…; ", 5), false},
		{"runes of four bytes", strings.Repeat("🚢", maxCondition), false},
	} {
		f := newFixture(t, version(v1beta1.PlanStatus{}, nil), nil)
		f.setCondition(v1beta1.StalledCondition, metav1.ConditionTrue, v1beta1.ReasonPlanInFatalError, tc.message)
		got := f.Next.Status.Conditions[0].Message
		if !utf8.ValidString(got) || len(got) > maxCondition || (got == tc.message) != tc.whole {
			t.Errorf("%s: %d bytes, valid %t, whole %t", tc.reason, len(got), utf8.ValidString(got), got == tc.message)
		}
		if !tc.whole && !strings.HasSuffix(got, "…") {
			t.Errorf("%s: the message does not show that it was cut", tc.reason)
		}
		if err := f.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		stored := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
		f.Server.Read(stored)
		if stored.Status.Conditions[0].Message != got {
			t.Errorf("%s: the cluster has another message", tc.reason)
		}
	}
}

// TestReportBlocked checks where the conditions say that no run can be started: what is installed stays so.
func TestReportBlocked(t *testing.T) {
	for _, tc := range []struct {
		reason             string
		ov                 *v1beta1.OperatorVersion
		installed, stalled string
	}{
		{"nothing is installed", version(v1beta1.PlanStatus{}, nil), "False HistoryKeyMissing no key", ""},
		{"the first run has failed", version(v1beta1.PlanStatus{Status: v1beta1.FatalError}, nil), "False HistoryKeyMissing no key", ""},
		{"an earlier run has installed it", version(v1beta1.PlanStatus{Status: v1beta1.Complete}, installed), "True InstallPlanComplete", "True HistoryKeyMissing no key"},
	} {
		f := newFixture(t, tc.ov, nil)
		f.keyMissing = "no key"
		for range 2 { // each message is one event, however often it is reported
			f.reportKeyMissing()
		}
		got := []string{f.condition(v1beta1.InstalledCondition), f.condition(v1beta1.StalledCondition)}
		if diff := cmp.Diff([]string{tc.installed, tc.stalled}, got); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
		if diff := cmp.Diff([]string{"Warning " + v1beta1.EventHistoryKeyMissing + " no key"}, f.recorded()); diff != "" {
			t.Errorf("%s: events: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestReportRecordTaken checks that a run whose record has no name is due again: spec does not count as acted upon.
func TestReportRecordTaken(t *testing.T) {
	f := newFixture(t, version(v1beta1.PlanStatus{Status: v1beta1.Complete}, installed), nil)
	f.Next.Generation, f.Next.Status.ObservedGeneration = 2, 2
	f.Summarize = f.deriveConditions
	f.reportRecordTaken(&history.TakenError{Namespace: "ns", Name: "web-install-2"})
	const message = "install plan install cannot be started: ControllerRevision ns/web-install-2 exists and is no record of kudo, so that the run cannot be recorded under that name: it was not changed. Delete it"
	if err := f.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.Next.Status.ObservedGeneration != 1 || f.result.RequeueAfter != pollInterval {
		t.Errorf("observed generation %d, again after %s, want 1 and %s", f.Next.Status.ObservedGeneration, f.result.RequeueAfter, pollInterval)
	}
	if diff := cmp.Diff("True RecordNameTaken "+message, f.condition(v1beta1.StalledCondition)); diff != "" {
		t.Errorf("condition: -want +got: %s", diff)
	}
	if diff := cmp.Diff(v1beta1.AggregatedStatus{Status: v1beta1.Pending, Message: message}, f.Next.Status.AggregatedStatus); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestReportFormatUnknown shows R22: a run that a newer version of kudo has started neither fails nor continues, and the conditions say why.
func TestReportFormatUnknown(t *testing.T) {
	f := newFixture(t, version(v1beta1.PlanStatus{Status: v1beta1.InProgress}, nil), nil)
	before := f.Next.Status.DeepCopy()
	f.Next.Status.PlanStatus["install"] = v1beta1.PlanStatus{Status: v1beta1.FatalError}
	newer := &history.FormatError{Namespace: "ns", Name: "web-install-1", Format: 2}
	for range 2 {
		f.reportFormatUnknown(newer)
	}
	if err := f.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.PlanStatus, f.Next.Status.PlanStatus); diff != "" {
		t.Errorf("R22: the run was changed: %s", diff)
	}
	if got, want := f.condition(v1beta1.InstalledCondition), "False RecordFormatUnknown "+newer.Error(); got != want {
		t.Errorf("R22: Installed is %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"Warning RecordFormatUnknown " + newer.Error()}, f.recorded()); diff != "" {
		t.Errorf("R22: events: -want +got: %s", diff)
	}
	if f.result.RequeueAfter == 0 {
		t.Error("R22: the OperatorVersion is not requeued")
	}
}
