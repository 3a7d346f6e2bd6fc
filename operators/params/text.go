package params

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Bounds of patterns: the time of a match grows with the instructions of the pattern and the bytes of the value, and both
// come from users. At the bounds, a match takes some 40 ms.
const (
	// MaxPatternLength is the length of a pattern in bytes.
	MaxPatternLength = 512
	// maxInstructions is the size of a compiled pattern; x{100} has about 100.
	maxInstructions = 1000
	// MaxMatched is the length in bytes of a value that is matched by a pattern. Whole files have maxLines only.
	MaxMatched = 4096
)

// CheckBounds checks pattern and maxLines of a definition themselves: the pattern is RE2 and not too large, maxLines is at
// least 1, and the type is string. Nil if they are right, or if there is none. The field of the problem is returned with it.
func CheckBounds(def v1beta1.Parameter) (field string, problem *Problem) {
	fail := func(remedy, format string, args ...any) *Problem {
		return &Problem{Parameter: def.Name, Reason: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	if def.Pattern != "" {
		if !isText(def.Type) {
			return "pattern", fail("remove one of the two", "has a pattern, but its type is %s: a pattern is for type string", def.Type)
		}
		if _, err := compile(def.Pattern); err != nil {
			return "pattern", fail("write a regular expression of RE2, see https://github.com/google/re2/wiki/Syntax",
				"has a pattern that cannot be used: %v", err)
		}
	}
	if def.MaxLines != nil {
		if !isText(def.Type) {
			return "maxLines", fail("remove one of the two", "has maxLines, but its type is %s: maxLines is for type string", def.Type)
		}
		if *def.MaxLines < 1 {
			return "maxLines", fail("write 1 for a single line", "has maxLines %d, which is less than 1", *def.MaxLines)
		}
	}
	return "", nil
}

// checkText checks a value against maxLines and pattern. A definition whose bounds are wrong takes no value: who wrote it
// wanted a bound. Those of other types than string have none, see CheckBounds.
func checkText(def v1beta1.Parameter, text string) *Problem {
	if !isText(def.Type) {
		return nil
	}
	if most := def.MaxLines; most != nil && countLines(text) > int(*most) {
		what := fmt.Sprintf("%d lines", *most)
		if *most == 1 {
			what = "one line"
		}
		return &Problem{Parameter: def.Name, Reason: "has a value of more than " + what,
			Remedy: fmt.Sprintf("the package says maxLines: %d; give a value of at most %s", *most, what)}
	}
	if def.Pattern == "" {
		return nil
	}
	if len(text) > MaxMatched {
		return &Problem{Parameter: def.Name, Reason: fmt.Sprintf("has a value of %d bytes, and a pattern", len(text)),
			Remedy: fmt.Sprintf("give a value of at most %d bytes", MaxMatched)}
	}
	pattern, err := compile(def.Pattern)
	if err != nil {
		return &Problem{Parameter: def.Name, Reason: fmt.Sprintf("has a pattern that cannot be used: %v", err),
			Remedy: "correct the pattern in the package; until then no value can be given"}
	}
	if !pattern.MatchString(text) {
		return &Problem{Parameter: def.Name, Reason: fmt.Sprintf("has the value %s, which does not match the pattern %s", quoteValue(def, text),
			def.Pattern),
			Remedy: "give a value that matches it as a whole"}
	}
	return nil
}

// compile returns the regular expression that matches whole values. The pattern is compiled alone first: `a)|(b` is none,
// and would become one between parentheses.
func compile(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > MaxPatternLength {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(pattern), MaxPatternLength)
	}
	instructions, err := CountInstructions(pattern)
	if err != nil {
		return nil, err
	}
	if instructions > maxInstructions {
		return nil, fmt.Errorf("it is too large: repetitions like {1,100} count as often as they repeat; it compiles to %d instructions, at "+
			"most %d are allowed", instructions, maxInstructions)
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// CountInstructions returns the size of a regular expression once it is compiled, by which the time of a match grows. The
// error says why the text is no regular expression.
func CountInstructions(expression string) (int, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

// breaks are all that YAML of any version takes for the end of a line: a bound on lines is there for the templates.
var breaks = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// countLines returns the number of lines. A break at the end begins no line.
func countLines(text string) int {
	return strings.Count(strings.TrimSuffix(breaks.Replace(text), "\n"), "\n") + 1
}

// isText reports whether values of the type are text to kudo; a type that is not known counts as string.
func isText(t v1beta1.ParameterType) bool {
	switch t {
	case v1beta1.IntegerType, v1beta1.NumberType, v1beta1.BooleanType, v1beta1.ArrayType, v1beta1.MapType:
		return false
	}
	return true
}

// only are pieces of syntax that RE2 has, and the regular expressions of JSON Schema (ECMA-262) do not, or mean otherwise.
var only = []string{"(?i", "(?s", "(?m", "(?U", "(?-", "(?P", `\A`, `\z`, `\Q`, `\C`, `\a`, `\p`, `\P`, `\x{`, "[[:", "[^[:", "{,"}

// SchemaPattern returns the pattern and maxLines: 1 of a definition as a pattern of JSON Schema, for editors; empty if there
// is none, or if it cannot be said there.
func SchemaPattern(def v1beta1.Parameter) string {
	if _, problem := CheckBounds(def); problem != nil {
		return ""
	}
	if def.Pattern != "" {
		for _, piece := range only {
			if strings.Contains(def.Pattern, piece) {
				return ""
			}
		}
		return "^(?:" + def.Pattern + ")?$" // an empty value needs none
	}
	if def.MaxLines != nil && *def.MaxLines == 1 {
		return `^[^\r\n\u0085\u2028\u2029]*(?:\r\n|[\r\n\u0085\u2028\u2029])?$`
	}
	return ""
}
