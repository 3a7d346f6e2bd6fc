// Package live finds the explore rules and webhooks of a cluster, and asks them as the manager does, as far as they can be reached from
// here.
package live

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/interpreter"
	"kudo.dev/kudo/pkg/explore/lua"
	"kudo.dev/kudo/pkg/explore/native"
	"kudo.dev/kudo/pkg/explore/webhook"
	"kudo.dev/kudo/pkg/health"
)

// NewChain returns the layers of the manager: Configs, the webhooks of the cluster, the library, and kudo's own rules.
// Without a client, the chain calls no webhook and finds no autoscaler.
func NewChain(configs []v1alpha1.Config, c client.Client,
	hooks []v1alpha1.ResourceExploringWebhookConfiguration) (explore.Chain, error) {
	host := NewHost()
	layers := interpreter.Layers{User: config.New(host, configs, nil), Native: native.New(ownHealth, nil)}
	if c != nil {
		asked := webhook.New(webhook.Options{Resources: webhook.FromMapper(c.RESTMapper()), Services: servicesOf(c)})
		asked.Set(hooks)
		layers.Webhook, layers.Native = asked, native.New(ownHealth, interpreter.Autoscalers{Reader: c})
	}
	all, _, err := interpreter.New(host, layers)
	return all, err
}

// ownHealth answers by kudo's own rules, which know an answer for every kind.
func ownHealth(object *unstructured.Unstructured) (healthy, known bool, message string) {
	result := health.Check(object)
	return result.State == health.Ready, true, result.Message
}

// List lists the objects of a kind of config.kudo.dev.
func List[T any](ctx context.Context, c client.Client, kind string) ([]T, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list all objects of kind %s: %w", kind, err)
	}
	all := make([]T, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &all[i]); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", kind, list.Items[i].GetName(), err)
		}
	}
	return all, nil
}

// serviceProbe is how long a Service may take to accept a connection before its webhook is left out.
const serviceProbe = 2 * time.Second

// servicesOf finds the addresses of the Services of a cluster.
func servicesOf(c client.Client) webhook.Services {
	get := func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
		service := &corev1.Service{}
		return service, c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service)
	}
	return &webhook.ClusterServices{Names: net.DefaultResolver, Get: get}
}

// Hooks lists the webhook configurations of a cluster. Webhooks behind a Service that cannot be reached from here are left out of
// hooks, and returned as unreached.
func Hooks(ctx context.Context,
	c client.Client) (hooks []v1alpha1.ResourceExploringWebhookConfiguration, unreached []UnreachedWebhook, err error) {
	if hooks, err = List[v1alpha1.ResourceExploringWebhookConfiguration](ctx, c, "ResourceExploringWebhookConfiguration"); err != nil {
		return nil, nil, err
	}
	problems := probeServices(ctx, servicesOf(c), hooks)
	for i := range hooks {
		hooks[i].Webhooks = slices.DeleteFunc(hooks[i].Webhooks, func(h v1alpha1.ResourceExploringWebhook) bool {
			if h.ClientConfig.Service == nil || problems[target(h)] == nil {
				return false
			}
			unreached = append(unreached, UnreachedWebhook{hooks[i].Name, h, problems[target(h)]})
			return true
		})
	}
	return hooks, unreached, nil
}

// serviceTarget is the port of a Service.
type serviceTarget struct {
	namespace, name string
	port            int32
}

// target returns where a webhook behind a Service is.
func target(h v1alpha1.ResourceExploringWebhook) serviceTarget {
	s := h.ClientConfig.Service
	return serviceTarget{s.Namespace, s.Name, ptr.Deref(s.Port, 443)}
}

// probesAtATime is how many Services are connected to at a time.
const probesAtATime = 8

// probeServices connects to the Services of webhooks, and returns why those cannot be reached that cannot.
func probeServices(ctx context.Context, services webhook.Services,
	hooks []v1alpha1.ResourceExploringWebhookConfiguration) map[serviceTarget]error {
	var mu sync.Mutex
	problems, seen := map[serviceTarget]error{}, map[serviceTarget]bool{}
	var group errgroup.Group
	group.SetLimit(probesAtATime)
	for _, configuration := range hooks {
		for _, h := range configuration.Webhooks {
			if h.ClientConfig.Service == nil || seen[target(h)] {
				continue
			}
			at := target(h)
			seen[at] = true
			group.Go(func() error {
				if err := probe(ctx, services, at); err != nil {
					mu.Lock()
					defer mu.Unlock()
					problems[at] = err
				}
				return nil
			})
		}
	}
	_ = group.Wait() // no function returns an error
	return problems
}

// probe connects to a Service.
func probe(ctx context.Context, services webhook.Services, at serviceTarget) error {
	ctx, cancel := context.WithTimeout(ctx, serviceProbe)
	defer cancel()
	addresses, err := services.Addresses(ctx, at.namespace, at.name, at.port)
	if err != nil {
		return err
	}
	connection, err := webhook.Dial(ctx, net.Dialer{Timeout: serviceProbe}, addresses)
	if err != nil {
		return err
	}
	return connection.Close()
}

// UnreachedWebhook is a webhook behind a Service that cannot be reached from here.
type UnreachedWebhook struct {
	configuration string
	v1alpha1.ResourceExploringWebhook
	// problem is why.
	problem error
}

// MatchesAny reports whether a rule of the webhook has the operation and the group of a kind.
func (h UnreachedWebhook) MatchesAny(operation explore.Operation, group string) bool {
	return slices.ContainsFunc(h.Rules, func(r v1alpha1.RuleWithOperations) bool {
		return (slices.Contains(r.Operations, operation) || slices.Contains(r.Operations, v1alpha1.AnyOperation)) &&
			(slices.Contains(r.APIGroups, group) || slices.Contains(r.APIGroups, "*"))
	})
}

// String returns a warning that the webhook is not called.
func (h UnreachedWebhook) String() string {
	s := h.ClientConfig.Service
	return fmt.Sprintf("webhook %s/%s is not asked: its service %s/%s cannot be reached from here (%v); kudo itself may get another "+
		"answer", h.configuration, h.Name, s.Namespace, s.Name, h.problem)
}

// Layers returns the layers of the manager as they can be asked from here, without the webhooks that cannot be reached. The answers
// may differ from the manager's (unknown) if the user may not read the Configs or the webhooks.
func Layers(ctx context.Context,
	c client.Client) (layers explore.Chain, unreached []UnreachedWebhook, unknown bool, err error) {
	configs, err := List[v1alpha1.Config](ctx, c, "Config")
	if err != nil && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) { // a kudo without the kind has none
		return nil, nil, false, err
	}
	unknown = apierrors.IsForbidden(err)
	hooks, unreached, err := Hooks(ctx, c)
	if err != nil && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) {
		return nil, nil, false, err
	}
	unknown = unknown || apierrors.IsForbidden(err)
	layers, err = NewChain(configs, c, hooks)
	return layers, unreached, unknown, err
}

// NewHost returns a host of scripts with the limits of the manager.
func NewHost() *lua.Host { return lua.New(clock.RealClock{}.Now, lua.DefaultLimits()) }
