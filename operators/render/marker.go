package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

// Names of the functions that only the marker writes into trees. The parser does not know them, so no template can.
const (
	emitFunction        = "kudoEmit"        // marks what an action prints
	bareIncludeFunction = "kudoBareInclude" // include without marks, for all uses but printing
	unmarkFunction      = "kudoUnmark"      // removes the marks
	writerPrefix        = "kudoMarked_"     // before the name of a writer: its text is marked, with a skeleton
	trimmerPrefix       = "kudoTrim_"       // before the name of a trimmer: as it works on marked text
)

// Origin is an action of a template that prints a value.
type Origin struct {
	// Template is the path of the file, and Line that of the action.
	Template string
	Line     int
	// Parameters are the names that stand in the action as `.Params.X`, or where its variables or dot come from.
	Parameters []string
	// Functions are the names of the functions that the action applies.
	Functions []string
}

// marker rewrites one tree so that each action that prints a value puts marks around it. Evaluation is left as it is:
// if, range and the arguments of functions see the values without marks.
//
//	{{ .Params.X | upper | nindent 4 }}     {{ .Params.X | upper | kudoEmit 7 | nindent 4 }}
//	{{ toYaml .Params.M | nindent 4 }}      {{ kudoMarked_toYaml 8 .Params.M | nindent 4 }}
//	{{ include "x" . | nindent 4 }}         unchanged: the actions of x are marked
//	{{ include "x" . | sha256sum }}         {{ kudoBareInclude "x" . | sha256sum | kudoEmit 9 }}
type marker struct {
	file *file
	tree *parse.Tree
	// texts are variables that hold marked text, or text of the template itself: what they print needs no marks.
	texts map[string]bool
	// vars are the parameters that variables come from, and dot those of dot inside of range and with.
	vars map[string][]string
	dot  []string
}

// markFile rewrites all trees of a file.
func markFile(f *file) {
	for _, name := range slices.Sorted(maps.Keys(f.trees)) {
		tree := f.trees[name]
		m := marker{file: f, tree: tree, vars: map[string][]string{}}
		m.texts = m.textVariables()
		eachDeclaration(tree.Root, func(pipe *parse.PipeNode, _ bool) {
			from := m.parameters(pipe.Cmds)
			for _, v := range pipe.Decl {
				m.vars[v.Ident[0]] = append(m.vars[v.Ident[0]], from...)
			}
		})
		m.list(tree.Root)
	}
}

// eachDeclaration visits the pipelines of a tree that declare or assign variables.
func eachDeclaration(list *parse.ListNode, visit func(pipe *parse.PipeNode, loop bool)) {
	if list == nil {
		return
	}
	declared := func(pipe *parse.PipeNode, loop bool) {
		if pipe != nil && len(pipe.Decl) > 0 {
			visit(pipe, loop)
		}
	}
	branch := func(n *parse.BranchNode, loop bool) {
		declared(n.Pipe, loop)
		eachDeclaration(n.List, visit)
		eachDeclaration(n.ElseList, visit)
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			declared(n.Pipe, false)
		case *parse.IfNode:
			branch(&n.BranchNode, true)
		case *parse.WithNode:
			branch(&n.BranchNode, true)
		case *parse.RangeNode:
			branch(&n.BranchNode, true)
		}
	}
}

// textVariables finds the variables of a tree that only ever hold what a writer or include makes, or what stands in the
// template itself. Those of a loop or branch hold members, and are not among them.
func (m *marker) textVariables() map[string]bool {
	texts := map[string]bool{}
	eachDeclaration(m.tree.Root, func(pipe *parse.PipeNode, branch bool) {
		body, _ := layout(pipe.Cmds)
		is := !branch && (m.constant(body) || writes(body) != "")
		for _, v := range pipe.Decl {
			known, seen := texts[v.Ident[0]]
			texts[v.Ident[0]] = is && (known || !seen)
		}
	})
	return texts
}

func (m *marker) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			m.action(n.Pipe)
		case *parse.IfNode:
			m.branch(&n.BranchNode)
		case *parse.WithNode:
			m.member(&n.BranchNode)
		case *parse.RangeNode:
			m.member(&n.BranchNode)
		case *parse.TemplateNode:
			m.bare(n.Pipe)
		}
	}
}

func (m *marker) branch(n *parse.BranchNode) {
	m.bare(n.Pipe)
	m.list(n.List)
	m.list(n.ElseList)
}

