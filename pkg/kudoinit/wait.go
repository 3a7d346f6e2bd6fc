package kudoinit

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/health"
)

// Wait blocks until all objects are healthy, or the context ends. waiting is told what is waited for when that changes.
func Wait(ctx context.Context, c client.Client, objs []*unstructured.Unstructured, waiting func(message string)) error {
	last := ""
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		message, err := unhealthy(ctx, c, objs)
		if err == nil && message == "" {
			return nil
		}
		if err != nil {
			message = err.Error()
		}
		if message != last {
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

func unhealthy(ctx context.Context, c client.Client, objs []*unstructured.Unstructured) (string, error) {
	for _, obj := range objs {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
			return "", fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		if result := health.Check(live); result.State != health.Ready {
			return fmt.Sprintf("%s %s: %s", obj.GetKind(), obj.GetName(), result.Message), nil
		}
	}
	return "", nil
}
