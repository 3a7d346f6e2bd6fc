package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"kudo.dev/kudo/pkg/text"
)

// file is one template file: its own template, named like the file, and what it defines.
type file struct {
	path  string
	text  string
	trees map[string]*parse.Tree
	// linked are the names of the trees that may be used: those without a mistake.
	linked []string
	// functions are the names of those that it uses.
	functions map[string]bool
	// uses reports whether it uses definitions, which may be of other files, and usesFiles whether it uses whole files.
	uses, usesFiles bool
	// harmless reports whether it has functions only that leave plain values plain.
	harmless bool
	// origins are the actions that print values, numbered from firstOrigin; of a set that marks only.
	origins     []Origin
	firstOrigin int
	// variables is how many variables it declares at most.
	variables int
	// weights are the work of what follows a mark.
	weights map[*byte]int
	err     *Error
}

// load parses all files and links them. One that is wrong keeps its error and does not harm the others.
func (s *Set) load() {
	paths := s.Names()
	parsed := make([]*file, len(paths))
	parallel(len(paths), func(i int) { parsed[i] = parseFile(paths[i], s.sources[paths[i]]) })
	s.index(parsed)
	if s.marks {
		s.markFiles(parsed)
	}
	errs := make([]*Error, len(parsed))
	parallel(len(parsed), func(i int) {
		if parsed[i].err == nil {
			l := linker{set: s, file: parsed[i]}
			errs[i] = l.link()
		}
	})
	s.tmpl = template.New("\x00").Option("missingkey=error")
	used := template.FuncMap{} // to set all functions takes as long as to render a few templates
	s.usesHarmless, s.weights = true, map[*byte]int{}
	for i, f := range parsed {
		s.add(f, used)
		f.harmless = f.err == nil && onlyHarmless(f)
		if len(f.trees) > 1 {
			s.usesHarmless = s.usesHarmless && f.harmless
		}
		if errs[i] != nil {
			f.err = errs[i]
		}
	}
	s.tmpl.Funcs(used)
	for name := range used {
		if _, ok := unguarded()[name]; ok {
			s.functions = append(s.functions, name)
		}
	}
	if s.marks {
		s.tmpl.Funcs(markFunctions(func() bool { return false })).Funcs(template.FuncMap{bareIncludeFunction: functions()["include"]})
	}
	s.pool.New = func() any { return newExecutor(s) }
}

// index records the files by their paths, and which of them define a name, differently or not. It comes before the files are linked,
// which changes the trees that it compares.
func (s *Set) index(files []*file) {
	s.files = make(map[string]*file, len(files))
	s.defined = map[string][]string{}
	for _, f := range files {
		s.files[f.path] = f
		if f.err != nil {
			continue
		}
		for name := range f.trees {
			if name != f.path {
				s.defined[name] = append(s.defined[name], f.path)
			}
		}
	}
	s.ambiguous = map[string]bool{}
	for name, paths := range s.defined {
		s.ambiguous[name] = !s.same(name, paths)
	}
}

func onlyHarmless(f *file) bool {
	if f.usesFiles {
		return false
	}
	for name := range f.functions {
		if !harmlessFunctions[name] {
			return false
		}
	}
	return true
}

// markFiles rewrites the trees of all files so that what values print is marked.
func (s *Set) markFiles(files []*file) {
	for _, f := range files {
		if f.err != nil {
			continue
		}
		f.firstOrigin = len(s.origins)
		markFile(f)
		s.origins = append(s.origins, f.origins...)
	}
}

// add puts a file that is linked into the set, and its functions to those that are used.
func (s *Set) add(f *file, used template.FuncMap) {
	for _, name := range f.linked {
		// This can fail in html/template only.
		template.Must(s.tmpl.AddParseTree(id(f.path, name), f.trees[name]))
	}
	for name := range f.functions {
		s.mutates = s.mutates || mutating[name]
		if fn, ok := functions()[name]; ok {
			used[name] = fn
		}
	}
	maps.Copy(s.weights, f.weights)
}

// parseFile parses a file by itself, since two files may define the same name.
func parseFile(path, text string) *file {
	f := &file{path: path, text: text, functions: map[string]bool{}, weights: map[*byte]int{}}
	if len(text) > MaxTemplate {
		f.err = &Error{Kind: ParseError, Template: path,
			Reason: fmt.Sprintf("has %d bytes, more than the %d allowed", len(text), MaxTemplate)}
		return f
	}
	f.variables = strings.Count(text, ":=") // or more, which does no harm
	if uses := strings.Count(text, "$"); product64(f.variables, uses) > MaxWork {
		f.err = &Error{Kind: ParseError, Template: path,
			Reason: fmt.Sprintf("it declares %d variables and uses variables %d times, which takes too much work: each use searches all of them",
				f.variables, uses),
			Hint: "use fewer variables, or more files"}
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

// same reports whether all files define a name by the same text.
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
	if near := text.Nearest(name, slices.Sorted(maps.Keys(s.defined))); near != "" {
		return "did you mean " + near + "?"
	}
	for _, path := range s.Names() {
		if f := s.files[path]; f.err != nil && strings.Contains(f.text, name) {
			return fmt.Sprintf("%s, which has that name, has an error: %v", path, f.err)
		}
	}
	return ""
}
