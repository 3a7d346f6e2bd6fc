package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reasonShape is how a reason of a condition or an event is written.
var reasonShape = regexp.MustCompile(`^[A-Z][a-z]+([A-Z]+[a-z]*)*$`)

// reasonScan finds the reasons of conditions and events that do not come from a described constant.
type reasonScan struct {
	files map[string]*ast.File
	// known are the names of the described constants, and all those of all constants without a type of their own.
	known, all map[string]bool
	// parameters are the positions of reasons in calls, by the name of the function; that of an unexported function has its folder.
	parameters map[string][]int
	found      []string
}

// scanReasons returns the places where a reason is a literal, or a constant that is not described.
func scanReasons(files map[string]*ast.File, constants []constant) []string {
	s := &reasonScan{files: files, known: map[string]bool{}, all: map[string]bool{}, parameters: map[string][]int{
		"Event": {1, 2}, "Eventf": {2, 3}, // of record.EventRecorder, and of its successor
	}}
	types, reasons, events := described(constants)
	for _, c := range slices.Concat(types, reasons, events) {
		s.known[c.name] = true
	}
	for _, c := range constants {
		s.all[c.name] = s.all[c.name] || !c.typed
	}
	for place, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				s.addParameters(place, f)
			}
		}
	}
	for place, file := range files {
		ast.Inspect(file, func(n ast.Node) bool { s.visit(place, n); return true })
	}
	slices.Sort(s.found)
	return s.found
}

// key is the name of a function in parameters.
func key(place, name string) string {
	if ast.IsExported(name) {
		return name
	}
	return path.Dir(place) + "." + name
}

func (s *reasonScan) addParameters(place string, f *ast.FuncDecl) {
	at := 0
	for _, list := range f.Type.Params.List {
		for _, name := range list.Names {
			if name.Name == "reason" || name.Name == "event" {
				s.parameters[key(place, f.Name.Name)] = append(s.parameters[key(place, f.Name.Name)], at)
			}
			at++
		}
	}
}

func (s *reasonScan) visit(place string, n ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		for _, at := range s.parameters[key(place, lastName(n.Fun))] {
			if at < len(n.Args) {
				s.check(place, n.Args[at])
			}
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if selector, ok := left.(*ast.SelectorExpr); ok && selector.Sel.Name == "Reason" && len(n.Rhs) == len(n.Lhs) {
				s.check(place, n.Rhs[i])
			}
		}
	case *ast.CompositeLit:
		_, array := n.Type.(*ast.ArrayType)
		positional := array || slices.Contains([]string{"blocked", "ReleaseBlock", "Condition", "State"}, lastName(n.Type))
		for _, element := range n.Elts {
			switch pair, ok := element.(*ast.KeyValueExpr); {
			case !ok && positional && !array:
				s.check(place, element)
			case !ok && array && len(n.Elts) == 2 && strings.HasPrefix(lastName(n.Elts[0]), eventPrefix):
				s.check(place, n.Elts[0])
			case ok && slices.Contains([]string{"Reason", "reason", "event"}, lastName(pair.Key)):
				s.check(place, pair.Value)
			}
		}
	}
}

// culpritPrefix begins the constants of reasons in status.culprit, which are no conditions.
const culpritPrefix = "Culprit"

// check wants a value to be no literal of a reason, and no constant that is not described.
func (s *reasonScan) check(place string, value ast.Expr) {
	if text, ok := stringOf(value); ok && reasonShape.MatchString(text) {
		s.found = append(s.found, fmt.Sprintf("%s: the reason %q is a literal", place, text))
	}
	name := lastName(value)
	if s.all[name] && !s.known[name] && !strings.HasPrefix(name, reasonPrefix) && !strings.HasPrefix(name, culpritPrefix) {
		s.found = append(s.found, fmt.Sprintf("%s: the reason %s is a constant that conditions.yaml does not have", place, name))
	}
}

