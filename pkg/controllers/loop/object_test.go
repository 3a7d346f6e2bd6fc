package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// cluster is a client of Pods in memory that records its writes.
type cluster struct {
	client.Client
	writes []string
	// fail is the error of the next write.
	fail error
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	c := &cluster{}
	write := func(text string, do func() error) error {
		c.writes = append(c.writes, text)
		if err := c.fail; err != nil {
			c.fail = nil
			return err
		}
		return do()
	}
	c.Client = fake.NewClientBuilder().WithObjects(objects...).WithStatusSubresource(&corev1.Pod{}).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, inner client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write("patch", func() error { return inner.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, inner client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			data, err := patch.Data(obj)
			if err != nil {
				return err
			}
			return write(name+" "+string(data), func() error { return inner.SubResource(name).Patch(ctx, obj, patch, opts...) })
		},
	}).Build()
	return c
}

func pod(modify ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Status: corev1.PodStatus{Message: "old"}}
	for _, m := range modify {
		m(p)
	}
	return p
}

// read returns the object of the cluster, and the events that are recorded of it.
func (c *cluster) read(t *testing.T) (*Object[*corev1.Pod], *record.FakeRecorder) {
	t.Helper()
	current := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod()), current); err != nil {
		t.Fatal(err)
	}
	events := record.NewFakeRecorder(10)
	return NewObject(c, c, events, current), events
}

func recorded(events *record.FakeRecorder) []string {
	close(events.Events)
	return slices.Collect(func(yield func(string) bool) {
		for e := range events.Events {
			if !yield(e) {
				return
			}
		}
	})
}

func TestCommit(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("changed"))
	for _, tc := range []struct {
		reason string
		act    func(*Object[*corev1.Pod])
		fail   error
		writes []string
		events []string
		err    string
	}{
		{reason: "an unchanged status costs no request, and its events are recorded",
			act:    func(o *Object[*corev1.Pod]) { o.EventAfterCommit("Normal", "Same", "n is %d", 1) },
			events: []string{"Normal Same n is 1"}},
		{reason: "a changed status is one patch, bound to the version that was read",
			act: func(o *Object[*corev1.Pod]) {
				o.Next.Status.Message = "new"
				o.EventAfterCommit("Normal", "Changed", "done")
			},
			writes: []string{`status {"metadata":{"resourceVersion":"999"},"status":{"message":"new"}}`}, events: []string{"Normal Changed done"}},
		{reason: "the status is summarized before it is compared",
			act: func(o *Object[*corev1.Pod]) {
				o.Next.Status.Message = "new"
				o.Summarize = func() { o.Next.Status.Reason = "of " + o.Next.Status.Message }
			},
			writes: []string{`status {"metadata":{"resourceVersion":"999"},"status":{"message":"new","reason":"of new"}}`}},
		{reason: "without the commit nothing is said to have happened, but for what was done", fail: conflict,
			act: func(o *Object[*corev1.Pod]) {
				o.Next.Status.Message = "new"
				o.EventAfterCommit("Normal", "Changed", "done")
				o.Warn("Deleted", "%s", "it was deleted")
			},
			writes: []string{`status {"metadata":{"resourceVersion":"999"},"status":{"message":"new"}}`}, events: []string{"Warning Deleted it was deleted"},
			err: "write status of Pod ns/a: " + conflict.Error()},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := newCluster(t, pod())
			o, events := c.read(t)
			c.fail = tc.fail
			tc.act(o)
			err := o.Commit(t.Context())
			if got := fmt.Sprint(err); tc.err != "" && got != tc.err || tc.err == "" && err != nil {
				t.Errorf("error %q, want %q", got, tc.err)
			}
			if apierrors.IsConflict(err) != apierrors.IsConflict(tc.fail) {
				t.Errorf("%v does not say what the cause is", err)
			}
			if diff := cmp.Diff(tc.writes, c.writes); diff != "" {
				t.Errorf("writes: -want +got: %s", diff)
			}
			if diff := cmp.Diff(tc.events, recorded(events)); diff != "" {
				t.Errorf("events: -want +got: %s", diff)
			}
		})
	}
}

