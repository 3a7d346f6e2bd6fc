package share

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// fixture is an Engine on an API server with the Installations of three OperatorVersions: two of operator web, one of db.
type fixture struct {
	*apitest.Server
	*Engine
	web, newer, db *v1beta1.Installation
}

func newFixture(t *testing.T, objects ...*unstructured.Unstructured) *fixture {
	t.Helper()
	f := &fixture{Server: apitest.Start(t)}
	holder := func(operator, name, version string) *v1beta1.Installation {
		ov := gen.Version("ns", name)
		ov.Spec.Operator.Name, ov.Spec.Version = operator, version
		ov.UID = f.Put(ov).GetUID()
		i := &v1beta1.Installation{}
		i.Name = "ns-" + name
		i.Spec.Subject = v1beta1.InstallationSubject{Kind: "OperatorVersion", Namespace: "ns", Name: name, UID: ov.UID}
		i.UID = f.Put(i).GetUID()
		return i
	}
	f.web, f.newer, f.db = holder("web", "web-1.0", "1.0.0"), holder("web", "web-2.0", "2.0.0"), holder("db", "db-1.0", "1.0.0")
	f.Put(parse(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-system}"))
	f.Put(parse(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}"))
	for _, obj := range objects {
		f.Put(obj)
	}
	client, errClient := dynamic.NewForConfig(f.Config())
	lists, errLists := metadata.NewForConfig(f.Config())
	served, errServed := discovery.NewDiscoveryClientForConfig(f.Config())
	if err := errors.Join(errClient, errLists, errServed); err != nil {
		t.Fatal(err)
	}
	mapper := f.Mapper()
	kinds := apply.NewKinds(mapper, served, client)
	mirror := apply.NewMirror(t.Context(), client, mapper, logr.Discard(), func(*unstructured.Unstructured) {})
	f.Engine = New(Options{
		Objects: apply.New(client, lists, kinds, mirror, nil), Kinds: kinds, Mirror: mirror, Reader: f.Client(), Clock: clock.RealClock{},
	})
	f.Requests()
	return f
}

// role is a ClusterRole of one verb, with owners; kudo made it if managed is set.
func role(t *testing.T, verb string, managed bool, owners ...*v1beta1.Installation) *unstructured.Unstructured {
	t.Helper()
	obj := parse(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: app}\nrules: [{apiGroups: [''], resources: [pods], verbs: ["+verb+"]}]")
	return made(obj, managed, owners...)
}

func made(obj *unstructured.Unstructured, managed bool, owners ...*v1beta1.Installation) *unstructured.Unstructured {
	if managed {
		obj.SetAnnotations(map[string]string{v1beta1.ManagedAnnotation: "true"})
		obj.SetLabels(map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage})
	}
	var references []metav1.OwnerReference
	for _, owner := range owners {
		references = append(references, reference(owner))
	}
	obj.SetOwnerReferences(references)
	return obj
}

// install checks and joins an object for a holder, and returns its change.
func (f *fixture) install(t *testing.T, s *Session, obj *unstructured.Unstructured) apply.Change {
	t.Helper()
	if refused := s.Check(t.Context(), []*unstructured.Unstructured{obj}); len(refused) > 0 {
		return refused[0]
	}
	return s.Join(t.Context(), []*unstructured.Unstructured{obj})[0]
}

// owners names the Installations that own an object, in order.
func owners(live *unstructured.Unstructured) []string {
	var out []string
	for _, owner := range live.GetOwnerReferences() {
		out = append(out, owner.Name)
	}
	return out
}

// writes are the requests that change something.
func writes(requests []string) []string {
	return slices.DeleteFunc(requests, func(r string) bool {
		return !slices.ContainsFunc([]string{"apply ", "patch ", "delete ", "create ", "update "}, func(verb string) bool { return strings.HasPrefix(r, verb) }) ||
			strings.HasSuffix(r, "(dry run)")
	})
}

// TestJoin checks what becomes of an object, by who has made it and whether it matches.
func TestJoin(t *testing.T) {
	const mismatch = "ClusterRole app exists already and does not match: rules[0].verbs[0] is \"list\", and the package wants \"get\". It belongs to "
	const remedy = ": change the template to match, or rename one of the objects"
	for name, tc := range map[string]struct {
		reason string
		live   func(*testing.T, *fixture) *unstructured.Unstructured
		policy Policy
		action apply.Action
		owners []string
		writes []string
		err    string
	}{
		"Absent": {"it is created with its owner in one request", nil, Policy{}, apply.Created, []string{"ns-web-1.0"}, []string{"apply ClusterRole app"}, ""},
		"Joinable": {"one that another version has made is joined", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.db) },
			Policy{}, apply.Configured, []string{"ns-db-1.0", "ns-web-1.0"}, []string{"patch ClusterRole app"}, ""},
		"Orphan": {"one without owners is joined", func(t *testing.T, _ *fixture) *unstructured.Unstructured { return role(t, "get", true) },
			Policy{}, apply.Configured, []string{"ns-web-1.0"}, []string{"patch ClusterRole app"}, ""},
		"Held": {"one that is held already is not written", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.web) },
			Policy{}, apply.Unchanged, []string{"ns-web-1.0"}, nil, ""},
		"Existing": {"one of others that matches is used, and not owned", func(t *testing.T, _ *fixture) *unstructured.Unstructured { return role(t, "get", false) },
			Policy{}, apply.Unchanged, nil, nil, ""},
		"Foreign": {"one of others that does not match is not touched", func(t *testing.T, _ *fixture) *unstructured.Unstructured { return role(t, "list", false) },
			Policy{SameOperator: true}, apply.Failed, nil, nil, mismatch + unknownHolder + ", and was not changed (kudo did not create it)" + remedy},
		"Own": {"one that only the holder has changes with its package", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "list", true, f.web) },
			Policy{}, apply.Configured, []string{"ns-web-1.0"}, []string{"apply ClusterRole app"}, ""},
		"Policy": {"one that others hold does not change, as long as the policy does not say so", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "list", true, f.web, f.db) },
			Policy{}, apply.Failed, []string{"ns-web-1.0", "ns-db-1.0"}, nil,
			mismatch + "OperatorVersion ns/web-1.0, OperatorVersion ns/db-1.0, and was not changed (spec.installPolicy.sharedUpdates does not allow to change what others hold)" + remedy},
		"Operator": {"nor one that another operator holds", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "list", true, f.db) },
			Policy{SameOperator: true}, apply.Failed, []string{"ns-db-1.0"}, nil,
			mismatch + "OperatorVersion ns/db-1.0, and was not changed (not only versions of operator web hold it)" + remedy},
		"Newer": {"nor one that a newer version holds", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "list", true, f.newer) },
			Policy{SameOperator: true}, apply.Failed, []string{"ns-web-2.0"}, nil,
			mismatch + "OperatorVersion ns/web-2.0, and was not changed (OperatorVersion ns/web-2.0, an owner of it, is newer)" + remedy},
		"OtherKind": {"nor one with an owner of another kind", func(t *testing.T, _ *fixture) *unstructured.Unstructured {
			obj := role(t, "list", true)
			obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}})
			return obj
		}, Policy{SameOperator: true}, apply.Failed, []string{"x"}, nil, mismatch + "ConfigMap x, and was not changed (ConfigMap x is an owner of it too)" + remedy},
		"Deleted": {"one that is being deleted is awaited", func(t *testing.T, f *fixture) *unstructured.Unstructured {
			obj, now := role(t, "get", true, f.db), metav1.Now()
			obj.SetDeletionTimestamp(&now)
			obj.SetFinalizers([]string{"example.com/x"})
			return obj
		}, Policy{}, apply.Awaited, []string{"ns-db-1.0"}, nil, "ClusterRole app is being deleted (finalizers [example.com/x])"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if tc.live != nil {
				f.Put(tc.live(t, f))
			}
			change := f.install(t, f.Session(f.web, tc.policy, nil), role(t, "get", false))
			if change.Action != tc.action || (change.Err == nil) != (tc.err == "") || change.Err != nil && change.Err.Error() != tc.err {
				t.Errorf("%s: %v,\n%v\nwant %v,\n%s", tc.reason, change.Action, change.Err, tc.action, tc.err)
			}
			live := f.Server.Get(role(t, "get", false))
			if diff := cmp.Diff(tc.owners, owners(live)); diff != "" {
				t.Errorf("%s: owners: %s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.writes, writes(f.Requests()), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if created := tc.action == apply.Created; created && (!Managed(live) || live.GetLabels()[v1beta1.HeritageLabel] != v1beta1.Heritage) {
				t.Errorf("%s: it is not marked as kudo's: %v, %v", tc.reason, live.GetAnnotations(), live.GetLabels())
			}
		})
	}
}

