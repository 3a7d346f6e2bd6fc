package testsuite

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"kudo.dev/kudo/pkg/text"
)

// Bounds of what a TestAssert has of CEL. Each event of a watch evaluates all of it.
const (
	maxRefs        = 100
	maxExpressions = 100
	maxExpression  = 16 << 10
)

// ResourceRef names an object that the expressions of a TestAssert use.
type ResourceRef struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	// Ref is the variable that holds the object.
	Ref string `json:"ref,omitempty"`
}

// Assertion is an item of assertAny or assertAll.
type Assertion struct {
	CELExpr string `json:"celExpr,omitempty"`
}

// Expressions are the compiled CEL asserts of a TestAssert.
type Expressions struct {
	refs     []ResourceRef
	all, any []*expression
}

// expression is a compiled CEL expression.
type expression struct {
	// place is its field, such as assertAll[0]; text is its source.
	place, text string
	// program has a cost limit. explain tracks the values of parts: cel-go does either, and not both.
	program, explain cel.Program
	// refs are the variables that it uses, and masked is set if one of them is a Secret.
	refs   []string
	masked bool
	parts  []part
}

// mistake is an error in a field of a TestAssert, whose line in the file can be found.
type mistake struct {
	// field is assertAll, assertAny or resourceRefs, and index the place in it.
	field string
	index int
	// source is the expression, or the name of the reference.
	source string
	// line within the expression counts from 1; 0 is the item itself.
	line int
	err  error
}

// Error implements error.
func (m *mistake) Error() string { return fmt.Sprintf("TestAssert: %s[%d]%s", m.field, m.index, m.err) }

// Unwrap implements errors.Unwrap.
func (m *mistake) Unwrap() error { return m.err }

// compileExpressions compiles the CEL asserts of a TestAssert, or returns nil if there are none. A note names each reference that no
// expression uses.
func compileExpressions(t *testAssert) (compiled *Expressions, notes []string, err error) {
	if len(t.AssertAny)+len(t.AssertAll)+len(t.ResourceRefs) == 0 {
		return nil, nil, nil
	}
	if len(t.ResourceRefs) > maxRefs || len(t.AssertAny)+len(t.AssertAll) > maxExpressions {
		return nil, nil, fmt.Errorf("TestAssert: more than %d resourceRefs or %d expressions: use several TestAsserts", maxRefs, maxExpressions)
	}
	env, err := newCELEnv(t.ResourceRefs)
	if err != nil {
		return nil, nil, err
	}
	out := &Expressions{refs: t.ResourceRefs}
	masked := secrets(t.ResourceRefs)
	for _, list := range []struct {
		field string
		items []Assertion
		into  *[]*expression
	}{{"assertAll", t.AssertAll, &out.all}, {"assertAny", t.AssertAny, &out.any}} {
		for i, item := range list.items {
			e, err := compileExpression(env, item.CELExpr, masked)
			if err != nil {
				err.field, err.index, err.source = list.field, i, item.CELExpr
				return nil, nil, err
			}
			e.place = fmt.Sprintf("%s[%d]", list.field, i)
			*list.into = append(*list.into, e)
		}
	}
	for i, r := range t.ResourceRefs {
		if !slices.ContainsFunc(slices.Concat(out.all, out.any), func(e *expression) bool { return slices.Contains(e.refs, r.Ref) }) {
			notes = append(notes, fmt.Sprintf("TestAssert: no expression uses resourceRefs[%d], %s, which has no effect", i, r.Ref))
		}
	}
	return out, notes, nil
}

// variableName is an identifier of CEL.
var variableName = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// maxVariableName bounds an identifier, in bytes.
const maxVariableName = 253

// newCELEnv returns CEL as kuttl has it, with a variable for each reference, and Kubernetes' quantities beside.
func newCELEnv(refs []ResourceRef) (*cel.Env, error) {
	env, err := cel.NewEnv(cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true), library.Quantity())
	if err != nil {
		return nil, fmt.Errorf("prepare CEL: %w", err)
	}
	names := map[string]bool{}
	for i, r := range refs {
		wrong := func(format string, args ...any) error {
			return &mistake{field: "resourceRefs", index: i, source: r.Ref, err: fmt.Errorf(format, args...)}
		}
		_, badVersion := schema.ParseGroupVersion(r.APIVersion)
		switch {
		case r.APIVersion == "" || badVersion != nil:
			return nil, wrong(".apiVersion %q: must be a version such as apps/v1", r.APIVersion)
		case r.Kind == "":
			return nil, wrong(".kind: is missing")
		case r.Name == "":
			return nil, wrong(".name: is missing")
		case len(r.Ref) > maxVariableName, !variableName.MatchString(r.Ref), isReserved(env, r.Ref):
			return nil, wrong(".ref %q: must be a name that CEL takes for a variable, such as myPod", r.Ref)
		case names[r.Ref]:
			return nil, wrong(".ref %q: another reference has this name", r.Ref)
		}
		names[r.Ref] = true
	}
	variables := make([]cel.EnvOption, 0, len(refs))
	for _, r := range refs {
		variables = append(variables, cel.Variable(r.Ref, cel.DynType))
	}
	return env.Extend(variables...)
}

