package cli

import (
	"context"
	"fmt"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/library"
	"kudo.dev/kudo/pkg/explore/native"
	"kudo.dev/kudo/pkg/explore/webhook"
	"kudo.dev/kudo/pkg/health"
)

// exploreLayers are those of the manager: Configs, the webhooks of the cluster, what comes with kudo, and kudo's own
// rules. Without a cluster, nobody is asked by a webhook, and nothing counts as scaled by an autoscaler.
func exploreLayers(configs []v1alpha1.Config, c client.Client, hooks []v1alpha1.ResourceExploringWebhookConfiguration) (explore.Chain, error) {
	host := luaHost()
	bundled, err := library.New(host)
	if err != nil {
		return nil, err
	}
	user := config.New(host, configs, nil)
	if c == nil {
		return explore.NewChain(user, nil, bundled, native.New(ownHealth, nil)), nil
	}
	asked := webhook.New(webhook.Options{Resources: webhook.FromMapper(c.RESTMapper())})
	asked.Set(hooks)
	return explore.NewChain(user, asked, bundled, native.New(ownHealth, scalers{c})), nil
}

// ownHealth is kudo's own rules, which have an opinion on every kind.
func ownHealth(object *unstructured.Unstructured) (healthy, known bool, message string) {
	result := health.Check(object)
	return result.State == health.Ready, true, result.Message
}

// scalers are the autoscalers of a cluster.
type scalers struct{ reader client.Reader }

// Scales implements native.Autoscalers.
func (s scalers) Scales(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	list := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := s.reader.List(ctx, list, client.InNamespace(object.GetNamespace())); err != nil {
		return false, fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	kind := object.GroupVersionKind().GroupKind()
	return slices.ContainsFunc(list.Items, func(a autoscalingv2.HorizontalPodAutoscaler) bool {
		target := a.Spec.ScaleTargetRef
		return schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind() == kind && target.Name == object.GetName()
	}), nil
}

// listLive reads all objects of a kind of config.kudo.dev.
func listLive[T any](ctx context.Context, c client.Client, kind string) ([]T, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("read the %ss of the cluster: %w", kind, err)
	}
	all := make([]T, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &all[i]); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", kind, list.Items[i].GetName(), err)
		}
	}
	return all, nil
}

// liveHooks reads the webhook configurations of a cluster. Webhooks that are reached by a service can be asked inside of
// the cluster only: they are left out, and named.
func liveHooks(ctx context.Context, c client.Client) (hooks []v1alpha1.ResourceExploringWebhookConfiguration, inside []insideHook, err error) {
	if hooks, err = listLive[v1alpha1.ResourceExploringWebhookConfiguration](ctx, c, "ResourceExploringWebhookConfiguration"); err != nil {
		return nil, nil, err
	}
	for i := range hooks {
		hooks[i].Webhooks = slices.DeleteFunc(hooks[i].Webhooks, func(h v1alpha1.ResourceExploringWebhook) bool {
			if h.ClientConfig.Service == nil {
				return false
			}
			inside = append(inside, insideHook{hooks[i].Name, h})
			return true
		})
	}
	return hooks, inside, nil
}

// insideHook is a webhook of a configuration that can be asked inside of the cluster only.
type insideHook struct {
	configuration string
	v1alpha1.ResourceExploringWebhook
}

// mayCare tells whether a rule of the webhook has the operation and the group of a kind.
func (h insideHook) mayCare(operation explore.Operation, group string) bool {
	return slices.ContainsFunc(h.Rules, func(r v1alpha1.RuleWithOperations) bool {
		return (slices.Contains(r.Operations, operation) || slices.Contains(r.Operations, v1alpha1.AnyOperation)) &&
			(slices.Contains(r.APIGroups, group) || slices.Contains(r.APIGroups, "*"))
	})
}

// String says why it is not asked.
func (h insideHook) String() string {
	s := h.ClientConfig.Service
	return fmt.Sprintf("webhook %s/%s is not asked: it is service %s/%s, which is reached inside of the cluster only; kudo itself may get another answer", h.configuration, h.Name, s.Namespace, s.Name)
}
