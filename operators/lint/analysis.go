package lint

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/text"
)

// implicitNames are the variables of a template beside .Params and .Pipes.
var implicitNames = []string{"OperatorName", "Name", "Namespace", "AppVersion", "OperatorVersion", "PlanName", "PhaseName", "StepName"}

// maxWork bounds how many nodes are visited, definitions once for each kind of dot that they are called with.
const maxWork = 1_000_000

// analysis is what the templates of a package use. It follows dot, variables and definitions the way text/template
// does, without running anything: what is in a branch counts, whether or not it is taken. Where a value gets out of
// sight, all that it holds counts as used, so that no finding is a false one.
type analysis struct {
	files   map[string]map[string]*parse.Tree // file -> definition -> tree; the file itself is named by its path
	defined map[string][]string               // definition -> files that have it, sorted
	known   map[string]bool                   // parameters that are defined, or set by a template
	keys    map[string]bool                   // keys of pipes
	// elsewhere are the keys of pipes that other plans have, too, when only the install plan is looked at.
	elsewhere map[string]bool

	used    map[string]bool // parameters
	usedAll bool
	opened  map[string]bool // variables that templates add
	open    bool            // templates may add any variable
	reached map[string]bool // files that others use

	done map[string]bool
	work int

	undefined, unset, invalid, noPipe, notInstalled, noDefinition []operators.Finding
}

// newAnalysis parses the templates of a package, and walks through none of them.
func newAnalysis(pkg *operators.Package) *analysis {
	a := &analysis{
		files: map[string]map[string]*parse.Tree{}, defined: map[string][]string{}, known: map[string]bool{}, keys: map[string]bool{},
		used: map[string]bool{}, opened: map[string]bool{}, reached: map[string]bool{}, done: map[string]bool{},
	}
	for _, p := range pkg.Params.Parameters {
		a.known[p.Name] = true
	}
	for key := range pkg.Pipes("") {
		a.keys[key] = true
	}
	for _, path := range slices.Sorted(maps.Keys(pkg.Templates)) {
		a.parse(path, pkg.Templates[path])
	}
	return a
}

// analyze walks through all templates: first those that tasks name, then those that no other file uses.
func analyze(pkg *operators.Package) *analysis {
	a := newAnalysis(pkg)
	named := referenced(pkg)
	// What others may use is entered by them first, since they may give it another dot.
	var first, second, third []string
	for _, path := range slices.Sorted(maps.Keys(pkg.Templates)) {
		switch {
		case named[path]:
			first = append(first, path)
		case !mentioned(path, pkg.Templates):
			second = append(second, path)
		default:
			third = append(third, path)
		}
	}
	for _, path := range slices.Concat(first, second, third) {
		if named[path] || !a.reached[path] {
			a.enter(path, path, value{kind: variables})
		}
	}
	return a
}

// mentioned reports whether another template has the path of a template in it.
func mentioned(path string, templates map[string]string) bool {
	for other, text := range templates {
		if other != path && strings.Contains(text, path) {
			return true
		}
	}
	return false
}

// referenced are the templates that the operator names: by a task, or as the manifest of the namespace.
func referenced(pkg *operators.Package) map[string]bool {
	named := map[string]bool{pkg.Operator.NamespaceManifest: true}
	for i := range pkg.Operator.Tasks {
		for _, use := range pkg.TaskUses(i) {
			named[use.Template] = true
		}
	}
	return named
}

// parse parses a file. Functions are not looked at; templatesParse does. In a file that does not parse, anything may be used.
func (a *analysis) parse(path, text string) {
	trees := map[string]*parse.Tree{}
	tree := parse.New(path)
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(text, "", "", trees); err != nil {
		a.usedAll = true
		return
	}
	a.files[path] = trees
	for name := range trees {
		if name != path {
			a.defined[name] = append(a.defined[name], path)
		}
	}
}

// uses reports whether a template may use a parameter.
func (a *analysis) uses(parameter string) bool { return a.usedAll || a.used[parameter] }

// onlyDefines reports whether a file has definitions, and nothing outside of them but comments.
func (a *analysis) onlyDefines(path string) bool {
	trees := a.files[path]
	root := trees[path]
	return len(trees) > 0 && (root == nil || blank(root.Root)) && (root == nil || len(trees) > 1)
}

