package instance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// twoPlans gives the version plan other, which parameter OTHER triggers, and plan update, which runs for all others.
func twoPlans(ov *v1beta1.OperatorVersion) {
	for _, mod := range []gen.VersionMod{gen.Param("OTHER", "1", "other"), gen.Serial("update", "app"), gen.Serial("other", "app")} {
		mod(ov)
	}
}

// TestRefusedStartQueuesNothing: a run that cannot be recorded queues no plan, so that no event says so.
func TestRefusedStartQueuesNothing(t *testing.T) {
	f := newFixture(t, twoPlans)
	f.settle(t)
	f.recorded()
	taken := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-2")}
	f.Put(taken)
	f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "2", "OTHER": "2"} })
	refused := "ControllerRevision ns/web-2 exists and is no record of kudo, so that the run cannot be recorded under that name: it was not changed. Delete it, or give the Instance another name"
	for range 2 {
		if result := f.settle(t); result.RequeueAfter == 0 {
			t.Error("no watch shows that the name is free, and the start is not tried again")
		}
	}
	if diff := cmp.Diff([]string{"Warning RecordNameTaken " + refused}, f.recorded()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
	if diff := cmp.Diff("False RecordNameTaken "+refused, f.ready()); diff != "" {
		t.Error(diff)
	}
	f.Remove(taken)
	f.settle(t)
	want := []string{
		"Normal PlanStarted Execution of plan update started", "Normal PlanQueued Plan other is queued behind plan update: parameters changed: OTHER",
		"Normal PlanFinished Execution of plan update finished with status COMPLETE",
		"Normal PlanStarted Execution of plan other started", "Normal PlanFinished Execution of plan other finished with status COMPLETE",
	}
	if diff := cmp.Diff(want, f.recorded()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
}

// endless gives the version a plan deploy that is never done.
func endless(ov *v1beta1.OperatorVersion) {
	gen.Task("wait", v1beta1.DummyTask, v1beta1.TaskSpec{})(ov)
	gen.Serial("deploy", "wait")(ov)
}

// waiting gives the version a plan deploy that waits for Job web, whose pod does not end.
func waiting(ov *v1beta1.OperatorVersion) {
	gen.Template("job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{ .Name }}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n")(ov)
	gen.Apply("job", "job.yaml")(ov)
	gen.Serial("deploy", "job")(ov)
}

// TestObservedGenerationOfRun: while a plan is running, a generation that cannot be acted upon does not count as observed, whatever the
// cause: otherwise the end of the run would be taken for the answer to it.
func TestObservedGenerationOfRun(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*fixture)
		// observed is set if the newest generation counts as observed.
		observed bool
		event    string
	}{
		{"the new value restarts the run", func(*fixture) {}, true, ""},
		{"the value is refused", func(f *fixture) {
			f.change(func(i *v1beta1.Instance) { i.Spec.PlanExecution.PlanName = "none" })
		}, false, `Warning InvalidSpec spec.planExecution.planName: plan "none" does not exist in OperatorVersion ns/web-1.0 (plans: [deploy])`},
		{"the account does not exist", func(f *fixture) { f.Remove(account("ns", "kudo")) }, false,
			"Warning ServiceAccountMissing waits for ServiceAccount ns/kudo, with whose rights the plans run: kubectl kudo account create -n ns --instance web shows the rights they need and makes it"},
		{"a source does not exist", func(f *fixture) {
			f.change(func(i *v1beta1.Instance) {
				i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "none"}}
			})
		}, false, "Warning ParametersMissing ServiceAccount ns/kudo, with whose rights the plans run, must not read Secret none, which spec.parametersFrom names: give it the verb get on secrets"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t, endless)
			f.settle(t)
			f.recorded()
			f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "2"} })
			tc.change(f)
			for range 2 {
				f.settle(t)
			}
			i := f.instance()
			if observed := i.Status.ObservedGeneration == i.Generation; observed != tc.observed {
				t.Errorf("generation %d of %d is observed", i.Status.ObservedGeneration, i.Generation)
			}
			if !i.Status.PlanStatus["deploy"].Status.IsRunning() {
				t.Errorf("the run does not continue: %+v", i.Status.PlanStatus["deploy"])
			}
			if got := f.recorded(); tc.event != "" && !cmp.Equal([]string{tc.event}, got) {
				t.Errorf("events %q, want one: %q", got, tc.event)
			}
		})
	}
}

// TestStartAfterFormerInstance: an Instance whose name a former one had says what it waits for, looks for the end of it each second, later
// with back-off, and starts then.
func TestStartAfterFormerInstance(t *testing.T) {
	f := newFixture(t)
	f.change(func(i *v1beta1.Instance) { i.CreationTimestamp = metav1.NewTime(f.clock.Now()) })
	former := f.instance()
	former.UID = "former"
	record := &appsv1.ControllerRevision{ObjectMeta: gen.Meta("ns", "web-1")}
	record.Labels = map[string]string{v1beta1.HistoryLabel: "former"}
	record.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(former, v1beta1.GroupVersion.WithKind("Instance"))}
	f.Put(record)
	want := "False WaitingForDeletion ControllerRevision ns/web-1 exists and belongs to a former Instance web: waiting for its deletion"
	for range 2 {
		result := f.settle(t)
		if got := f.ready(); got != want || result.RequeueAfter != formerInterval {
			t.Errorf("ready is %q, want %q; the next reconcile is after %s", got, want, result.RequeueAfter)
		}
		if i := f.instance(); i.Status.PlanStatus["deploy"].Status != v1beta1.Pending || i.Status.AggregatedStatus.Status != v1beta1.Pending {
			t.Errorf("status: %+v", i.Status)
		}
	}
	f.clock.Step(formerPatience)
	if first, second := f.settle(t).RequeueAfter, f.settle(t).RequeueAfter; first == formerInterval || second <= first {
		t.Errorf("after two minutes, the next reconciles are after %s and %s, want a back-off", first, second)
	}
	f.Remove(record)
	f.settle(t)
	if got := f.ready(); got != "True ResourcesReady" || f.instance().Status.Baseline.Revision != 1 {
		t.Errorf("after its deletion: %q", got)
	}
}