// TestCommitTwice: the second commit of a reconcile writes the changes since the first one, and expects the version that the first one has
// written.
func TestCommitTwice(t *testing.T) {
	c := newCluster(t, pod())
	o, events := c.read(t)
	o.EventAfterCommit("Normal", "First", "first")
	for _, message := range []string{"first", "first", "second"} {
		o.Next.Status.Message = message
		if err := o.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`status {"metadata":{"resourceVersion":"999"},"status":{"message":"first"}}`,
		`status {"metadata":{"resourceVersion":"1000"},"status":{"message":"second"}}`,
	}
	if diff := cmp.Diff(want, c.writes); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if got := recorded(events); len(got) != 1 {
		t.Errorf("events %v, want one", got)
	}
}

func TestSetFinalizer(t *testing.T) {
	const finalizer = "example.com/hold"
	for _, tc := range []struct {
		reason      string
		has, wanted bool
		fail        error
		writes      []string
		err         bool
	}{
		{reason: "it is added", wanted: true, writes: []string{"patch"}},
		{reason: "it is there", has: true, wanted: true},
		{reason: "it is removed", has: true, writes: []string{"patch"}},
		{reason: "it is not there"},
		{reason: "an object that does not exist has no finalizer", has: true, fail: apierrors.NewNotFound(corev1.Resource("pods"), "a"), writes: []string{"patch"}},
		{reason: "an object that was changed is decided upon again", wanted: true, fail: apierrors.NewConflict(corev1.Resource("pods"), "a", nil), writes: []string{"patch"}, err: true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := newCluster(t, pod(func(p *corev1.Pod) {
				if tc.has {
					p.Finalizers = []string{finalizer}
				}
			}))
			o, _ := c.read(t)
			o.Next.Status.Message = "new"
			c.fail = tc.fail
			if err := o.SetFinalizer(t.Context(), finalizer, tc.wanted); (err != nil) != tc.err {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.writes, c.writes); diff != "" {
				t.Errorf("writes: -want +got: %s", diff)
			}
			if o.Next.Status.Message != "new" || o.Committed.Status.Message != "old" {
				t.Errorf("status %q and %q: it is neither committed nor lost", o.Next.Status.Message, o.Committed.Status.Message)
			}
			if tc.fail != nil {
				return
			}
			live, _ := c.read(t)
			if got := slices.Contains(live.Next.Finalizers, finalizer); got != tc.wanted {
				t.Errorf("the finalizer is there: %v", got)
			}
			if err := o.Commit(t.Context()); err != nil {
				t.Errorf("the status cannot be committed afterwards: %v", err)
			}
		})
	}
}

// TestWarnOnce: a warning is recorded once in a scope, and again in the next one.
func TestWarnOnce(t *testing.T) {
	c := newCluster(t, pod())
	o, events := c.read(t)
	for _, w := range [][3]string{{"1", "A", "x"}, {"1", "A", "x"}, {"1", "A", "y"}, {"1", "B", "x"}, {"2", "A", "x"}, {"2", "A", "x"}} {
		o.WarnOnce(w[0], w[1], w[2])
	}
	want := []string{"Warning A x", "Warning A y", "Warning B x", "Warning A x"}
	if diff := cmp.Diff(want, recorded(events)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

func TestIsNamespaceTerminating(t *testing.T) {
	now := metav1.Now()
	for _, tc := range []struct {
		reason  string
		objects []client.Object
		want    bool
	}{
		{"it stays", []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}, false},
		{"it is being deleted", []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", DeletionTimestamp: &now, Finalizers: []string{"kubernetes"}}}}, true},
		{"it does not exist anymore", nil, true},
	} {
		c := newCluster(t, append(tc.objects, pod())...)
		o, _ := c.read(t)
		if got, err := o.IsNamespaceTerminating(t.Context()); got != tc.want || err != nil {
			t.Errorf("%s: %v (%v)", tc.reason, got, err)
		}
	}
}

// TestEventLog checks that an event is logged, with the values that the object has at that time.
func TestEventLog(t *testing.T) {
	var lines []string
	var values []any
	o := NewObject(nil, nil, record.NewFakeRecorder(10), pod())
	o.log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	o.Event("Normal", "Same", "n is %d", 1)
	o.LogValues = func() []any { return values }
	values = []any{"attempt", "first"}
	o.Warn("Failed", "%s", "it failed\nat once")
	values = []any{"attempt", "second"}
	o.EventAfterCommit("Normal", "Done", "done")
	values = nil
	o.recordEvents()
	want := []string{
		`"level"=0 "msg"="n is 1" "type"="Normal" "reason"="Same"`,
		`"level"=0 "msg"="it failed\nat once" "type"="Warning" "reason"="Failed" "attempt"="first"`,
		`"level"=0 "msg"="done" "type"="Normal" "reason"="Done"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}
