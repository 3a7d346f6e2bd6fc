package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestReconcile(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("changed"))
	change := func(o *Object[*corev1.Pod]) { o.Next.Status.Message = "new" }
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		act     func(*Object[*corev1.Pod]) (Result, error)
		fail    error
		want    ctrl.Result
		writes  int
		forgot  bool
	}{
		{reason: "nothing is left to do", objects: []client.Object{pod()},
			act: func(*Object[*corev1.Pod]) (Result, error) { return Result{}, nil }},
		{reason: "the status is committed", objects: []client.Object{pod()}, writes: 1,
			act:  func(o *Object[*corev1.Pod]) (Result, error) { change(o); return Result{RequeueAfter: time.Minute}, nil },
			want: ctrl.Result{RequeueAfter: time.Minute}},
		{reason: "a released object has no status to write", objects: []client.Object{pod()},
			act: func(o *Object[*corev1.Pod]) (Result, error) { change(o); return Done, nil }},
		{reason: "what was transient is tried again after a back-off", objects: []client.Object{pod()}, writes: 1,
			act: func(o *Object[*corev1.Pod]) (Result, error) {
				change(o)
				return Result{Transient: true, RequeueAfter: 1}, nil
			},
			want: ctrl.Result{RequeueAfter: minBackoff}},
		{reason: "after an error nothing is committed", objects: []client.Object{pod()},
			act: func(o *Object[*corev1.Pod]) (Result, error) {
				change(o)
				return Result{}, errors.New("connection reset")
			},
			want: ctrl.Result{RequeueAfter: minBackoff}},
		{reason: "a conflict of the commit is tried again at once", objects: []client.Object{pod()}, writes: 1, fail: conflict,
			act:  func(o *Object[*corev1.Pod]) (Result, error) { change(o); return Result{RequeueAfter: time.Minute}, nil },
			want: ctrl.Result{RequeueAfter: minConflictDelay}},
		{reason: "what is not found is forgotten", forgot: true,
			act: func(*Object[*corev1.Pod]) (Result, error) { return Result{}, errors.New("acted upon nothing") }},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := newCluster(t, tc.objects...)
			c.fail = tc.fail
			forgot := false
			r := New(Options[*corev1.Pod]{
				Client: c, Reader: c, Events: record.NewFakeRecorder(10), Forget: func(types.NamespacedName) { forgot = true },
				Act: func(_ context.Context, o *Object[*corev1.Pod]) (Result, error) { return tc.act(o) },
			})
			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod())})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			if len(c.writes) != tc.writes {
				t.Errorf("writes %q, want %d", c.writes, tc.writes)
			}
			if forgot != tc.forgot {
				t.Errorf("forgotten: %v", forgot)
			}
		})
	}
}

// TestReconcileReadsLive: the reconcile after one that failed knows what that one has committed.
func TestReconcileReadsLive(t *testing.T) {
	c := newCluster(t, pod())
	var seen []string
	r := New(Options[*corev1.Pod]{
		Client: stale{c, pod()}, Reader: c, Events: record.NewFakeRecorder(10),
		Act: func(ctx context.Context, o *Object[*corev1.Pod]) (Result, error) {
			seen = append(seen, o.Next.Status.Message)
			o.Next.Status.Message = "new"
			if err := o.Commit(ctx); err != nil {
				return Result{}, err
			}
			if len(seen) == 1 {
				return Result{}, errors.New("the answer of a later write did not come")
			}
			return Result{}, nil
		},
	})
	for range 2 {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod())}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"old", "new"}; !slices.Equal(seen, want) {
		t.Errorf("read %v, want %v", seen, want)
	}
}

// stale is a client whose cache shows an object as it was.
type stale struct {
	client.Client
	old *corev1.Pod
}

// Get implements client.Reader.
func (s stale) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	s.old.DeepCopyInto(obj.(*corev1.Pod))
	obj.SetResourceVersion("999")
	return nil
}

// TestReconcileKeepsSpec: a controller that changes spec is stopped before the status is written.
func TestReconcileKeepsSpec(t *testing.T) {
	c := newCluster(t, pod())
	r := New(Options[*corev1.Pod]{Client: c, Reader: c, Act: func(_ context.Context, o *Object[*corev1.Pod]) (Result, error) {
		o.Next.Spec.NodeName, o.Next.Status.Message, o.State = "node", "new", "odd"
		return Result{}, nil
	}})
	defer func() {
		if got, want := fmt.Sprint(recover()), `the reconcile in state "odd" changed the spec of Pod ns/a: controllers never write spec`; got != want {
			t.Errorf("panic %q, want %q", got, want)
		}
		if len(c.writes) > 0 {
			t.Errorf("written: %q", c.writes)
		}
	}()
	_, _ = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod())})
}

