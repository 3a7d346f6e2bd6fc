package lua

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	glua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apijson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/pods"
)

// Host runs scripts. It is safe for concurrent use.
type Host struct {
	limits   Limits
	clock    func() time.Time
	machines sync.Pool
}

// New makes a host. The clock is read once a call, unless the context carries a time (see WithTime).
func New(clock func() time.Time, limits Limits) *Host {
	return &Host{limits: limits, clock: clock, machines: sync.Pool{New: func() any { return newMachine() }}}
}

type timeKey struct{}

// WithTime makes the clock of scripts stand still, as for all calls of one reconcile.
func WithTime(ctx context.Context, now time.Time) context.Context {
	return context.WithValue(ctx, timeKey{}, now)
}

// Run asks a script. The answer is checked by explore.Check, and that of Retain for being a fixed point: retaining its
// own result must not change it. Errors are a *LimitError, an error of the script with its line, or what is wrong with
// the answer.
func (h *Host) Run(ctx context.Context, s *Script, r explore.Request) (explore.Answer, error) {
	if s.operation != r.Operation {
		return explore.Answer{}, fmt.Errorf("the script answers %s, and is asked %s", s.operation, r.Operation)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.limits.Time, &LimitError{"time", h.limits.Time.String()})
	defer cancel()
	answer, err := h.once(ctx, s, r)
	if err != nil {
		return answer, err
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

// once is one call on a machine. After an error the machine is dropped: its stacks may be in any state.
func (h *Host) once(ctx context.Context, s *Script, r explore.Request) (answer explore.Answer, err error) {
	arguments, err := argumentsOf(r)
	if err != nil {
		return answer, err
	}
	now, fixed := ctx.Value(timeKey{}).(time.Time)
	if !fixed {
		now = h.clock()
	}
	m := h.machines.Get().(*machine)
	defer func() {
		if p := recover(); p != nil {
			answer, err = explore.Answer{}, fmt.Errorf("the script broke the virtual machine: %v", p)
		}
		if err != nil || m.meter.memory > 1<<20 {
			m.state.Close()
			return
		}
		m.end()
		h.machines.Put(m)
	}()
	m.begin(ctx, h.limits, now)
	for _, a := range arguments {
		m.collectWideIntegers(a)
	}
	var room [2]glua.LValue
	values := room[:0]
	for _, a := range arguments {
		value, err := m.in(a)
		if err != nil {
			return answer, err
		}
		values = append(values, value)
	}
	results, err := m.run(s, values, resultsOf(r.Operation))
	if err != nil {
		return answer, err
	}
	return m.answer(r, results, arguments)
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

func resultsOf(operation explore.Operation) int {
	switch operation {
	case explore.Healthy:
		return 3
	case explore.Replica:
		return 2
	}
	return 1
}

// answer makes an answer of what the function returned.
func (m *machine) answer(r explore.Request, results []glua.LValue, arguments []any) (answer explore.Answer, err error) {
	x := &exporter{m: m, arguments: arguments}
	name := FunctionOf(r.Operation).Name
	wrong := func(want string) error {
		return fmt.Errorf("%s returned a %s: want %s", name, results[0].Type(), want)
	}
	switch r.Operation {
	case explore.Healthy:
		return healthAnswer(name, results)
	case explore.Replica:
		answer.Replicas, err = m.replicas(name, results[0])
		if err != nil || results[1] == glua.LNil {
			return answer, err
		}
		x.arguments = nil
		answer.Requirements = &v1alpha1.ReplicaRequirements{}
		return answer, m.decode(x, results[1], answer.Requirements, name+"'s requirements")
	case explore.Dependencies:
		x.arguments = nil
		if results[0] == glua.LNil {
			return answer, nil
		}
		return answer, m.decodeList(x, results[0], &answer.Dependencies, name)
	case explore.Components:
		x.arguments = nil
		if results[0] == glua.LNil {
			return answer, nil
		}
		return answer, m.decodeList(x, results[0], &answer.Components, name)
	case explore.Status:
		answer.Status, err = m.status(x, results[0])
		return answer, err
	}
	if results[0].Type() != glua.LTTable {
		return answer, wrong("an object")
	}
	value, err := x.out(results[0])
	if err != nil {
		return answer, err
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return answer, fmt.Errorf("%s returned a list: want an object", name)
	}
	answer.Object = &unstructured.Unstructured{Object: fields}
	return answer, nil
}

// healthAnswer makes an answer of a boolean, a message and an outcome.
func healthAnswer(name string, results []glua.LValue) (answer explore.Answer, err error) {
	healthy, ok := results[0].(glua.LBool)
	if !ok {
		return answer, fmt.Errorf("%s returned a %s: want a boolean", name, results[0].Type())
	}
	answer.Healthy = bool(healthy)
	if message, ok := results[1].(glua.LString); ok && !answer.Healthy {
		answer.Message = shortMessage(string(message))
	}
	switch outcome := results[2].(type) {
	case *glua.LNilType:
		return answer, nil
	case glua.LString:
		return answer, answer.SetOutcome(v1alpha1.HealthOutcome(outcome))
	}
	return answer, fmt.Errorf("%s returned a %s as its third value: want Healthy, Progressing or Failed", name, results[2].Type())
}

// status is a table or nil. Its empty tables are what the object's status has in their place.
func (m *machine) status(x *exporter, value glua.LValue) (any, error) {
	switch value.Type() {
	case glua.LTNil:
		return nil, nil
	case glua.LTTable:
		if object, ok := x.arguments[0].(map[string]any); ok {
			x.arguments = []any{object["status"]}
		}
		return x.out(value)
	}
	return nil, fmt.Errorf("ReflectStatus returned a %s: want a table or nil", value.Type())
}

func (m *machine) replicas(name string, value glua.LValue) (int32, error) {
	n, ok := value.(glua.LNumber)
	if !ok {
		return 0, fmt.Errorf("%s returned a %s: want a number of replicas", name, value.Type())
	}
	if n < 0 || n > 1<<31-1 || glua.LNumber(int32(n)) != n {
		return 0, fmt.Errorf("%s returned %s replicas: want a whole number from 0 to %d", name, m.numeral(n), 1<<31-1)
	}
	return int32(n), nil
}

// decode converts a result to a Go value.
func (m *machine) decode(x *exporter, value glua.LValue, into any, what string) error {
	made, err := x.out(value)
	if err != nil {
		return err
	}
	if err := pods.CheckQuantities(made); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	text, err := json.Marshal(made)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// decodeList is decode for a list; an empty table is an empty list.
func (m *machine) decodeList(x *exporter, value glua.LValue, into any, name string) error {
	if t, ok := value.(*glua.LTable); ok {
		if key, _ := t.Next(glua.LNil); key == glua.LNil && t.Metatable != m.lazy {
			return nil
		}
	}
	return m.decode(x, value, into, name)
}

// plainJSON makes maps, lists and int64 of a Go value.
func plainJSON(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var made any
	err = apijson.Unmarshal(text, &made)
	return made, err
}
