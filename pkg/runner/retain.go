package runner

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore"
)

// retainer keeps what the interpreter says.
type retainer struct{ all Interpreter }

// NewRetainer returns a retainer that asks all explore layers.
func NewRetainer(all Interpreter) apply.Retainer { return retainer{all} }

// Retain implements apply.Retainer. An answer that keeps the number of replicas, such as for an autoscaler, must neither end the suspension
// of an Instance nor prevent its end:
//
//	desired     observed    replicas
//	suspended   any         none
//	running     suspended   as desired
//	running     running     as retained
func (t retainer) Retain(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer, known, err := t.all.Explore(ctx, explore.Request{Operation: explore.Retaining, Object: desired, Observed: observed})
	if err != nil || !known {
		return desired, err
	}
	switch {
	case Suspended(desired):
		return t.withReplicas(ctx, answer.Object, 0)
	case Suspended(observed):
		declared, known, err := t.all.Explore(ctx, explore.Request{Operation: explore.Replica, Object: desired})
		if err != nil {
			return nil, err
		}
		if known {
			return t.withReplicas(ctx, answer.Object, declared.Replicas)
		}
	}
	return answer.Object, nil
}

func (t retainer) withReplicas(ctx context.Context, object *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error) {
	answer, known, err := t.all.Explore(ctx, explore.Request{Operation: explore.ReplicaRevising, Object: object, Replicas: replicas})
	if err != nil || !known {
		return object, err
	}
	return answer.Object, nil
}