// lastName is the name at the end of an expression.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// TestReasonsAreConstants: R36, no condition and no event has a reason that conditions.yaml does not describe, and each that it describes
// is used.
func TestReasonsAreConstants(t *testing.T) {
	files, err := parseSources(root)
	if err != nil {
		t.Fatal(err)
	}
	constants, err := readConstants(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range scanReasons(files, constants) {
		t.Errorf("%s: add a constant %sX or %sX, and an entry to conditions.yaml", found, reasonPrefix, eventPrefix)
	}
	uses := map[string]int{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok {
				uses[name.Name]++
			}
			return true
		})
	}
	types, reasons, events := described(constants)
	for _, c := range slices.Concat(types, reasons, events) {
		if uses[c.name] < 2 {
			t.Errorf("%s: constant %s is not used: remove it", c.place, c.name)
		}
	}
}

// TestScanReasons checks what counts as a reason.
func TestScanReasons(t *testing.T) {
	constants := []constant{{name: "ReasonDone", value: "Done"}, {name: "other", value: "Other"}}
	for _, tc := range []struct {
		reason, code string
		want         []string
	}{
		{"constants and variables", `set("Ready", ReasonDone, "Text"); set("Ready", found.Reason, "Text"); r.Eventf(x, "Normal", b.event, "a %s", y)`, nil},
		{"a literal in a call", `set("Ready", "Done", "Text")`, []string{`a/a.go: the reason "Done" is a literal`}},
		{"a literal of an event", `r.Eventf(x, "Normal", "PlanDone", "Plan %s", y)`, []string{`a/a.go: the reason "PlanDone" is a literal`}},
		{"a literal in a field", `_ = Condition{Type: "Ready", Reason: "Done"}`, []string{`a/a.go: the reason "Done" is a literal`}},
		{"a literal by position", `_ = blocked{x, "Done", y, "a message"}`, []string{`a/a.go: the reason "Done" is a literal`}},
		{"an assignment", `a.Status, a.Reason = x, "Done"`, []string{`a/a.go: the reason "Done" is a literal`}},
		{"a constant of another name", `set("Ready", other, "Text")`, []string{"a/a.go: the reason other is a constant that conditions.yaml does not have"}},
		{"a reason that is a sentence", `_ = Problem{Reason: "has no value"}`, nil},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package a\nfunc set(kind, reason, message string) {}\nfunc run() {"+tc.code+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, scanReasons(map[string]*ast.File{"a/a.go": file}, constants)); diff != "" {
			t.Errorf("%s: -want +got: %s", tc.reason, diff)
		}
	}
}

// TestNamesAreListed: R36, no name of a label, annotation or finalizer stands in the code or in a manifest that the page of names lacks.
func TestNamesAreListed(t *testing.T) {
	page, err := writeNames(root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := parseSources(root)
	if err != nil {
		t.Fatal(err)
	}
	exact, within := regexp.MustCompile(`^kudo\.dev/[a-z][a-z-]*$`), regexp.MustCompile(`kudo\.dev/[a-z][a-z0-9-]*`)
	check := func(place, name string) {
		if !strings.Contains(page, "`"+name+"`") && !strings.HasPrefix(name, "kudo.dev/v1") {
			t.Errorf("%s has the name %s, which is no constant with one of the endings Label, Annotation and Finalizer", place, name)
		}
	}
	for place, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(ast.Expr); ok {
				if text, ok := stringOf(literal); ok && exact.MatchString(text) {
					check(place, text)
				}
			}
			return true
		})
	}
	manifests, err := filepath.Glob(filepath.Join(root, "manifests", "*.yaml"))
	if err != nil || len(manifests) == 0 {
		t.Fatal("no manifests", err)
	}
	for _, manifest := range manifests {
		text, err := os.ReadFile(manifest)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range within.FindAllString(string(text), -1) {
			check(filepath.Base(manifest), name)
		}
	}
}
