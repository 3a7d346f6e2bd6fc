package render

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"kudo.dev/kudo/pkg/text"
)

// Kind says at which stage a template failed.
type Kind string

const (
	// ParseError says that the template is missing, is not a template, or uses a function that is denied.
	ParseError Kind = "parse"
	// ExecError says that the template failed with these variables.
	ExecError Kind = "execute"
	// DecodeError says that the template rendered to something that is not what it is used as.
	DecodeError Kind = "decode"
	// StructureError says that a value would change the structure of what the template renders to.
	StructureError Kind = "structure"
	// BudgetError says that the renderings of a Budget go beyond it together.
	BudgetError Kind = "budget"
)

// Error is any failure of a template. All of them are final: the same template with the same variables fails again.
type Error struct {
	Kind Kind
	// Template is the path of the file that is wrong, which may be one that the rendered template uses. It is empty if no template
	// by itself is (BudgetError only).
	Template string
	// Line and Column count from 1; 0 is unknown. Of a DecodeError, the line is that of the rendered text.
	Line, Column int
	// Source is the text of that line, cut if it is long.
	Source string
	// Document counts the documents of the rendered text from 1 (DecodeError only; 0 is unknown).
	Document int
	// Parameter is the one whose value is refused (StructureError only), if it is known.
	Parameter string
	// Reason says what is wrong.
	Reason string
	// Hint says what to do about it, or is empty.
	Hint string
	// Err is the cause, or nil.
	Err error
}

// Error is one line: file, line and column, what is wrong, what to do, and the text of the line.
func (e *Error) Error() string {
	if e.Kind == StructureError || e.Template == "" { // its reason names template and parameter
		return e.Reason + ": " + e.Hint
	}
	var b strings.Builder
	fmt.Fprintf(&b, "template %s", e.Template)
	switch {
	case e.Line > 0 && e.Kind == DecodeError:
		fmt.Fprintf(&b, ", line %d of what it renders to", e.Line)
	case e.Line > 0 && e.Column > 0:
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	case e.Line > 0:
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	fmt.Fprintf(&b, ": %s", e.Reason)
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	if e.Source != "" {
		fmt.Fprintf(&b, " (in %q)", e.Source)
	}
	return b.String()
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// sourceLine is the text of a line without white space around, cut if it is long.
func sourceLine(source string, line int) string {
	if line < 1 {
		return ""
	}
	for l := range strings.Lines(source) {
		line--
		if line > 0 {
			continue
		}
		return text.Truncate(strings.TrimSpace(l), 120)
	}
	return ""
}

var (
	parseMessage    = regexp.MustCompile(`(?s)^template: (.*?):(\d+)(?::(\d+))?: (.*)$`)
	execMessage     = regexp.MustCompile(`(?s)^template: (.*?):(\d+):(\d+): executing ".*?" at <(.*?)>: (.*)$`)
	missingKey      = regexp.MustCompile(`map has no entry for key "(.*)"$`)
	missingFunction = regexp.MustCompile(`^function "(.*)" not defined$`)
	missingTemplate = regexp.MustCompile(`^template "(.*)" not defined$`)
)

// parseError makes an error of what text/template/parse says.
func parseError(name, source string, err error) *Error {
	e := &Error{Kind: ParseError, Template: name, Reason: err.Error(), Err: err}
	match := parseMessage.FindStringSubmatch(err.Error())
	if match == nil {
		return e
	}
	e.Line, _ = strconv.Atoi(match[2])
	e.Reason = text.Truncate(match[4], 1000)
	e.Source = sourceLine(source, e.Line)
	needle := "{{"
	if m := missingFunction.FindStringSubmatch(e.Reason); m != nil {
		needle = m[1]
		e.Reason = fmt.Sprintf("there is no function %q", m[1])
		if near := text.Nearest(m[1], functionNames()); near != "" {
			e.Hint = "did you mean " + near + "?"
		}
	}
	e.Column = columnOf(source, e.Line, needle)
	return e
}

// columnOf finds where in a line a text begins, counting from 1; 0 if it is not there.
func columnOf(source string, line int, needle string) int {
	for l := range strings.Lines(source) {
		line--
		if line == 0 {
			return strings.Index(l, needle) + 1
		}
	}
	return 0
}

// execError makes an error of what executing a template returned.
func (s *Set) execError(name string, err error, v Variables) *Error {
	// An error of an included template, or of the bounds, is one already.
	var inner *Error
	if errors.As(err, &inner) {
		found := *inner
		if found.Template == "" {
			found.Template = name
		}
		if found.Line == 0 {
			found.locate(err)
		}
		found.Source = sourceLine(s.sources[found.Template], found.Line)
		return &found
	}
	e := &Error{Kind: ExecError, Template: name, Err: err, Reason: err.Error()}
	if context, reason := e.locate(err); context != "" {
		e.Reason = fmt.Sprintf("at <%s>: %s", context, reason)
		s.explain(e, context, reason, v)
	}
	e.Source = sourceLine(s.sources[e.Template], e.Line)
	return e
}

// locate sets file, line and column by the message of text/template. It returns the expression that failed and why,
// or nothing if the error has no place.
func (e *Error) locate(err error) (context, reason string) {
	var exec template.ExecError
	if !errors.As(err, &exec) {
		return "", ""
	}
	match := execMessage.FindStringSubmatch(exec.Err.Error())
	if match == nil {
		return "", ""
	}
	e.Template = match[1]
	e.Line, _ = strconv.Atoi(match[2])
	e.Column, _ = strconv.Atoi(match[3])
	e.Column++ // text/template counts bytes from 0
	return text.Truncate(match[4], 200), text.Truncate(match[5], 1000)
}

// explain finds better words, and the names that may have been meant, for the failure of an expression.
func (s *Set) explain(e *Error, context, reason string, v Variables) {
	if match := missingKey.FindStringSubmatch(reason); match != nil {
		e.Reason, e.Hint = explainKey(match[1], context, v)
		return
	}
	if match := missingTemplate.FindStringSubmatch(reason); match != nil {
		e.Reason = fmt.Sprintf("there is no template or definition %q", match[1])
		e.Hint = s.hintDefinition(match[1])
	}
}

func explainKey(key, context string, v Variables) (reason, hint string) {
	var known []string
	switch {
	case slices.Contains(v.Unset, key) && strings.Contains(context, ".Params."):
		return fmt.Sprintf("parameter %q is required but has no value and no default (at <%s>)", key, context),
			fmt.Sprintf("set it with --install-parameter %s=…", key)
	case strings.HasSuffix(context, ".Params."+key) || strings.Contains(context, ".Params."+key+"."):
		reason = fmt.Sprintf("parameter %q is not defined (at <%s>)", key, context)
		known = slices.Sorted(maps.Keys(v.Params))
		hint = "define it in params.yaml"
	case strings.HasSuffix(context, ".Pipes."+key):
		reason = fmt.Sprintf("there is no pipe %q (at <%s>)", key, context)
		known = slices.Sorted(maps.Keys(v.Pipes))
		hint = "only keys of the package's Pipe tasks can be used"
	case strings.HasPrefix(context, "."+key) || strings.HasPrefix(context, "$."+key):
		reason = fmt.Sprintf("there is no variable %q (at <%s>)", "."+key, context)
		known = slices.Sorted(maps.Keys(v.root(false)))
		hint = "there are ." + strings.Join(known, ", .")
	default:
		return fmt.Sprintf("the map has no key %q (at <%s>)", key, context), "test for the key with hasKey, or read it with get or dig"
	}
	if near := text.Nearest(key, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	return reason, hint
}
