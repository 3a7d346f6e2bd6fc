package command

import (
	"time"

	"kudo.dev/kudo/pkg/explore/lua"

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

// ExploreLayers returns the layers of the manager: Configs, the webhooks of the cluster, the library, and kudo's own rules.
// Without a client, the chain calls no webhook and finds no autoscaler.
func ExploreLayers(configs []v1alpha1.Config, c client.Client,
	hooks []v1alpha1.ResourceExploringWebhookConfiguration) (explore.Chain, error) {
	host := LuaHost()
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

// ownHealth answers by kudo's own rules, which know an answer for every kind.
func ownHealth(object *unstructured.Unstructured) (healthy, known bool, message string) {
	result := health.Check(object)
	return result.State == health.Ready, true, result.Message
}

// scalers finds the autoscalers of a cluster.
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

// ListLive lists the objects of a kind of config.kudo.dev.
func ListLive[T any](ctx context.Context, c client.Client, kind string) ([]T, error) {
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

// LiveHooks lists the webhook configurations of a cluster. Webhooks behind a Service can be called inside of the cluster only:
// they are left out of hooks, and returned as inside.
func LiveHooks(ctx context.Context,
	c client.Client) (hooks []v1alpha1.ResourceExploringWebhookConfiguration, inside []ClusterOnlyWebhook, err error) {
	if hooks, err = ListLive[v1alpha1.ResourceExploringWebhookConfiguration](ctx, c, "ResourceExploringWebhookConfiguration"); err != nil {
		return nil, nil, err
	}
	for i := range hooks {
		hooks[i].Webhooks = slices.DeleteFunc(hooks[i].Webhooks, func(h v1alpha1.ResourceExploringWebhook) bool {
			if h.ClientConfig.Service == nil {
				return false
			}
			inside = append(inside, ClusterOnlyWebhook{hooks[i].Name, h})
			return true
		})
	}
	return hooks, inside, nil
}

// ClusterOnlyWebhook is a webhook that can be called inside of the cluster only.
type ClusterOnlyWebhook struct {
	configuration string
	v1alpha1.ResourceExploringWebhook
}

// MatchesAny reports whether a rule of the webhook has the operation and the group of a kind.
func (h ClusterOnlyWebhook) MatchesAny(operation explore.Operation, group string) bool {
	return slices.ContainsFunc(h.Rules, func(r v1alpha1.RuleWithOperations) bool {
		return (slices.Contains(r.Operations, operation) || slices.Contains(r.Operations, v1alpha1.AnyOperation)) &&
			(slices.Contains(r.APIGroups, group) || slices.Contains(r.APIGroups, "*"))
	})
}

// String returns a warning that the webhook is not called.
func (h ClusterOnlyWebhook) String() string {
	s := h.ClientConfig.Service
	return fmt.Sprintf("webhook %s/%s is not asked: it is service %s/%s, which is reached inside of the cluster only; kudo itself may get "+
		"another answer", h.configuration, h.Name, s.Namespace, s.Name)
}

// LuaHost returns a host of scripts with the limits of the manager.
func LuaHost() *lua.Host { return lua.New(time.Now, lua.DefaultLimits()) }