// member rewrites range and with, in which dot is what the pipeline says.
func (m *marker) member(n *parse.BranchNode) {
	around := m.dot
	m.dot = m.parameters(n.Pipe.Cmds)
	m.bare(n.Pipe)
	m.list(n.List)
	m.dot = around
	m.list(n.ElseList)
}

// action rewrites an action that prints, or that gives a value to a variable.
func (m *marker) action(pipe *parse.PipeNode) {
	if len(pipe.Decl) > 0 && !m.texts[pipe.Decl[0].Ident[0]] {
		m.bare(pipe)
		return
	}
	body, arrange := layout(pipe.Cmds)
	if m.constant(body) {
		return
	}
	last := body[len(body)-1]
	origin := m.origin(pipe, body)
	switch name := writes(body); {
	case name == "include":
		m.bareArguments(body[:len(body)-1], last)
	case name != "":
		m.bareArguments(body[:len(body)-1], last)
		function := last.Args[0].(*parse.IdentifierNode)
		last.Args = append([]parse.Node{identifier(writerPrefix+name, function.Pos), number(origin, function.Pos)}, last.Args[1:]...)
	case m.printsText(body):
	default:
		// The text is cut before it is marked, so that all that is left of a value is inside.
		for len(arrange) > 0 && trimmers[name0(arrange[0])] != nil {
			body, arrange = append(body, arrange[0]), arrange[1:]
		}
		m.bareArguments(body, nil)
		body = append(body, command(last.Pos, identifier(emitFunction, last.Pos), number(origin, last.Pos)))
	}
	for _, c := range arrange {
		if function := name0(c); trimmers[function] != nil {
			c.Args[0] = identifier(trimmerPrefix+function, c.Pos)
		}
	}
	pipe.Cmds = slices.Concat(body, arrange)
}

// printsText reports whether commands are nothing but a variable that holds marked text.
func (m *marker) printsText(body []*parse.CommandNode) bool {
	if len(body) != 1 || len(body[0].Args) != 1 {
		return false
	}
	v, ok := body[0].Args[0].(*parse.VariableNode)
	return ok && len(v.Ident) == 1 && m.texts[v.Ident[0]]
}

// bare rewrites a pipeline that does not print: no marks are in what it computes with.
func (m *marker) bare(pipe *parse.PipeNode) {
	if pipe != nil {
		m.bareArguments(pipe.Cmds, nil)
	}
}

// bareArguments rewrites commands so that no marks are in what they compute with; of the last one, if it is given, the
// arguments only.
func (m *marker) bareArguments(commands []*parse.CommandNode, last *parse.CommandNode) {
	for _, c := range commands {
		for i := range c.Args {
			c.Args[i] = m.bareNode(c.Args[i])
		}
	}
	if last != nil {
		for i := 1; i < len(last.Args); i++ {
			last.Args[i] = m.bareNode(last.Args[i])
		}
	}
}

func (m *marker) bareNode(node parse.Node) parse.Node {
	switch n := node.(type) {
	case *parse.IdentifierNode:
		if n.Ident == "include" {
			return identifier(bareIncludeFunction, n.Pos)
		}
	case *parse.PipeNode:
		m.bare(n)
	case *parse.ChainNode:
		n.Node = m.bareNode(n.Node)
	case *parse.VariableNode:
		if len(n.Ident) == 1 && m.texts[n.Ident[0]] {
			return &parse.PipeNode{NodeType: parse.NodePipe, Pos: n.Pos,
				Cmds: []*parse.CommandNode{command(n.Pos, identifier(unmarkFunction, n.Pos), n)}}
		}
	}
	return node
}

// layout takes a pipeline apart into what makes a text and what arranges it: a call like `nindent 4 (include "x" .)`
// becomes `include "x" . | nindent 4`.
func layout(commands []*parse.CommandNode) (body, arrange []*parse.CommandNode) {
	body = slices.Clone(commands)
	for {
		for len(body) > 1 && arranges(body[len(body)-1]) >= 0 && len(body[len(body)-1].Args) == arranges(body[len(body)-1]) {
			arrange = append([]*parse.CommandNode{body[len(body)-1]}, arrange...)
			body = body[:len(body)-1]
		}
		if len(body) != 1 {
			return body, arrange
		}
		only := body[0]
		if inner, ok := only.Args[0].(*parse.PipeNode); ok && len(only.Args) == 1 && len(inner.Decl) == 0 {
			body = slices.Clone(inner.Cmds)
			continue
		}
		n := arranges(only)
		if n < 0 || len(only.Args) != n+1 {
			return body, arrange
		}
		arrange = append([]*parse.CommandNode{command(only.Pos, only.Args[:n]...)}, arrange...)
		body = []*parse.CommandNode{command(only.Pos, only.Args[n])}
	}
}