// TestReadopted shows P26: an object that kudo made counts as taken over again if no holder of it exists any more but such as are being
// deleted.
func TestReadopted(t *testing.T) {
	now := metav1.Now()
	for reason, tc := range map[string]struct {
		live func(*testing.T, *fixture) *unstructured.Unstructured
		want bool
	}{
		"it is absent":                   {nil, false},
		"no holder":                      {func(t *testing.T, _ *fixture) *unstructured.Unstructured { return role(t, "get", true) }, true},
		"a living holder":                {func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.db) }, false},
		"this holder":                    {func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.web) }, false},
		"its own, changed":               {func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "list", true, f.web) }, false},
		"it is of others":                {func(t *testing.T, _ *fixture) *unstructured.Unstructured { return role(t, "get", false) }, false},
		"no holder, and another content": {func(t *testing.T, _ *fixture) *unstructured.Unstructured { return role(t, "list", true) }, true},
		"the holder waits to be released": {func(t *testing.T, f *fixture) *unstructured.Unstructured {
			f.db.DeletionTimestamp, f.db.Finalizers = &now, []string{v1beta1.InstallationFinalizer}
			f.Put(f.db)
			return role(t, "get", true, f.db)
		}, true},
		"the holder was deleted": {func(t *testing.T, f *fixture) *unstructured.Unstructured {
			f.Remove(f.db)
			return role(t, "get", true, f.db)
		}, true},
		"the holder is that of a former version of the name": {func(t *testing.T, f *fixture) *unstructured.Unstructured {
			f.db.Spec.Subject = f.web.Spec.Subject
			f.db.Spec.Subject.UID = "former"
			f.Put(f.db)
			return role(t, "get", true, f.db)
		}, true},
		"one of two holders lives": {func(t *testing.T, f *fixture) *unstructured.Unstructured {
			f.Remove(f.db)
			return role(t, "get", true, f.db, f.newer)
		}, false},
		"another kind owns it": {func(t *testing.T, _ *fixture) *unstructured.Unstructured {
			obj := role(t, "get", true)
			obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}})
			return obj
		}, false},
	} {
		f := newFixture(t)
		if tc.live != nil {
			f.Put(tc.live(t, f))
		}
		change := f.install(t, f.Session(f.web, Policy{}, nil), role(t, "get", false))
		if change.Readopted != tc.want || change.Err != nil {
			t.Errorf("%s: taken over again: %t, want %t (%v)", reason, change.Readopted, tc.want, change.Err)
		}
	}
}

