package instance

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestMissingObjects: an idle Instance whose long-lived objects are deleted is not ready, and says which; nothing is written again.
func TestMissingObjects(t *testing.T) {
	f := newFixture(t, gen.ConfigMaps("more", 1), gen.Serial("deploy", "app", "more"))
	f.settle(t)
	i := f.instance()
	i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: "finished", UID: "job"},
		v1beta1.ResourceStatus{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "finished", UID: "pod"}, v1beta1.ResourceStatus{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "not-written"})
	f.Put(i)
	for _, name := range []string{"web-more-0", "web-app-0"} {
		f.Remove(&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", name)})
	}
	f.await(t, func() bool {
		_, complete := f.r.Mirror.Get(idOf("v1", "ConfigMap", "ns", "web-app-0"))
		one, _ := f.r.Mirror.Get(idOf("v1", "ConfigMap", "ns", "web-app-0"))
		two, _ := f.r.Mirror.Get(idOf("v1", "ConfigMap", "ns", "web-more-0"))
		return complete && one == nil && two == nil
	})
	f.Requests()
	f.settle(t)
	if diff := cmp.Diff("False ResourceNotReady ConfigMap ns/web-app-0 is missing, ConfigMap ns/web-more-0 is missing", f.ready()); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if got := f.writes(); len(got) > 0 {
		t.Errorf("writes %q", got)
	}
	if status := f.instance().Status; status.Baseline.Revision != 1 || status.AggregatedStatus.Status != v1beta1.Complete {
		t.Errorf("a run was started: %+v", status)
	}
}

// TestLongLivedKinds: Jobs, Pods and Events may be deleted after they have served; kinds of their names in other groups may not.
func TestLongLivedKinds(t *testing.T) {
	for apiVersion, kinds := range map[string]map[string]bool{
		"v1":               {"ConfigMap": true, "Pod": false, "Event": false, "Job": true},
		"batch/v1":         {"CronJob": true, "Job": false, "Pod": true},
		"events.k8s.io/v1": {"Event": false},
		"example.org/v1":   {"Job": true, "Pod": true, "Event": true},
	} {
		for kind, want := range kinds {
			if got := isLongLived(idOf(apiVersion, kind, "ns", "x")); got != want {
				t.Errorf("%s of %s: %t, want %t", kind, apiVersion, got, want)
			}
		}
	}
}

// TestAppliedObject: an object counts as that of the inventory by its uid, which a new one of its name in the namespace need not have.
func TestAppliedObject(t *testing.T) {
	f := newFixture(t)
	for _, namespace := range []string{"ns", ""} {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		if namespace == "" {
			obj.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
		}
		obj.SetNamespace(namespace)
		obj.SetName("a")
		obj.SetUID("uid")
		obj.SetResourceVersion("1000000")
		f.r.Mirror.RecordWrite(obj)
	}
	a := f.action(t)
	inNamespace, inCluster := idOf("v1", "ConfigMap", "ns", "a"), idOf("v1", "Namespace", "", "a")
	for _, tc := range []struct {
		reason string
		id     apply.ID
		uid    string
		want   bool
	}{
		{"it is the object", inNamespace, "uid", true},
		{"it was created anew", inNamespace, "former", true},
		{"it was only named", inNamespace, "", false},
		{"it is the cluster-scoped object", inCluster, "uid", true},
		{"a cluster-scoped object of another uid", inCluster, "former", false},
		{"a cluster-scoped object was only named", inCluster, "", false},
		{"it does not exist", idOf("v1", "ConfigMap", "ns", "b"), "uid", false},
	} {
		if live, _ := a.objects.appliedObject(tc.id, uidOf(tc.uid)); (live != nil) != tc.want {
			t.Errorf("%s: %v", tc.reason, live)
		}
	}
}

// explorer answers each question with what a test gives.
type explorer func(r explore.Request) (explore.Answer, bool, error)

// Explore implements runner.Interpreter.
func (e explorer) Explore(_ context.Context, r explore.Request) (explore.Answer, bool, error) {
	return e(r)
}

