package apply

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// namesFixture is an engine that uses Names, on a server with ConfigMap ns/foreign, which kudo has not made.
type namesFixture struct {
	*apitest.Server
	engine *Engine
	names  *Names
}

func newNamesFixture(t *testing.T) *namesFixture {
	t.Helper()
	f := &namesFixture{Server: apitest.Start(t, foreignMap("foreign"))}
	objects, errObjects := dynamic.NewForConfig(f.Config())
	lists, errLists := metadata.NewForConfig(f.Config())
	if err := errors.Join(errObjects, errLists); err != nil {
		t.Fatal(err)
	}
	mirror := NewMirror(t.Context(), objects, f.Mapper(), logr.Discard(), func(*unstructured.Unstructured) {})
	mirror.Watch(t.Context(), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	f.engine, f.names = New(objects, lists, NewKinds(f.Mapper(), nil, objects), mirror, nil), NewNames(t.Context(), lists, logr.Discard())
	f.engine.UseNames(f.names)
	return f
}

func foreignMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"by": "another client"}}
}

// own are ConfigMaps as an Instance applies them.
func own(names ...string) (out []*unstructured.Unstructured) {
	for _, name := range names {
		obj := ID{corev1.SchemeGroupVersion.WithKind("ConfigMap"), types.NamespacedName{Namespace: "ns", Name: name}}.Object()
		obj.SetLabels(map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage})
		obj.Object["data"] = map[string]any{"by": "kudo"}
		out = append(out, obj)
	}
	return out
}

func (f *namesFixture) options() Options {
	return Options{Manager: "kudo/ns/web", Claim: func(_ context.Context, live *unstructured.Unstructured) (Claim, string) {
		if live.GetLabels()[v1beta1.HeritageLabel] == v1beta1.Heritage {
			return Ours, ""
		}
		return Foreign, "another client"
	}}
}

// preflight returns the objects that are refused, and the requests but those of watches.
func (f *namesFixture) preflight(t *testing.T, names ...string) (refused, requests []string) {
	t.Helper()
	f.Requests()
	for _, c := range f.engine.Preflight(t.Context(), own(names...), f.options()) {
		refused = append(refused, c.ID.Name)
	}
	for _, r := range f.Requests() {
		if r != "list ConfigMap" && r != "watch ConfigMap" {
			requests = append(requests, r)
		}
	}
	return refused, requests
}

// warm has ConfigMaps created until a watch shows their names.
func (f *namesFixture) warm(t *testing.T) {
	t.Helper()
	f.create()
	f.await(t, "free", true)
}

// create notes as many creations as start a watch.
func (f *namesFixture) create() {
	for range minCreated {
		f.names.noteCreation(configMaps)
	}
}

// await waits until a name is known to be free, or is not.
func (f *namesFixture) await(t *testing.T, name string, free bool) {
	t.Helper()
	f.names.mu.Lock()
	w := f.names.kinds[configMaps]
	f.names.mu.Unlock()
	apitest.Eventually(t, "the watch of names shows "+name, func() bool {
		return w.isFree(types.NamespacedName{Namespace: "ns", Name: name}) == free
	})
}

// TestNames: once tasks have created objects of a kind, a watch answers in place of a request, and what it shows is read before an object is
// refused. Looks alone start no watch.
func TestNames(t *testing.T) {
	f := newNamesFixture(t)
	for range 2 * minCreated {
		if refused, requests := f.preflight(t, "a", "b"); refused != nil || cmp.Diff([]string{"list ConfigMap ns/"}, requests) != "" {
			t.Errorf("before there is a watch, %q are refused after %q", refused, requests)
		}
	}
	for _, change := range f.engine.Apply(t.Context(), own("x", "y", "z"), f.options()) {
		if change.Action != Created {
			t.Fatal(change.Err)
		}
	}
	f.await(t, "free", true)
	for _, tc := range []struct {
		reason                   string
		names, refused, requests []string
	}{
		{"names that are free cost no request", []string{"a", "b"}, nil, nil},
		{"a name that is taken is looked at", []string{"a", "foreign"}, []string{"foreign"}, []string{"get ConfigMap ns/foreign", "get ConfigMap ns/foreign"}},
		{"one object needs no look", []string{"foreign"}, nil, nil},
	} {
		refused, requests := f.preflight(t, tc.names...)
		if diff := cmp.Diff([][]string{tc.refused, tc.requests}, [][]string{refused, requests}); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
	f.Put(foreignMap("b"))
	f.await(t, "b", false)
	if refused, _ := f.preflight(t, "a", "b"); !slices.Equal(refused, []string{"b"}) {
		t.Errorf("an object that was created since: %q are refused", refused)
	}
	f.Remove(foreignMap("b"))
	f.await(t, "b", true)
	if refused, requests := f.preflight(t, "a", "b"); refused != nil || requests != nil {
		t.Errorf("it was deleted: %q are refused, after %q", refused, requests)
	}
}

// TestNameTakenSince: a foreign object that is created after the names were asked for, or that the watch has not shown yet, is neither
// written over nor taken over.
func TestNameTakenSince(t *testing.T) {
	f := newNamesFixture(t)
	f.warm(t)
	if refused, requests := f.preflight(t, "a", "b"); refused != nil || requests != nil {
		t.Fatalf("%q are refused, after %q", refused, requests)
	}
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "apply" && r.Name == "b" && f.Get(foreignMap("b")) == nil {
			f.Put(foreignMap("b"))
		}
		return nil, nil
	})
	changes := f.engine.Apply(t.Context(), own("a", "b"), f.options())
	var collision *CollisionError
	if changes[0].Action != Created || changes[1].Action != Failed || !errors.As(changes[1].Err, &collision) || !IsFatal(changes[1].Err) {
		t.Errorf("a: %d (%v), b: %d (%v)", changes[0].Action, changes[0].Err, changes[1].Action, changes[1].Err)
	}
	stays := foreignMap("b")
	f.Read(stays)
	if stays.Data["by"] != "another client" || len(stays.Labels) > 0 || len(stays.OwnerReferences) > 0 {
		t.Errorf("the foreign object was changed: %+v", stays)
	}
}

