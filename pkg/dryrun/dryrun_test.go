package dryrun

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// fixture is a cluster as writes would leave it, on a server that must not be changed.
type fixture struct {
	*Cluster
	server *apitest.Server
}

func newFixture(t *testing.T, objects ...client.Object) fixture {
	t.Helper()
	server := apitest.Start(t, objects...)
	c, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return fixture{New(c, server.Mapper()), server}
}

func (f fixture) maps() dynamic.ResourceInterface {
	return f.Client().Resource(configMaps).Namespace("ns")
}

// writes are the requests that are no reads, and that are not dry runs.
func (f fixture) writes() []string {
	return slices.DeleteFunc(f.server.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "get") || strings.HasPrefix(r, "list") || strings.HasPrefix(r, "/")
	})
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", name), Data: map[string]string{"key": value}}
}

func body(name, value, version string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": value}}}
	obj.SetName(name)
	obj.SetNamespace("ns")
	obj.SetResourceVersion(version)
	return obj
}

func dataOf(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "(none)"
	}
	value, _, _ := unstructured.NestedString(obj.Object, "data", "key")
	return value
}

// force are the options of the engine.
var force = metav1.ApplyOptions{FieldManager: "kudo/ns/i", Force: true}

// TestWritesAreDryRuns checks that each write is a dry run, that later reads show it, and that the cluster stays as it is (P2, P3).
func TestWritesAreDryRuns(t *testing.T) {
	f := newFixture(t, configMap("old", "1"), configMap("gone", "1"))
	f.server.Before(func(r apitest.Request) (any, error) {
		isWrite := r.Verb != "get" && r.Verb != "list"
		if isWrite && len(r.Query["dryRun"]) == 0 && !strings.Contains(string(r.Body), "dryRun") {
			t.Errorf("%s is no dry run", r)
		}
		return nil, nil
	})
	live, err := f.maps().Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.maps().Apply(t.Context(), "old", body("old", "2", live.GetResourceVersion()), force); err != nil {
		t.Fatal(err)
	}
	if _, err := f.maps().Apply(t.Context(), "new", body("new", "3", apply.NoResourceVersion), force); err != nil {
		t.Fatal(err)
	}
	if err := f.maps().Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, change := range f.Changes() {
		got[change.ID.Name] = dataOf(change.Before) + " -> " + dataOf(change.After)
	}
	if diff := cmp.Diff(map[string]string{"old": "1 -> 2", "new": "(none) -> 3", "gone": "1 -> (none)"}, got); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{"old": "2", "new": "3"} {
		if now, err := f.maps().Get(t.Context(), name, metav1.GetOptions{}); err != nil || dataOf(now) != want {
			t.Errorf("%s is shown as %s, %v, want %s", name, dataOf(now), err, want)
		}
	}
	if _, err := f.maps().Get(t.Context(), "gone", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was deleted is shown: %v", err)
	}
	if f.server.Get(configMap("new", "")) != nil || dataOf(f.server.Get(configMap("old", ""))) != "1" || f.server.Get(configMap("gone", "")) == nil {
		t.Error("the cluster has changed")
	}
}

