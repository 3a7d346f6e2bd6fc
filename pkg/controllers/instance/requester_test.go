package instance

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// changeAs changes the Instance as a user does whose request passes the webhook.
func (f *fixture) changeAs(t *testing.T, user string, modify func(*v1beta1.Instance)) {
	t.Helper()
	generation := f.instance().Generation
	f.change(modify)
	f.change(func(i *v1beta1.Instance) {
		if i.Annotations == nil {
			i.Annotations = texts{}
		}
		for _, annotation := range []string{v1beta1.RequestedByAnnotation, v1beta1.RunRequestedByAnnotation} {
			if annotation == v1beta1.RequestedByAnnotation && i.Generation == generation && i.Annotations[annotation] != "" {
				continue // as spec was
			}
			i.Annotations[annotation] = ring(t, 1).SealRequester(annotation, i, user)
		}
	})
}

// parameter sets a parameter of the Instance.
func parameter(name, value string) func(*v1beta1.Instance) {
	return func(i *v1beta1.Instance) {
		if i.Spec.Parameters == nil {
			i.Spec.Parameters = texts{}
		}
		i.Spec.Parameters[name] = value
	}
}

// started returns the events since the last call that say what was started, queued and cancelled.
func (f *fixture) started() []string {
	return slices.DeleteFunc(f.recorded(), func(event string) bool {
		return !strings.HasPrefix(event, "Normal ") || strings.HasPrefix(event, "Normal PlanFinished")
	})
}

