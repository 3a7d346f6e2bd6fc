package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Entry is the function of a script that a call calls.
type Entry struct {
	// Name of the function that a script defines.
	Name string
	// Parameters are the names that a script which is only the body of the function has for its arguments.
	Parameters []string
	// Aliases are further names that such a script may use, each for a parameter.
	Aliases map[string]string
}

// Script is a compiled script. It is immutable and may run in many goroutines at once.
type Script struct {
	entry    string
	proto    *glua.FunctionProto
	warnings []string
	// ownGlobals scripts may assign to the names of libraries, so each call needs a copy of the globals.
	ownGlobals bool
}

// Warnings say what is likely wrong, such as globals that the script does not define, in the order of the script's lines.
func (s *Script) Warnings() []string { return slices.Clone(s.warnings) }

// Compile reads a script in either form: the body of the entry, or a chunk that defines it. The libraries are those of the pool that runs
// the script. Errors give the line.
func Compile(source string, entry Entry, libraries ...Library) (*Script, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("the script has %d bytes: at most %d are allowed", len(source), maxSource)
	}
	chunk, err := parseChunk(source)
	if err != nil {
		return nil, err
	}
	defines := defines(chunk, entry.Name)
	if !defines && !returns(chunk) {
		return nil, fmt.Errorf("the script must define function %s(%s), or be its body and return a value%s",
			entry.Name, strings.Join(entry.Parameters, ", "), misnamedFunction(chunk))
	}
	r := &rewriter{known: slices.Concat(baseNames, hidden, libraryNames(libraries)), set: map[string]bool{}}
	if defines {
		err = r.chunk(chunk, nil)
		end := &ast.ReturnStmt{Exprs: []ast.Expr{&ast.IdentExpr{Value: entry.Name}}}
		chunk = append(slices.Clip(chunk), end)
	} else {
		chunk, err = r.body(chunk, entry)
	}
	if err != nil {
		return nil, err
	}
	proto, err := compileChunk(append([]ast.Stmt{&ast.LocalAssignStmt{Names: hidden, Exprs: []ast.Expr{&ast.Comma3Expr{}}}}, chunk...))
	if err != nil {
		return nil, err
	}
	return &Script{entry.Name, proto, r.warnings(), r.usesLibraryNames()}, nil
}

// parseChunk parses, and makes an error of a panic: the parser must not end the process.
func parseChunk(source string) (chunk []ast.Stmt, err error) {
	defer func() {
		if r := recover(); r != nil {
			chunk, err = nil, fmt.Errorf("the script cannot be parsed: %v", r)
		}
	}()
	chunk, err = parse.Parse(strings.NewReader(source), "script")
	var bad *parse.Error
	if errors.As(err, &bad) {
		near := ""
		if bad.Token != "" {
			near = fmt.Sprintf(" near %q", bad.Token)
		}
		if bad.Pos.Line == parse.EOF || bad.Pos.Line <= 0 {
			return nil, fmt.Errorf("at the end: %s%s", bad.Message, near)
		}
		return nil, fmt.Errorf("line %d: %s%s", bad.Pos.Line, bad.Message, near)
	}
	return chunk, err
}

func compileChunk(chunk []ast.Stmt) (proto *glua.FunctionProto, err error) {
	defer func() {
		if r := recover(); r != nil {
			proto, err = nil, fmt.Errorf("the script cannot be compiled: %v", r)
		}
	}()
	proto, err = glua.Compile(chunk, "script")
	var bad *glua.CompileError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("line %d: %s", bad.Line, bad.Message)
	}
	return proto, err
}

// defines reports whether a chunk defines a function at its top, and does not return something else.
func defines(chunk []ast.Stmt, name string) bool {
	if returns(chunk) {
		return false
	}
	return slices.Contains(defined(chunk), name)
}

// defined lists the names that a chunk gives to functions at its top.
func defined(chunk []ast.Stmt) []string {
	var names []string
	for _, statement := range chunk {
		switch s := statement.(type) {
		case *ast.FuncDefStmt:
			if ident, ok := s.Name.Func.(*ast.IdentExpr); ok {
				names = append(names, ident.Value)
			}
		case *ast.LocalAssignStmt:
			names = append(names, s.Names...)
		case *ast.AssignStmt:
			for _, left := range s.Lhs {
				if ident, ok := left.(*ast.IdentExpr); ok {
					names = append(names, ident.Value)
				}
			}
		}
	}
	return names
}

// misnamedFunction names a function that a script defines in place of the one that it must.
func misnamedFunction(chunk []ast.Stmt) string {
	for _, statement := range chunk {
		if s, ok := statement.(*ast.FuncDefStmt); ok {
			if ident, ok := s.Name.Func.(*ast.IdentExpr); ok {
				return fmt.Sprintf("; it defines %s", ident.Value)
			}
		}
	}
	return ""
}

// returns reports whether a block returns in any of its branches.
func returns(block []ast.Stmt) bool {
	return slices.ContainsFunc(block, func(statement ast.Stmt) bool {
		_, is := statement.(*ast.ReturnStmt)
		return is || slices.ContainsFunc(blocksOf(statement), returns)
	})
}

// blocksOf lists the blocks of a statement, but no body of a function.
func blocksOf(statement ast.Stmt) [][]ast.Stmt {
	switch s := statement.(type) {
	case *ast.IfStmt:
		return [][]ast.Stmt{s.Then, s.Else}
	case *ast.DoBlockStmt:
		return [][]ast.Stmt{s.Stmts}
	case *ast.WhileStmt:
		return [][]ast.Stmt{s.Stmts}
	case *ast.RepeatStmt:
		return [][]ast.Stmt{s.Stmts}
	case *ast.NumberForStmt:
		return [][]ast.Stmt{s.Stmts}
	case *ast.GenericForStmt:
		return [][]ast.Stmt{s.Stmts}
	}
	return nil
}

// body wraps the body of a function: return function(parameters) body end.
func (r *rewriter) body(chunk []ast.Stmt, entry Entry) ([]ast.Stmt, error) {
	names := slices.Clone(entry.Parameters)
	var statements []ast.Stmt
	for _, alias := range slices.Sorted(maps.Keys(entry.Aliases)) {
		names = append(names, alias)
		parameter := &ast.IdentExpr{Value: entry.Aliases[alias]}
		statements = append(statements, &ast.LocalAssignStmt{Names: []string{alias}, Exprs: []ast.Expr{parameter}})
	}
	err := r.chunk(chunk, names)
	made := &ast.FunctionExpr{ParList: &ast.ParList{Names: entry.Parameters}, Stmts: append(statements, chunk...)}
	if len(chunk) > 0 {
		made.SetLine(chunk[0].Line())
		made.SetLastLine(chunk[len(chunk)-1].Line() + 1)
	}
	return []ast.Stmt{&ast.ReturnStmt{Exprs: []ast.Expr{made}}}, err
}