// TestApplyAnswers checks what answers come without a request, and what those are (P3, P4).
func TestApplyAnswers(t *testing.T) {
	f := newFixture(t, configMap("old", "1"))
	live, err := f.maps().Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	step := func(reason string, requests int, do func() error) {
		t.Helper()
		f.server.Requests()
		if err := do(); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
		if got := f.server.Requests(); len(got) != requests {
			t.Errorf("%s: %d requests %v, want %d", reason, len(got), got, requests)
		}
	}
	write := func(name, value, version string) func() error {
		return func() error {
			_, err := f.maps().Apply(t.Context(), name, body(name, value, version), force)
			return err
		}
	}
	step("a form is asked about once", 1, write("old", "2", live.GetResourceVersion()))
	step("the same form again costs nothing", 0, write("old", "2", live.GetResourceVersion()))
	step("another form is asked about", 1, write("old", "3", live.GetResourceVersion()))
	step("an object that is known to exist cannot be created", 0, func() error {
		if err := write("old", "4", apply.NoResourceVersion)(); !apierrors.IsConflict(err) {
			t.Errorf("got %v", err)
		}
		return nil
	})
	step("the creation of what is not known is the look for it, too", 1, write("new", "1", apply.NoResourceVersion))
	step("what only the preview has created is created again in another form", 1, write("new", "2", ""))
	step("what the preview has created is deleted without a request", 0, func() error {
		return f.maps().Delete(t.Context(), "new", metav1.DeleteOptions{})
	})
	step("an object that the cluster has is deleted by a dry run", 1, func() error {
		return f.maps().Delete(t.Context(), "old", metav1.DeleteOptions{})
	})
	step("one that was deleted is not compared with what the cluster still has", 0, write("old", "5", apply.NoResourceVersion))
	if change, _ := f.Find(apply.IDOf(body("old", "", ""))); !change.Recreated || dataOf(change.After) != "5" {
		t.Errorf("it counts as recreated: %+v", change)
	}
	step("what does not exist cannot be deleted", 0, func() error {
		if err := f.maps().Delete(t.Context(), "new", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
		return nil
	})
}

// TestConflictOfUnknown checks that the creation of an object that exists is answered as by the cluster, and that it is read then.
func TestConflictOfUnknown(t *testing.T) {
	f := newFixture(t, configMap("old", "1"))
	if _, err := f.maps().Apply(t.Context(), "old", body("old", "2", apply.NoResourceVersion), force); !apierrors.IsConflict(err) {
		t.Fatalf("got %v", err)
	}
	if _, known := f.Find(apply.IDOf(body("old", "", ""))); known {
		t.Error("a refused write tells nothing of the object")
	}
	if live, err := f.maps().Get(t.Context(), "old", metav1.GetOptions{}); err != nil || dataOf(live) != "1" {
		t.Errorf("got %v, %v", dataOf(live), err)
	}
}

// TestLoad checks that one LIST spares the request for each object.
func TestLoad(t *testing.T) {
	ours := configMap("ours", "1")
	ours.Labels = map[string]string{"of": "us"}
	f := newFixture(t, ours, configMap("other", "1"))
	if err := f.Load(t.Context(), corev1.SchemeGroupVersion.WithKind("ConfigMap"), "ns", labels.SelectorFromSet(labels.Set{"of": "us"})); err != nil {
		t.Fatal(err)
	}
	f.server.Requests()
	for name, requests := range map[string]int{"ours": 0, "other": 1} {
		if _, err := f.maps().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if got := f.server.Requests(); len(got) != requests {
			t.Errorf("%s: %v", name, got)
		}
	}
	if live, _ := f.Get(apply.IDOf(body("ours", "", ""))); dataOf(live) != "1" {
		t.Error("the view does not show what was loaded")
	}
	if err := f.Load(t.Context(), corev1.SchemeGroupVersion.WithKind("Nothing"), "ns", labels.Everything()); err == nil {
		t.Error("an unknown kind is no error")
	}
}

// TestErrorsPass checks that errors of the cluster are handed on, and leave nothing behind.
func TestErrorsPass(t *testing.T) {
	f := newFixture(t, configMap("old", "1"))
	f.server.Before(func(r apitest.Request) (any, error) {
		return nil, apierrors.NewGenericServerResponse(http.StatusForbidden, r.Verb, configMaps.GroupResource(), r.Name, "no", 0, true)
	})
	_, errGet := f.maps().Get(t.Context(), "old", metav1.GetOptions{})
	_, errApply := f.maps().Apply(t.Context(), "new", body("new", "1", apply.NoResourceVersion), force)
	errDelete := f.maps().Delete(t.Context(), "old", metav1.DeleteOptions{})
	_, errPatch := f.maps().Patch(t.Context(), "old", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	for verb, err := range map[string]error{"get": errGet, "apply": errApply, "delete": errDelete, "patch": errPatch} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if got := f.Changes(); len(got) != 0 {
		t.Errorf("nothing is known: %v", got)
	}
}

// TestUnsupported checks that writes that are not made as dry runs are refused, and send nothing.
func TestUnsupported(t *testing.T) {
	f := newFixture(t, configMap("old", "1"))
	m, obj := f.maps(), body("old", "2", "")
	_, errCreate := m.Create(t.Context(), obj, metav1.CreateOptions{})
	_, errUpdate := m.Update(t.Context(), obj, metav1.UpdateOptions{})
	_, errStatus := m.UpdateStatus(t.Context(), obj, metav1.UpdateOptions{})
	_, errApplyStatus := m.ApplyStatus(t.Context(), "old", obj, force)
	_, errApply := m.Apply(t.Context(), "old", obj, force, "status")
	_, errWatch := m.Watch(t.Context(), metav1.ListOptions{})
	_, errPatch := m.Patch(t.Context(), "none", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
	for what, err := range map[string]error{
		"create": errCreate, "update": errUpdate, "status": errStatus, "apply status": errApplyStatus, "subresource": errApply, "watch": errWatch, "patch": errPatch,
		"collection": m.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}),
		"delete":     m.Delete(t.Context(), "old", metav1.DeleteOptions{}, "status"),
	} {
		if err == nil || !strings.Contains(err.Error(), "not supported by dry runs") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := f.writes(); len(got) != 0 {
		t.Errorf("requests: %v", got)
	}
}

// TestUsable checks that a definition counts as established, so that the engine continues.
func TestUsable(t *testing.T) {
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	conditions, _, _ := unstructured.NestedSlice(usable(crd).Object, "status", "conditions")
	if len(conditions) != 1 {
		t.Errorf("got %v", conditions)
	}
	if other := usable(body("a", "1", "")); other.Object["status"] != nil {
		t.Errorf("got %v", other)
	}
}

// TestDryRunsOfCallers checks that what a caller only asks is not shown to later reads.
func TestDryRunsOfCallers(t *testing.T) {
	f := newFixture(t, configMap("a", "old"))
	answer, err := f.maps().Apply(t.Context(), "a", body("a", "new", ""), metav1.ApplyOptions{FieldManager: "x", Force: true, DryRun: []string{metav1.DryRunAll}})
	if err != nil || dataOf(answer) != "new" {
		t.Fatalf("the answer is %q, error %v", dataOf(answer), err)
	}
	live, err := f.maps().Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || dataOf(live) != "old" {
		t.Errorf("read %q, error %v", dataOf(live), err)
	}
}

// TestReader checks that typed reads show what the writes leave.
func TestReader(t *testing.T) {
	f := newFixture(t, configMap("a", "old"), configMap("b", "old"), configMap("c", "old"))
	if _, err := f.maps().Apply(t.Context(), "a", body("a", "new", ""), metav1.ApplyOptions{FieldManager: "x", Force: true}); err != nil {
		t.Fatal(err)
	}
	if err := f.maps().Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "new", "b": "(none)", "c": "old", "d": "(none)"} {
		got, into := "(none)", &corev1.ConfigMap{}
		err := f.Reader(f.server.Client()).Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, into)
		if err == nil {
			got = into.Data["key"]
		} else if !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
		if got != want {
			t.Errorf("%s: read %q, want %q", name, got, want)
		}
	}
}