// TestReflectStatus: the status of objects follows what the interpreter answers, and stays, marked, while that is not known (C65).
func TestReflectStatus(t *testing.T) {
	before := v1beta1.ResourceStatus{Status: raw(`{"phase":"Old"}`), Omitted: []string{"status.nodes"}}
	unknown := before
	unknown.StatusUnknown = true
	answer := func(status any) func() (explore.Answer, bool, error) {
		return func() (explore.Answer, bool, error) { return explore.Answer{Status: status}, true, nil }
	}
	for _, tc := range []struct {
		reason  string
		before  v1beta1.ResourceStatus
		answer  func() (explore.Answer, bool, error)
		missing bool
		want    v1beta1.ResourceStatus
	}{
		{"it answers", before, answer(map[string]any{"phase": "Now"}), false, v1beta1.ResourceStatus{Status: raw(`{"phase":"Now"}`)}},
		{"it answers again", unknown, answer(map[string]any{"phase": "Now"}), false, v1beta1.ResourceStatus{Status: raw(`{"phase":"Now"}`)}},
		{"it has no opinion", before, func() (explore.Answer, bool, error) { return explore.Answer{}, false, nil }, false, v1beta1.ResourceStatus{}},
		{"it takes nothing", unknown, answer(nil), false, v1beta1.ResourceStatus{}},
		{"it takes too much", before, answer(map[string]any{"phase": "Now", "message": strings.Repeat("x", 2000)}), false,
			v1beta1.ResourceStatus{Status: raw(`{"phase":"Now"}`), Omitted: []string{"status.message"}}},
		{"it fails", before, func() (explore.Answer, bool, error) { return explore.Answer{}, false, errors.New("no answer") }, false, unknown},
		{"the object does not exist", unknown, answer(map[string]any{"phase": "Now"}), true, v1beta1.ResourceStatus{}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t)
			f.settle(t)
			f.r.Runner = runner.New(runner.Options{All: explore.Chain{}, External: explorer(func(r explore.Request) (explore.Answer, bool, error) {
				if r.Operation != explore.Status {
					return explore.Answer{}, false, nil
				}
				return tc.answer()
			})})
			if tc.missing {
				f.Remove(f.applied())
				f.await(t, func() bool {
					live, complete := f.r.Mirror.Get(idOf("v1", "ConfigMap", "ns", "web-app-0"))
					return complete && live == nil
				})
			}
			f.change(func(i *v1beta1.Instance) {
				r := &i.Status.Resources[0]
				r.Status, r.Omitted, r.StatusUnknown = tc.before.Status, tc.before.Omitted, tc.before.StatusUnknown
			})
			f.settle(t)
			r := f.instance().Status.Resources[0]
			if diff := cmp.Diff(tc.want, v1beta1.ResourceStatus{Status: r.Status, Omitted: r.Omitted, StatusUnknown: r.StatusUnknown}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// driftedFixture is a fixture whose ConfigMaps web-app-0 and web-more-0 are as the inventory has them.
func driftedFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, gen.ConfigMaps("more", 1), gen.Serial("deploy", "app", "more"))
	f.settle(t)
	for n := range 2 {
		f.own(t, n, "key")
	}
	f.change(func(i *v1beta1.Instance) {
		for n := range i.Status.Resources {
			i.Status.Resources[n].FieldsHash, _ = f.r.Mirror.Digest(f.configMap(n), "kudo/ns/web")
		}
	})
	f.settle(t)
	return f
}

// configMap names a ConfigMap of the Instance.
func (f *fixture) configMap(n int) apply.ID {
	return idOf("v1", "ConfigMap", "ns", []string{"web-app-0", "web-more-0"}[n])
}

// own has the Instance own fields of the data of a ConfigMap, and user kubectl the field key if it is not among them.
func (f *fixture) own(t *testing.T, n int, fields ...string) {
	t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", f.configMap(n).Name)}
	f.Read(config)
	mine := []string{`"f:other":{}`}
	if len(fields) > 0 {
		mine = append(mine, `"f:key":{}`)
	}
	entry := func(manager, operation, names string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:data":{` + names + `}}`)}
	}
	config.ManagedFields = []metav1.ManagedFieldsEntry{entry("kudo/ns/web", "Apply", strings.Join(mine, ","))}
	if len(fields) == 0 {
		config.ManagedFields = append(config.ManagedFields, entry("kubectl-edit", "Update", `"f:key":{}`))
	}
	version := f.Put(config).GetResourceVersion()
	f.await(t, func() bool {
		live, _ := f.r.Mirror.Get(f.configMap(n))
		return live != nil && live.GetResourceVersion() == version
	})
}

// TestDrift: the status names what others have changed, costs one read a change, and ends with the change.
func TestDrift(t *testing.T) {
	const one, two = "ConfigMap ns/web-app-0: .data.key was changed by kubectl-edit", "ConfigMap ns/web-more-0: .data.key was changed by kubectl-edit"
	f := driftedFixture(t)
	drifted := func(reason, want string, reads int, events ...string) {
		t.Helper()
		f.Requests()
		f.recorded()
		f.settle(t)
		f.settle(t)
		var wanted []string
		for _, e := range events {
			wanted = append(wanted, "Warning ObjectChanged "+e)
		}
		if diff := cmp.Diff(wanted, f.recorded()); diff != "" {
			t.Errorf("%s: events -want +got: %s", reason, diff)
		}
		requests := f.Requests()
		if diff := cmp.Diff(want, driftText(f.instance())); diff != "" {
			t.Errorf("%s: -want +got: %s", reason, diff)
		}
		if got := count(requests, "get ConfigMap ns/web-app-0") + count(requests, "get ConfigMap ns/web-more-0"); got != reads {
			t.Errorf("%s: %d reads, want %d", reason, got, reads)
		}
	}
	drifted("nothing has changed", "", 0)
	f.own(t, 1)
	drifted("one has changed", two, 1, two)
	f.own(t, 0)
	drifted("the other has changed, too", one+"; "+two, 1, one)
	f.own(t, 1, "key")
	drifted("one was put right", one, 0)
	f.restart()
	f.r.drifts.Clear()
	drifted("another manager takes over", one, 1)
	f.own(t, 0, "key")
	drifted("both were put right", "", 0)
}

// TestDriftUnknown: an object that cannot be read now, or that the account must not read, leaves the status as it was.
func TestDriftUnknown(t *testing.T) {
	for _, tc := range []struct {
		reason    string
		err       error
		transient bool
	}{
		{"the account must not read it", apierrors.NewForbidden(corev1.Resource("configmaps"), "web-app-0", nil), false},
		{"it cannot be read now", errSlow, true},
	} {
		f := driftedFixture(t)
		f.own(t, 0)
		unread := func(r apitest.Request) (any, error) {
			if r.Verb == "get" && r.Name == "web-app-0" {
				return nil, tc.err
			}
			return nil, nil
		}
		f.Before(unread)
		if result := f.settle(t); (result.RequeueAfter > 0) != tc.transient {
			t.Errorf("%s: it is reconciled again after %s", tc.reason, result.RequeueAfter)
		}
		if got := driftText(f.instance()); got != "" {
			t.Errorf("%s: the drift is %q", tc.reason, got)
		}
		f.Before(nil)
		f.settle(t)
		if got := driftText(f.instance()); got == "" {
			t.Errorf("%s: what was not known then is not asked for again", tc.reason)
		}
		f.Before(unread)
		f.r.drifts.Clear()
		f.settle(t)
		if got := driftText(f.instance()); got == "" {
			t.Errorf("%s: for another manager, the drift has ended", tc.reason)
		}
	}
}

// TestDriftEnds: a drift that was undone is removed from the status, although another object cannot be read.
func TestDriftEnds(t *testing.T) {
	f := driftedFixture(t)
	f.own(t, 0)
	f.settle(t)
	f.own(t, 1)
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "get" && r.Name == "web-more-0" {
			return nil, apierrors.NewForbidden(corev1.Resource("configmaps"), r.Name, nil)
		}
		return nil, nil
	})
	for _, want := range []string{"ConfigMap ns/web-app-0: .data.key was changed by kubectl-edit", ""} {
		f.settle(t)
		if diff := cmp.Diff(want, driftText(f.instance())); diff != "" {
			t.Errorf("-want +got: %s", diff)
		}
		f.own(t, 0, "key")
	}
}
