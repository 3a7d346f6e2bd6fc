package sandbox

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLibrary has a library beside those of Lua: its arguments, results and errors.
func TestLibrary(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Count":    {"nil counts as an argument", "own.count(), own.count(nil, nil), own.count(1, 'x', {})", "0|2|3", ""},
		"Nil":      {"nil, and an argument that is absent", "own.isNil(nil), own.isNil(), own.isNil(false)", "true|true|false", ""},
		"Text":     {"texts and numbers", "own.text('x'), own.text(2 ^ 53), own.text(0.5)", "x|9007199254740992|0.5", ""},
		"NoText":   {"a boolean is none", "own.text(true)", "", "script:6: bad argument #1 to text (string expected, got boolean)"},
		"Absent":   {"nor is what is absent", "own.text()", "", "script:6: bad argument #1 to text (string expected, got nil)"},
		"Table":    {"a table, as one of the function's own", "own.table({a = {1, {b = 'x'}}}).a[2].b", "x", ""},
		"Unread":   {"a table that the script has not read", "own.table(observedObj).metadata.name", "web", ""},
		"List":     {"a list", "#own.table({1, 2, 3})", "3", ""},
		"NoTable":  {"a text is no table", "own.table('x')", "", "script:6: bad argument #1 to table (table expected, got string)"},
		"NoJSON":   {"nor is what JSON has not", "own.table({x = print})", "", "script:6: bad argument #1 to table (the result's field x is a function, which JSON has not)"},
		"Number":   {"a number as result", "own.half() + 1", "1.5", ""},
		"Wrong":    {"an error about an argument, which may be wrapped, names the function", "own.wrong(1, 2)", "", "script:6: bad argument #2 to wrong (is wrong)"},
		"Fail":     {"another error as it is", "own.fail()", "", "script:6: 100% failed"},
		"Caught":   {"a script may catch both", "pcall(own.fail)", "false|script:6: 100% failed", ""},
		"Strange":  {"a result that is no JSON value", "own.strange()", "", "script:6: a value of type []string cannot be given to a script"},
		"Module":   {"it is a module", "require('own') == own", "true", ""},
		"Doubled":  {"a text as result counts", "#own.double(('x'):rep(2 ^ 21))", "4194304", ""},
		"TooLong":  {"up to the limit of texts", "#own.double(('x'):rep(2 ^ 21 + 1))", "", "the script went beyond its limit of string (4194304 bytes)"},
		"NoOutput": {"a table as argument is bounded as a result", "own.table({a = ('x'):rep(2 ^ 21), b = ('x'):rep(2 ^ 21)})", "", "script:6: bad argument #1 to table (the script went beyond its limit of output (3145728 bytes))"},
		"Order": {
			"pairs goes through the functions in order",
			"(function() local s = '' for name in pairs(own) do s = s .. name .. ' ' end return s end)()",
			"count double fail half isNil spend strange table text wrong ",
			"",
		},
		"NoLibrary": {"a library is no table of values", "own.table(own)", "", "script:6: bad argument #1 to table (the result is a library)"},
	})
}

// TestTableSpending has the work of converting arguments, which counts against the limits.
func TestTableSpending(t *testing.T) {
	script := "local t = {} for i = 1, 100 do t[i] = 'text' end for i = 1, %d do own.table(t) end return {}"
	for name, tc := range map[string]struct {
		reason               string
		tables               int
		instructions, memory int
		want                 string
	}{
		"Few":          {"a few tables", 5, 3_000, 64 << 10, "<nil>"},
		"Instructions": {"the work", 100, 3_000, 1 << 20, "the script went beyond its limit of instructions (3000)"},
		"Memory":       {"the room", 100, 1_000_000, 64 << 10, "the script went beyond its limit of memory (65536 bytes)"},
		"Many":         {"both are enough for the rest of the script", 100, 10_000, 1 << 20, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			l := limits()
			l.Instructions, l.Memory = tc.instructions, tc.memory
			_, err := run(t, NewPool(l, own()), status, fmt.Sprintf(script, tc.tables), nil)
			if diff := cmp.Diff(tc.want, fmt.Sprint(err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUnknownLibrary compiles a script for other libraries than those of its pool: it warns of the name.
func TestUnknownLibrary(t *testing.T) {
	const script = "return own.count(string, unknown)"
	for name, tc := range map[string]struct {
		reason    string
		libraries []Library
		want      []string
	}{
		"Own":  {"a library that is there", []Library{own()}, []string{"line 1: unknown is not defined"}},
		"None": {"one that is not", nil, []string{"line 1: own is not defined", "line 1: unknown is not defined"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(script, status, tc.libraries...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.Warnings()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
