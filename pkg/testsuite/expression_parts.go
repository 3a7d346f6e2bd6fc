package testsuite

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/parser"

	"kudo.dev/kudo/pkg/text"
)

// part is a piece of an expression whose value explains the result.
type part struct {
	id   int64
	text string
	// masked is set if the part uses a Secret, whose data no log may hold.
	masked bool
}

// maxParts bounds the values that are shown of an expression.
const maxParts = 10

// variablesOf returns the names of the variables that an expression uses, sorted, with those that its macros declare.
func variablesOf(e ast.Expr) []string {
	var out []string
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			out = append(out, e.AsIdent())
		}
	}))
	slices.Sort(out)
	return slices.Compact(out)
}

// partsOf returns the fields, items, calls and macros of an expression, but not its operators, and nothing within a macro: what it
// says differs by item.
func partsOf(a *ast.AST, masked map[string]bool) []part {
	c := &partCollector{info: a.SourceInfo(), masked: masked}
	c.visit(a.Expr())
	// The value of the whole is the result.
	c.parts = slices.DeleteFunc(c.parts, func(p part) bool { return p.id == a.Expr().ID() })
	return c.parts[:min(len(c.parts), maxParts)]
}

type partCollector struct {
	info   *ast.SourceInfo
	masked map[string]bool
	parts  []part
}

func (c *partCollector) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		c.add(e)
		c.visitWithin(e.AsSelect().Operand())
	case ast.ComprehensionKind:
		c.add(e)
		c.visit(e.AsComprehension().IterRange())
	case ast.CallKind:
		c.visitCall(e)
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			c.visit(item)
		}
	}
}

func (c *partCollector) visitCall(e ast.Expr) {
	call := e.AsCall()
	args := call.Args()
	_, isOperator := operators.FindReverse(call.FunctionName())
	switch {
	case call.FunctionName() == operators.Index:
		c.add(e)
		c.visitWithin(args[0])
		c.visit(args[1])
		return
	case !isOperator:
		c.add(e)
	}
	if call.IsMemberFunction() {
		c.visit(call.Target())
	}
	for _, arg := range args {
		c.visit(arg)
	}
}

// visitWithin visits what a field is read of; a field of a field is shown by its own value.
func (c *partCollector) visitWithin(e ast.Expr) {
	switch {
	case e.Kind() == ast.SelectKind:
		c.visitWithin(e.AsSelect().Operand())
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index:
		c.visitWithin(e.AsCall().Args()[0])
	default:
		c.visit(e)
	}
}

func (c *partCollector) add(e ast.Expr) {
	source, err := parser.Unparse(e, c.info)
	if err != nil || slices.ContainsFunc(c.parts, func(p part) bool { return p.text == source }) {
		return
	}
	masked := slices.ContainsFunc(variablesOf(e), func(name string) bool { return c.masked[name] })
	c.parts = append(c.parts, part{id: e.ID(), text: source, masked: masked})
}

// values has a line for each part that was evaluated.
func (x *expression) values(details *cel.EvalDetails) []string {
	if details == nil || details.State() == nil {
		return nil
	}
	var out []string
	for _, p := range x.parts {
		value, found := details.State().Value(p.id)
		if !found || types.IsUnknownOrError(value) {
			continue
		}
		out = append(out, "  "+text.Plain(p.text, maxShown)+" is "+showPart(value, p.masked))
	}
	return out
}

// showPart is a value for people. Of Secrets, only truth and numbers are shown.
func showPart(value ref.Val, masked bool) string {
	switch value.Type() {
	case types.BoolType, types.IntType, types.UintType, types.DoubleType, types.NullType:
	default:
		if masked {
			return "(masked: of a Secret)"
		}
	}
	switch native := value.Value().(type) {
	case string, map[string]any, []any:
		return show(native)
	}
	return text.Plain(strings.TrimSpace(types.Format(value)), maxShown)
}
