package layers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRenamed checks that no name comes back that was a riddle: testdata/renamed.txt lists them by package.
func TestRenamed(t *testing.T) {
	data, err := os.ReadFile("testdata/renamed.txt")
	if err != nil {
		t.Fatal(err)
	}
	problems, err := checkRenamed("../..", string(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// TestCheckRenamed checks that a retired name is found as a type, a function, a method, a field, a variable and a constant.
func TestCheckRenamed(t *testing.T) {
	dir := t.TempDir()
	const code = "package a\ntype fit struct{ last int }\ntype pair[T any] struct{}\nfunc (*pair[T]) poll() {}\nfunc look() {}\nvar wide int\n" +
		"const (\n\tstill = 1\n)\ntype asked interface{ Gone() }\nfunc local() { inner := 1; _ = inner }\n"
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := checkRenamed(dir, ".: fit fit.last pair.poll look wide still asked.Gone inner last poll\nabsent: look\n")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"fit", "fit.last", "pair.poll", "look", "wide", "still", "asked.Gone"} {
		want = append(want, ". declares "+name+", a name that was retired: docs/design/vocabulary.md has the words to use")
	}
	want = append(want, "there is no package absent: delete its line in testdata/renamed.txt")
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if _, err := checkRenamed(dir, "fit\n"); err == nil {
		t.Error("a line without a package is read")
	}
}

// checkRenamed returns which packages of a tree declare names that a list retires for them.
func checkRenamed(root, list string) (problems []string, err error) {
	for line := range strings.Lines(list) {
		pkg, retired, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			return nil, fmt.Errorf("the line %q is not a package, a colon and names", line)
		}
		declared, err := namesOf(filepath.Join(root, pkg))
		if err != nil {
			return nil, err
		}
		if len(declared) == 0 {
			problems = append(problems, fmt.Sprintf("there is no package %s: delete its line in testdata/renamed.txt", pkg))
		}
		for name := range strings.FieldsSeq(retired) {
			if declared[name] {
				problems = append(problems, fmt.Sprintf("%s declares %s, a name that was retired: docs/design/vocabulary.md has the words to use", pkg, name))
			}
		}
	}
	return problems, nil
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
