// Package params turns what is said about parameters - definitions, defaults, what a user gives - into the values
// that templates see, and says what is wrong with them.
package params

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/text"
)

// Values are the parameters as templates see them, one for each definition: a scalar is the text that was given,
// an array is a []any, a map is a map[string]any; an array or map without a value is nil.
type Values map[string]any

// Problem says what is wrong with the value of one parameter.
type Problem struct {
	// Parameter is the name.
	Parameter string
	// Reason says what is wrong, with the value (cut if it is long) and the type.
	Reason string
	// Remedy says what to do about it.
	Remedy string
	// Missing tells that there is no value, although one is required.
	Missing bool
}

// Error is the whole sentence.
func (p Problem) Error() string {
	text := fmt.Sprintf("parameter %q %s", p.Parameter, p.Reason)
	if p.Remedy != "" {
		text += ": " + p.Remedy
	}
	return text
}

// Problems are all that is wrong, in the order of the definitions. An empty list is no error: see Err.
type Problems []Problem

// Error joins the problems by semicolons.
func (ps Problems) Error() string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "; ")
}

// Err is nil if there is no problem.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// Resolve gives each defined parameter its value: what is given, else the default, else empty. Keys of given that
// are not defined are left out; see Unknown. It does not check that required values are there; see Validate.
// The error is of type Problems: arrays and maps that are not YAML of their type.
func Resolve(defs []v1beta1.Parameter, given map[string]string) (Values, error) {
	values := make(Values, len(defs))
	var problems Problems
	for _, def := range defs {
		text, _ := lookup(def, given)
		value, problem := parse(def, text)
		if problem != nil {
			problems = append(problems, *problem)
		}
		values[def.Name] = value
	}
	return values, problems.Err()
}

// lookup gives the text of a parameter's value: what is given, else the default; false if there is neither.
func lookup(def v1beta1.Parameter, given map[string]string) (string, bool) {
	if text, ok := given[def.Name]; ok {
		return text, true
	}
	if def.Default != nil {
		return *def.Default, true
	}
	return "", false
}

// parse gives the value of a parameter's text.
func parse(def v1beta1.Parameter, text string) (any, *Problem) {
	if !structured(def.Type) {
		return text, nil
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	value, _, err := yamldoc.Parse([]byte(text))
	if err != nil {
		why := "which is not YAML"
		if !def.Sensitive {
			why += fmt.Sprintf(" (%v)", err)
		}
		return nil, mistyped(def, text, why)
	}
	switch value.(type) {
	case nil:
		return nil, nil
	case []any:
		if def.Type == v1beta1.ArrayType {
			return value, nil
		}
	case map[string]any:
		if def.Type == v1beta1.MapType {
			return value, nil
		}
	}
	return nil, mistyped(def, text, "which is YAML of another type")
}

func structured(t v1beta1.ParameterType) bool {
	return t == v1beta1.ArrayType || t == v1beta1.MapType
}

// Unknown lists the keys of given that are not defined, sorted.
func Unknown(defs []v1beta1.Parameter, given map[string]string) []string {
	defined := make(map[string]bool, len(defs))
	for _, def := range defs {
		defined[def.Name] = true
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !defined[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// Missing lists the parameters that are required but have no value and no default, in the order of the
// definitions. Arrays and maps never count as missing.
func Missing(defs []v1beta1.Parameter, given map[string]string) []string {
	var missing []string
	for _, def := range defs {
		if def.IsRequired() && !def.HasDefault() && given[def.Name] == "" && !structured(def.Type) {
			missing = append(missing, def.Name)
		}
	}
	return missing
}

// Validate checks what is given against the definitions: required values are there, values have their type, are
// among those allowed, and keep to pattern and maxLines. An empty value has no type. Keys that are not defined are not checked; see
// Unknown.
func Validate(defs []v1beta1.Parameter, given map[string]string) Problems {
	var problems Problems
	missing := Missing(defs, given)
	for _, def := range defs {
		if slices.Contains(missing, def.Name) {
			problems = append(problems, Problem{Parameter: def.Name, Missing: true, Reason: "is required but has no value and no default",
				Remedy: fmt.Sprintf("set it with -p %s=…", def.Name)})
			continue
		}
		if text, ok := given[def.Name]; ok {
			if problem := Check(def, text); problem != nil {
				problems = append(problems, *problem)
			}
		}
	}
	return problems
}

// ValidateGiven checks what is given, like Validate, where other values may come from elsewhere: that one is missing is
// no problem.
func ValidateGiven(defs []v1beta1.Parameter, given map[string]string) Problems {
	return slices.DeleteFunc(Validate(defs, given), func(p Problem) bool { return p.Missing })
}

// ValidateDefaults checks the defaults of definitions like given values.
func ValidateDefaults(defs []v1beta1.Parameter) Problems {
	var problems Problems
	for _, def := range defs {
		if def.Default == nil {
			continue
		}
		if problem := Check(def, *def.Default); problem != nil {
			problem.Remedy = "correct the default in params.yaml"
			problems = append(problems, *problem)
		}
	}
	return problems
}

// Check checks one value against its definition; it returns nil if it is right. An empty one is. A type that is not known
// counts as string.
func Check(def v1beta1.Parameter, text string) *Problem {
	if text == "" {
		return nil
	}
	if problem := checkType(def, text); problem != nil {
		return problem
	}
	if def.Enum != nil && !slices.Contains(*def.Enum, text) {
		return &Problem{Parameter: def.Name, Reason: fmt.Sprintf("has the value %s, which is not allowed", quoteValue(def, text)),
			Remedy: "use one of " + list(*def.Enum)}
	}
	return checkText(def, text)
}

func checkType(def v1beta1.Parameter, text string) *Problem {
	var err error
	remedy := ""
	switch def.Type {
	case v1beta1.IntegerType:
		_, err = strconv.ParseInt(text, 10, 64)
		remedy = "use a whole number like 3"
	case v1beta1.NumberType:
		_, err = strconv.ParseFloat(text, 64)
		remedy = "use a number like 0.5"
	case v1beta1.BooleanType:
		_, err = strconv.ParseBool(text)
		remedy = "use true or false"
	default:
		_, problem := parse(def, text)
		return problem
	}
	if err == nil {
		return nil
	}
	return &Problem{Parameter: def.Name, Reason: fmt.Sprintf("has the value %s, which is not of type %s", quoteValue(def, text), def.Type),
		Remedy: remedy}
}

func mistyped(def v1beta1.Parameter, text, why string) *Problem {
	remedy := `use a YAML list like ["a", "b"]`
	if def.Type == v1beta1.MapType {
		remedy = `use a YAML map like {"a": "b"}`
	}
	return &Problem{Parameter: def.Name, Remedy: remedy,
		Reason: fmt.Sprintf("has the value %s, %s, but its type is %s", quoteValue(def, text), why, def.Type)}
}

// list writes the values of an enum, the first few of a long one.
func list(values []string) string {
	const most = 10
	var quoted []string
	for i, v := range values {
		if i == most {
			quoted = append(quoted, fmt.Sprintf("… (%d values)", len(values)))
			break
		}
		quoted = append(quoted, text.Quote(v, maxQuoted))
	}
	if len(quoted) == 0 {
		return "no value: the list of allowed ones is empty"
	}
	return strings.Join(quoted, ", ")
}
