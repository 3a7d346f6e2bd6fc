package render

import (
	"fmt"
	"strings"
	"text/template"
)

// run counts what one rendering has done, its included templates together.
type run struct {
	bytes, steps, nesting, work int
	// owed is the part of work that the budget does not know yet.
	owed int
	// weights are the work of what follows a mark, see linker.
	weights map[*byte]int
	budget  *Budget
}

// sink takes the output of a template and ends it when it goes beyond the bounds.
type sink struct {
	run  *run
	text strings.Builder
	// values are where what actions printed begins and ends in the text, in turns; printing says that the next write is one.
	values   []int
	printing bool
}

// Write is called by text/template for each piece of output, and with the marks of the linker.
func (s *sink) Write(p []byte) (int, error) {
	printing := s.printing
	s.printing = false
	if len(p) == 0 {
		if cap(p) == 1 && &p[:1][0] == &valueMark[:1][0] {
			s.printing = true
			return 0, nil
		}
		return 0, s.run.mark(p)
	}
	if printing {
		s.values = append(s.values, s.text.Len(), s.text.Len()+len(p))
	}
	s.run.bytes += len(p)
	if s.run.bytes > MaxOutput {
		return 0, bound("it renders to more than %d bytes", MaxOutput)
	}
	return s.text.Write(p)
}

func (r *run) mark(p []byte) error {
	if cap(p) != 1 {
		return nil
	}
	switch &p[:1][0] {
	case &roundMark[:1][0]:
		return r.step()
	case &enterMark[:1][0]:
		return r.enter()
	case &leaveMark[:1][0]:
		r.nesting--
		return nil
	}
	return r.spend(r.weights[&p[:1][0]])
}

func (r *run) step() error {
	r.steps++
	if r.steps > MaxSteps {
		return bound("its loops take more than %d rounds", MaxSteps)
	}
	return nil
}

func (r *run) enter() error {
	r.nesting++
	if r.nesting > MaxNesting {
		return bound("templates include one another more than %d levels deep: check whether one includes itself", MaxNesting)
	}
	return r.step()
}

// bound is the error of going beyond a bound. Where that was is added later.
func bound(format string, args ...any) *Error {
	return &Error{Kind: ExecError, Reason: fmt.Sprintf(format, args...)}
}

// executor is a copy of the set's template, whose include function knows the rendering that it is part of.
type executor struct {
	tmpl *template.Template
	run  *run
	vars Variables
	// bare counts the includes around what is rendered whose text gets no marks.
	bare int
}

func newExecutor(s *Set) *executor {
	e := &executor{}
	// Clone fails only for html/template.
	e.tmpl = template.Must(s.tmpl.Clone())
	funcs := template.FuncMap{}
	for _, name := range s.functions {
		funcs[name] = guard(unguarded()[name], e.charge)
	}
	e.tmpl.Funcs(funcs).Funcs(template.FuncMap{"include": func(path, name string, data any) (string, error) {
		return e.include(s, path, name, data)
	}})
	if s.marks {
		e.tmpl.Funcs(markFunctions(func() bool { return e.bare > 0 }))
		e.tmpl.Funcs(template.FuncMap{bareIncludeFunction: func(path, name string, data any) (string, error) {
			e.bare++
			defer func() { e.bare-- }()
			return e.include(s, path, name, data)
		}})
	}
	return e
}

// include renders a definition to text, so that it can be piped on.
func (e *executor) include(s *Set, path, name string, data any) (string, error) {
	target, err := s.find(path, name)
	if err != nil {
		return "", err
	}
	if target == "" {
		found := bound("there is no template or definition %q", name)
		found.Hint = s.hintDefinition(name)
		return "", found
	}
	if err := e.run.enter(); err != nil {
		return "", err
	}
	defer func() { e.run.nesting-- }()
	out := &sink{run: e.run}
	if err := e.tmpl.ExecuteTemplate(out, target, data); err != nil {
		return "", s.execError(path, err, e.vars)
	}
	return out.text.String(), nil
}