// TestMetadata checks that metadata shows what the writes would leave (P3): without what they delete, with what they create.
func TestMetadata(t *testing.T) {
	f := newFixture(t, configMap("deleted", "1"), configMap("stays", "1"))
	if err := f.maps().Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.maps().Apply(t.Context(), "created", body("created", "1", apply.NoResourceVersion), force); err != nil {
		t.Fatal(err)
	}
	reads, err := metadata.NewForConfig(f.server.Config())
	if err != nil {
		t.Fatal(err)
	}
	shown := f.Metadata(reads).Resource(configMaps).Namespace("ns")
	list, err := shown.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	if diff := cmp.Diff([]string{"stays", "created"}, names); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]bool{"deleted": false, "stays": true, "created": true} {
		if _, err := shown.Get(t.Context(), name, metav1.GetOptions{}); apierrors.IsNotFound(err) == want {
			t.Errorf("%s is there: %t, want %t (%v)", name, !want, want, err)
		}
	}
}

// TestAskedBefore checks that a write asks nothing that a dry run of the caller has answered, and has the metadata of its own body (P4).
func TestAskedBefore(t *testing.T) {
	f := newFixture(t, configMap("map", "1"))
	if _, err := f.maps().Get(t.Context(), "map", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	plain := func(*unstructured.Unstructured) {}
	own := func(form *unstructured.Unstructured) {
		form.SetLabels(map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage})
		form.SetAnnotations(map[string]string{v1beta1.ManagedAnnotation: "true"})
		form.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Installation", Name: "one", UID: "1"}})
	}
	labeled := func(form *unstructured.Unstructured) { form.SetLabels(map[string]string{"tier": "front"}) }
	dry, other := force, force
	dry.DryRun, other.FieldManager = []string{metav1.DryRunAll}, "another"
	for _, tc := range []struct {
		reason, value string
		options       metav1.ApplyOptions
		change        func(*unstructured.Unstructured)
		requests      int
	}{
		{"a dry run is sent", "2", dry, plain, 1},
		{"the same again is not", "2", dry, plain, 0},
		{"another one is", "3", dry, plain, 1},
		{"a write of the same form is not", "3", force, own, 0},
		{"a write of another form is", "4", force, own, 1},
		{"a dry run after it is", "5", dry, plain, 1},
		{"labels of the package count", "5", force, labeled, 1},
		{"the field manager counts", "5", other, own, 1},
	} {
		form := body("map", tc.value, "")
		tc.change(form)
		f.server.Requests()
		out, err := f.maps().Apply(t.Context(), "map", form, tc.options)
		if requests := f.server.Requests(); err != nil || len(requests) != tc.requests {
			t.Errorf("%s: %d requests %v, %v, want %d", tc.reason, len(requests), requests, err, tc.requests)
		}
		if want := form.GetLabels(); dataOf(out) != tc.value || !cmp.Equal(want, out.GetLabels()) || !cmp.Equal(form.GetAnnotations(), out.GetAnnotations()) ||
			!cmp.Equal(form.GetOwnerReferences(), out.GetOwnerReferences()) {
			t.Errorf("%s: it is shown as %v", tc.reason, out)
		}
	}
	if change, _ := f.Find(apply.IDOf(body("map", "", ""))); dataOf(change.Before) != "1" || dataOf(change.After) != "5" {
		t.Errorf("the change is %v", change)
	}
}

