package share

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/apitest"
)

// holdOf is the inventory's entry of an object that kudo created.
func holdOf(live *unstructured.Unstructured) v1beta1.HeldResource {
	apiVersion, kind := live.GroupVersionKind().ToAPIVersionAndKind()
	return v1beta1.HeldResource{
		APIVersion: apiVersion, Kind: kind, Namespace: live.GetNamespace(), Name: live.GetName(), UID: live.GetUID(), State: v1beta1.HoldCreated,
	}
}

// answer lets one request fail.
func (f *fixture) answer(request string, err error) {
	f.Before(func(r apitest.Request) (any, error) {
		if r.String() == request {
			return nil, err
		}
		return nil, nil
	})
}

var roles = schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}

// TestReleaseOrphans checks that what was joined is released, the last first, only if the holder was deleted.
func TestReleaseOrphans(t *testing.T) {
	deleted := apierrors.NewNotFound(schema.GroupResource{Group: "kudo.dev", Resource: "installations"}, "ns-web-1.0")
	for name, tc := range map[string]struct {
		reason string
		cause  error
		fails  bool
		want   []string
		err    string
	}{
		"Deleted": {"the holder was deleted", deleted, false, []string{"delete ConfigMap apps/b", "delete ConfigMap apps/a"}, deleted.Error()},
		"Written": {"the holder was written", nil, false, nil, ""},
		"Changed": {"the holder was changed, and releases by itself", apierrors.NewConflict(roles, "x", errors.New("changed")), false, nil, "changed"},
		"Fails":   {"a release that fails is told besides the cause", deleted, true, []string{"delete ConfigMap apps/b"}, "quota"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var held Inventory
			for _, name := range []string{"a", "b"} {
				held = append(held, holdOf(f.Put(made(parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: apps, name: "+name+"}}"), true, f.web))))
			}
			f.Put(made(parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: apps, name: c}}"), true, f.web))
			held = append(held, v1beta1.HeldResource{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: "c"}) // it was not joined
			if tc.fails {
				f.answer("delete ConfigMap apps/b", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "b", errors.New("quota")))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // the manager ends
			err := f.Session(f.web, Policy{}, held).ReleaseOrphans(ctx, held, tc.cause)
			if (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || !errors.Is(err, tc.cause)) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, writes(f.Requests()), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLeaveFails checks that a release is not complete before the object is known to be released.
func TestLeaveFails(t *testing.T) {
	conflict := apierrors.NewConflict(roles, "app", errors.New("changed"))
	for name, tc := range map[string]struct {
		reason, request string
		answer          error
		want            string
		requests        int
	}{
		"Read":     {"the object cannot be read", "get ClusterRole app", apierrors.NewForbidden(roles, "app", errors.New("no")), "is forbidden: no", 1},
		"Delete":   {"the deletion is refused", "delete ClusterRole app", apierrors.NewForbidden(roles, "app", errors.New("no")), "is forbidden: no", 1},
		"Conflict": {"the object changes at each attempt", "delete ClusterRole app", conflict, "release operation against", attempts},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			live := f.Put(role(t, "get", true, f.web))
			f.answer(tc.request, tc.answer)
			got := f.Session(f.web, Policy{}, nil).Release(t.Context(), holdOf(live), false)
			if got.Done || got.Waiting != "" || got.Err == nil || !strings.Contains(got.Err.Error(), tc.want) || got.ID != apply.IDOf(live) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			requests := slices.DeleteFunc(f.Requests(), func(r string) bool { return r != tc.request })
			if len(requests) != tc.requests {
				t.Errorf("%s: %d requests, want %d", tc.reason, len(requests), tc.requests)
			}
			if diff := cmp.Diff(live, f.Server.Get(live)); diff != "" {
				t.Errorf("%s: the object was changed:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLeaveRecorded checks a release by a holder that is recorded by uid, and is no owner any more.
func TestLeaveRecorded(t *testing.T) {
	for reason, tc := range map[string]struct {
		managed bool
		owners  func(*fixture) []*v1beta1.Installation
		deleted bool
	}{
		"another owner holds it":                    {true, (*fixture).database, false},
		"another client has taken it over":          {false, nil, false},
		"no owner is left: the last one deletes it": {true, nil, true},
	} {
		f := newFixture(t)
		var holders []*v1beta1.Installation
		if tc.owners != nil {
			holders = tc.owners(f)
		}
		live := f.Put(role(t, "get", tc.managed, holders...))
		if got := f.Session(f.web, Policy{}, nil).Release(t.Context(), holdOf(live), false); !got.Done || got.Err != nil {
			t.Errorf("%s: %+v", reason, got)
		}
		if after := f.Server.Get(live); (after == nil) != tc.deleted || after != nil && !cmp.Equal(live, after) {
			t.Errorf("%s: %v", reason, after)
		}
	}
}

// TestKindsThatAreNotServed checks what is said of a held object whose kind the cluster does not serve.
func TestKindsThatAreNotServed(t *testing.T) {
	f := newFixture(t)
	ship := v1beta1.HeldResource{APIVersion: "example.com/v1", Kind: "Ship", Namespace: "apps", Name: "a", UID: "a", State: v1beta1.HoldCreated}
	s := f.Session(f.web, Policy{}, Inventory{ship})
	if got := s.Release(t.Context(), ship, false); !got.Done || got.Err != nil {
		t.Errorf("without its definition the object does not exist: %+v", got)
	}
	previews, err := s.Preview(t.Context(), false)
	if diff := cmp.Diff([]ReleasePreview{{ID: IDOf(ship), Reason: "its kind no longer exists"}}, previews); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if live, err := f.Live(t.Context(), ship); live != nil || err != nil {
		t.Errorf("%v, %v", live, err)
	}
	f.Put(shipDefinition(t))
	got := s.Release(t.Context(), ship, false)
	if got.Done || got.Err == nil || !strings.HasSuffix(got.Err.Error(), "waiting for CustomResourceDefinition ships.example.com to be served") {
		t.Errorf("its definition exists, so that the object may: %+v", got)
	}
	outage := apierrors.NewInternalError(errors.New("no leader"))
	f.answer("list CustomResourceDefinition", outage)
	if got := s.Release(t.Context(), ship, false); got.Done || got.Err == nil {
		t.Errorf("whether its definition exists is not known: %+v", got)
	}
}

// TestPreviewOfContent checks what a release says of objects that hold others, with and without force, and of another object.
func TestPreviewOfContent(t *testing.T) {
	f := newFixture(t)
	claim := f.Put(made(parse(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: apps}}"), true, f.web))
	other := f.Put(role(t, "get", true, f.db))
	replaced := holdOf(other)
	replaced.UID = "former"
	held := Inventory{holdOf(claim), replaced}
	s := f.Session(f.web, Policy{}, held)
	for force, want := range map[bool]ReleasePreview{
		false: {ID: apply.IDOf(claim), Blocks: true, Reason: "holds data"}, true: {ID: apply.IDOf(claim), Deleted: true, Reason: "holds data"},
	} {
		got, err := s.Preview(t.Context(), force)
		all := []ReleasePreview{{ID: apply.IDOf(other), Reason: "it is another object of the name"}, want}
		if diff := cmp.Diff(all, got); diff != "" || err != nil {
			t.Errorf("force %v: %v (-want +got):\n%s", force, err, diff)
		}
	}
	block, err := s.Blocked(t.Context())
	if err != nil || block == nil || block.Reason != v1beta1.ReasonPersistentVolumeClaimKept || !strings.HasPrefix(block.Message, "PersistentVolumeClaim apps/data holds data. Delete its content, or keep ") {
		t.Errorf("%+v, %v", block, err)
	}
	f.answer("get PersistentVolumeClaim apps/data", apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data", errors.New("no")))
	if got, err := s.Preview(t.Context(), true); err != nil || len(got) != 2 || got[1].Deleted || !apierrors.IsForbidden(got[1].Unknown) {
		t.Errorf("a claim that may not be read: %+v, %v", got, err)
	}
	if block, err := s.Blocked(t.Context()); block != nil || err == nil || !strings.HasPrefix(err.Error(), "PersistentVolumeClaim apps/data: ") {
		t.Errorf("a claim that cannot be read: %+v, %v", block, err)
	}
	if changed := writes(f.Requests()); len(changed) > 0 {
		t.Errorf("a preview writes: %v", changed)
	}
}

// TestBlockedPasses checks which held objects are in the way of no release.
func TestBlockedPasses(t *testing.T) {
	const text = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: apps}}"
	for reason, make := range map[string]func(*fixture) (*unstructured.Unstructured, v1beta1.HoldState){
		"it was there before": func(f *fixture) (*unstructured.Unstructured, v1beta1.HoldState) {
			return made(parse(t, text), true, f.web), v1beta1.HoldExisting
		},
		"another client has taken it over": func(f *fixture) (*unstructured.Unstructured, v1beta1.HoldState) {
			return made(parse(t, text), false, f.web), v1beta1.HoldCreated
		},
		"another owner holds it": func(f *fixture) (*unstructured.Unstructured, v1beta1.HoldState) {
			return made(parse(t, text), true, f.web, f.db), v1beta1.HoldShared
		},
		"it is being deleted": func(f *fixture) (*unstructured.Unstructured, v1beta1.HoldState) {
			obj, now := made(parse(t, text), true, f.web), metav1.Now()
			obj.SetDeletionTimestamp(&now)
			obj.SetFinalizers([]string{"example.com/x"})
			return obj, v1beta1.HoldCreated
		},
	} {
		f := newFixture(t)
		obj, state := make(f)
		r := holdOf(f.Put(obj))
		r.State = state
		deleted := r
		deleted.Name = "deleted"
		if block, err := f.Session(f.web, Policy{}, Inventory{r, deleted}).Blocked(t.Context()); block != nil || err != nil {
			t.Errorf("%s: %+v, %v", reason, block, err)
		}
	}
}

// TestCustomResourcesUnknown checks that a definition is deleted only if it is known that it has no custom resources.
func TestCustomResourcesUnknown(t *testing.T) {
	const unserved = "has objects of kind Ship that cannot be listed, since no version of it is served"
	notFound := apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "ships"}, "")
	for _, tc := range []struct {
		reason    string
		serve     bool
		condition string
		answer    error
		want, err string
	}{
		{"no version is served", false, "True", nil, unserved, ""},
		{"it never was established", true, "False", notFound, "", ""},
		{"it is established, and its kind is not served for a moment", true, "True", notFound, "", "list objects of kind Ship: "},
		{"a list is refused", true, "False", apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")), "", "list objects of kind Ship: "},
	} {
		f := newFixture(t)
		f.AddKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}, true)
		crd := shipDefinition(t)
		crd.Object["status"] = parse(t, "{conditions: [{type: Established, status: '"+tc.condition+"'}]}").Object
		crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["served"] = tc.serve
		f.answer("list Ship", tc.answer)
		got, err := f.Session(f.web, Policy{}, nil).customResources(t.Context(), crd)
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v", tc.reason, got, err)
		}
	}
}

// TestContentOfKinds checks which kinds that cannot be listed leave a Namespace empty.
func TestContentOfKinds(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "ships"}
	notFound := apierrors.NewNotFound(resource.GroupResource(), "")
	for _, tc := range []struct {
		reason  string
		answer  error
		defined bool
		fails   bool
	}{
		{"objects of the kind cannot be listed", apierrors.NewMethodNotSupported(resource.GroupResource(), "list"), true, false},
		{"its definition was deleted, with all of the kind", notFound, false, false},
		{"its definition is there: its objects are not known", notFound, true, true},
		{"a list is refused", apierrors.NewGenericServerResponse(http.StatusForbidden, "list", resource.GroupResource(), "", "no", 0, false), false, true},
	} {
		f := newFixture(t)
		if f.AddKind(resource.GroupVersion().WithKind("Ship"), true); tc.defined {
			f.Put(shipDefinition(t))
		}
		f.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "list" && r.Kind == "Ship" {
				return nil, tc.answer
			}
			return nil, nil
		})
		got, err := f.Session(f.web, Policy{}, nil).contentOf(t.Context(), apply.NamespacedKind{Resource: resource, Kind: "Ship"}, "apps")
		if got != nil || (err != nil) != tc.fails {
			t.Errorf("%s: %v, %v", tc.reason, got, err)
		}
	}
}