// TestNamesUnknown: what no watch can show is looked at.
func TestNamesUnknown(t *testing.T) {
	forbidden := apierrors.NewForbidden(configMaps.GroupResource(), "", errors.New("no"))
	for name, tc := range map[string]struct {
		reason string
		before apitest.Hook
	}{
		"Forbidden": {"the manager may not list the kind in all namespaces", func(r apitest.Request) (any, error) {
			if r.Verb == "list" && r.Namespace == "" {
				return nil, forbidden
			}
			return nil, nil
		}},
		"Crowded": {"there are too many objects", func(r apitest.Request) (any, error) {
			if r.Verb == "list" && r.Query.Get("limit") == "1" {
				return map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
					"metadata": map[string]any{"remainingItemCount": maxNames}}, nil
			}
			return nil, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newNamesFixture(t)
			f.Before(tc.before)
			f.create()
			w := f.names.look(configMaps)
			<-w.ctx.Done()
			if _, requests := f.preflight(t, "a", "b"); !slices.Equal(requests, []string{"list ConfigMap ns/"}) {
				t.Errorf("%s: the requests are %q", tc.reason, requests)
			}
		})
	}
	w := &nameWatch{stop: func() {}, ctx: t.Context()}
	_ = w.Replace(nil, "1")
	for i := range maxNames {
		_ = w.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}})
	}
	if !w.isFree(types.NamespacedName{Name: "free"}) {
		t.Error("so many names are known")
	}
	_ = w.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "last"}})
	if w.isFree(types.NamespacedName{Name: "free"}) {
		t.Error("more names are not")
	}
	var many []any
	for i := range maxNames + 1 {
		many = append(many, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i)}})
	}
	if _ = w.Replace(many, "2"); w.isFree(types.NamespacedName{Name: "free"}) || w.taken != nil {
		t.Error("more names are kept of a list")
	}
	n := NewNames(t.Context(), nil, logr.Discard())
	for i := range maxNameKinds + 1 {
		n.noteCreation(schema.GroupVersionResource{Resource: strconv.Itoa(i)})
	}
	if len(n.kinds) != maxNameKinds {
		t.Errorf("%d kinds are counted", len(n.kinds))
	}
}

// TestNamesForgotten: a watch that no task needs ends, and one that breaks answers nothing until it is open again.
func TestNamesForgotten(t *testing.T) {
	f := newNamesFixture(t)
	f.warm(t)
	f.names.mu.Lock()
	w := f.names.kinds[configMaps]
	f.names.mu.Unlock()
	w.connect(false)
	if w.isFree(types.NamespacedName{Namespace: "ns", Name: "free"}) {
		t.Error("a watch that is broken answers")
	}
	w.end()
	f.names.look(configMaps)
	f.names.mu.Lock()
	w.expiry.Reset(0) // its time ends: that a task needs it has not deferred this
	f.names.mu.Unlock()
	apitest.Eventually(t, "a watch that has ended is forgotten", func() bool { return f.names.look(configMaps) != w })
	f.warm(t)
	f.names.idle = time.Nanosecond
	again := f.names.look(configMaps)
	<-again.ctx.Done()
	if again.isFree(types.NamespacedName{Namespace: "ns", Name: "free"}) {
		t.Error("a watch that has ended answers")
	}
}