// TestUpdateKeepsOwners checks that an update drops no owner: one that is left out of an apply would be.
func TestUpdateKeepsOwners(t *testing.T) {
	f := newFixture(t)
	f.Put(role(t, "list", true, f.web))
	change := f.install(t, f.Session(f.newer, Policy{SameOperator: true}, nil), role(t, "get", false))
	live := f.Server.Get(role(t, "get", false))
	if diff := cmp.Diff([]string{"ns-web-1.0", "ns-web-2.0"}, owners(live)); diff != "" || change.Err != nil {
		t.Errorf("%v: %s", change.Err, diff)
	}
	if HeldResourceFor(change, f.newer).State != v1beta1.HoldShared {
		t.Errorf("held as %s", HeldResourceFor(change, f.newer).State)
	}
}

// TestDriftIsNotOverwritten checks that what another client has changed since is reported, and stays.
func TestDriftIsNotOverwritten(t *testing.T) {
	f := newFixture(t)
	change := f.install(t, f.Session(f.web, Policy{}, nil), role(t, "get", false))
	held := Inventory{HeldResourceFor(change, f.web)}
	drifted := f.Server.Get(role(t, "get", false))
	drifted.Object["rules"] = role(t, "list", false).Object["rules"]
	version := f.Put(drifted).GetResourceVersion()
	f.mirror.Watch(t.Context(), drifted.GroupVersionKind())
	apitest.Eventually(t, "the drift in the mirror", func() bool {
		shown, _ := f.mirror.Get(apply.IDOf(drifted))
		return shown != nil && shown.GetResourceVersion() == version
	})
	change = f.install(t, f.Session(f.web, Policy{}, held), role(t, "get", false))
	var mismatch *MismatchError
	if !errors.As(change.Err, &mismatch) || !mismatch.Drifted {
		t.Fatalf("%v", change.Err)
	}
	const want = "ClusterRole app was changed since it was installed: rules[0].verbs[0] is \"list\", and the package wants \"get\". It is not overwritten: " +
		"revert the change, or take the object over by removing its annotation kudo.dev/managed"
	if change.Err.Error() != want {
		t.Errorf("%v\nwant %s", change.Err, want)
	}
	if got := f.Server.Get(drifted); !alike(got, drifted) {
		t.Error("a drift was overwritten")
	}
}

