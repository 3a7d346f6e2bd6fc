package instances

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/live"
)

// declarations returns a function for the columns REPLICAS and REQUESTS of an Instance: the sums of what its objects declare, over all
// replicas. A question mark stands for a number whose source could not be read.
func declarations(ctx context.Context, c client.Client) (func(*v1beta1.Instance) []string, error) {
	layers, unreached, unknown, err := live.Layers(ctx, c)
	if err != nil {
		return nil, err
	}
	return func(i *v1beta1.Instance) []string {
		sum := &declaredResources{unknown: unknown}
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
	mu sync.Mutex
	explore.Declared
	// found is set if an object declares replicas, unknown if one may and could not be asked about.
	found, unknown bool
}

// ask adds what one object declares. Deleted objects declare nothing.
func (d *declaredResources) ask(ctx context.Context, c client.Client, layers explore.Chain, unreached []live.UnreachedWebhook,
	r v1beta1.ResourceStatus) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(r.APIVersion)
	object.SetKind(r.Kind)
	err := c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, object)
	if apierrors.IsNotFound(err) {
		return
	}
	left, known := false, false
	var declared explore.Declared
	if err == nil {
		declared, known, err = explore.Declare(ctx, func(ctx context.Context, question explore.Request) (explore.Answer, bool, error) {
			answer, known, err := layers.Explore(ctx, question)
			left = left || answer.Layer != explore.User && slices.ContainsFunc(unreached, func(h live.UnreachedWebhook) bool {
				return h.MatchesAny(question.Operation, object.GroupVersionKind().Group)
			})
			return answer, known, err
		}, object)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.unknown = d.unknown || err != nil || left
	if known {
		d.found = true
		d.Add(declared)
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
	for name, quantity := range d.Requests {
		if !quantity.IsZero() {
			requests = append(requests, fmt.Sprintf("%s=%s", name, quantity.String()))
		}
	}
	slices.Sort(requests)
	return []string{fmt.Sprint(d.Replicas) + mark, strings.Join(requests, ",") + mark}
}
