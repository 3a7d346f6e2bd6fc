package sandbox

import (
	"fmt"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// Names that no script can write. They are locals around the script, so it cannot replace them either.
const (
	concatName = "(concat)"
	tableName  = "(table)"
	keyName    = "(key)"
	setName    = "(set)"
)

// hidden are these names, in the order in which a machine hands the functions over.
var hidden = []string{concatName, tableName, keyName, setName}

// rewriter replaces what the virtual machine does without a limit by calls that have one. On the way it finds globals
// that the script does not define.
//
//	a .. b .. c    (concat)(a, b, c)
//	{[k] = v}      (table)({[(key)(k)] = v})
//	t[k] = v       (set)(t, k, v)              unless k is a text in the script
type rewriter struct {
	// known are the globals that scripts find.
	known  []string
	depth  int
	scopes []map[string]bool
	set    map[string]bool
	reads  []global
	// members are the fields of globals and the methods that the script names.
	members []global
	err     error
}

type global struct {
	name string
	line int
}

// chunk rewrites a block in place.
func (r *rewriter) chunk(chunk []ast.Stmt, names []string) error {
	r.block(chunk, names)
	return r.err
}

// warnings names each global once that is read and neither defined nor in a library.
func (r *rewriter) warnings() []string {
	var found []string
	seen := map[string]bool{}
	for _, g := range r.reads {
		if r.set[g.name] || slices.Contains(r.known, g.name) || seen[g.name] {
			continue
		}
		seen[g.name] = true
		found = append(found, fmt.Sprintf("line %d: %s is not defined", g.line, g.name))
	}
	return found
}

// usesLibraryNames reports whether the script may assign to a name that a library has: it does so by name, or reads _G, through
// which any name can be set.
func (r *rewriter) usesLibraryNames() bool {
	for name := range r.set {
		if slices.Contains(r.known, name) {
			return true
		}
	}
	return slices.ContainsFunc(r.reads, func(g global) bool { return g.name == "_G" })
}

// enter counts nesting; false means that it is too deep.
func (r *rewriter) enter(line int) bool {
	r.depth++
	if r.depth > maxNesting && r.err == nil {
		r.err = fmt.Errorf("line %d: nested deeper than %d levels", line, maxNesting)
	}
	return r.err == nil
}

func (r *rewriter) leave() { r.depth-- }

func (r *rewriter) declare(names ...string) {
	for _, name := range names {
		r.scopes[len(r.scopes)-1][name] = true
	}
}

func (r *rewriter) isLocal(name string) bool {
	return slices.ContainsFunc(r.scopes, func(scope map[string]bool) bool { return scope[name] })
}

func (r *rewriter) block(block []ast.Stmt, names []string) {
	r.scopes = append(r.scopes, map[string]bool{})
	r.declare(names...)
	for i, s := range block {
		if !r.enter(s.Line()) {
			break
		}
		r.statement(s)
		if assign, ok := s.(*ast.AssignStmt); ok {
			block[i] = assignment(assign)
		}
		r.leave()
	}
	r.scopes = r.scopes[:len(r.scopes)-1]
}

func (r *rewriter) statement(statement ast.Stmt) {
	switch s := statement.(type) {
	case *ast.AssignStmt:
		r.list(s.Rhs)
		for i, left := range s.Lhs {
			r.target(&s.Lhs[i], left)
		}
	case *ast.LocalAssignStmt:
		if _, ok := first(s.Exprs).(*ast.FunctionExpr); ok {
			r.declare(s.Names...)
		}
		r.list(s.Exprs)
		r.declare(s.Names...)
	case *ast.FuncCallStmt:
		r.expression(&s.Expr)
	case *ast.ReturnStmt:
		r.list(s.Exprs)
	case *ast.FuncDefStmt:
		r.definition(s)
	default:
		r.nested(statement)
	}
}

// nested are the statements that hold blocks.
func (r *rewriter) nested(statement ast.Stmt) {
	switch s := statement.(type) {
	case *ast.DoBlockStmt:
		r.block(s.Stmts, nil)
	case *ast.WhileStmt:
		r.expression(&s.Condition)
		r.block(s.Stmts, nil)
	case *ast.RepeatStmt:
		r.scopes = append(r.scopes, map[string]bool{})
		r.declare(defined(s.Stmts)...)
		r.block(s.Stmts, nil)
		r.expression(&s.Condition)
		r.scopes = r.scopes[:len(r.scopes)-1]
	case *ast.IfStmt:
		r.expression(&s.Condition)
		r.block(s.Then, nil)
		r.block(s.Else, nil)
	case *ast.NumberForStmt:
		r.expression(&s.Init)
		r.expression(&s.Limit)
		if s.Step != nil {
			r.expression(&s.Step)
		}
		r.block(s.Stmts, []string{s.Name})
	case *ast.GenericForStmt:
		r.list(s.Exprs)
		r.block(s.Stmts, s.Names)
	}
}

func first(list []ast.Expr) ast.Expr {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func (r *rewriter) definition(s *ast.FuncDefStmt) {
	if s.Name.Func != nil {
		r.target(&s.Name.Func, s.Name.Func)
		r.function(s.Func, nil)
		return
	}
	r.expression(&s.Name.Receiver)
	r.function(s.Func, []string{"self"})
}

// target is what is assigned to: a name, which is then defined, or a field.
func (r *rewriter) target(slot *ast.Expr, e ast.Expr) {
	if ident, ok := e.(*ast.IdentExpr); ok {
		if !r.isLocal(ident.Value) {
			r.set[ident.Value] = true
		}
		return
	}
	r.expression(slot)
}

func (r *rewriter) function(f *ast.FunctionExpr, more []string) {
	if f.ParList != nil {
		more = append(more, f.ParList.Names...)
		if f.ParList.HasVargs {
			more = append(more, "arg")
		}
	}
	r.block(f.Stmts, more)
}

func (r *rewriter) list(list []ast.Expr) {
	for i := range list {
		r.expression(&list[i])
	}
}

func (r *rewriter) expression(slot *ast.Expr) {
	if *slot == nil || !r.enter((*slot).Line()) {
		return
	}
	defer r.leave()
	switch e := (*slot).(type) {
	case *ast.IdentExpr:
		if !r.isLocal(e.Value) {
			r.reads = append(r.reads, global{e.Value, e.Line()})
		}
	case *ast.AttrGetExpr:
		r.member(e)
		r.expression(&e.Object)
		r.expression(&e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			r.expression(&f.Key)
			r.expression(&f.Value)
			if f.Key != nil && !isConstant(f.Key) {
				f.Key = callOf(keyName, f.Key.Line(), single(f.Key))
			}
		}
		*slot = callOf(tableName, e.Line(), e)
	case *ast.FuncCallExpr:
		r.method(e)
		r.expression(&e.Func)
		r.expression(&e.Receiver)
		r.list(e.Args)
	case *ast.StringConcatOpExpr:
		*slot = r.concat(e)
	case *ast.FunctionExpr:
		r.function(e, nil)
	default:
		r.operator(*slot)
	}
}

func (r *rewriter) operator(expression ast.Expr) {
	switch e := expression.(type) {
	case *ast.LogicalOpExpr:
		r.expression(&e.Lhs)
		r.expression(&e.Rhs)
	case *ast.RelationalOpExpr:
		r.expression(&e.Lhs)
		r.expression(&e.Rhs)
	case *ast.ArithmeticOpExpr:
		r.expression(&e.Lhs)
		r.expression(&e.Rhs)
	case *ast.UnaryMinusOpExpr:
		r.expression(&e.Expr)
	case *ast.UnaryNotOpExpr:
		r.expression(&e.Expr)
	case *ast.UnaryLenOpExpr:
		r.expression(&e.Expr)
	}
}

// maxOperands bounds the arguments of one call: each takes a register, of which a function has 250.
const maxOperands = 32

// concat makes calls of a chain a..b..c, of which the tree leans to the right. The calls lean to the left: then a long
// chain takes few registers.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	line := e.Line()
	operands := []ast.Expr{nil}
	var last ast.Expr
	for {
		r.expression(&e.Lhs)
		if operands[0] == nil {
			operands[0] = single(e.Lhs)
		} else {
			operands = append(operands, single(e.Lhs))
		}
		if len(operands) == maxOperands {
			operands = []ast.Expr{callOf(concatName, line, operands...)}
		}
		next, ok := e.Rhs.(*ast.StringConcatOpExpr)
		if !ok {
			r.expression(&e.Rhs)
			last = single(e.Rhs)
			break
		}
		e = next
	}
	return callOf(concatName, line, append(operands, last)...)
}

// isConstant reports whether a key is written in the script, and no large index.
func isConstant(key ast.Expr) bool {
	switch k := key.(type) {
	case *ast.StringExpr:
		return true
	case *ast.NumberExpr:
		return len(k.Value) <= 2
	}
	return false
}

// assignment replaces one to t[k]. Several at once go through locals, since all values are computed before the first
// is assigned.
func assignment(s *ast.AssignStmt) ast.Stmt {
	indexed := func(e ast.Expr) (*ast.AttrGetExpr, bool) {
		get, ok := e.(*ast.AttrGetExpr)
		return get, ok && !isConstant(get.Key)
	}
	if !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { _, is := indexed(e); return is }) {
		return s
	}
	if get, ok := indexed(s.Lhs[0]); ok && len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		return setting(s.Line(), get.Object, get.Key, single(s.Rhs[0]))
	}
	local := func(names []string, values []ast.Expr) ast.Stmt {
		made := &ast.LocalAssignStmt{Names: names, Exprs: values}
		made.SetLine(s.Line())
		return made
	}
	ident := func(kind string, i int) *ast.IdentExpr {
		made := &ast.IdentExpr{Value: fmt.Sprintf("(%s %d)", kind, i)}
		made.SetLine(s.Line())
		return made
	}
	var places, values []string
	var parts []ast.Expr
	var writes []ast.Stmt
	for i, left := range s.Lhs {
		value := ident("value", i)
		values = append(values, value.Value)
		get, ok := indexed(left)
		if !ok {
			write := &ast.AssignStmt{Lhs: []ast.Expr{left}, Rhs: []ast.Expr{value}}
			write.SetLine(s.Line())
			writes = append(writes, write)
			continue
		}
		object, key := ident("object", i), ident("key", i)
		places = append(places, object.Value, key.Value)
		parts = append(parts, single(get.Object), single(get.Key))
		writes = append(writes, setting(s.Line(), object, key, value))
	}
	block := &ast.DoBlockStmt{Stmts: append([]ast.Stmt{local(places, parts), local(values, s.Rhs)}, writes...)}
	block.SetLine(s.Line())
	block.SetLastLine(s.Line())
	return block
}

func setting(line int, args ...ast.Expr) ast.Stmt {
	call := callOf(setName, line, args...).(*ast.FuncCallExpr)
	call.AdjustRet = false
	made := &ast.FuncCallStmt{Expr: call}
	made.SetLine(line)
	return made
}

// single keeps the last operand from standing for several values, as an argument would.
func single(e ast.Expr) ast.Expr {
	switch v := e.(type) {
	case *ast.FuncCallExpr:
		v.AdjustRet = true
	case *ast.Comma3Expr:
		v.AdjustRet = true
	}
	return e
}

func callOf(name string, line int, args ...ast.Expr) ast.Expr {
	function := &ast.IdentExpr{Value: name}
	function.SetLine(line)
	call := &ast.FuncCallExpr{Func: function, Args: args, AdjustRet: true}
	call.SetLine(line)
	call.SetLastLine(line)
	return call
}
