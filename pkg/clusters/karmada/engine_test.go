package karmada

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

func lease(renewed time.Time) *unstructured.Unstructured {
	out := ofKind(LeaseKind)
	out.SetNamespace(DefaultLease.Namespace)
	out.SetName(DefaultLease.Name)
	set(out, renewed.UTC().Format(metav1.RFC3339Micro), "spec", "renewTime")
	return out
}

// TestLiveness checks C30: when the Lease is too old, by the clock of the hub.
func TestLiveness(t *testing.T) {
	start := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakeClock(start)
	l := &liveness{lease: DefaultLease, clock: clock}
	expect := func(reason string, silent, changed bool) {
		t.Helper()
		if got := l.silent() != ""; got != silent {
			t.Errorf("%s: silent is %q", reason, l.silent())
		}
		if got := l.judge(); got != changed {
			t.Errorf("%s: a change is %t", reason, got)
		}
	}
	expect("no Lease was seen", true, true)
	l.see(lease(start.Add(-2 * time.Minute)))
	expect("the first Lease is old", true, true)
	l.see(lease(start.Add(-time.Minute)))
	expect("it is renewed by a clock that is behind", false, true)
	clock.Step(time.Minute)
	expect("it is as old as it may be", false, false)
	clock.Step(time.Second)
	expect("it is too old", true, true)
	expect("it is still too old", true, false)
	l.see(lease(start.Add(-time.Minute)))
	expect("the same Lease is seen again", true, false)
	l.see(lease(start))
	expect("it is renewed", false, true)
	l.lose()
	expect("it is deleted", true, true)
	l.see(lease(start.Add(time.Hour)))
	expect("a new one is of a clock that is ahead", false, true)
	clock.Step(2 * time.Minute)
	expect("that is not renewed", true, true)
	l.see(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"renewTime": int64(3)}}})
	expect("it loses its time", true, false)
}

// TestQueue checks that each Instance is queued once, in order, and again after it was taken out.
func TestQueue(t *testing.T) {
	q := newQueue()
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	for _, key := range []types.NamespacedName{a, b, a} {
		q.add(key)
	}
	if got := q.pop(); got == nil || *got != a {
		t.Fatalf("the first is %v", got)
	}
	q.add(a)
	for _, want := range []types.NamespacedName{b, a} {
		if got := q.pop(); got == nil || *got != want {
			t.Errorf("the next is %v, want %v", got, want)
		}
	}
	if got := q.pop(); got != nil {
		t.Errorf("after all there is %v", got)
	}
	select {
	case <-q.added:
	default:
		t.Error("the receiver is not told")
	}
}

// TestHandler checks that only what is new is passed on.
func TestHandler(t *testing.T) {
	var changed, deleted int
	h := handler{changed: func(*unstructured.Unstructured) { changed++ }, deleted: func(*unstructured.Unstructured) { deleted++ }, equal: isEquallyReady}
	at := func(o *unstructured.Unstructured, version string) *unstructured.Unstructured {
		o.SetResourceVersion(version)
		return o
	}
	ready, other, lost := at(cluster("m1", "True", "ClusterReady", "a"), "1"), at(cluster("m1", "True", "ClusterReady", "b"), "2"), at(cluster("m1", "Unknown", "", ""), "3")
	h.OnAdd(ready, false)
	h.OnUpdate(ready, ready)
	h.OnUpdate(ready, other)
	h.OnUpdate(other, lost)
	h.OnUpdate(lost, "no object")
	h.OnDelete(lost)
	h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: lost})
	h.OnDelete("no object")
	if changed != 2 || deleted != 2 {
		t.Errorf("%d changes and %d deletions were passed on, want 2 and 2", changed, deleted)
	}
}

// TestIsShownBy checks when an object of the cache is as new as what was written.
func TestIsShownBy(t *testing.T) {
	written := version{"u-1", "100"}
	for _, tc := range []struct {
		reason, uid, resourceVersion string
		want                         bool
	}{
		{"the same", "u-1", "100", true},
		{"a newer one, whose text sorts before", "u-1", "1000", true},
		{"an older one", "u-1", "99", false},
		{"another object", "u-2", "101", false},
		{"no version", "u-1", "", false},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetUID(types.UID(tc.uid))
		o.SetResourceVersion(tc.resourceVersion)
		if got := written.isShownBy(o); got != tc.want {
			t.Errorf("%s: it is %t", tc.reason, got)
		}
	}
	if written.isShownBy(nil) {
		t.Error("an absent object shows what was written")
	}
}

// TestTrim checks what the cache keeps of the objects of Karmada.
func TestTrim(t *testing.T) {
	v := scheduled()
	kept, err := trimBinding(v.Binding.DeepCopy())
	if err != nil || kept.(*unstructured.Unstructured).Object["status"] == nil {
		t.Errorf("of the binding of an Instance, %v is kept: %v", kept, err)
	}
	set(v.Binding, "Deployment", "spec", "resource", "kind")
	kept, err = trimBinding(v.Binding)
	if err != nil || kept.(*unstructured.Unstructured).Object["status"] != nil || bindingInstance(v.Binding).Name != "" {
		t.Errorf("of another binding, %v is kept: %v", kept, err)
	}
	c := cluster("m1", "False", "ClusterNotReachable", "no route")
	set(c, []any{"many"}, "status", "apiEnablements")
	kept, err = trimCluster(c)
	if err != nil || at(c.Object, "status", "apiEnablements") != nil || unreachable(c) != "ClusterNotReachable: no route" {
		t.Errorf("of a Cluster, %v is kept: %v", kept, err)
	}
	for _, trim := range []func(any) (any, error){trimBinding, trimCluster} {
		if kept, err := trim("other"); err != nil || kept != "other" {
			t.Errorf("another value becomes %v: %v", kept, err)
		}
	}
}
