package explore

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// Declared is what objects declare, all replicas together.
type Declared struct {
	Replicas int64
	// Requests are the requests of all replicas, or nil if there are none.
	Requests corev1.ResourceList
}

// Declare returns what an object declares, and whether that is known: its components, where it has some, else its replicas. The
// errors are those of ask, which is the Explore method of a Chain, or calls one.
func Declare(ctx context.Context, ask func(context.Context, Request) (Answer, bool, error),
	object *unstructured.Unstructured) (Declared, bool, error) {
	answer, known, err := ask(ctx, Request{Operation: Components, Object: object})
	if err != nil {
		return Declared{}, false, err
	}
	if len(answer.Components) == 0 {
		if answer, known, err = ask(ctx, Request{Operation: Replica, Object: object}); err != nil {
			return Declared{}, false, err
		}
		answer.Components = []v1alpha1.Component{{Replicas: answer.Replicas, ReplicaRequirements: answer.Requirements}}
	}
	var sum Declared
	if known {
		sum.addComponents(answer.Components)
	}
	return sum, known, nil
}

// Add adds what another object declares.
func (d *Declared) Add(other Declared) {
	d.Replicas += other.Replicas
	for name, quantity := range other.Requests {
		d.addRequest(name, quantity, 1)
	}
}

// addComponents adds what each component declares.
func (d *Declared) addComponents(components []v1alpha1.Component) {
	for _, c := range components {
		d.Replicas += int64(c.Replicas)
		if c.ReplicaRequirements == nil {
			continue
		}
		for name, quantity := range c.ReplicaRequirements.ResourceRequest {
			d.addRequest(name, quantity, c.Replicas)
		}
	}
}

// addRequest adds a quantity as often as there are replicas. What no quantity can hold is left out.
func (d *Declared) addRequest(name corev1.ResourceName, quantity resource.Quantity, replicas int32) {
	total := quantity.DeepCopy()
	if !total.Mul(int64(replicas)) {
		return
	}
	if d.Requests == nil {
		d.Requests = corev1.ResourceList{}
	}
	total.Add(d.Requests[name])
	d.Requests[name] = total
}