// TestJoinRaces lets another client act between the look and the write.
func TestJoinRaces(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, at string
		live       func(*testing.T, *fixture) *unstructured.Unstructured
		meantime   func(*testing.T, *fixture) error
		owners     []string
		err        string
	}{
		"Created": {"another holder creates it first: it is joined", "apply ClusterRole app", nil, func(t *testing.T, f *fixture) error {
			f.Put(role(t, "get", true, f.db))
			return nil
		}, []string{"ns-db-1.0", "ns-web-1.0"}, ""},
		"CreatedElse": {"another client creates another one: it is left alone", "apply ClusterRole app", nil, func(t *testing.T, f *fixture) error {
			f.Put(role(t, "list", false))
			return nil
		}, nil, "does not match"},
		"Gone": {"it goes before it is joined: it is created", "patch ClusterRole app", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.db) },
			func(t *testing.T, f *fixture) error {
				f.Remove(role(t, "get", true))
				return nil
			}, []string{"ns-web-1.0"}, ""},
		"Replaced": {"another object of the name comes: it is looked at", "patch ClusterRole app", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.db) },
			func(t *testing.T, f *fixture) error {
				f.Remove(role(t, "get", true))
				f.Put(role(t, "get", false))
				return nil
			}, nil, ""},
		"Changed": {"its content changes before it is joined: the holder leaves it again", "patch ClusterRole app", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.db) },
			func(t *testing.T, f *fixture) error {
				obj := f.Server.Get(role(t, "get", true))
				obj.Object["rules"] = role(t, "list", true).Object["rules"]
				f.Put(obj)
				return nil
			}, []string{"ns-db-1.0"}, "does not match"},
		"Refused": {"an error that a second read would meet is returned", "apply ClusterRole app", nil, func(*testing.T, *fixture) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, "app", errors.New("escalation"))
		}, nil, `ClusterRole app: clusterroles "app" is forbidden: escalation`},
		"Invalid": {"and so is a refused creation", "apply ClusterRole app", nil, func(*testing.T, *fixture) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ClusterRole"}, "app", nil)
		}, nil, "is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if tc.live != nil {
				f.Put(tc.live(t, f))
			}
			var once sync.Once
			f.Before(func(r apitest.Request) (answer any, err error) {
				if r.String() == tc.at {
					once.Do(func() { err = tc.meantime(t, f) })
				}
				return nil, err
			})
			change := f.install(t, f.Session(f.web, Policy{}, nil), role(t, "get", false))
			if (change.Err == nil) != (tc.err == "") || change.Err != nil && !strings.Contains(change.Err.Error(), tc.err) {
				t.Errorf("%s: %v, want %s", tc.reason, change.Err, tc.err)
			}
			got := []string(nil)
			if live := f.Server.Get(role(t, "get", false)); live != nil {
				got = owners(live)
			}
			if diff := cmp.Diff(tc.owners, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestJoinAtOnce lets many holders join one object: all are owners, each once.
func TestJoinAtOnce(t *testing.T) {
	f := newFixture(t)
	holders := []*v1beta1.Installation{f.web, f.newer, f.db}
	var workers sync.WaitGroup
	for _, holder := range append(holders, holders...) {
		workers.Go(func() {
			s := f.Session(holder, Policy{}, nil)
			obj := role(t, "get", false)
			if refused := s.Check(t.Context(), []*unstructured.Unstructured{obj}); refused.Err() != nil {
				t.Error(refused.Err())
				return
			}
			if err := s.Join(t.Context(), []*unstructured.Unstructured{obj}).Err(); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	got := owners(f.Server.Get(role(t, "get", false)))
	slices.Sort(got)
	if diff := cmp.Diff([]string{"ns-db-1.0", "ns-web-1.0", "ns-web-2.0"}, slices.Compact(got)); diff != "" {
		t.Error(diff)
	}
}

// TestRelease checks when a release deletes an object, and when it only removes the holder from the owners.
func TestRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		live   func(*testing.T, *fixture) *unstructured.Unstructured
		state  v1beta1.HoldState
		want   apply.Removal
		// left are the owners afterwards, or nil if it is deleted.
		left []string
	}{
		"Last":   {"the last holder deletes what kudo has made", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.web) }, v1beta1.HoldCreated, apply.Removal{Done: true}, nil},
		"Others": {"others hold it", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.web, f.db) }, v1beta1.HoldCreated, apply.Removal{Done: true}, []string{"ns-db-1.0"}},
		"Stale": {"an owner that was deleted does not count", func(t *testing.T, f *fixture) *unstructured.Unstructured {
			gone := &v1beta1.Installation{}
			gone.Name, gone.UID = "gone", "gone"
			return role(t, "get", true, f.web, gone)
		}, v1beta1.HoldCreated, apply.Removal{Done: true}, nil},
		"Renewed": {"nor does one whose name another Installation has now", func(t *testing.T, f *fixture) *unstructured.Unstructured {
			former := f.db.DeepCopy()
			former.UID = "former"
			return role(t, "get", true, f.web, former)
		}, v1beta1.HoldCreated, apply.Removal{Done: true}, nil},
		"Kind": {"an owner of another kind does", func(t *testing.T, f *fixture) *unstructured.Unstructured {
			obj := role(t, "get", true, f.web)
			obj.SetOwnerReferences(append(obj.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}))
			return obj
		}, v1beta1.HoldCreated, apply.Removal{Done: true}, []string{"x"}},
		"Taken":    {"it was taken over: the annotation was removed", func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", false, f.web) }, v1beta1.HoldCreated, apply.Removal{Done: true}, []string{}},
		"Existing": {"it was there before", func(t *testing.T, _ *fixture) *unstructured.Unstructured { return role(t, "get", true) }, v1beta1.HoldExisting, apply.Removal{Done: true}, []string{}},
		"Gone":     {"it was deleted before", nil, v1beta1.HoldCreated, apply.Removal{Done: true}, nil},
		"Finalizer": {"a finalizer keeps it: its end is awaited", func(t *testing.T, f *fixture) *unstructured.Unstructured {
			obj := role(t, "get", true, f.web)
			obj.SetFinalizers([]string{"example.com/x"})
			return obj
		}, v1beta1.HoldCreated, apply.Removal{Waiting: "ClusterRole app is being deleted (finalizers [example.com/x])"}, []string{"ns-web-1.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			r := v1beta1.HeldResource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "app", State: tc.state}
			if tc.live != nil {
				r.UID = f.Put(tc.live(t, f)).GetUID()
			}
			got := f.Session(f.web, Policy{}, Inventory{r}).Release(t.Context(), r, false)
			tc.want.ID = IDOf(r)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			live := f.Server.Get(role(t, "get", false))
			if (live == nil) != (tc.left == nil) {
				t.Fatalf("%s: %v", tc.reason, live)
			}
			if live != nil && strings.Join(owners(live), " ") != strings.Join(tc.left, " ") {
				t.Errorf("%s: owners %v, want %v", tc.reason, owners(live), tc.left)
			}
		})
	}
}

