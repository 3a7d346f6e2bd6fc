package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// sources are the folders whose constants the pages list.
var sources = []string{"apis", "operators", "plans", "pkg"}

// constant is a constant of a string.
type constant struct {
	name, value, doc string
	// place is its file, relative to the root.
	place string
	// typed is set if it has a type of its own.
	typed bool
}

// parseSources parses the files of the sources that are no tests and not generated, by their paths relative to the root.
func parseSources(root string) (map[string]*ast.File, error) {
	out, set := map[string]*ast.File{}, token.NewFileSet()
	var errs []error
	for _, dir := range sources {
		errs = append(errs, filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			base := filepath.Base(path)
			if err != nil || entry.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") ||
				strings.HasPrefix(base, "zz_generated") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
			rel, _ := filepath.Rel(root, path)
			out[filepath.ToSlash(rel)] = file
			return err
		}))
	}
	return out, errors.Join(errs...)
}

// readConstants returns the constants of strings of the sources, by name and then by place.
func readConstants(root string) ([]constant, error) {
	files, err := parseSources(root)
	if err != nil {
		return nil, err
	}
	var out []constant
	for place, file := range files {
		for _, decl := range file.Decls {
			if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST {
				out = append(out, constantsOf(group, place)...)
			}
		}
	}
	slices.SortFunc(out, func(a, b constant) int { return strings.Compare(a.name+" "+a.place, b.name+" "+b.place) })
	return out, nil
}

// constantsOf returns the constants of strings of a declaration.
func constantsOf(group *ast.GenDecl, place string) []constant {
	var out []constant
	for _, spec := range group.Specs {
		values, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		doc := values.Doc.Text()
		if doc == "" && !group.Lparen.IsValid() {
			doc = group.Doc.Text()
		}
		for i, value := range values.Values {
			if text, ok := stringOf(value); ok {
				out = append(out, constant{values.Names[i].Name, text, doc, place, values.Type != nil})
			}
		}
	}
	return out
}

// stringOf returns the value of a literal of a string.
func stringOf(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

// kindOfName has the endings of the constants that name parts of metadata, with the headings of their tables.
var kindOfName = []struct{ ending, title, text string }{
	{"Label", "Labels", "Labels that kudo sets or reads."},
	{"Annotation", "Annotations", "Annotations that kudo sets or reads."},
	{"Finalizer", "Finalizers", "Finalizers that kudo sets. Remove one by hand only if kudo does not run on the cluster any more: what it " +
		"would release or clean up stays."},
}

// writeNames writes the page of labels, annotations and finalizers.
func writeNames(root string) (string, error) {
	constants, err := readConstants(root)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, header, "Labels, annotations, finalizers", "It has each label, annotation and finalizer of kudo, from the constants "+
		"and their comments.")
	var errs []error
	for i, kind := range kindOfName {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "## %s\n\n%s\n\n| name | meaning |\n|---|---|\n", kind.title, kind.text)
		var rows []string
		for _, c := range constants {
			if !strings.HasSuffix(c.name, kind.ending) || c.typed || len(validation.IsQualifiedName(c.value)) > 0 {
				continue // such as the JSON pointer of a label
			}
			text, err := meaning(c)
			errs = append(errs, err)
			rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", c.value, text))
		}
		slices.Sort(rows)
		out.WriteString(strings.Join(rows, ""))
	}
	return out.String(), errors.Join(errs...)
}

// meaning is the comment of a constant without the constant's name.
func meaning(c constant) (string, error) {
	text, ok := strings.CutPrefix(cell(c.doc), c.name+" ")
	if !ok {
		return "", fmt.Errorf("%s: constant %s has no comment that begins with its name: write one", c.place, c.name)
	}
	return strings.ToUpper(text[:1]) + text[1:], nil
}
