package apply

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimes "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"
)

// still is a watch that has come to a point, and stands there.
type still struct {
	cache.SharedIndexInformer
	store cache.Store
	at    string
}

func (s *still) GetStore() cache.Store           { return s.store }
func (s *still) LastSyncResourceVersion() string { return s.at }
func (s *still) HasSynced() bool                 { return true }

func copyAt(namespace, uid string, version int) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Thing"})
	obj.SetNamespace(namespace)
	obj.SetName("x")
	obj.SetUID(types.UID(uid))
	obj.SetResourceVersion(fmt.Sprint(version))
	return obj
}

// TestMirrorOrder: what the mirror shows of an object, in whatever order our writes and the watch come.
func TestMirrorOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		steps  []string
		want   string
	}{
		"Nothing":     {"nothing is known", nil, ""},
		"Seen":        {"what the watch shows", []string{"saw a 5"}, "a 5"},
		"Wrote":       {"our write, before the watch shows it", []string{"wrote a 5"}, "a 5"},
		"Lag":         {"an older copy than our write does not count", []string{"saw a 5", "wrote a 7"}, "a 7"},
		"StillLag":    {"nor one between", []string{"wrote a 7", "saw a 6"}, "a 7"},
		"CaughtUp":    {"the watch's once it shows ours", []string{"wrote a 7", "saw a 7"}, "a 7"},
		"Newer":       {"a foreign edit after our write", []string{"wrote a 7", "saw a 9"}, "a 9"},
		"LateWrote":   {"the answer to our write comes after the watch has shown more", []string{"saw a 9", "wrote a 7"}, "a 9"},
		"Deleted":     {"gone", []string{"wrote a 7", "saw a 7", "deleted a 8"}, ""},
		"DeletedOld":  {"gone, with a last state older than our write", []string{"wrote a 7", "saw a 5", "deleted a 5"}, ""},
		"OldGone":     {"the end of its predecessor does not concern our new one", []string{"saw a 5", "wrote b 9", "deleted a 6"}, "b 9"},
		"GoneUnseen":  {"the answer comes after the watch has seen it go", []string{"saw a 7", "deleted a 8", "wrote a 7"}, ""},
		"GoneInAList": {"a list that is newer than our write does not have it, and no event says so", []string{"wrote a 7", "listed 9"}, ""},
		"OnItsWay":    {"the watch has received ours, but not stored it yet", []string{"saw b 5", "deleted b 6", "wrote a 7", "received 7"}, "a 7"},
		"NotYet":      {"one that is older says nothing", []string{"wrote a 7", "listed 6"}, "a 7"},
	} {
		for _, namespace := range []string{"ns", ""} {
			w := &kindWatch{unobserved: map[string]*packedObject{}}
			informer := &still{store: cache.NewStore(cache.MetaNamespaceKeyFunc), at: "1"}
			w.informer = informer
			m := &Mirror{changed: func(*unstructured.Unstructured) {}}
			id := IDOf(copyAt(namespace, "", 0))
			m.kinds = map[schema.GroupVersionKind]*kindWatch{id.GroupVersionKind: w}
			for _, step := range tc.steps {
				var verb, uid string
				var version int
				if _, err := fmt.Sscanf(step, "received %s", &informer.at); err == nil {
					continue
				}
				if _, err := fmt.Sscanf(step, "listed %s", &informer.at); err == nil {
					_ = informer.store.Replace(nil, informer.at)
					continue
				}
				if _, err := fmt.Sscanf(step, "%s %s %d", &verb, &uid, &version); err != nil {
					t.Fatal(err)
				}
				item, err := packed(copyAt(namespace, uid, version))
				if err != nil {
					t.Fatal(err)
				}
				switch verb {
				case "saw":
					_ = informer.store.Add(item)
					informer.at = fmt.Sprint(version)
					m.handleEvent(w, nil, item, false)
				case "deleted":
					_ = informer.store.Delete(item)
					informer.at = fmt.Sprint(version)
					m.handleEvent(w, nil, cache.DeletedFinalStateUnknown{Key: namespace + "/x", Obj: item}, true)
				case "wrote":
					m.RecordWrite(copyAt(namespace, uid, version))
				}
				runtime.GC() // what was unpacked goes
			}
			got := ""
			if obj, _ := m.Get(id); obj != nil {
				got = string(obj.GetUID()) + " " + obj.GetResourceVersion()
			}
			if got != tc.want {
				t.Errorf("%s (namespace %q): %s: %q, want %q", name, namespace, tc.reason, got, tc.want)
			}
		}
	}
}

