package render

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/operators/yamldoc"
)

// A value must stay a value: one that adds a document, a key or an item to what a template makes could make objects that
// the author of the package never meant to. So a rendering with values that could do so is compared with itself: once as
// it is, and once with a plain word in the place of each value. Both must have the same structure.
//
//	           render          marks removed                  parse
//	template ─────────> marked ─────────────> plain  ───────────────> nodes ─┐
//	                       │   words for marked stretches      parse         ├─ same structure, else refused
//	                       └────────────────> filled ───────────────> nodes ─┘
//
// The marks are set after evaluation: what if, range, eq and arithmetic do with a value is the template's own.

// checkValues refuses a rendering in which a value changes the structure of the text. free says that values may name
// apiVersion and kind of objects. It returns the documents of the text, or nil if they are malformed whatever the values
// are. The error is of type *Error.
func (s *Set) checkValues(name, text string, v Variables, free bool) ([]*yaml.Node, error) {
	if e := refuseMarks(name, v); e != nil {
		return nil, e
	}
	roots, wrong, err := s.difference(name, text, v, free)
	if err != nil {
		return nil, err
	}
	if wrong != nil {
		return nil, s.refused(name, v, wrong)
	}
	return roots, nil
}

// refused is the error of a rendering whose structure a value changes.
func (s *Set) refused(name string, v Variables, wrong *difference) *Error {
	e := &Error{Kind: StructureError, Template: name, Parameter: wrong.parameter}
	if wrong.kind {
		e.Reason = fmt.Sprintf("template %s takes %s of an object from a value", name, wrong.what)
		if e.Parameter != "" {
			e.Reason = fmt.Sprintf("parameter %s makes %s of an object of template %s", e.Parameter, wrong.what, name)
		}
		e.Hint = "write apiVersion and kind in the template, since only install plans may take them from a value"
		return e
	}
	if e.Parameter = s.guilty(name, v); e.Parameter == "" {
		e.Reason = fmt.Sprintf("what template %s prints changes its structure (%s)", name, wrong.what)
		e.Hint = "print each value with its own {{ }}, and maps and lists with toYaml"
		return e
	}
	e.Reason = fmt.Sprintf("parameter %s changes the structure of template %s (%s)", e.Parameter, name, wrong.what)
	e.Hint = fmt.Sprintf("a value must stay one value; quote it in the template ({{ .Params.%s | quote }}), or declare the parameter as map "+
		"or array and write it with toYaml", e.Parameter)
	return e
}

// refuseMarks refuses values that hold a rune of the marks.
func refuseMarks(name string, v Variables) *Error {
	for _, key := range slices.Sorted(maps.Keys(v.Params)) {
		if all(v.Params[key], func(text string) bool { return !strings.ContainsAny(text, markRunes) }) {
			continue
		}
		return &Error{Kind: StructureError, Template: name, Parameter: key,
			Reason: fmt.Sprintf("parameter %s holds the character %U or %U, which kudo uses to check template %s", key, opening, closing, name),
			Hint:   "remove it from the value"}
	}
	return nil
}

// difference compares a rendering with itself, words in the place of values; it returns nil if there is none. Text that is malformed
// whatever the values are has none either, and no documents: what decodes it says better what is wrong.
func (s *Set) difference(name, text string, v Variables, free bool) (roots []*yaml.Node, wrong *difference, err error) {
	marker := s.marker()
	cannot := func(err error) error {
		var beyond *Error
		if errors.As(err, &beyond) && beyond.Kind == BudgetError {
			return err
		}
		return &Error{Kind: StructureError, Template: name, Err: err,
			Reason: fmt.Sprintf("template %s cannot be checked for values that change its structure", name),
			Hint:   "print each value with its own {{ }}"}
	}
	marked, err := marker.Text(name, v)
	if err != nil {
		return nil, nil, cannot(err)
	}
	if err := v.Budget.parse(name, marked+text); err != nil {
		return nil, nil, err
	}
	plain, filled, err := separate(marked)
	if err != nil || plain != text {
		return nil, nil, cannot(err)
	}
	if is, want := yamldoc.Count(plain), yamldoc.Count(filled); is != want {
		return nil, &difference{what: fmt.Sprintf("%s instead of %d", count(is, "document"), want)}, nil
	}
	roots, malformed := yamldoc.Split(plain)
	want, err := yamldoc.Split(filled)
	switch {
	case malformed != nil && err != nil:
		return nil, nil, nil
	case malformed != nil:
		return nil, &difference{what: "malformed YAML"}, nil
	case err != nil:
		return nil, &difference{what: "valid YAML only with this value"}, nil
	}
	c := comparison{origins: marker.origins, free: free}
	return roots, c.documents(roots, want), nil
}

// maxSuspects bounds how many parameters are tried to find the one that is to blame: each takes two renderings.
const maxSuspects = 50

// guilty is the parameter that changes the structure of a rendering: one after the other is set to a plain word, those
// that were given first, until the structure is that of the template. Empty if that never happens.
func (s *Set) guilty(name string, v Variables) string {
	names := slices.Sorted(maps.Keys(v.Params))
	slices.SortStableFunc(names, func(a, b string) int {
		return order(v.harmless(a)) - order(v.harmless(b))
	})
	v.Params = maps.Clone(v.Params)
	for _, key := range names[:min(len(names), maxSuspects)] {
		before := v.Params[key]
		for _, word := range []string{"word", "1"} {
			v.Params[key] = tame(before, word)
			text, err := s.Text(name, v)
			if err != nil {
				v.Params[key] = before
				continue
			}
			if _, wrong, err := s.difference(name, text, v, true); err == nil && wrong == nil {
				return key
			}
			break
		}
	}
	return ""
}