// TestRequester: the event and the record of a run name the user who asked for it, and a queued plan keeps its user.
func TestRequester(t *testing.T) {
	f := newFixture(t, twoPlans)
	f.changeAs(t, "ann", func(*v1beta1.Instance) {})
	f.settle(t)
	f.changeAs(t, "bob", func(i *v1beta1.Instance) { parameter("VALUE", "2")(i); parameter("OTHER", "2")(i) })
	f.settle(t)
	want := []string{
		"Normal PlanRequested Plan deploy was requested by ann: instance created",
		"Normal PlanStarted Execution of plan deploy started",
		"Normal PlanRequested Plan update was requested by bob: parameters changed: VALUE",
		"Normal PlanStarted Execution of plan update started",
		"Normal PlanQueued Plan other is queued behind plan update: parameters changed: OTHER; requested by bob",
		"Normal PlanRequested Plan other was requested by bob: parameters changed: OTHER",
		"Normal PlanStarted Execution of plan other started",
	}
	if diff := cmp.Diff(want, f.started()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
	for revision, user := range []string{1: "ann", 2: "bob", 3: "bob"} {
		if revision == 0 {
			continue
		}
		if record, err := f.r.History.Read(t.Context(), f.instance(), int64(revision)); err != nil || record.RequestedBy != user {
			t.Errorf("run %d is of %+v (%v), want %s", revision, record, err, user)
		}
	}
}

// TestRequesterOfQueue: a plan that waits is of the user who asked for it, and of those who have written spec since: the values may be theirs.
func TestRequesterOfQueue(t *testing.T) {
	f := newFixture(t, waiting, twoPlans)
	f.changeAs(t, "ann", func(*v1beta1.Instance) {})
	f.settle(t)
	f.changeAs(t, "bob", parameter("OTHER", "2"))
	f.settle(t)
	f.changeAs(t, "carl", parameter("VALUE", "2"))
	f.settle(t)
	want := []v1beta1.QueuedPlan{
		{PlanName: "update", Cause: "parameters changed: VALUE", RequestedBy: "carl"}, {PlanName: "other", Cause: "parameters changed: OTHER", RequestedBy: "bob, carl"},
	}
	queue := f.instance().Status.Queue
	slices.SortFunc(queue, func(a, b v1beta1.QueuedPlan) int { return strings.Compare(b.PlanName, a.PlanName) })
	if diff := cmp.Diff(want, queue); diff != "" {
		t.Errorf("queue: -want +got: %s", diff)
	}
	f.started()
	f.changeAs(t, "dora", func(i *v1beta1.Instance) {
		i.Annotations[v1beta1.CancelAnnotation] = string(i.Status.PlanStatus["deploy"].UID)
	})
	for range 5 {
		f.settle(t)
	}
	got := f.started()
	slices.Sort(got)
	if diff := cmp.Diff([]string{
		"Normal PlanCancelled Execution of plan deploy was cancelled; requested by dora",
		"Normal PlanRequested Plan other was requested by bob, carl: parameters changed: OTHER",
		"Normal PlanRequested Plan update was requested by carl: parameters changed: VALUE",
		"Normal PlanStarted Execution of plan other started",
		"Normal PlanStarted Execution of plan update started",
	}, got); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
}

// TestRequesterOfRetry: a retry is of the user who asked for it, though spec is that of another one.
func TestRequesterOfRetry(t *testing.T) {
	f := newFixture(t, waiting)
	f.changeAs(t, "ann", func(*v1beta1.Instance) {})
	f.settle(t)
	uid := string(f.instance().Status.PlanStatus["deploy"].UID)
	f.changeAs(t, "bob", func(i *v1beta1.Instance) { i.Annotations[v1beta1.CancelAnnotation] = uid })
	f.settle(t)
	f.changeAs(t, "carl", func(i *v1beta1.Instance) { i.Annotations[v1beta1.RetryAnnotation] = uid })
	f.settle(t)
	want := []string{
		"Normal PlanRequested Plan deploy was requested by ann: instance created",
		"Normal PlanStarted Execution of plan deploy started",
		"Normal PlanCancelled Execution of plan deploy was cancelled; requested by bob",
		"Normal PlanRequested Plan deploy was requested by carl: retry of run 1",
		"Normal PlanStarted Execution of plan deploy started",
	}
	if diff := cmp.Diff(want, f.started()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
}

// TestRequesterOfSuspend: where spec.suspend waits for the end of a run, the run for it is still of the user who set it.
func TestRequesterOfSuspend(t *testing.T) {
	f := newFixture(t, waiting, gen.Serial("update", "app"))
	f.changeAs(t, "ann", func(*v1beta1.Instance) {})
	f.settle(t)
	f.changeAs(t, "bob", func(i *v1beta1.Instance) { i.Spec.Suspend = true })
	f.settle(t)
	f.started()
	f.changeAs(t, "carl", func(i *v1beta1.Instance) {
		i.Annotations[v1beta1.CancelAnnotation] = string(i.Status.PlanStatus["deploy"].UID)
	})
	for range 3 {
		f.settle(t)
	}
	want := []string{"Normal PlanCancelled Execution of plan deploy was cancelled; requested by carl",
		"Normal PlanRequested Plan update was requested by bob: spec.suspend set",
		"Normal PlanStarted Execution of plan update started"}
	if diff := cmp.Diff(want, f.started()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
}

// TestRequesterUnknown: no user is named if the requester cannot be known: for a write without the webhook, an annotation that another
// client has set, and a source of parameters that has changed.
func TestRequesterUnknown(t *testing.T) {
	source := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "values"), Data: texts{"VALUE": "2"}}
	f := newFixture(t, twoPlans)
	f.Put(source)
	f.Before(func(r apitest.Request) (any, error) {
		if r.Kind != "SubjectAccessReview" {
			return nil, nil
		}
		return &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
	})
	f.settle(t)
	f.change(func(i *v1beta1.Instance) {
		i.Annotations = texts{v1beta1.RequestedByAnnotation: "1." + strings.Repeat("0", 64) + " admin"}
		i.Spec.Parameters = texts{"OTHER": "2"}
	})
	f.settle(t)
	f.changeAs(t, "ann", func(i *v1beta1.Instance) {
		i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "ConfigMap", Name: "values"}}
	})
	f.settle(t)
	if got := f.instance().Status.Baseline; got.Generation != f.instance().Generation {
		t.Errorf("the baseline has generation %d", got.Generation)
	}
	source.Data = texts{"VALUE": "3"}
	f.Put(source)
	f.restart()
	f.await(t, func() bool {
		f.settle(t)
		return f.instance().Status.Baseline.Revision == 4
	})
	want := []string{
		"Normal PlanStarted Execution of plan deploy started",
		"Normal PlanStarted Execution of plan other started",
		"Normal PlanRequested Plan update was requested by ann: parameters changed: VALUE",
		"Normal PlanStarted Execution of plan update started",
		"Normal PlanStarted Execution of plan update started",
	}
	if diff := cmp.Diff(want, f.started()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
}

// TestRequesterName: a name that a user chose cannot forge lines, or fill an event.
func TestRequesterName(t *testing.T) {
	f := newFixture(t)
	f.changeAs(t, "ann\nNormal PlanFinished "+strings.Repeat("x", 5000), func(*v1beta1.Instance) {})
	f.settle(t)
	record, err := f.r.History.Read(t.Context(), f.instance(), 1)
	if err != nil || len(record.RequestedBy) > maxRequester || strings.Contains(record.RequestedBy, "\n") || !strings.HasPrefix(record.RequestedBy, "ann Normal") {
		t.Errorf("the record has %q (%v)", record.RequestedBy, err)
	}
}

// TestJoinUsers checks that each user stands once among those who asked for a plan, whatever clients the user names (P28).
func TestJoinUsers(t *testing.T) {
	for _, tc := range []struct{ reason, users, user, want string }{
		{"the first", "", "ann", "ann"},
		{"none new", "ann", "", "ann"},
		{"another", "ann with kubectl-edit", "bob", "ann with kubectl-edit, bob"},
		{"the same with another client", "ann with kubectl-edit, bob", "ann with kubectl kudo update", "ann with kubectl kudo update, bob"},
		{"the same without a client", "ann with kubectl-edit, bob", "ann", "ann, bob"},
	} {
		if got := joinUsers(tc.users, tc.user); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