// TestLeaveAnother checks that an object of the name with another uid, and without the owner, is not touched.
func TestLeaveAnother(t *testing.T) {
	f := newFixture(t)
	f.Put(role(t, "get", true))
	r := v1beta1.HeldResource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "app", UID: "former", State: v1beta1.HoldCreated}
	if got := f.Session(f.web, Policy{}, Inventory{r}).Release(t.Context(), r, true); !got.Done {
		t.Errorf("%+v", got)
	}
	if f.Server.Get(role(t, "get", true)) == nil {
		t.Error("another object of the name was deleted")
	}
}

// TestLeaveRaces lets another holder come or go between the look and the write.
func TestLeaveRaces(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, at string
		owners     func(*fixture) []*v1beta1.Installation
		meantime   func(*testing.T, *fixture)
		left       []string
	}{
		"Joined": {"another holder joins before the deletion: it stays", "delete ClusterRole app", func(f *fixture) []*v1beta1.Installation { return []*v1beta1.Installation{f.web} },
			func(t *testing.T, f *fixture) { f.Put(role(t, "get", true, f.web, f.db)) }, []string{"ns-db-1.0"}},
		"Left": {"the other holder leaves first: this one is the last, and deletes it", "patch ClusterRole app", func(f *fixture) []*v1beta1.Installation { return []*v1beta1.Installation{f.web, f.db} },
			func(t *testing.T, f *fixture) { f.Put(role(t, "get", true, f.web)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			live := f.Put(role(t, "get", true, tc.owners(f)...))
			var once sync.Once
			f.Before(func(r apitest.Request) (any, error) {
				if r.String() == tc.at {
					once.Do(func() { tc.meantime(t, f) })
				}
				return nil, nil
			})
			r := v1beta1.HeldResource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "app", UID: live.GetUID(), State: v1beta1.HoldCreated}
			if got := f.Session(f.web, Policy{}, Inventory{r}).Release(t.Context(), r, false); !got.Done {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			after := f.Server.Get(live)
			if (after == nil) != (tc.left == nil) || after != nil && !cmp.Equal(owners(after), tc.left) {
				t.Errorf("%s: %v", tc.reason, after)
			}
		})
	}
}

