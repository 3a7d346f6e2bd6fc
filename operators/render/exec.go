package render

import (
	"fmt"
	"strings"
	"text/template"
)

// run counts what one rendering has done, its included templates together.
type run struct {
	bytes, steps, nesting int
}

// sink takes the output of a template and ends it when it goes beyond the bounds.
type sink struct {
	run  *run
	text strings.Builder
}

// Write is called by text/template for each piece of output, and with the marks of the linker.
func (s *sink) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, s.run.mark(p)
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
	}
	return nil
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
		return bound("templates use one another more than %d deep; does one use itself without end?", MaxNesting)
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
}

func newExecutor(s *Set) *executor {
	e := &executor{}
	// Clone fails only for html/template.
	e.tmpl = template.Must(s.tmpl.Clone())
	e.tmpl.Funcs(template.FuncMap{"include": func(path, name string, data any) (string, error) {
		return e.include(s, path, name, data)
	}})
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
