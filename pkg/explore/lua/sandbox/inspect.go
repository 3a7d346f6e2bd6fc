package sandbox

import (
	"maps"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// Facts describes a script that has not been run.
type Facts struct {
	// Body is set if the script is the body of the entry, and not a chunk that defines it.
	Body bool
	// Local is set if the chunk defines the entry as a local, which others than this package do not find.
	Local bool
	// Uses lists the globals that the script reads, such as pairs, the fields of these, such as string.gsub, and methods, such as :gsub.
	Uses []Use
	// Globals lists the globals that the script assigns to, but those that are functions at its top.
	Globals []string
}

// Use is a name that a script uses.
type Use struct {
	Name string
	Line int
}

// Inspect parses a script and returns its facts. Errors give the line.
func Inspect(source string, entry Entry) (Facts, error) {
	chunk, err := parseChunk(source)
	if err != nil {
		return Facts{}, err
	}
	facts := Facts{Body: !defines(chunk, entry.Name)}
	functions := map[string]bool{}
	for _, statement := range chunk {
		switch s := statement.(type) {
		case *ast.FuncDefStmt:
			if ident, ok := s.Name.Func.(*ast.IdentExpr); ok {
				functions[ident.Value] = true
			}
		case *ast.LocalAssignStmt:
			facts.Local = facts.Local || !facts.Body && slices.Contains(s.Names, entry.Name)
		}
	}
	r := &rewriter{set: map[string]bool{}}
	if facts.Body {
		_, err = r.body(chunk, entry)
	} else {
		err = r.chunk(chunk, nil)
	}
	for _, use := range slices.Concat(r.reads, r.members) {
		facts.Uses = append(facts.Uses, Use{use.name, use.line})
	}
	for _, name := range slices.Sorted(maps.Keys(r.set)) {
		if !functions[name] {
			facts.Globals = append(facts.Globals, name)
		}
	}
	return facts, err
}

// member notes the field of a global, such as string.gsub.
func (r *rewriter) member(e *ast.AttrGetExpr) {
	ident, isName := e.Object.(*ast.IdentExpr)
	key, isText := e.Key.(*ast.StringExpr)
	if isName && isText && !r.isLocal(ident.Value) {
		r.members = append(r.members, global{ident.Value + "." + key.Value, e.Line()})
	}
}

// method notes the method of a call, such as :gsub.
func (r *rewriter) method(e *ast.FuncCallExpr) {
	if e.Method != "" {
		r.members = append(r.members, global{":" + e.Method, e.Line()})
	}
}
