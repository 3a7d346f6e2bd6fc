// Package render turns the templates of a package into text, Kubernetes objects and parameters.
//
// A template is Go text/template with the functions of sprig and a few of kudo's own. Rendering is a function of the
// template and its variables alone: what reads a clock, the network, the environment or chance is denied. It is
// bounded in output, loops and depth, so that a template can fail but not harm the process.
package render

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template"

	"kudo.dev/kudo/pkg/text"
)

// Bounds of what a template may do.
const (
	// MaxTemplate is the size of one template in bytes. An OperatorVersion, which holds them all, is stored in
	// etcd, whose limit is 1.5 MiB.
	MaxTemplate = 1536 << 10
	// MaxOutput is the size in bytes of what one template renders to.
	MaxOutput = 16 << 20
	// MaxValue is the size in bytes of a text that a function makes, and MaxList the length of a list.
	MaxValue = 2 << 20
	MaxList  = 100_000
	// MaxSteps is how many rounds of loops and uses of other templates one rendering may take.
	MaxSteps = 200_000
	// MaxNesting is how deep templates may use one another.
	MaxNesting = 1000
)

// Variables are what templates see, each under the name of its field: `.Name`, `.Params.X`, `.Pipes.key`.
type Variables struct {
	// OperatorName, OperatorVersion and AppVersion are those of the package.
	OperatorName, OperatorVersion, AppVersion string
	// From is the version that the last complete run of plan deploy, update or upgrade had; empty before.
	From PackageVersion
	// Name and Namespace are those of the Instance.
	Name, Namespace string
	// PlanName, PhaseName and StepName say where in a run the template is used.
	PlanName, PhaseName, StepName string
	// Params are the values of all parameters (see params.Resolve). They are never changed.
	Params map[string]any
	// Unset lists the required parameters that have neither a value nor a default. Params lacks them, so that a template that uses one fails.
	Unset []string
	// Pipes maps the key of a pipe to the name of the object that holds its file.
	Pipes map[string]string
	// Defaults are the values of the parameters that are not set. A value that is equal to its default comes from the
	// package's author, and needs no check. If Defaults is empty, all values are checked.
	Defaults map[string]any
	// Budget bounds what several renderings do together; without one, each is bounded by itself only.
	Budget *Budget
}

// PackageVersion is the version of a package, which templates see as `.From.OperatorVersion` and `.From.AppVersion`.
type PackageVersion struct{ OperatorVersion, AppVersion string }

// root is the dot of a template. Fields that are not there are errors, as for any other map.
func (v Variables) root(private bool) map[string]any {
	values, pipes := v.Params, v.Pipes
	if values == nil {
		values = map[string]any{}
	}
	if pipes == nil {
		pipes = map[string]string{}
	}
	if private {
		values = copyValue(values).(map[string]any)
		pipes = maps.Clone(pipes)
	}
	return map[string]any{
		"OperatorName": v.OperatorName, "OperatorVersion": v.OperatorVersion, "AppVersion": v.AppVersion,
		"From": map[string]any{"OperatorVersion": v.From.OperatorVersion, "AppVersion": v.From.AppVersion},
		"Name": v.Name, "Namespace": v.Namespace,
		"PlanName": v.PlanName, "PhaseName": v.PhaseName, "StepName": v.StepName,
		"Params": values, "Pipes": pipes,
	}
}

// copyValue copies maps and lists, for templates that change them.
func copyValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		result := make(map[string]any, len(v))
		for key, item := range v {
			result[key] = copyValue(item)
		}
		return result
	case []any:
		result := make([]any, len(v))
		for i, item := range v {
			result[i] = copyValue(item)
		}
		return result
	}
	return value
}

// Set holds the templates of a package. It is parsed once, when first used, does not change, and may be used by many
// goroutines at once.
//
// A name that a file defines by {{define}} is first looked for in the file that uses it, then among the definitions
// of all other files, then among the paths of files. If several other files define it in different ways, using
// it is an error.
type Set struct {
	sources map[string]string

	once   sync.Once
	marker func() *Set // the same templates in a set that marks
	// What once makes, unchanged since.
	files     map[string]*file
	defined   map[string][]string // name of a definition -> files that have it, sorted
	ambiguous map[string]bool     // names whose definitions differ
	tmpl      *template.Template
	marks     bool     // what values print is marked, see contain.go
	origins   []Origin // actions that print, by number; of a set that marks only
	// usesHarmless reports whether all files are harmless that others may use.
	usesHarmless bool
	functions    []string      // those that files use, by name
	weights      map[*byte]int // the work of what follows a mark
	mutates      bool          // some file may change the values it is given
	pool         sync.Pool     // of *executor
}

// New makes a set of templates, whose paths map to their text. The map must not be changed afterwards.
func New(templates map[string]string) *Set {
	return &Set{sources: templates, marker: sync.OnceValue(func() *Set { return &Set{sources: templates, marks: true} })}
}

// Names lists the paths of all templates, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.sources)) }

// Has reports whether the set has a template of this path.
func (s *Set) Has(name string) bool {
	_, ok := s.sources[name]
	return ok
}

// UsesFrom reports whether what a template renders to may depend on `.From`.
func (s *Set) UsesFrom() bool {
	for _, text := range s.sources {
		if strings.Contains(text, ".From") || strings.Contains(text, `"From"`) {
			return true
		}
	}
	return false
}

// Check returns what is wrong with a template before it is rendered: it is missing, too large, does not parse, uses a
// function that is denied. The error is of type *Error.
func (s *Set) Check(name string) error {
	s.once.Do(s.load)
	f, ok := s.files[name]
	if !ok {
		return s.missing(name)
	}
	if f.err != nil {
		return f.err
	}
	return nil
}

// Text renders a template, whatever the values do to the structure of the text: what is to become objects is checked by
// Objects. The error is of type *Error.
func (s *Set) Text(name string, v Variables) (string, error) {
	text, _, err := s.text(name, v)
	return text, err
}

// text renders a template. Besides, it returns where what actions print begins and ends in the text, in turns.
func (s *Set) text(name string, v Variables) (string, []int, error) {
	if err := s.Check(name); err != nil {
		return "", nil, err
	}
	if err := v.Budget.begin(name, v); err != nil {
		return "", nil, err
	}
	run := &run{weights: s.weights, budget: v.Budget}
	e := s.pool.Get().(*executor)
	e.run, e.vars = run, v
	defer func() {
		e.run, e.vars = nil, Variables{}
		s.pool.Put(e)
	}()
	out := &sink{run: run}
	out.text.Grow(len(s.sources[name])) // most texts are about as long as their template
	err := e.tmpl.ExecuteTemplate(out, name, v.root(s.mutates))
	if beyond := run.settle(); err == nil {
		err = beyond
	}
	if err != nil {
		return "", nil, s.execError(name, err, v)
	}
	text := out.text.String()
	// A null, such as an array without a value, is printed so by text/template; it means nothing.
	const null = "<no value>"
	if strings.Contains(text, null) && !strings.Contains(s.sources[name], null) {
		text = strings.ReplaceAll(text, null, "")
		return text, []int{0, len(text)}, nil // the places are not known any more
	}
	return text, out.values, nil
}

func (s *Set) missing(name string) *Error {
	e := &Error{Kind: ParseError, Template: name, Reason: "there is no template of this path"}
	if near := text.Nearest(name, s.Names()); near != "" {
		e.Hint = "did you mean " + near + "?"
	} else if len(s.sources) == 0 {
		e.Hint = "the package has no templates"
	}
	return e
}
