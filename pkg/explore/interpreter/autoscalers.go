package interpreter

import (
	"context"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Autoscalers know what HorizontalPodAutoscalers scale. The manager has them read live, before a write of an object that has replicas: a
// cache may lack the autoscaler that has just set their number.
type Autoscalers struct{ Reader client.Reader }

// Scales implements native.Autoscalers.
func (a Autoscalers) Scales(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	if _, has, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas"); !has || object.GetNamespace() == "" {
		return false, nil
	}
	list := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := a.Reader.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		return false, fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	gk := object.GroupVersionKind().GroupKind()
	for _, hpa := range list.Items {
		target := hpa.Spec.ScaleTargetRef
		if schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind() == gk && target.Name == object.GetName() {
			return true, nil
		}
	}
	return false, nil
}