// shipDefinition is a CustomResourceDefinition that kudo made, of kind Ship.
func shipDefinition(t *testing.T, owners ...*v1beta1.Installation) *unstructured.Unstructured {
	t.Helper()
	return made(parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ships.example.com}, spec: {group: example.com, scope: Namespaced,
names: {plural: ships, kind: Ship}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`), true, owners...)
}

// TestLeaveDefinition checks that a definition with custom resources stays, and that none may come while it goes.
func TestLeaveDefinition(t *testing.T) {
	ship := parse(t, "{apiVersion: example.com/v1, kind: Ship, metadata: {name: a, namespace: apps}}")
	held := v1beta1.HeldResource{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "ships.example.com", State: v1beta1.HoldCreated}
	const kept = "CustomResourceDefinition ships.example.com has one object of kind Ship (apps/a). Delete its content, or keep CustomResourceDefinition ships.example.com by removing its annotation kudo.dev/managed, or delete both by kubectl kudo uninstall-version --force"
	for name, tc := range map[string]struct {
		reason string
		// before is whether a custom resource is there; late is whether one comes just before the fence.
		before, late, force bool
		want                string
	}{
		"Empty":  {"without custom resources it is deleted", false, false, false, ""},
		"Used":   {"with one it stays", true, false, false, kept},
		"Late":   {"one that came before the fence keeps it, and the fence is taken off", false, true, false, kept},
		"Forced": {"force deletes it anyway", true, false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.AddKind(ship.GroupVersionKind(), true)
			steps := clocktesting.NewFakeClock(time.Unix(1000, 0))
			f.clock = steps
			r := held
			r.UID = f.Put(shipDefinition(t, f.web)).GetUID()
			if tc.before {
				f.Put(ship)
			}
			fenced := false
			f.Before(func(r apitest.Request) (any, error) {
				if r.String() == "patch CustomResourceDefinition ships.example.com" && strings.Contains(string(r.Body), `"add"`) {
					fenced = true
					if tc.late {
						f.Put(ship)
					}
				}
				return nil, nil
			})
			stop := make(chan struct{})
			var ticking sync.WaitGroup
			ticking.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
						if steps.HasWaiters() {
							steps.Step(fenceTime)
						}
					}
				}
			})
			got := f.Session(f.web, Policy{}, Inventory{r}).Release(t.Context(), r, tc.force)
			close(stop)
			ticking.Wait()
			if got.Waiting != tc.want || got.Done != (tc.want == "") || got.Err != nil {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			if want := !tc.before && !tc.force; fenced != want {
				t.Errorf("%s: fenced %v", tc.reason, fenced)
			}
			if live := f.Server.Get(shipDefinition(t)); live != nil && unfences(live) != nil {
				t.Errorf("%s: the fence is left", tc.reason)
			}
		})
	}
}

// TestFenceEndsWithContext checks that a manager that is stopped while it waits for the fence takes it off.
func TestFenceEndsWithContext(t *testing.T) {
	f := newFixture(t)
	f.AddKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}, true)
	f.clock = clocktesting.NewFakeClock(time.Unix(1000, 0))
	live := f.Put(shipDefinition(t, f.web))
	ctx, cancel := context.WithCancel(t.Context())
	f.After(func(r apitest.Request) (any, error) {
		if r.Verb == "patch" && strings.Contains(string(r.Body), `"add"`) {
			time.AfterFunc(10*time.Millisecond, cancel) // the answer comes first
		}
		return nil, nil
	})
	r := v1beta1.HeldResource{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: live.GetName(), UID: live.GetUID(), State: v1beta1.HoldCreated}
	if got := f.Session(f.web, Policy{}, Inventory{r}).Release(ctx, r, false); !errors.Is(got.Err, context.Canceled) {
		t.Errorf("%+v", got)
	}
	after := f.Server.Get(live)
	if after == nil || unfences(after) != nil {
		t.Errorf("the fence is left on %v", after)
	}
}

// TestBlocked checks what blocks a release, and that the whole release waits.
func TestBlocked(t *testing.T) {
	namespace := func(t *testing.T, f *fixture) *unstructured.Unstructured {
		return made(parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: data}}"), true, f.web)
	}
	content := func(text string) func(*testing.T, *fixture) []*unstructured.Unstructured {
		return func(t *testing.T, f *fixture) []*unstructured.Unstructured {
			out := []*unstructured.Unstructured{namespace(t, f)}
			for doc := range strings.SplitSeq(text, "\n") {
				if doc != "" {
					out = append(out, parse(t, doc))
				}
			}
			return out
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		objects func(*testing.T, *fixture) []*unstructured.Unstructured
		want    string
	}{
		"Empty":   {"an empty namespace is not in the way", content(""), ""},
		"Default": {"nor is one that holds what Kubernetes puts there", content("{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: data}}\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: data}}"), ""},
		"Pod":     {"a Pod is", content("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: data}}"), "Pod p"},
		"Other":   {"one of another namespace is not", content("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: apps}}"), ""},
		"Child": {"what a controller of the namespace has made is counted with its controller", content("{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: data}}\n" +
			"{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: data, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, uid: d, controller: true}]}}"), "Deployment d"},
		"Stray": {"what a controller of an unknown kind has made is counted", content("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: data, ownerReferences: [{apiVersion: gone.example.com/v1, kind: Gone, name: d, uid: d, controller: true}]}}"), "Pod p"},
		"Many": {"of many, some are named, in order", content("{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: data}}\n{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: data}}\n" +
			"{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: data}}\n{apiVersion: v1, kind: Service, metadata: {name: s, namespace: data}}\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: data}}"),
			"ConfigMap c, Pod a, Pod b, and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			objects := tc.objects(t, f)
			for _, obj := range objects {
				obj.SetUID(f.Put(obj).GetUID())
			}
			held := Inventory{{APIVersion: "v1", Kind: "Namespace", Name: "data", UID: objects[0].GetUID(), State: v1beta1.HoldCreated}}
			block, err := f.Session(f.web, Policy{}, held).Blocked(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if block != nil {
				got = block.Found
			}
			want := ""
			if tc.want != "" {
				want = "has content that kudo did not create: " + tc.want
			}
			if got != want || block != nil && block.Reason != v1beta1.ReasonNamespaceNotEmpty {
				t.Errorf("%s: %q, want %q", tc.reason, got, want)
			}
			if changed := writes(f.Requests()); len(changed) > 0 {
				t.Errorf("%s: a look writes: %v", tc.reason, changed)
			}
		})
	}
}

// TestBlockedUnknown checks that content that cannot be listed keeps a namespace, by an error.
func TestBlockedUnknown(t *testing.T) {
	f := newFixture(t)
	live := f.Put(made(parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: data}}"), true, f.web))
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "list" && r.Kind == "Secret" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))
		}
		return nil, nil
	})
	held := Inventory{{APIVersion: "v1", Kind: "Namespace", Name: "data", UID: live.GetUID(), State: v1beta1.HoldCreated}}
	block, err := f.Session(f.web, Policy{}, held).Blocked(t.Context())
	if block != nil || err == nil || !strings.HasSuffix(err.Error(), "list secrets of Namespace data: secrets is forbidden: no") {
		t.Errorf("%+v, %v", block, err)
	}
	if got := f.Session(f.web, Policy{}, held).Release(t.Context(), held[0], false); got.Err == nil || got.Done {
		t.Errorf("a release without a look: %+v", got)
	}
	if f.Server.Get(live) == nil {
		t.Error("the namespace was deleted")
	}
}

// TestGuardOwner checks that the garbage collector never collects what takes more along than itself.
func TestGuardOwner(t *testing.T) {
	f := newFixture(t)
	for _, obj := range []*unstructured.Unstructured{shipDefinition(t), parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: data}}"), role(t, "get", false)} {
		obj.SetAnnotations(nil)
		obj.SetLabels(nil)
		s := f.Session(f.web, Policy{}, nil)
		if refused := s.Check(t.Context(), []*unstructured.Unstructured{obj}); refused.Err() != nil {
			t.Fatal(refused.Err())
		}
		s.Join(t.Context(), []*unstructured.Unstructured{obj})
		want := []string{"ns-web-1.0"}
		if obj.GetKind() != "ClusterRole" {
			want = append(want, guardian)
		}
		if diff := cmp.Diff(want, owners(f.Server.Get(obj))); diff != "" {
			t.Errorf("%s: %s", obj.GetKind(), diff)
		}
	}
}

// TestPreview checks that what is said about a release is what it does.
func TestPreview(t *testing.T) {
	for name, tc := range map[string]struct {
		live  func(*testing.T, *fixture) *unstructured.Unstructured
		state v1beta1.HoldState
		// want has the beginning of the reason.
		want ReleasePreview
	}{
		"Last":     {func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.web) }, v1beta1.HoldCreated, ReleasePreview{Deleted: true}},
		"Others":   {func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", true, f.web, f.db) }, v1beta1.HoldShared, ReleasePreview{Reason: "OperatorVersion ns/db-1.0 holds it too", Holders: []string{"OperatorVersion ns/db-1.0"}}},
		"Taken":    {func(t *testing.T, f *fixture) *unstructured.Unstructured { return role(t, "get", false, f.web) }, v1beta1.HoldCreated, ReleasePreview{Reason: "it was taken over: its annotation kudo.dev/managed"}},
		"Existing": {func(t *testing.T, _ *fixture) *unstructured.Unstructured { return role(t, "get", false) }, v1beta1.HoldExisting, ReleasePreview{Reason: "kudo did not create it"}},
		"Gone":     {nil, v1beta1.HoldCreated, ReleasePreview{Reason: "it"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			r := v1beta1.HeldResource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "app", UID: "x", State: tc.state}
			if tc.live != nil {
				r.UID = f.Put(tc.live(t, f)).GetUID()
			}
			s := f.Session(f.web, Policy{}, Inventory{r})
			got, err := s.Preview(t.Context(), false)
			tc.want.ID = IDOf(r)
			for i := range got {
				if tc.want.Reason != "" && strings.HasPrefix(got[i].Reason, tc.want.Reason+" ") {
					got[i].Reason = tc.want.Reason
				}
			}
			if diff := cmp.Diff([]ReleasePreview{tc.want}, got); diff != "" || err != nil {
				t.Errorf("%v: %s", err, diff)
			}
			if changed := writes(f.Requests()); len(changed) > 0 {
				t.Errorf("a preview writes: %v", changed)
			}
			before := f.Server.Get(role(t, "get", false)) != nil
			s.Release(t.Context(), r, false)
			if deleted := before && f.Server.Get(role(t, "get", false)) == nil; deleted != tc.want.Deleted {
				t.Errorf("the preview says deleted %v, and it is %v", tc.want.Deleted, deleted)
			}
		})
	}
}

// TestRelinquish checks that only what another client has taken over is given up.
func TestRelinquish(t *testing.T) {
	for reason, managed := range map[string]bool{"taken over": false, "still managed": true} {
		f := newFixture(t)
		live := f.Put(role(t, "get", managed, f.web))
		r := v1beta1.HeldResource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "app", UID: live.GetUID(), State: v1beta1.HoldCreated}
		got := f.Session(f.web, Policy{}, Inventory{r}).Relinquish(t.Context(), r)
		if got.Done == managed || got.Err != nil || Owns(f.Server.Get(live), f.web) != managed {
			t.Errorf("%s: %+v, owners %v", reason, got, owners(f.Server.Get(live)))
		}
	}
}
