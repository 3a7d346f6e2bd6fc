package lint

import (
	"text/template/parse"
)

// walker walks through one definition, with dot and variables in scope.
type walker struct {
	*analysis
	file string
	tree *parse.Tree
	vars []variable
	// reassigned are variables that are assigned anew somewhere in the definition. What they hold depends on the run.
	reassigned map[string]bool
}

type variable struct {
	name  string
	value value
}

// reassigned collects the variables that are assigned (`=`) below a node.
func reassigned(list *parse.ListNode, into map[string]bool) {
	if list == nil {
		return
	}
	assigns := func(p *parse.PipeNode) {
		if p != nil && p.IsAssign {
			for _, v := range p.Decl {
				into[v.Ident[0]] = true
			}
		}
	}
	branch := func(n *parse.BranchNode) {
		assigns(n.Pipe)
		reassigned(n.List, into)
		reassigned(n.ElseList, into)
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			assigns(n.Pipe)
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		case *parse.RangeNode:
			branch(&n.BranchNode)
		}
	}
}

// push declares a variable.
func (w *walker) push(name string, v value) {
	if w.reassigned[name] {
		w.markEscaped(v)
		v = value{}
	}
	w.vars = append(w.vars, variable{name, v})
}

// lookup is the innermost variable of a name.
func (w *walker) lookup(name string) value {
	for i := len(w.vars) - 1; i >= 0; i-- {
		if w.vars[i].name == name {
			return w.vars[i].value
		}
	}
	return value{}
}

func (w *walker) list(list *parse.ListNode, dot value) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		if w.workLimitReached() {
			return
		}
		switch n := node.(type) {
		case *parse.ActionNode:
			if v := w.pipe(n.Pipe, dot); len(n.Pipe.Decl) == 0 {
				w.markEscaped(v) // printed
			}
		case *parse.IfNode:
			w.scoped(func() {
				w.pipe(n.Pipe, dot)
				w.scoped(func() { w.list(n.List, dot) })
				w.scoped(func() { w.list(n.ElseList, dot) })
			})
		case *parse.WithNode:
			w.scoped(func() {
				v := w.pipe(n.Pipe, dot)
				w.scoped(func() { w.list(n.List, v) })
				w.scoped(func() { w.list(n.ElseList, dot) })
			})
		case *parse.RangeNode:
			w.scoped(func() { w.loop(n, dot) })
		case *parse.TemplateNode:
			w.template(n, dot)
		}
	}
}

// scoped takes back the variables that are declared inside.
func (w *walker) scoped(inside func()) {
	mark := len(w.vars)
	inside()
	w.vars = w.vars[:mark]
}

// loop walks through a range: dot and its variables are members, of which nothing is known.
func (w *walker) loop(n *parse.RangeNode, dot value) {
	var over value
	for i, command := range n.Pipe.Cmds {
		over = w.command(command, dot, over, i > 0)
	}
	w.markEscaped(over)
	w.scoped(func() {
		if !n.Pipe.IsAssign {
			for _, v := range n.Pipe.Decl {
				w.push(v.Ident[0], value{})
			}
		}
		w.list(n.List, value{})
	})
	w.scoped(func() { w.list(n.ElseList, dot) })
}

func (w *walker) template(n *parse.TemplateNode, dot value) {
	var v value
	if n.Pipe != nil {
		v = w.pipe(n.Pipe, dot)
	}
	if !w.call(w.file, n.Name, v) {
		w.markEscaped(v)
		w.noDefinition = append(w.noDefinition, w.finding(n, "definition %q used in template %s is not defined", n.Name, w.file))
	}
}

// pipe evaluates a pipeline and declares its variables.
func (w *walker) pipe(p *parse.PipeNode, dot value) value {
	if p == nil || w.workLimitReached() {
		return value{}
	}
	var v value
	for i, command := range p.Cmds {
		v = w.command(command, dot, v, i > 0)
	}
	for _, decl := range p.Decl {
		if p.IsAssign {
			w.markEscaped(v)
		} else {
			w.push(decl.Ident[0], v)
		}
	}
	return v
}

// command evaluates one command; piped is the result of the one before it, if isPiped.
func (w *walker) command(c *parse.CommandNode, dot, piped value, isPiped bool) value {
	var args []value
	for _, node := range c.Args[1:] {
		args = append(args, w.operand(node, dot))
	}
	if isPiped {
		args = append(args, piped)
	}
	if function, ok := c.Args[0].(*parse.IdentifierNode); ok {
		return w.function(function, args)
	}
	for _, arg := range args {
		w.markEscaped(arg)
	}
	return w.operand(c.Args[0], dot)
}

// operand evaluates what may stand as an argument.
func (w *walker) operand(node parse.Node, dot value) value {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return w.chain(dot, n.Ident, n)
	case *parse.VariableNode:
		return w.chain(w.lookup(n.Ident[0]), n.Ident[1:], n)
	case *parse.ChainNode:
		return w.chain(w.operand(n.Node, dot), n.Field, n)
	case *parse.PipeNode:
		return w.pipe(n, dot)
	case *parse.IdentifierNode:
		return w.function(n, nil)
	case *parse.StringNode:
		return value{kind: literal, text: n.Text}
	case *parse.NumberNode:
		return value{kind: literal, text: n.Text}
	}
	return value{}
}

func (w *walker) chain(v value, names []string, node parse.Node) value {
	for _, name := range names {
		v = w.field(v, name, node, true)
	}
	return v
}

// function evaluates the call of a function. Those that hand on parts of what they are given are known here; to any
// other, its arguments get out of sight.
func (w *walker) function(n *parse.IdentifierNode, args []value) value {
	switch n.Ident {
	case "include":
		if len(args) == 2 {
			w.include(n, args[0], args[1])
			return value{}
		}
	case "index", "get":
		if len(args) > 1 {
			return w.index(args, n)
		}
	case "hasKey":
		if len(args) == 2 && args[1].kind == literal {
			if args[0].kind == parameters {
				w.used[args[1].text] = true
			}
			return value{}
		}
	case "dict", "list", "tuple":
		if v, ok := makeRecord(n.Ident, args); ok {
			return v
		}
	case "set":
		w.set(args)
	case "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite", "unset":
		w.open = true
	}
	for _, arg := range args {
		w.markEscaped(arg)
	}
	return value{}
}

// include is a call like {{template}}, whose name may be the result of a pipeline.
func (w *walker) include(n parse.Node, name, dot value) {
	switch {
	case name.kind != literal:
		w.callAny(dot)
		w.markEscaped(dot)
	case !w.call(w.file, name.text, dot):
		w.markEscaped(dot)
		w.noDefinition = append(w.noDefinition, w.finding(n, "definition %q used in template %s is not defined", name.text, w.file))
	}
}

// index follows names that stand in the template, and gives up at the first that does not.
func (w *walker) index(args []value, node parse.Node) value {
	v := args[0]
	for _, name := range args[1:] {
		if name.kind != literal {
			w.markEscaped(v)
			v = value{}
			continue
		}
		v = w.field(v, name.text, node, false)
	}
	return v
}

// set makes a name known that a template adds.
func (w *walker) set(args []value) {
	if len(args) != 3 {
		return
	}
	switch name := args[1]; {
	case name.kind != literal:
		w.open = true
	case args[0].kind == parameters:
		w.known[name.text] = true
	default:
		w.opened[name.text] = true
	}
	for field := range args[0].fields {
		args[0].fields[field] = value{} // which of them was changed does not matter: all are out of sight
	}
}
