package kudoinit

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/health"
)

// Wait blocks until all objects are healthy, or the context ends; the error then says what was waited for. waiting is called with
// what is waited for when that changes.
func Wait(ctx context.Context, c client.Client, objs []*unstructured.Unstructured, waiting func(message string)) error {
	last, at := "", 0
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		unready, message := firstUnhealthy(ctx, c, objs, at)
		if message == "" && at > 0 { // those before it may have changed
			unready, message = firstUnhealthy(ctx, c, objs, 0)
		}
		if message == "" {
			return nil
		}
		if at = unready; message != last && (ctx.Err() == nil || last == "") { // the end of the context is no cause
			waiting(message)
			last = message
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kudo is not ready: %s", last)
		case <-ticker.C:
		}
	}
}

// firstUnhealthy returns the first of the objects, from one on, that is not healthy or cannot be read, and why; no message if there is
// none.
func firstUnhealthy(ctx context.Context, c client.Client, objs []*unstructured.Unstructured, from int) (int, string) {
	for i, obj := range objs[from:] {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		message := ""
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
			message = err.Error()
		} else if result := health.Check(live); result.State != health.Ready {
			message = result.Message
		}
		if message != "" {
			return from + i, fmt.Sprintf("%s %s: %s", obj.GetKind(), obj.GetName(), message)
		}
	}
	return 0, ""
}
