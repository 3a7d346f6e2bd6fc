package params

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func lines(n int32) *int32 { return &n }

func TestCheckText(t *testing.T) {
	tests := map[string]struct {
		reason  string
		def     v1beta1.Parameter
		text    string
		wrong   string // of the error; empty if the value is right
		refuses bool
	}{
		"OneLine":        {"one line is one", v1beta1.Parameter{MaxLines: lines(1)}, "a: b", "", false},
		"Ends":           {"a break at the end begins no line", v1beta1.Parameter{MaxLines: lines(1)}, "a\n", "", false},
		"EndsWindows":    {"nor does that of Windows", v1beta1.Parameter{MaxLines: lines(1)}, "a\r\n", "", false},
		"EndsTwice":      {"an empty line is one", v1beta1.Parameter{MaxLines: lines(1)}, "a\n\n", "has a value of more than one line: the package says maxLines: 1; give a value of at most one line", true},
		"Two":            {"two are more than one", v1beta1.Parameter{MaxLines: lines(1)}, "a\nb", "more than one line", true},
		"Three":          {"three are more than two", v1beta1.Parameter{MaxLines: lines(2)}, "a\nb\nc", "has a value of more than 2 lines: the package says maxLines: 2; give a value of at most 2 lines", true},
		"Most":           {"the bound is inclusive", v1beta1.Parameter{MaxLines: lines(3)}, "a\nb\nc\n", "", false},
		"Return":         {"YAML takes a lone return for a line break", v1beta1.Parameter{MaxLines: lines(1)}, "a\rb", "more than one line", true},
		"NextLine":       {"and, in version 1.1, these", v1beta1.Parameter{MaxLines: lines(1)}, "a\u0085b", "more than one line", true},
		"Separator":      {"and, in version 1.1, these", v1beta1.Parameter{MaxLines: lines(1)}, "a\u2028b", "more than one line", true},
		"Matches":        {"it matches", v1beta1.Parameter{Pattern: "[a-z]+"}, "abc", "", false},
		"Part":           {"a part is not enough", v1beta1.Parameter{Pattern: "[a-z]+"}, "abc1", `has the value "abc1", which does not match the pattern [a-z]+: give a value that matches it as a whole`, true},
		"Line":           {"nor is one line of it", v1beta1.Parameter{Pattern: "(?m)^[a-z]+$"}, "abc\nx: y", "does not match", true},
		"LastBreak":      {"the break at the end counts", v1beta1.Parameter{Pattern: "[a-z]+"}, "abc\n", "does not match", true},
		"Alternatives":   {"each of the alternatives is whole", v1beta1.Parameter{Pattern: "a|b"}, "ax", "does not match", true},
		"Anchored":       {"anchors may be there", v1beta1.Parameter{Pattern: "^a|b$"}, "b", "", false},
		"Empty":          {"an empty value is like none", v1beta1.Parameter{Pattern: "a", MaxLines: lines(1)}, "", "", false},
		"Both":           {"both must fit", v1beta1.Parameter{Pattern: `(?s).*`, MaxLines: lines(1)}, "a\nb", "more than one line", true},
		"Sensitive":      {"a sensitive value is not shown", v1beta1.Parameter{Pattern: "x", Sensitive: true}, "hunter2", "has the value (sensitive), which does not match the pattern x", true},
		"SensitiveLines": {"nor are its lines", v1beta1.Parameter{MaxLines: lines(1), Sensitive: true}, "hunter2\nhunter2", "more than one line", true},
		"Integer":        {"other types have none", v1beta1.Parameter{Type: v1beta1.IntegerType, Pattern: "x"}, "3", "", false},
		"List":           {"a list is written in lines", v1beta1.Parameter{Type: v1beta1.ArrayType, MaxLines: lines(1)}, "- a\n- b", "", false},
		"Unknown":        {"a type that is not known counts as string", v1beta1.Parameter{Type: "text", MaxLines: lines(1)}, "a\nb", "more than one line", true},
		"Broken":         {"who wanted a bound gets no value without one", v1beta1.Parameter{Pattern: "("}, "a", "has a pattern that cannot be used: error parsing regexp", true},
		"Escape":         {"a pattern cannot leave the group that makes it whole", v1beta1.Parameter{Pattern: `a)|(?:.*`}, "x", "cannot be used", true},
		"Long":           {"matching long values costs too much", v1beta1.Parameter{Pattern: "a*"}, strings.Repeat("a", MaxMatched+1), "has a value of 4097 bytes, and a pattern: give a value of at most 4096 bytes", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.def.Name = "A"
			problem := Check(tc.def, tc.text)
			if (problem != nil) != tc.refuses {
				t.Fatalf("%s: got %v", tc.reason, problem)
			}
			if problem != nil && (!strings.Contains(problem.Error(), tc.wrong) || !strings.HasPrefix(problem.Error(), `parameter "A" `)) {
				t.Errorf("%s: got %s", tc.reason, problem)
			}
			if problem != nil && strings.Contains(problem.Error(), "hunter2") {
				t.Errorf("the value is printed: %s", problem)
			}
		})
	}
}

