package instances

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/explore"
)

// declarations makes the columns REPLICAS and REQUESTS of Instances: what the objects that they have written declare,
// all replicas together. A question mark stands for a number whose source could not be read.
func declarations(ctx context.Context, c client.Client) (func(*v1beta1.Instance) []string, error) {
	configs, err := command.ListLive[v1alpha1.Config](ctx, c, "Config")
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	unknown := err != nil
	hooks, unreached, err := command.LiveHooks(ctx, c)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	unknown = unknown || err != nil
	layers, err := command.ExploreLayers(configs, c, hooks)
	if err != nil {
		return nil, err
	}
	return func(i *v1beta1.Instance) []string {
		sum := &declaredResources{requests: corev1.ResourceList{}, unknown: unknown}
		slots := make(chan struct{}, atATime)
		var group sync.WaitGroup
		for _, r := range i.Status.Resources {
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				sum.ask(ctx, c, layers, unreached, r)
			})
		}
		group.Wait()
		return sum.columns()
	}, nil
}

// atATime is how many objects are read at a time.
const atATime = 8

// declaredResources sums up what objects declare.
type declaredResources struct {
	mu       sync.Mutex
	replicas int64
	requests corev1.ResourceList
	// found is set if an object declares replicas, unknown if one may and could not be asked about.
	found, unknown bool
}

// ask adds what one object declares. Deleted objects declare nothing.
func (d *declaredResources) ask(ctx context.Context, c client.Client, layers explore.Chain, unreached []command.UnreachedWebhook,
	r v1beta1.ResourceStatus) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(r.APIVersion)
	object.SetKind(r.Kind)
	err := c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, object)
	if apierrors.IsNotFound(err) {
		return
	}
	var components []v1alpha1.Component
	known, left := false, false
	// Components count instead of the replicas.
	for _, operation := range []explore.Operation{explore.Components, explore.Replica} {
		if err != nil || len(components) > 0 {
			break
		}
		var answer explore.Answer
		answer, known, err = layers.Explore(ctx, explore.Request{Operation: operation, Object: object})
		if known && operation == explore.Replica {
			answer.Components = []v1alpha1.Component{{Replicas: answer.Replicas, ReplicaRequirements: answer.Requirements}}
		}
		components = answer.Components
		left = left || answer.Layer != explore.User && slices.ContainsFunc(unreached, func(h command.UnreachedWebhook) bool {
			return h.MatchesAny(operation, object.GroupVersionKind().Group)
		})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unknown = d.unknown || err != nil || left
	if err == nil && known {
		d.add(components)
	}
}

// add adds the components of one object.
func (d *declaredResources) add(components []v1alpha1.Component) {
	d.found = true
	for _, component := range components {
		d.replicas += int64(component.Replicas)
		if component.ReplicaRequirements == nil {
			continue
		}
		for name, quantity := range component.ReplicaRequirements.ResourceRequest {
			if total := quantity.DeepCopy(); total.Mul(int64(component.Replicas)) {
				total.Add(d.requests[name])
				d.requests[name] = total
			}
		}
	}
}

// columns are the number of replicas and what they request, such as `3` and `cpu=300m,memory=1Gi`.
func (d *declaredResources) columns() []string {
	mark := ""
	if d.unknown {
		mark = "?"
	}
	if !d.found {
		return []string{mark, mark}
	}
	var requests []string
	for name, quantity := range d.requests {
		if !quantity.IsZero() {
			requests = append(requests, fmt.Sprintf("%s=%s", name, quantity.String()))
		}
	}
	slices.Sort(requests)
	return []string{fmt.Sprint(d.replicas) + mark, strings.Join(requests, ",") + mark}
}