// arranges is how many nodes a call of a layout function has without its text; -1 for any other command.
func arranges(c *parse.CommandNode) int {
	switch name0(c) {
	case "trim":
		return 1
	case "indent", "nindent", "trimAll", "trimPrefix", "trimSuffix":
		if len(c.Args) > 1 && (c.Args[1].Type() == parse.NodeNumber || c.Args[1].Type() == parse.NodeString) {
			return 2
		}
	}
	return -1
}

// name0 is the name of the function that a command calls, or empty.
func name0(c *parse.CommandNode) string {
	if function, ok := c.Args[0].(*parse.IdentifierNode); ok {
		return function.Ident
	}
	return ""
}

// writes is the function at the end of commands if it makes text with a structure of its own: a writer, or include.
func writes(body []*parse.CommandNode) string {
	last := body[len(body)-1]
	name := name0(last)
	if _, ok := writers[name]; !ok && name != "include" {
		return ""
	}
	return name
}

// constant reports whether commands print nothing but what stands in the template.
func (m *marker) constant(body []*parse.CommandNode) bool {
	if n := len(body); name0(body[n-1]) == "ternary" {
		// A choice among texts of the template, as by if and else.
		args := body[n-1].Args[1:]
		return len(args) >= 2 && m.fixed(args[0]) && m.fixed(args[1])
	}
	return !slices.ContainsFunc(body, func(c *parse.CommandNode) bool {
		return slices.ContainsFunc(c.Args, func(node parse.Node) bool { return !m.fixed(node) })
	})
}

func (m *marker) fixed(node parse.Node) bool {
	switch n := node.(type) {
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.NilNode:
		return true
	case *parse.IdentifierNode:
		return n.Ident != "include"
	case *parse.PipeNode:
		return len(n.Decl) == 0 && m.constant(n.Cmds)
	}
	return false
}

// origin notes where an action stands, and what it prints. The number is its place among all actions of the set.
func (m *marker) origin(pipe *parse.PipeNode, body []*parse.CommandNode) int {
	o := Origin{Template: m.file.path, Line: strings.Count(m.file.text[:min(int(pipe.Pos), len(m.file.text))], "\n") + 1,
		Parameters: m.parameters(body)}
	eachOperand(body, func(node parse.Node) {
		if function, ok := node.(*parse.IdentifierNode); ok {
			o.Functions = append(o.Functions, function.Ident)
		}
	})
	m.file.origins = append(m.file.origins, o)
	return m.file.firstOrigin + len(m.file.origins) - 1
}

// parameters are those that commands work with, as far as that can be seen in the tree.
func (m *marker) parameters(commands []*parse.CommandNode) (names []string) {
	add := func(more ...string) {
		for _, name := range more {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	field := func(idents, otherwise []string) {
		if len(idents) > 1 && idents[0] == "Params" {
			add(idents[1])
		} else {
			add(otherwise...)
		}
	}
	eachOperand(commands, func(node parse.Node) {
		switch n := node.(type) {
		case *parse.DotNode:
			add(m.dot...)
		case *parse.FieldNode:
			field(n.Ident, m.dot)
		case *parse.VariableNode:
			field(n.Ident[1:], m.vars[n.Ident[0]])
		}
	})
	return names
}

// eachOperand visits all nodes of commands, down to the last parenthesis.
func eachOperand(commands []*parse.CommandNode, visit func(parse.Node)) {
	var each func(node parse.Node)
	each = func(node parse.Node) {
		switch n := node.(type) {
		case *parse.ChainNode:
			each(n.Node)
		case *parse.PipeNode:
			eachOperand(n.Cmds, visit)
		default:
			visit(node)
		}
	}
	for _, c := range commands {
		for _, arg := range c.Args {
			each(arg)
		}
	}
}

func identifier(name string, pos parse.Pos) *parse.IdentifierNode {
	return parse.NewIdentifier(name).SetPos(pos)
}

func number(n int, pos parse.Pos) parse.Node {
	return &parse.NumberNode{NodeType: parse.NodeNumber, Pos: pos, IsInt: true, Int64: int64(n), Text: strconv.Itoa(n)}
}

func command(pos parse.Pos, args ...parse.Node) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: args}
}