// blank reports whether a template is nothing but space and comments, of YAML too.
func blank(list *parse.ListNode) bool {
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.CommentNode:
		case *parse.TextNode:
			for line := range strings.Lines(string(n.Text)) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// call walks through what a name means in a file: a definition of the file, one of another file, or a whole file.
func (a *analysis) call(from, name string, dot value) bool {
	switch {
	case a.files[from][name] != nil:
		a.enter(from, name, dot)
	case len(a.defined[name]) > 0:
		for _, file := range a.defined[name] {
			a.enter(file, name, dot)
		}
	case a.files[name] != nil:
		a.reached[name] = true
		a.enter(name, name, dot)
	default:
		return false
	}
	return true
}

// callAny walks through all definitions, for a call whose name is not known before it is run.
func (a *analysis) callAny(dot value) {
	for _, file := range slices.Sorted(maps.Keys(a.files)) {
		for _, name := range slices.Sorted(maps.Keys(a.files[file])) {
			a.reached[file] = true
			a.enter(file, name, dot)
		}
	}
}

// enter walks through a definition, once for each kind of dot.
func (a *analysis) enter(file, name string, dot value) {
	tree := a.files[file][name]
	key := file + "\x00" + name + "\x00" + dot.signature()
	if tree == nil || tree.Root == nil || a.done[key] {
		return
	}
	a.done[key] = true
	w := &walker{analysis: a, file: file, tree: tree, reassigned: map[string]bool{}}
	reassigned(tree.Root, w.reassigned)
	w.push("$", dot)
	w.list(tree.Root, dot)
}

// workLimitReached tells that the bound of work is reached; anything may be used then.
func (a *analysis) workLimitReached() bool {
	if a.work++; a.work > maxWork {
		a.usedAll = true
		return true
	}
	return false
}

// markEscaped notes that a value gets out of sight.
func (a *analysis) markEscaped(v value) {
	switch v.kind {
	case variables, parameters:
		a.usedAll = true
	case record:
		for _, field := range v.fields {
			a.markEscaped(field)
		}
	}
}

// parameter notes the use of a parameter. strict says that a template fails if it is not defined.
func (w *walker) parameter(name string, node parse.Node, strict bool) {
	w.used[name] = true
	if w.known[name] {
		return
	}
	finding := w.finding(node, "parameter %q in template %s is not defined%s", name, w.file,
		closestName(name, slices.Sorted(maps.Keys(w.known))))
	if strict {
		w.undefined = append(w.undefined, finding)
	} else {
		w.unset = append(w.unset, finding)
	}
}

func (w *walker) finding(node parse.Node, format string, args ...any) operators.Finding {
	location, _ := w.tree.ErrorContext(node)
	// The location is path:line:column, and the path may hold colons.
	line := 0
	if parts := strings.Split(location, ":"); len(parts) >= 3 {
		line, _ = strconv.Atoi(parts[len(parts)-2])
	}
	return templateFinding(w.file, line, format, args...)
}

// field is what a name means on a value; strict is for `.Name` and not for index and get, to which a name that does not
// exist is an empty value.
func (w *walker) field(v value, name string, node parse.Node, strict bool) value {
	switch v.kind {
	case variables:
		switch {
		case name == "Params":
			return value{kind: parameters}
		case name == "Pipes":
			return value{kind: pipeNames}
		case name == "From":
			return value{kind: from}
		case slices.Contains(implicitNames, name), w.opened[name], w.open, !strict:
		default:
			w.invalid = append(w.invalid, w.finding(node, "template %s defines an invalid implicit parameter %q%s", w.file, name, w.hint(name)))
		}
	case parameters:
		w.parameter(name, node, strict)
	case pipeNames:
		if !w.keys[name] && w.elsewhere[name] {
			w.notInstalled = append(w.notInstalled, w.finding(node, "pipe %q in template %s is made by a plan of an Instance, and the install "+
				"plan runs without an Instance", name, w.file))
		}
		if !w.keys[name] && strict {
			w.noPipe = append(w.noPipe, w.finding(node, "pipe %q in template %s is not defined%s", name, w.file,
				closestName(name, slices.Sorted(maps.Keys(w.keys)))))
		}
	case from:
		if strict && name != "OperatorVersion" && name != "AppVersion" {
			w.invalid = append(w.invalid, w.finding(node,
				"template %s defines an invalid implicit parameter %q: .From has OperatorVersion and AppVersion", w.file, "From."+name))
		}
	case record:
		return v.fields[name]
	}
	return value{}
}

// hint proposes the parameter or the variable that was probably meant.
func (w *walker) hint(name string) string {
	if w.known[name] {
		return ", did you mean .Params." + name + "?"
	}
	if near := text.Nearest(name, append([]string{"Params", "Pipes", "From"}, implicitNames...)); near != "" {
		return ", did you mean ." + near + "?"
	}
	return ""
}
