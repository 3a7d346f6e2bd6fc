package instance

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestRunningFirst: where much is to be done, an object of a plan that runs brings its Instance to the front.
func TestRunningFirst(t *testing.T) {
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }
	r := &Reconciler{}
	r.runs.Store(key("runs"), &activeRun{})
	queue := priorityqueue.New[reconcile.Request](t.Name())
	t.Cleanup(queue.ShutDown)
	queue.Add(reconcile.Request{NamespacedName: key("new")})
	for _, name := range []string{"rests", "runs", "runs"} {
		r.changed(context.Background(), event.TypedGenericEvent[*unstructured.Unstructured]{Object: ChangeOf(key(name))}, queue)
	}
	if n := queue.Len(); n != 3 {
		t.Fatalf("%d Instances wait, want 3", n)
	}
	for _, want := range []string{"runs", "new", "rests"} {
		if next, _, _ := queue.GetWithPriority(); next.Name != want {
			t.Errorf("next comes %s, want %s", next.Name, want)
		}
	}
}
