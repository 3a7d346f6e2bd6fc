package lua

import (
	"context"
	"errors"
	"fmt"
	"time"

	apijson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/lua/sandbox"
)

// Host runs scripts. It is safe for concurrent use.
type Host struct {
	clock func() time.Time
	pool  *sandbox.Pool
}

// DefaultLimits are those of the manager.
func DefaultLimits() sandbox.Limits {
	return sandbox.Limits{Instructions: 1_000_000, Time: time.Second, Memory: 64 << 20, Output: 3 << 20, Depth: 100}
}

// New makes a host, whose limits bind each answer. The clock is read once a call, unless the context carries a time (see WithTime).
func New(clock func() time.Time, limits sandbox.Limits) *Host {
	return &Host{clock: clock, pool: sandbox.NewPool(limits, kube)}
}

type timeKey struct{}

// WithTime makes the clock of scripts stand still, as for all calls of one reconcile.
func WithTime(ctx context.Context, now time.Time) context.Context {
	return context.WithValue(ctx, timeKey{}, now)
}

// Run asks a script. The answer is checked by explore.Check, and that of Retain for being a fixed point: retaining its
// own result must not change it. Errors are a *sandbox.LimitError, an error of the script with its line, or what is wrong with
// the answer.
func (h *Host) Run(ctx context.Context, s *Script, r explore.Request) (explore.Answer, error) {
	if s.operation != r.Operation {
		return explore.Answer{}, fmt.Errorf("the script answers %s, and is asked %s", s.operation, r.Operation)
	}
	ctx, cancel := h.pool.WithTimeout(ctx)
	defer cancel()
	answer, err := h.once(ctx, s, r)
	if err != nil {
		return explore.Answer{}, err
	}
	if err := explore.Check(r, &answer); err != nil {
		return explore.Answer{}, err
	}
	if r.Operation != explore.Retaining || explore.Equal(answer.Object.Object, r.Object.Object) {
		return answer, nil
	}
	r.Object = answer.Object
	again, err := h.once(ctx, s, r)
	if err != nil {
		return explore.Answer{}, fmt.Errorf("retaining its own result: %w", err)
	}
	if !explore.Equal(again.Object.Object, answer.Object.Object) {
		return explore.Answer{}, errors.New("retaining its own result changes it again: Retain must be idempotent")
	}
	return answer, nil
}

// once is one call.
func (h *Host) once(ctx context.Context, s *Script, r explore.Request) (answer explore.Answer, err error) {
	arguments, err := argumentsOf(r)
	if err != nil {
		return answer, err
	}
	now, fixed := ctx.Value(timeKey{}).(time.Time)
	if !fixed {
		now = h.clock()
	}
	call := sandbox.Call{Script: s.compiled, Arguments: arguments, Results: resultsOf(r.Operation), Now: now}
	err = h.pool.Run(ctx, call, func(results []sandbox.Value) (err error) {
		answer, err = answerOf(r.Operation, results, arguments)
		return err
	})
	var raised sandbox.ScriptError
	if errors.As(err, &raised) {
		err = errors.New(shortMessage(string(raised)))
	}
	if err != nil {
		return explore.Answer{}, err
	}
	return answer, nil
}

// argumentsOf are the arguments of an operation's function, as JSON values.
func argumentsOf(r explore.Request) ([]any, error) {
	object := any(r.Object.Object)
	switch r.Operation {
	case explore.Retaining:
		return []any{object, r.Observed.Object}, nil
	case explore.ReplicaRevising:
		return []any{object, int64(r.Replicas)}, nil
	case explore.StatusAggregating:
		items, err := itemsOf(r.Items)
		return []any{object, items}, err
	}
	return []any{object}, nil
}

// itemsOf are statuses as a script sees them; nil is nil, and an empty list an empty table.
func itemsOf(items []v1alpha1.AggregatedStatusItem) (any, error) {
	if items == nil {
		return nil, nil
	}
	list := make([]any, len(items))
	for i, item := range items {
		entry := map[string]any{"clusterName": item.ClusterName}
		if item.Applied { // as in JSON, where scripts find no false
			entry["applied"] = true
		}
		if item.Health != "" {
			entry["health"] = string(item.Health)
		}
		if item.AppliedMessage != "" {
			entry["appliedMessage"] = item.AppliedMessage
		}
		if item.Status != nil && len(item.Status.Raw) > 0 {
			var status any
			if err := apijson.Unmarshal(item.Status.Raw, &status); err != nil {
				return nil, fmt.Errorf("the status of cluster %s: %w", item.ClusterName, err)
			}
			entry["status"] = status
		}
		list[i] = entry
	}
	return list, nil
}
