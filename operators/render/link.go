package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

// Marks that the linker puts between the nodes of a template. They print nothing, but text/template hands them to the
// writer, which knows them by their address: that is how loops and recursion are bounded, for which text/template has no means.
var (
	roundMark = make([]byte, 0, 1) // begins a round of a loop
	enterMark = make([]byte, 0, 1) // begins the use of another template
	leaveMark = make([]byte, 0, 1) // ends it
	valueMark = make([]byte, 0, 1) // what follows is printed by an action
)

// linker makes the trees of one file fit for the set: names of definitions become unique, marks are set, and
// functions that are denied are found. It changes nothing but its file, so that files are linked at the same time.
type linker struct {
	set    *Set
	file   *file
	tree   *parse.Tree
	failed int // how many mistakes there are
	err    *Error
}

func (l *linker) link() *Error {
	for _, name := range slices.Sorted(maps.Keys(l.file.trees)) {
		failed := l.failed
		l.tree = l.file.trees[name]
		l.weigh(l.tree.Root, l.list(l.tree.Root))
		if l.failed == failed {
			l.file.linked = append(l.file.linked, name)
		}
	}
	return l.err
}

// fail keeps the first error, that of the lowest line.
func (l *linker) fail(node parse.Node, reason, hint string) {
	l.failed++
	location, _ := l.tree.ErrorContext(node)
	e := &Error{Kind: ParseError, Template: l.file.path, Reason: reason, Hint: hint}
	// The location is path:line:column, and the path may hold colons.
	parts := strings.Split(location, ":")
	if n := len(parts); n >= 3 {
		e.Line, _ = strconv.Atoi(parts[n-2])
		e.Column, _ = strconv.Atoi(parts[n-1])
		e.Column++
	}
	e.Source = sourceLine(l.file.text, e.Line)
	if l.err == nil || e.Line < l.err.Line {
		l.err = e
	}
}

func mark(pos parse.Pos, text []byte) parse.Node {
	return &parse.TextNode{NodeType: parse.NodeText, Pos: pos, Text: text}
}

// list links a list of nodes and returns how many nodes one pass through it goes through at most. A round of a loop is a
// pass of its own, and so is the use of another template.
func (l *linker) list(list *parse.ListNode) int {
	if list == nil {
		return 0
	}
	more, nodes := 0, len(list.Nodes)
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			nodes += l.pipe(n.Pipe)
			if len(n.Pipe.Decl) == 0 {
				more++
			}
		case *parse.IfNode:
			nodes += l.pipe(n.Pipe) + l.list(n.List) + l.list(n.ElseList)
		case *parse.WithNode:
			nodes += l.pipe(n.Pipe) + l.list(n.List) + l.list(n.ElseList)
		case *parse.RangeNode:
			nodes += l.pipe(n.Pipe)
			l.weigh(n.List, l.list(n.List))
			n.List.Nodes = append([]parse.Node{mark(n.Pos, roundMark)}, n.List.Nodes...)
			nodes += l.list(n.ElseList)
		case *parse.TemplateNode:
			nodes += l.pipe(n.Pipe)
			l.use(n)
			more += 2
		}
	}
	if more > 0 {
		list.Nodes = markNodes(list.Nodes, more)
	}
	return nodes
}

// weigh makes the writer know how many nodes a list has, by a mark of its own at the beginning of the list.
func (l *linker) weigh(list *parse.ListNode, nodes int) {
	if nodes == 0 {
		return
	}
	text := make([]byte, 0, 1)
	l.file.weights[&text[:1][0]] = nodes * nodeWork
	list.Nodes = append([]parse.Node{mark(list.Pos, text)}, list.Nodes...)
}

// markNodes sets marks around the uses of other templates, and before what prints. There are as many as more says.
func markNodes(nodes []parse.Node, more int) []parse.Node {
	marked := make([]parse.Node, 0, len(nodes)+more)
	for _, node := range nodes {
		switch n := node.(type) {
		case *parse.TemplateNode:
			marked = append(marked, mark(n.Pos, enterMark), n, mark(n.Pos, leaveMark))
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				marked = append(marked, mark(n.Pos, valueMark))
			}
			marked = append(marked, node)
		default:
			marked = append(marked, node)
		}
	}
	return marked
}

// use gives the name in {{template "name"}} its meaning. One that is not known fails only when it is reached, as in text/template.
func (l *linker) use(n *parse.TemplateNode) {
	target, err := l.set.find(l.file.path, n.Name)
	if err != nil {
		l.fail(n, err.Error(), "")
		return
	}
	l.file.uses = true
	l.file.usesFiles = l.file.usesFiles || !strings.Contains(target, "\x00")
	if target != "" {
		n.Name = target
	}
}

// pipe links a pipeline and returns how many nodes it has.
func (l *linker) pipe(pipe *parse.PipeNode) int {
	if pipe == nil {
		return 0
	}
	nodes := len(pipe.Cmds)
	if pipe.IsAssign {
		nodes += len(pipe.Decl) * l.lookup()
	}
	for _, command := range pipe.Cmds {
		for _, arg := range command.Args {
			nodes += l.argument(arg)
		}
		if name, ok := command.Args[0].(*parse.IdentifierNode); ok && (name.Ident == "include" || name.Ident == bareIncludeFunction) {
			l.uses(command)
			// include looks its name up in the file that it stands in.
			path := &parse.StringNode{NodeType: parse.NodeString, Pos: name.Pos, Quoted: strconv.Quote(l.file.path), Text: l.file.path}
			command.Args = append([]parse.Node{name, path}, command.Args[1:]...)
		}
	}
	return nodes
}

// uses notes what an include uses. A name that is not known before it runs may be that of a file.
func (l *linker) uses(include *parse.CommandNode) {
	l.file.uses = true
	if len(include.Args) > 1 {
		if name, ok := include.Args[1].(*parse.StringNode); ok {
			if target, err := l.set.find(l.file.path, name.Text); err == nil && strings.Contains(target, "\x00") {
				return
			}
		}
	}
	l.file.usesFiles = true
}

// argument links an argument and returns how many nodes it has.
func (l *linker) argument(node parse.Node) int {
	switch n := node.(type) {
	case *parse.PipeNode:
		return 1 + l.pipe(n)
	case *parse.ChainNode:
		return 1 + l.argument(n.Node)
	case *parse.IdentifierNode:
		if why, ok := denied[n.Ident]; ok {
			l.fail(n, "the function "+n.Ident+" is denied in kudo: "+why, "pass the value as a parameter")
		}
		l.file.functions[n.Ident] = true
	case *parse.VariableNode:
		return 1 + l.lookup()
	}
	return 1
}

// lookup returns how many nodes the search for a variable is worth: text/template compares its name with those of all others.
func (l *linker) lookup() int { return l.file.variables / 32 }
