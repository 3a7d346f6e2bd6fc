package faults

import (
	"context"
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"kudo.dev/kudo/test/lifecycle"
)

// state reads the testbed.
func (w *testbed) state() lifecycle.State {
	w.Helper()
	return lifecycle.Read(w, suite, w.ns, w.collected)
}

// objects lists all that is in the testbed.
func (w *testbed) objects() []*unstructured.Unstructured {
	w.Helper()
	return lifecycle.Objects(w, suite, w.ns)
}

// idleLimit bounds how long a testbed may take from the end of a plan to its rest, and collection how long where the cluster's
// garbage collector has something to do in it: that waits for half a minute each time a definition goes, or the apiserver.
// termination is how long a namespace or a definition may take to be deleted, which takes Kubernetes minutes after hundreds were.
const idleLimit, collection, termination = 2 * time.Minute, 3 * time.Minute, 5 * time.Minute

// settle waits until the testbed is in a state.
func (w *testbed) settle(want lifecycle.State) {
	w.Helper()
	began, diff := time.Now(), ""
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, collection, true, func(context.Context) (bool, error) {
		now := w.state()
		diff = cmp.Diff(want, now)
		if diff != "" && !now.Collectable() && time.Since(began) > idleLimit {
			return false, errors.New("nothing is left that the garbage collector deletes")
		}
		return diff == "", nil
	})
	if err != nil {
		w.Errorf("the end is not that of an undisturbed run (-undisturbed +with the fault): %v\n%s\nthe manager said:\n%s", err, diff, manager.tail())
	}
}

// waitIdle waits until the testbed does not change any more, and returns its state.
func (w *testbed) waitIdle() lifecycle.State {
	w.Helper()
	last, since := w.state(), time.Now()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, limit, false, func(context.Context) (bool, error) {
		if now := w.state(); !cmp.Equal(last, now) || now.Collectable() {
			last, since = now, time.Now()
		}
		return time.Since(since) >= time.Second, nil
	})
	if err != nil {
		w.Fatalf("the cluster does not become idle: %v: %s", err, cmp.Diff(last, w.state()))
	}
	return last
}