// TestBusyServer checks that a dry run which the API server could not complete is sent again, and not for ever.
func TestBusyServer(t *testing.T) {
	for _, tc := range []struct {
		reason    string
		failures  int
		completes bool
	}{{"another client writes the object at the moment", 2, true}, {"the object is written all the time", 100, false}} {
		f := newFixture(t, configMap("map", "1"))
		failed := 0
		f.server.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "apply" && failed < tc.failures {
				failed++
				return nil, apierrors.NewServerTimeout(configMaps.GroupResource(), "apply", 0)
			}
			return nil, nil
		})
		written, err := f.maps().Apply(t.Context(), "map", body("map", "2", ""), force)
		if completes := err == nil && dataOf(written) == "2"; completes != tc.completes || failed > busyBackoff.Steps {
			t.Errorf("%s: %v, %v after %d failures", tc.reason, written, err, failed)
		}
	}
}

// TestOthersWrite checks that an object that another client writes or replaces after it was read is read again, so that the engine has an
// answer to its second attempt, and that a later write of the preview needs none (P3, P6).
func TestOthersWrite(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*apitest.Server)
	}{
		{"another client writes it", func(s *apitest.Server) { s.Put(configMap("map", "9")) }},
		{"another client replaces it", func(s *apitest.Server) {
			s.Remove(configMap("map", ""))
			s.Put(configMap("map", "9"))
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t, configMap("map", "1"))
			write := func(value string) error {
				live, err := f.maps().Get(t.Context(), "map", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if value == "2" {
					tc.change(f.server)
				}
				sent := body("map", value, live.GetResourceVersion())
				sent.SetUID(live.GetUID())
				_, err = f.maps().Apply(t.Context(), "map", sent, force)
				return err
			}
			if err := write("2"); !apierrors.IsConflict(err) {
				t.Fatalf("the write of what was read before: %v", err)
			}
			if err := write("3"); err != nil {
				t.Fatalf("the second attempt: %v", err)
			}
			change, known := f.Find(apply.IDOf(body("map", "", "")))
			if !known || dataOf(change.Before) != "9" || dataOf(change.After) != "3" || change.Refused != nil {
				t.Errorf("%v %v", known, change)
			}
			theirs := configMap("map", "10")
			theirs.Data["theirs"] = "x"
			f.server.Put(theirs)
			if err := write("4"); err != nil {
				t.Errorf("a second write of the preview: %v", err)
			}
			change, _ = f.Find(apply.IDOf(body("map", "", "")))
			if _, before, _ := unstructured.NestedString(change.Before.Object, "data", "theirs"); !before || dataOf(change.After) != "4" {
				t.Errorf("what another client has added is shown as a change: %v", change)
			}
			asked := force
			asked.DryRun = []string{metav1.DryRunAll}
			old := body("map", "5", "1")
			old.SetUID(change.Before.GetUID())
			if _, err := f.maps().Apply(t.Context(), "map", old, asked); err != nil {
				t.Errorf("a dry run of the caller after a write: %v", err)
			}
		})
	}
}

// TestRecreatedTwice checks that an object which a run deletes, creates anew and writes again in another form keeps its uid, and that none of
// it is asked of the API server, which would compare it with what it still has.
func TestRecreatedTwice(t *testing.T) {
	f := newFixture(t, configMap("map", "1"))
	if err := f.maps().Delete(t.Context(), "map", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	before := f.server.Requests()
	first, err := f.maps().Apply(t.Context(), "map", body("map", "2", apply.NoResourceVersion), force)
	if err != nil {
		t.Fatal(err)
	}
	again := body("map", "3", first.GetResourceVersion())
	again.SetUID(first.GetUID())
	second, err := f.maps().Apply(t.Context(), "map", again, force)
	if err != nil || second.GetUID() != first.GetUID() || dataOf(second) != "3" || len(f.writes()) > 0 {
		t.Errorf("%v, %v; requests after %v", second, err, before)
	}
	if change, _ := f.Find(apply.IDOf(body("map", "", ""))); !change.Recreated || dataOf(change.After) != "3" {
		t.Errorf("%v", change)
	}
}
