package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"kudo.dev/kudo/operators/document"
)

// file is one template file: its own template, named like the file, and what it defines.
type file struct {
	path  string
	text  string
	trees map[string]*parse.Tree
	err   *Error
}

// load parses all files and links them. One that is wrong keeps its error and does not harm the others.
func (s *Set) load() {
	s.files = make(map[string]*file, len(s.sources))
	s.defined = map[string][]string{}
	paths := s.Names()
	parsed := make([]*file, len(paths))
	parallel(len(paths), func(i int) { parsed[i] = parseFile(paths[i], s.sources[paths[i]]) })
	for i, path := range paths {
		f := parsed[i]
		s.files[path] = f
		if f.err != nil {
			continue
		}
		for name := range f.trees {
			if name != path {
				s.defined[name] = append(s.defined[name], path)
			}
		}
	}
	// Compared before linking, which changes the trees.
	s.ambiguous = map[string]bool{}
	for name, paths := range s.defined {
		s.ambiguous[name] = !s.same(name, paths)
	}
	s.tmpl = template.New("\x00").Option("missingkey=error").Funcs(functions())
	for _, path := range paths {
		if f := s.files[path]; f.err == nil {
			l := linker{set: s, file: f}
			f.err = l.link()
		}
	}
	s.pool.New = func() any { return newExecutor(s) }
}

// parseFile parses a file by itself, since two files may define the same name.
func parseFile(path, text string) *file {
	f := &file{path: path, text: text}
	if len(text) > MaxTemplate {
		f.err = &Error{Kind: ParseError, Template: path,
			Reason: fmt.Sprintf("has %d bytes, more than the %d allowed", len(text), MaxTemplate)}
		return f
	}
	trees, err := parse.Parse(path, text, "", "", functions(), builtins)
	if err != nil {
		f.err = parseError(path, text, err)
		return f
	}
	f.trees = trees
	if f.trees[path] == nil {
		f.trees[path] = &parse.Tree{Name: path, ParseName: path, Root: &parse.ListNode{NodeType: parse.NodeList}}
	}
	return f
}

// same tells whether all files define a name by the same text.
func (s *Set) same(name string, paths []string) bool {
	if len(paths) < 2 {
		return true
	}
	first := s.files[paths[0]].trees[name].Root.String()
	for _, path := range paths[1:] {
		if s.files[path].trees[name].Root.String() != first {
			return false
		}
	}
	return true
}

// id is the name of a definition in the one set of all files. That of a file is its path.
func id(path, name string) string {
	if path == name {
		return path
	}
	return path + "\x00" + name
}

// find looks up what a name means in a file. Not found is empty; the error names the files that disagree.
func (s *Set) find(path, name string) (string, error) {
	if f := s.files[path]; f != nil && f.trees[name] != nil {
		return id(path, name), nil
	}
	if paths := s.defined[name]; len(paths) > 0 {
		if s.ambiguous[name] {
			return "", fmt.Errorf("%q is defined differently by %s; define it in %s too, or give the definitions different names",
				name, strings.Join(paths, " and "), path)
		}
		return id(paths[0], name), nil
	}
	if f := s.files[name]; f != nil && f.err == nil {
		return name, nil
	}
	return "", nil
}

// hintDefinition says which definition may have been meant by a name that is not known, or why it is not.
func (s *Set) hintDefinition(name string) string {
	if near := document.Nearest(name, slices.Sorted(maps.Keys(s.defined))); near != "" {
		return "did you mean " + near + "?"
	}
	for _, path := range s.Names() {
		if f := s.files[path]; f.err != nil && strings.Contains(f.text, name) {
			return fmt.Sprintf("%s, which has that name, is wrong itself: %v", path, f.err)
		}
	}
	return ""
}