// TestReconcileRemembersWarnings: reconciles that come one after the other warn once, until the object is not found.
func TestReconcileRemembersWarnings(t *testing.T) {
	events := record.NewFakeRecorder(10)
	c := newCluster(t, pod())
	r := New(Options[*corev1.Pod]{Client: c, Reader: c, Events: events, Act: func(_ context.Context, o *Object[*corev1.Pod]) (Result, error) {
		o.WarnOnce("scope", "A", "x")
		return Done, nil
	}})
	run := func() {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pod())}); err != nil {
			t.Fatal(err)
		}
	}
	run()
	run()
	if err := c.Delete(t.Context(), pod()); err != nil {
		t.Fatal(err)
	}
	run()
	if err := c.Create(t.Context(), pod()); err != nil {
		t.Fatal(err)
	}
	run()
	if got := recorded(events); len(got) != 2 {
		t.Errorf("events %v, want two", got)
	}
}

// TestReconcileConcurrently: reconciles of several objects share nothing but what is guarded.
func TestReconcileConcurrently(t *testing.T) {
	var objects []client.Object
	for n := range 8 {
		objects = append(objects, pod(func(p *corev1.Pod) { p.Name = fmt.Sprint(n) }))
	}
	inner := newCluster(t, objects...).Client
	r := New(Options[*corev1.Pod]{Client: inner, Reader: inner, Events: record.NewFakeRecorder(100), Act: func(_ context.Context, o *Object[*corev1.Pod]) (Result, error) {
		o.WarnOnce("scope", "A", "x")
		if o.Next.Name == "0" {
			return Result{}, errors.New("connection reset")
		}
		return Result{Transient: true}, nil
	}})
	var workers sync.WaitGroup
	for n := range 9 { // the last one is not found
		workers.Go(func() {
			for range 5 {
				_, _ = r.Reconcile(t.Context(), request("ns", n))
			}
		})
	}
	workers.Wait()
}

func TestDeletionStarted(t *testing.T) {
	now := metav1.Now()
	deleted := pod(func(p *corev1.Pod) { p.DeletionTimestamp = &now })
	for _, tc := range []struct {
		reason   string
		old, new *corev1.Pod
		want     bool
	}{
		{"an update of any other field", pod(), pod(), false},
		{"the deletion has started", pod(), deleted, true},
		{"the deletion continues", deleted, deleted, false},
	} {
		if got := (DeletionStarted{}).Update(event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.new}); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}

// TestHold: a status that is held is continued by the next reconcile, which writes it; it is lost if the object has changed.
func TestHold(t *testing.T) {
	ctx, key := t.Context(), client.ObjectKeyFromObject(pod())
	for _, tc := range []struct {
		reason string
		// second is what the second of three reconciles does, and change what another client does before it.
		second func(*Object[*corev1.Pod]) (Result, error)
		change bool
		// seen are the messages that the reconciles begin with.
		seen []string
	}{
		{"it is written later", func(*Object[*corev1.Pod]) (Result, error) { return Result{}, nil }, false, []string{"old", "old+", "old+"}},
		{"it is held again", func(*Object[*corev1.Pod]) (Result, error) { return Result{Hold: true}, nil }, false, []string{"old", "old+", "old++"}},
		{"a reconcile that fails changes nothing of it", func(*Object[*corev1.Pod]) (Result, error) { return Result{}, errors.New("slow") }, false,
			[]string{"old", "old+", "old+"}},
		{"neither does one that decides nothing", func(*Object[*corev1.Pod]) (Result, error) { return Result{Undecided: true}, nil }, false,
			[]string{"old", "old+", "old+"}},
		{"a user has changed the object", func(*Object[*corev1.Pod]) (Result, error) { return Result{}, nil }, true, []string{"old", "old", "old+"}},
		{"an event goes with it", func(o *Object[*corev1.Pod]) (Result, error) {
			o.EventAfterCommit(corev1.EventTypeNormal, "Started", "it was started")
			return Result{Hold: true}, nil
		}, false, []string{"old", "old+", "old++"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := newCluster(t, pod())
			var seen []string
			r := New(Options[*corev1.Pod]{Client: c, Reader: c, Events: record.NewFakeRecorder(10),
				Act: func(_ context.Context, o *Object[*corev1.Pod]) (Result, error) {
					seen = append(seen, o.Next.Status.Message)
					switch len(seen) {
					case 1:
						o.Next.Status.Message += "+"
						return Result{Hold: true}, nil
					case 2:
						result, err := tc.second(o)
						if o.Next.Status.Message == "old" || result.Hold || err != nil || result.Undecided {
							o.Next.Status.Message += "+"
						}
						return result, err
					}
					return Result{}, nil
				}})
			for n := range 3 {
				if n == 1 && tc.change {
					now := &corev1.Pod{}
					if err := c.Get(ctx, key, now); err != nil {
						t.Fatal(err)
					}
					now.Labels = map[string]string{"a": "b"}
					if err := c.Update(ctx, now); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.seen, seen); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			if len(c.writes) != 1 {
				t.Errorf("writes %q, want one", c.writes)
			}
			if _, held := r.held.Load(key); held {
				t.Error("it is held for ever")
			}
		})
	}
}
