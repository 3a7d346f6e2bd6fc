package interpreter

import (
	"context"
	"errors"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// scaled is an object with a number of replicas.
func scaled(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": map[string]any{"replicas": int64(1)}}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

// TestAutoscalersScales checks which objects leave their replicas to a HorizontalPodAutoscaler.
func TestAutoscalersScales(t *testing.T) {
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "any"}}
	autoscaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	without := scaled("apps/v1", "Deployment", "ns", "web")
	unstructured.RemoveNestedField(without.Object, "spec", "replicas")
	zero := scaled("apps/v1", "Deployment", "ns", "web")
	zero.Object["spec"] = map[string]any{"replicas": int64(0)}
	malformed := scaled("apps/v1", "Deployment", "ns", "web")
	malformed.Object["spec"] = "text"
	for _, tc := range []struct {
		reason string
		object *unstructured.Unstructured
		want   bool
		asks   bool
	}{
		{"its target", scaled("apps/v1", "Deployment", "ns", "web"), true, true},
		{"its target in another version of the group", scaled("apps/v1beta2", "Deployment", "ns", "web"), true, true},
		{"its target with no replicas", zero, true, true},
		{"the kind of another group", scaled("example.org/v1", "Deployment", "ns", "web"), false, true},
		{"another kind of the name", scaled("apps/v1", "StatefulSet", "ns", "web"), false, true},
		{"another object of the kind", scaled("apps/v1", "Deployment", "ns", "web-2"), false, true},
		{"one of the name in another namespace", scaled("apps/v1", "Deployment", "other", "web"), false, true},
		{"an object that leaves out the field is not asked for", without, false, false},
		{"a cluster-scoped object is not asked for: a list of all namespaces is not allowed", scaled("apps/v1", "Deployment", "", "web"), false, false},
		{"an object that is malformed is not asked for", malformed, false, false},
	} {
		lists := 0
		c := fake.NewClientBuilder().WithObjects(autoscaler).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				lists++
				return inner.List(ctx, list, opts...)
			},
		}).Build()
		got, err := (Autoscalers{c}).Scales(t.Context(), tc.object)
		if err != nil || got != tc.want || (lists > 0) != tc.asks {
			t.Errorf("%s: scales %t after %d lists (%v), want %t", tc.reason, got, lists, err, tc.want)
		}
	}
}

// TestAutoscalersUnread checks that autoscalers that cannot be listed are an error: a write would undo what they have set.
func TestAutoscalersUnread(t *testing.T) {
	down := errors.New("down")
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return down },
	}).Build()
	if scales, err := (Autoscalers{c}).Scales(t.Context(), scaled("apps/v1", "Deployment", "ns", "web")); scales || !errors.Is(err, down) {
		t.Errorf("scales %t (%v), want the error of the list", scales, err)
	}
}
