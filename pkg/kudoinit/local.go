package kudoinit

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/dryrun"
)

// NewLocalClient returns a client that only reads. It computes the result of an apply of an existing object itself, and refuses other
// writes.
func NewLocalClient(reads client.Client) client.Client { return localClient{reads} }

type localClient struct{ client.Client }

// Apply implements client.Client: the object becomes what an apply would leave.
func (c localClient) Apply(ctx context.Context, applied runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	sent, ok := applied.(runtime.Unstructured)
	if !ok {
		return fmt.Errorf("apply %T: not supported without the API server", applied)
	}
	form, live := &unstructured.Unstructured{Object: sent.UnstructuredContent()}, &unstructured.Unstructured{}
	live.SetGroupVersionKind(form.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(form), live); err != nil {
		return err
	}
	o := (&client.ApplyOptions{}).ApplyOptions(opts)
	merged, err := dryrun.Merge(live, form, metav1.ApplyOptions{FieldManager: o.FieldManager, Force: ptr.Deref(o.Force, false)})
	if err != nil {
		return err
	}
	sent.SetUnstructuredContent(merged.Object)
	return nil
}

var errLocal = errors.New("a client that only reads does not write")

// Create implements client.Client; it is refused.
func (localClient) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errLocal
}

// Update implements client.Client; it is refused.
func (localClient) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errLocal
}

// Patch implements client.Client; it is refused.
func (localClient) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errLocal
}

// Delete implements client.Client; it is refused.
func (localClient) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errLocal
}

// DeleteAllOf implements client.Client; it is refused.
func (localClient) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errLocal
}