func TestCheckBounds(t *testing.T) {
	tests := map[string]struct {
		reason       string
		def          v1beta1.Parameter
		field, wrong string
	}{
		"None":    {"none is needed", v1beta1.Parameter{Type: v1beta1.MapType}, "", ""},
		"Right":   {"both are right", v1beta1.Parameter{Pattern: "[a-z]{1,63}", MaxLines: lines(1), Type: v1beta1.StringType}, "", ""},
		"Parse":   {"RE2 has no look-ahead", v1beta1.Parameter{Pattern: "(?=a)"}, "pattern", "has a pattern that cannot be used: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"},
		"Large":   {"repetitions multiply", v1beta1.Parameter{Pattern: "((x?){30}){30}"}, "pattern", "at most 1000 are allowed"},
		"Long":    {"a pattern is short", v1beta1.Parameter{Pattern: strings.Repeat("a", 513)}, "pattern", "it has 513 bytes, at most 512 are allowed"},
		"Integer": {"numbers have no pattern", v1beta1.Parameter{Pattern: "1", Type: v1beta1.IntegerType}, "pattern", "its type is integer: a pattern is for type string"},
		"Map":     {"maps have no lines", v1beta1.Parameter{MaxLines: lines(1), Type: v1beta1.MapType}, "maxLines", "its type is map: maxLines is for type string"},
		"Zero":    {"no line is no value", v1beta1.Parameter{MaxLines: lines(0)}, "maxLines", "has maxLines 0, which is less than 1: write 1 for a single line"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			field, problem := CheckBounds(tc.def)
			if field != tc.field || (problem != nil) != (tc.field != "") || problem != nil && !strings.Contains(problem.Error(), tc.wrong) {
				t.Errorf("%s: got %s, %v", tc.reason, field, problem)
			}
		})
	}
}

// TestPatternTime: the dearest pattern that is allowed is matched with the longest value in no time that anybody notices.
func TestPatternTime(t *testing.T) {
	value := strings.Repeat("x", MaxMatched)
	for _, pattern := range []string{"([^y]*){1,190}y", "(x+x+)+y", "(.{0,100})*y", "((((x*)*)*)*)*y", "(x?){100}(x?){10}y"} {
		def := v1beta1.Parameter{Name: "A", Pattern: pattern}
		if _, problem := CheckBounds(def); problem != nil {
			t.Errorf("not allowed, so no measure: %v", problem)
		}
		begin := time.Now()
		if Check(def, value) == nil {
			t.Errorf("%s matches", pattern)
		}
		if took := time.Since(begin); took > 5*time.Second { // some 40 ms on a machine that does nothing else
			t.Errorf("%s took %s", pattern, took)
		}
	}
}

// FuzzCheckText: no pattern and no value of others panics, a value that is taken keeps to both bounds, and an editor that
// checks by the schema takes every value that kudo takes.
func FuzzCheckText(f *testing.F) {
	f.Add("[a-z]+", int32(1), "abc\n")
	f.Add("a|^b$", int32(2), "b")
	f.Add("(", int32(0), "x")
	f.Add(`\$[^\]]{1,3}$`, int32(1), "$ab")
	f.Fuzz(func(t *testing.T, pattern string, most int32, text string) {
		def := v1beta1.Parameter{Name: "A", Pattern: pattern, MaxLines: &most}
		_, wrong := CheckBounds(def)
		if Check(def, text) != nil || text == "" {
			return
		}
		if wrong != nil {
			t.Fatalf("%q is taken, although the bounds are wrong: %v", text, wrong)
		}
		if got := len(strings.Split(strings.TrimSuffix(text, "\n"), "\n")); int64(got) > int64(most) {
			t.Errorf("%q has %d lines", text, got)
		}
		if pattern != "" {
			whole := regexp.MustCompile(pattern)
			whole.Longest()
			if whole.FindString(text) == "" && !whole.MatchString("") {
				t.Errorf("%q does not match %q at all", text, pattern)
			}
		}
		schema := SchemaPattern(def)
		if _, err := json.Marshal(schema); err != nil {
			t.Fatal(err)
		}
		if pattern == "" || schema == "" {
			return
		}
		if !regexp.MustCompile(schema).MatchString(text) {
			t.Errorf("the schema %q refuses %q", schema, text)
		}
	})
}