// isReserved reports whether CEL cannot parse a name as a variable, or has declared it itself, as it has `int`.
func isReserved(env *cel.Env, name string) bool {
	if _, issues := env.Parse(name); issues.Err() != nil {
		return true
	}
	_, issues := env.Compile(name)
	return issues.Err() == nil
}

// secrets returns the names of references to Secrets.
func secrets(refs []ResourceRef) map[string]bool {
	out := map[string]bool{}
	for _, r := range refs {
		if r.APIVersion == "v1" && r.Kind == "Secret" {
			out[r.Ref] = true
		}
	}
	return out
}

func compileExpression(env *cel.Env, source string, masked map[string]bool) (*expression, *mistake) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, &mistake{err: errors.New(": celExpr is missing")}
	case len(source) > maxExpression:
		return nil, &mistake{err: fmt.Errorf(".celExpr: is longer than %d bytes", maxExpression)}
	}
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, &mistake{line: first.Location.Line(), err: fmt.Errorf(".celExpr: column %d: %s", first.Location.Column()+1,
			strings.TrimSuffix(text.Plain(first.Message, 500), " (in container '')"))}
	}
	if !ast.OutputType().IsExactType(cel.BoolType) && !ast.OutputType().IsExactType(cel.DynType) {
		return nil, &mistake{err: fmt.Errorf(".celExpr: is of type %s: must be bool", ast.OutputType())}
	}
	program, err := env.Program(ast, cel.CostTracking(&library.CostEstimator{}), cel.CostLimit(celconfig.PerCallLimit))
	if err != nil {
		return nil, &mistake{err: fmt.Errorf(".celExpr: %w", err)}
	}
	explain, err := env.Program(ast, cel.EvalOptions(cel.OptTrackState))
	if err != nil {
		return nil, &mistake{err: fmt.Errorf(".celExpr: %w", err)}
	}
	refs := variablesOf(ast.NativeRep().Expr())
	return &expression{text: text.OneLine(source), program: program, explain: explain, refs: refs, parts: partsOf(ast.NativeRep(), masked),
		masked: slices.ContainsFunc(refs, func(name string) bool { return masked[name] })}, nil
}

// object is the expectation that a reference's object exists.
func (r ResourceRef) object() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind}}
	obj.SetName(r.Name)
	if r.Namespace != "" {
		obj.SetNamespace(r.Namespace)
	}
	return obj
}

// unmet says which expressions do not hold. find returns the object of a reference, or why there is none.
func (e *Expressions) unmet(find func(*unstructured.Unstructured) (*unstructured.Unstructured, string)) []string {
	variables, absent := map[string]any{}, map[string]string{}
	for _, r := range e.refs {
		obj, why := find(r.object())
		if obj == nil {
			absent[r.Ref] = why
			continue
		}
		variables[r.Ref] = obj.Object
	}
	var out []string
	for _, x := range e.all {
		out = append(out, x.unmet(variables, absent)...)
	}
	var none []string
	for _, x := range e.any {
		problems := x.unmet(variables, absent)
		if len(problems) == 0 {
			return out
		}
		none = append(none, problems...)
	}
	if len(none) == 0 {
		return out
	}
	return append(append(out, "no expression of assertAny is true:"), strings.Split(indent(strings.Join(none, "\n")), "\n")...)
}

// unmet says why an expression is not true, with the values of its parts.
func (x *expression) unmet(variables map[string]any, absent map[string]string) []string {
	for _, name := range x.refs {
		if why := absent[name]; why != "" {
			return []string{fmt.Sprintf("%s cannot be evaluated: %s", x, why)}
		}
	}
	value, _, err := x.program.Eval(variables)
	switch {
	case err == nil && value.Value() == true:
		return nil
	case err != nil && strings.Contains(err.Error(), "cost limit exceeded"):
		return []string{fmt.Sprintf("%s costs too much: make it simpler", x)}
	}
	_, details, _ := x.explain.Eval(variables) // the same evaluation, so that it costs no more
	return append([]string{x.verdict(value, err)}, x.values(details)...)
}

func (x *expression) verdict(value ref.Val, err error) string {
	switch {
	case err != nil && x.masked: // such as `no such key: VALUE`
		return fmt.Sprintf("%s cannot be evaluated. The error is not shown, since the expression uses a Secret", x)
	case err != nil:
		return fmt.Sprintf("%s cannot be evaluated: %s", x, text.Plain(err.Error(), maxShown))
	case value.Value() != false:
		return fmt.Sprintf("%s is of type %s: must be bool", x, value.Type().TypeName())
	}
	return fmt.Sprintf("%s is false:", x)
}

// String names the expression in messages.
func (x *expression) String() string {
	return fmt.Sprintf("%s `%s`", x.place, text.Plain(x.text, maxShown))
}
