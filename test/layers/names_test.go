package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRenamed checks that no name comes back that was a riddle: testdata/renamed.txt lists them by package.
func TestRenamed(t *testing.T) {
	data, err := os.ReadFile("testdata/renamed.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		pkg, retired, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("the line %q is not a package, a colon and names", line)
		}
		declared, err := namesOf(filepath.Join("..", "..", pkg))
		if err != nil {
			t.Fatal(err)
		}
		if len(declared) == 0 {
			t.Errorf("there is no package %s: delete its line in testdata/renamed.txt", pkg)
		}
		for name := range strings.FieldsSeq(retired) {
			if declared[name] {
				t.Errorf("%s declares %s, a name that was retired: docs/design/vocabulary.md has the words to use", pkg, name)
			}
		}
	}
}

// namesOf returns what a package declares: types, functions, variables and constants by name, methods and fields as Type.Name.
func namesOf(dir string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				names[receiverOf(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(names, spec)
				}
			}
		}
	}
	return names, nil
}

// receiverOf returns "Type." for a method, and "" for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	receiver := f.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	switch generic := receiver.(type) {
	case *ast.IndexExpr:
		receiver = generic.X
	case *ast.IndexListExpr:
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

func addSpec(names map[string]bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names[name.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		var members *ast.FieldList
		switch typ := s.Type.(type) {
		case *ast.StructType:
			members = typ.Fields
		case *ast.InterfaceType:
			members = typ.Methods
		}
		if members == nil {
			return
		}
		for _, member := range members.List {
			for _, name := range member.Names {
				names[s.Name.Name+"."+name.Name] = true
			}
		}
	}
}
