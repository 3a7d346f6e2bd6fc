package runner

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/health"
)

// Interpreter answers questions about objects of kinds that kudo does not know.
type Interpreter interface {
	Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error)
}

// RulesChanged reports whether a step in progress renders objects of a kind that meets the condition. The condition says whether explore
// rules of a kind have changed. The next Execute asks again what objects depend on, even if no kind meets the condition yet, since an
// Execute that has just begun has rendered none. RulesChanged may be called during an Execute.
func (run *Run) RulesChanged(condition func(schema.GroupVersionKind) bool) bool {
	run.rulesChanged.Store(true)
	found := false
	run.explored.Range(func(kind, _ any) bool {
		found = condition(kind.(schema.GroupVersionKind))
		return !found
	})
	return found
}

// Suspended reports whether an object's replicas were set to none because its Instance is suspended.
func Suspended(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[v1beta1.SuspendedAnnotation] == "true"
}

// pack lets the interpreter change rendered objects, before anything else is done with them; in a suspended Instance their
// replicas are set to none. An answer that cannot be had is a transient error.
func (r *Runner) pack(ctx context.Context, run *Run, objs []*unstructured.Unstructured) error {
	for i, obj := range objs {
		run.explored.Store(obj.GroupVersionKind(), true) // before the question: a change of the rules after it reads these kinds
		answer, known, err := r.all.Explore(ctx, explore.Request{Operation: explore.Packing, Object: obj})
		if err != nil {
			return err
		}
		if known {
			objs[i] = answer.Object
		}
		if !run.Suspend {
			continue
		}
		answer, known, err = r.all.Explore(ctx, explore.Request{Operation: explore.ReplicaRevising, Object: objs[i]})
		if err != nil {
			return err
		}
		if known {
			objs[i] = suspended(answer.Object)
		}
	}
	return nil
}

func suspended(object *unstructured.Unstructured) *unstructured.Unstructured {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1beta1.SuspendedAnnotation] = "true"
	object.SetAnnotations(annotations)
	return object
}

// Health returns the health of a live object by the answer of the interpreter, else by kudo's own rules. If a layer does not answer, the
// object never counts as healthy. A failure of an older generation counts as progressing.
func (r *Runner) Health(ctx context.Context, live *unstructured.Unstructured) (health.Result, error) {
	answer, known, err := r.external.Explore(ctx, explore.Request{Operation: explore.Healthy, Object: live})
	switch {
	case err != nil:
		return health.Result{State: health.Progressing, Message: "its health is not known: " + err.Error()}, err
	case !known:
		return health.Check(live), nil
	case answer.Healthy:
		return health.Result{State: health.Ready}, nil
	}
	result := health.Result{State: health.Progressing, External: true, Message: answer.Message}
	if answer.Failed {
		result.State = health.Failed
	}
	if result.Message == "" {
		result.Message = fmt.Sprintf("is not healthy, as %s %s says", answer.Layer, answer.Who)
	}
	if lags, known := observedLag(live); answer.Failed && known && lags {
		return staleFailure(result), nil
	}
	return result, nil
}

// Drift returns how others have changed an object since the Instance has written it, or nil if they may change these fields.
func (r *Runner) Drift(ctx context.Context, account apply.Account, instance *v1beta1.Instance, id apply.ID,
	record apply.Record) (*apply.Drift, error) {
	engine, err := r.accounts.Engine(account)
	if err != nil {
		return nil, err
	}
	return engine.Drift(ctx, id, Manager(instance.Namespace, instance.Name), record.Fields)
}

// RemoveOwner takes an Instance off the owners of an object that is kept, with the rights of an account, and returns the new record.
func (r *Runner) RemoveOwner(ctx context.Context, account apply.Account, instance *v1beta1.Instance, live *unstructured.Unstructured,
	record apply.Record) (apply.Record, error) {
	engine, err := r.accounts.Engine(account)
	if err != nil {
		return record, err
	}
	return engine.RemoveOwner(ctx, live, instance.UID, Manager(instance.Namespace, instance.Name), record)
}

// Reflect returns the part of an object's status that the interpreter selects, or nil if it selects none. An error means that it is not
// known now.
func (r *Runner) Reflect(ctx context.Context, live *unstructured.Unstructured) (any, error) {
	answer, known, err := r.external.Explore(ctx, explore.Request{Operation: explore.Status, Object: live})
	if err != nil || !known {
		return nil, err
	}
	return answer.Status, nil
}
