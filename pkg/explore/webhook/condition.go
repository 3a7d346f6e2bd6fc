package webhook

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"kudo.dev/kudo/pkg/explore"
)

// condition is a compiled match condition. It is safe for concurrent use.
type condition struct {
	name    string
	program cel.Program
}

// newEnv is CEL as the apiserver has it for match conditions, but without its authorizer.
func newEnv() *cel.Env {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("object", cel.DynType),
			cel.Variable("oldObject", cel.DynType),
			cel.Variable("request", cel.MapType(cel.StringType, cel.DynType)),
		},
	})
	if err != nil {
		panic(fmt.Sprintf("the variables of match conditions cannot be declared: %v", err)) // as MustBaseEnvSet: a mistake here
	}
	return set.NewExpressionsEnv()
}

// compile reads match conditions. The error names the first that is wrong.
func compile(env *cel.Env, conditions []admissionregistrationv1.MatchCondition) ([]condition, error) {
	out := make([]condition, 0, len(conditions))
	for _, c := range conditions {
		program, err := compileOne(env, c.Expression)
		if err != nil {
			return nil, fmt.Errorf("matchCondition %q: %w", c.Name, err)
		}
		out = append(out, condition{c.Name, program})
	}
	return out, nil
}

func compileOne(env *cel.Env, expression string) (cel.Program, error) {
	ast, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if !ast.OutputType().IsExactType(cel.BoolType) && !ast.OutputType().IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the expression is of type %s: it must be bool", ast.OutputType())
	}
	return env.Program(ast,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostLimit(celconfig.PerCallLimit),
		cel.InterruptCheckFrequency(celconfig.CheckFrequency))
}

// conditionsMatch reports whether all conditions are true. As in the apiserver, one that is false decides, also if
// another fails.
func (h *hook) conditionsMatch(ctx context.Context, t *target) (bool, error) {
	if len(h.conditions) == 0 {
		return true, nil
	}
	if t.variables == nil {
		t.variables = variables(t)
	}
	var failed error
	budget := uint64(celconfig.RuntimeCELCostBudgetMatchConditions)
	for _, c := range h.conditions {
		matches, cost, err := c.evaluate(ctx, t.variables)
		switch {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case cost > budget:
			return false, errors.New("the matchConditions cost too much together: make them simpler")
		case err == nil && !matches:
			return false, nil
		}
		budget -= cost
		if err != nil && failed == nil {
			failed = fmt.Errorf("matchCondition %q: %w", c.name, err)
		}
	}
	return failed == nil, failed
}

// evaluate returns whether a condition is true, and what the evaluation has cost, which is 0 if it failed.
func (c condition) evaluate(ctx context.Context, variables map[string]any) (matches bool, cost uint64, err error) {
	value, details, err := c.program.ContextEval(ctx, variables)
	if err != nil {
		return false, 0, err
	}
	if actual := details.ActualCost(); actual != nil {
		cost = *actual
	}
	matches, ok := value.Value().(bool)
	if !ok {
		return false, cost, fmt.Errorf("the expression returned %s, not bool", value.Type().TypeName())
	}
	return matches, cost, nil
}

// variables that conditions see. Objects are handed in as they are: CEL cannot change them.
func variables(t *target) map[string]any {
	r := t.request
	request := map[string]any{
		"operation": string(r.Operation),
		"kind":      map[string]any{"group": t.kind.Group, "version": t.kind.Version, "kind": t.kind.Kind},
		"name":      r.Object.GetName(), "namespace": r.Object.GetNamespace(),
	}
	if r.Operation == explore.ReplicaRevising {
		request["replicas"] = int64(r.Replicas)
	}
	out := map[string]any{"object": r.Object.Object, "oldObject": nil, "request": request}
	if r.Observed != nil {
		out["oldObject"] = r.Observed.Object
	}
	return out
}
