package kudoinit

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestWait checks that what is waited for is asked for alone, and named when the time is over, even if a request ends with the time.
func TestWait(t *testing.T) {
	var objs []*unstructured.Unstructured
	for kind, name := range map[string]string{"ConfigMap": "config", "Deployment": "manager"} {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion(map[string]string{"ConfigMap": "v1", "Deployment": "apps/v1"}[kind])
		obj.SetKind(kind)
		obj.SetNamespace("ns")
		obj.SetName(name)
		objs = append(objs, obj)
	}
	slices.SortFunc(objs, func(a, b *unstructured.Unstructured) int { return len(a.GetKind()) - len(b.GetKind()) })
	deployment := &appsv1.Deployment{ObjectMeta: gen.Meta("ns", "manager")}
	for _, tc := range []struct {
		reason  string
		ready   bool
		configs int
		want    string
	}{
		{"the Deployment becomes ready: all are read a second time", true, 2, ""},
		{"the time ends", false, 1, "kudo is not ready: Deployment manager: waits for its controller to see the new spec"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			server := apitest.Start(t)
			server.Put(&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "config")})
			waits := deployment.DeepCopy()
			waits.Generation = 2
			server.Put(waits)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			configs, deployments := 0, 0
			server.Before(func(r apitest.Request) (any, error) {
				switch r.Name {
				case "config":
					configs++
				case "manager":
					if deployments++; deployments < 3 {
						return nil, nil
					}
					if !tc.ready {
						cancel()
						return nil, nil
					}
					return runtime.Object(readyDeployment(waits)), nil
				}
				return nil, nil
			})
			var messages []string
			err := Wait(ctx, server.Client(), objs, func(message string) { messages = append(messages, message) })
			if text := errorText(err); text != tc.want {
				t.Errorf("error %q, want %q", text, tc.want)
			}
			if configs != tc.configs || len(messages) != 1 {
				t.Errorf("the ConfigMap was read %d times, want %d; messages %q", configs, tc.configs, messages)
			}
		})
	}
}

// readyDeployment returns a Deployment whose one pod is available.
func readyDeployment(of *appsv1.Deployment) *appsv1.Deployment {
	out := of.DeepCopy()
	out.TypeMeta.APIVersion, out.TypeMeta.Kind = "apps/v1", "Deployment"
	out.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	return out
}
