package loop

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stored is an object as a reader returns it, by its version; empty if it is not found.
type stored string

// Get implements client.Reader.
func (s stored) Get(_ context.Context, key types.NamespacedName, obj client.Object, _ ...client.GetOption) error {
	if s == "" {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	obj.SetResourceVersion(string(s))
	return nil
}

// List implements client.Reader.
func (stored) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// TestRead: after a reconcile that failed, the next ones do not read an older version than its last write, which may have been committed
// without an answer and may not be in the cache yet.
func TestRead(t *testing.T) {
	key, ctx := types.NamespacedName{Name: "a"}, context.Background()
	q := NewBackoff()
	for _, step := range []struct {
		reason       string
		failed       error
		cached, live stored
		want         string
	}{
		{"nothing has failed", nil, "1", "2", "1"},
		{"a conflict: there is a newer one", apierrors.NewConflict(schema.GroupResource{}, "a", nil), "1", "2", "2"},
		{"the cache has caught up", nil, "2", "2", "2"},
		{"an answer did not come", errors.New("connection reset"), "1", "2", "2"},
		{"the cache is behind", nil, "1", "2", "2"},
		{"it has not got it yet", nil, "", "2", "2"},
		{"it has caught up", nil, "2", "2", "2"},
		{"so that it is asked again", nil, "2", "3", "2"},
	} {
		if step.failed != nil {
			if _, err := q.OnError(ctx, key, step.failed); err != nil {
				t.Fatal(err)
			}
		}
		obj := &corev1.ConfigMap{}
		if err := q.Read(ctx, key, obj, step.cached, step.live); err != nil || obj.ResourceVersion != step.want {
			t.Errorf("%s: version %s (%v), want %s", step.reason, obj.ResourceVersion, err, step.want)
		}
	}
	if _, err := q.OnError(ctx, key, errors.New("connection reset")); err != nil {
		t.Fatal(err)
	}
	if err := q.Read(ctx, key, &corev1.ConfigMap{}, stored("1"), stored("")); !apierrors.IsNotFound(err) {
		t.Errorf("the object was deleted, and the cache still has it: %v", err)
	}
}