func order(later bool) int {
	if later {
		return 1
	}
	return 0
}

// tame is a value with a word for each text that it holds.
func tame(value any, word string) any {
	switch v := value.(type) {
	case string:
		return word
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = tame(item, word)
		}
		return list
	case map[string]any:
		result := make(map[string]any, len(v))
		for key, item := range v {
			if !plainValue(key) {
				key = fmt.Sprintf("%s%d", word, len(result))
			}
			result[key] = tame(item, word)
		}
		return result
	}
	return value
}

// checked reports whether a rendering needs to be compared with itself. It does not if all values are made of letters,
// digits and what stands inside of names and numbers, and no function of the template could take such a value apart.
func (s *Set) checked(name string, v Variables) bool {
	return !s.harmless(name) || !v.Harmless()
}

// Harmless reports whether no value could change the structure of a template that prints it.
func (v *Variables) Harmless() bool {
	for key := range v.Params {
		if !v.harmless(key) {
			return false
		}
	}
	for _, object := range v.Pipes {
		if !plainValue(object) {
			return false
		}
	}
	return plainValue(v.Name) && plainValue(v.Namespace)
}

// harmless reports whether a parameter cannot change a structure: its value is plain, or the author's own.
func (v *Variables) harmless(key string) bool {
	value := v.Params[key]
	if all(value, plainValue) {
		return true
	}
	standard, known := v.Defaults[key]
	if text, ok := value.(string); ok && known {
		return text == standard
	}
	return known && reflect.DeepEqual(value, standard)
}

// all reports whether all texts of a value, the keys of maps too, are as they should be.
func all(value any, holds func(string) bool) bool {
	switch v := value.(type) {
	case nil, bool:
		return true
	case string:
		return holds(v)
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !all(item, holds) })
	case map[string]any:
		for key, item := range v {
			if !holds(key) || !all(item, holds) {
				return false
			}
		}
		return true
	}
	return holds(fmt.Sprint(value))
}

// plainValue reports whether a text is empty or matches ^[A-Za-z0-9_/]([A-Za-z0-9._/+=@-]|:[A-Za-z0-9])*$, so that it is
// a scalar, or part of one, wherever it stands.
func plainValue(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case isAlphanumeric(c), c == '_', c == '/':
		case i == 0:
			return false
		case c == '.', c == '+', c == '=', c == '@', c == '-':
		case c == ':' && i+1 < len(text) && isAlphanumeric(text[i+1]):
		default:
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// harmlessFunctions make of plain values nothing that is not plain, but for what stands in the template itself. All
// others could take a value apart (split, trimPrefix) or decode it (b64dec).
var harmlessFunctions = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range strings.Fields(`and or not eq ne lt le gt ge len index include
		default coalesce ternary required empty quote squote toString toStrings indent nindent trim upper lower html
		int int64 float64 atoi add add1 sub mul div mod max min round floor ceil until untilStep seq
		toYaml toJson toPrettyJson toRawJson mustToJson mustToPrettyJson mustToRawJson
		list tuple dict get hasKey keys values first last has uniq without sortAlpha append prepend concat merge
		join cat print contains hasPrefix hasSuffix semverCompare regexMatch kindIs kindOf typeOf
		b64enc sha1sum sha256sum adler32sum fail`) {
		names[name] = true
	}
	return names
}()

// harmless reports whether a template uses harmless functions only, with all templates that it may use.
func (s *Set) harmless(name string) bool {
	f := s.files[name]
	return f.harmless && (!f.uses || s.usesHarmless)
}

// suspicious reports whether something that an action printed stands near apiVersion or kind. values are the places, as
// Set.text returns them. It errs on the side of suspicion.
func suspicious(text string, values []int) bool {
	seen := 0 // the end of the lines that are known: one may hold any number of values
	for i := 0; i+1 < len(values); i += 2 {
		if values[i+1] <= seen {
			continue
		}
		start := strings.LastIndexByte(text[:values[i]], '\n') + 1
		end := len(text)
		if n := strings.IndexByte(text[values[i+1]:], '\n'); n >= 0 {
			end = values[i+1] + n
		}
		seen = end
		if line := text[start:end]; strings.Contains(line, "kind") || strings.Contains(line, "apiVersion") || strings.Contains(line, "&") {
			return true
		}
		above := strings.TrimRight(text[:start], " \t\r\n")
		above = above[strings.LastIndexByte(above, '\n')+1:]
		if (strings.Contains(above, "kind") || strings.Contains(above, "apiVersion")) && continues(above, text[start:end]) ||
			strings.Contains(above, "&") {
			return true
		}
	}
	return false
}

// continues reports whether a line may continue with the value of a key in the line above it.
func continues(above, line string) bool {
	indent := func(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }
	return indent(line) > indent(above) || strings.HasSuffix(above, ":")
}

// difference says how the structure of a rendering differs from that with words in the place of values.
type difference struct {
	what string
	// kind is set if a value stands in apiVersion or kind; parameter then names the parameter of the value, if it is known.
	kind      bool
	parameter string
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