// TestTrimmed: what no caller reads from the mirror is not kept; data that a caller may need is marked as left out.
func TestTrimmed(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		size   int
		marked bool
	}{
		"Small": {"up to 16 KiB stay", 16 << 10, false},
		"Large": {"more does not, and is marked", 16<<10 + 1, true},
	} {
		obj := copyAt("ns", "a", 1)
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
		obj.Object["data"] = map[string]any{"a": strings.Repeat("x", tc.size)}
		item, err := packed(obj)
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		got := item.(*packedObject).object()
		if got.GetManagedFields() != nil {
			t.Errorf("%s: managedFields are dropped", name)
		}
		if (got.GetAnnotations()[TrimmedAnnotation] != "") != tc.marked || (got.Object["data"] == nil) != tc.marked {
			t.Errorf("%s: %s", name, tc.reason)
		}
	}
	if item, err := packed(cache.DeletedFinalStateUnknown{}); err != nil || item != (cache.DeletedFinalStateUnknown{}) {
		t.Error("what is no object stays as it is")
	}
}

// TestMirrorWatches: a kind is listed and watched once, for all namespaces, however many plans of however many namespaces use
// it; a kind that is not served is not watched at all.
func TestMirrorWatches(t *testing.T) {
	thing := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(thing, meta.RESTScopeNamespace)
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtimes.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "example.org", Version: "v1", Resource: "things"}: "ThingList",
	})
	m := NewMirror(t.Context(), client, mapper, logr.Discard(), func(*unstructured.Unstructured) {})
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			m.Watch(t.Context(), thing, schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: fmt.Sprintf("Unserved%d", i)})
			obj := copyAt(fmt.Sprintf("ns-%d", i), "a", 1)
			obj.SetGroupVersionKind(thing)
			m.RecordWrite(obj)
		})
	}
	group.Wait()
	if len(m.kinds) != 1 {
		t.Errorf("%d kinds are watched", len(m.kinds))
	}
	verbs := map[string]int{}
	for _, action := range client.Actions() {
		verbs[action.GetVerb()]++
		if action.GetNamespace() != "" {
			t.Errorf("%s of namespace %s", action.GetVerb(), action.GetNamespace())
		}
	}
	if verbs["watch"] > 1 || verbs["list"] > 1 || verbs["watch"]+verbs["list"] == 0 {
		t.Errorf("requests: %v", verbs)
	}
}

// TestWithAddedOwners checks that an update which only adds owners concerns the added owners, and that any other update concerns all owners.
func TestWithAddedOwners(t *testing.T) {
	owned := func(version int, data string, owners ...string) *unstructured.Unstructured {
		obj := copyAt("", "a", version)
		obj.Object["data"] = map[string]any{"key": data}
		var references []metav1.OwnerReference
		for _, owner := range owners {
			references = append(references, metav1.OwnerReference{APIVersion: "kudo.dev/v1beta1", Kind: "Installation", Name: owner, UID: types.UID(owner)})
		}
		obj.SetOwnerReferences(references)
		return obj
	}
	edit := func(obj *unstructured.Unstructured, edit func(obj *unstructured.Unstructured)) *unstructured.Unstructured {
		edit(obj)
		return obj
	}
	now := metav1.Now()
	for name, tc := range map[string]struct {
		before, after *unstructured.Unstructured
		want          string
	}{
		"Added":      {owned(1, "v", "a", "b"), owned(2, "v", "a", "b", "c", "d"), "c d"},
		"AddedFirst": {owned(1, "v"), owned(2, "v", "a", "b"), "a b"},
		"Removed":    {owned(1, "v", "a", "b", "c"), owned(2, "v", "a", "c"), "a c"},
		"Replaced":   {owned(1, "v", "a", "b"), owned(2, "v", "a", "c", "d"), "a c d"},
		"Changed":    {owned(1, "v", "a", "b"), owned(2, "w", "a", "b", "c"), "a b c"},
		"Same":       {owned(1, "v", "a", "b"), owned(2, "v", "a", "b"), "a b"},
		"Deleted": {owned(1, "v", "a", "b"), edit(owned(2, "v", "a", "b", "c"), func(obj *unstructured.Unstructured) {
			obj.SetDeletionTimestamp(&now)
		}), "a b c"},
		"Replacement": {owned(1, "v", "a", "b"), edit(owned(2, "v", "a", "b", "c"), func(obj *unstructured.Unstructured) { obj.SetUID("b") }), "a b c"},
		"Trimmed": {owned(1, "v", "a", "b"), edit(owned(2, "v", "a", "b", "c"), func(obj *unstructured.Unstructured) {
			obj.SetAnnotations(map[string]string{TrimmedAnnotation: "true"})
		}), "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen *unstructured.Unstructured
			m := &Mirror{changed: func(obj *unstructured.Unstructured) { seen = obj }}
			whole := tc.after.DeepCopy()
			before, err := pack(tc.before)
			if err != nil {
				t.Fatal(err)
			}
			after, err := pack(tc.after)
			if err != nil {
				t.Fatal(err)
			}
			m.handleEvent(&kindWatch{}, before, after, false)
			var got []string
			for _, owner := range seen.GetOwnerReferences() {
				got = append(got, owner.Name)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("it concerns %q, want %q", strings.Join(got, " "), tc.want)
			}
			if left := after.object().GetOwnerReferences(); len(left) != len(whole.GetOwnerReferences()) {
				t.Errorf("the mirror has %d owners, want %d", len(left), len(whole.GetOwnerReferences()))
			}
		})
	}
}
