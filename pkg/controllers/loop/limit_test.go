package loop

import (
	"context"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestLimit: a namespace whose requests never end leaves workers to the others.
func TestLimit(t *testing.T) {
	entered, end := make(chan string), make(chan struct{})
	l := NewLimit(reconcile.Func(func(_ context.Context, r reconcile.Request) (ctrl.Result, error) {
		entered <- r.Namespace
		<-end
		return ctrl.Result{}, nil
	}), 3)
	results := make(chan ctrl.Result)
	work := func(namespace string, n int) {
		result, _ := l.Reconcile(t.Context(), request(namespace, n))
		results <- result
	}
	go work("crowd", 0)
	go work("crowd", 1)
	for range 2 {
		<-entered
	}
	go work("crowd", 2)
	if result := <-results; result.RequeueAfter != limitDelay {
		t.Errorf("the third request of the namespace is answered with %+v, and should be tried again later", result)
	}
	go work("quiet", 0)
	if namespace := <-entered; namespace != "quiet" {
		t.Errorf("worked on is %s", namespace)
	}
	close(end)
	for range 3 {
		<-results
	}
	if len(l.active) != 0 {
		t.Errorf("still counted are %v", l.active)
	}
}
