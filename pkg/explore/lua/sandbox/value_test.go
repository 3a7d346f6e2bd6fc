package sandbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestValue checks the methods of Value for each Lua type.
func TestValue(t *testing.T) {
	type facts struct {
		Type, String       string
		Nil, Table, Empty  bool
		Bool, Number, Text any // nil if the value is of another type
	}
	argument := object(t, `{"list":[],"map":{},"a":9007199254740993,"b":9007199254740992}`)
	for name, tc := range map[string]struct {
		reason, lua string
		want        facts
	}{
		"Nil":      {"nil", "nil", facts{Type: "nil", String: "nil", Nil: true}},
		"False":    {"false is a boolean, and not nil", "false", facts{Type: "boolean", String: "false", Bool: false}},
		"Number":   {"a number that is whole", "2 ^ 40", facts{Type: "number", String: "1099511627776", Number: float64(1 << 40)}},
		"Numeral":  {"a text of digits is no number", "'1'", facts{Type: "string", String: "1", Text: "1"}},
		"Text":     {"a text", "'x\\0y'", facts{Type: "string", String: "x\x00y", Text: "x\x00y"}},
		"Function": {"a function", "print", facts{Type: "function", String: "function: 1"}},
		"Made":     {"an empty table that the script has made", "{}", facts{Type: "table", String: "table: 1", Table: true, Empty: true}},
		"Filled":   {"a table with an entry", "{false}", facts{Type: "table", String: "table: 1", Table: true}},
		"Unread":   {"an empty list that the script has not read", "o.list", facts{Type: "table", String: "table: 1", Table: true}},
		"Read":     {"one that it has read", "(#o.list == 0) and o.list", facts{Type: "table", String: "table: 1", Table: true, Empty: true}},
		"Meta": {
			"metamethods are not asked", "setmetatable({}, {__tostring = error, __index = {1}})",
			facts{Type: "table", String: "table: 1", Table: true, Empty: true},
		},
		"Wide": {"an integer that no number of Lua can hold", "o.a", facts{Type: "userdata", String: "9007199254740993"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile("function ReflectStatus(o) return "+tc.lua+" end", status)
			if err != nil {
				t.Fatal(err)
			}
			var got facts
			err = NewPool(limits()).Run(t.Context(), Call{Script: s, Arguments: []any{argument}, Results: 1}, func(results []Value) error {
				v := results[0]
				got = facts{Type: v.Type(), Nil: v.IsNil(), Table: v.IsTable(), Empty: v.IsEmpty(), String: v.String()}
				if value, ok := v.Bool(); ok {
					got.Bool = value
				}
				if value, ok := v.Number(); ok {
					got.Number = value
				}
				if value, ok := v.Text(); ok {
					got.Text = value
				}
				return nil
			})
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestExamples has what empty tables become.
func TestExamples(t *testing.T) {
	list, fields := []any{"x"}, map[string]any{"x": "y"}
	for name, tc := range map[string]struct {
		reason, lua string
		examples    []any
		want        any
	}{
		"None":     {"without an example, an empty table is a map", "{}", nil, map[string]any{}},
		"List":     {"or a list, as the example is", "{}", []any{list}, []any{}},
		"First":    {"the first that has one counts", "{a = {}}", []any{nil, map[string]any{"a": fields}, map[string]any{"a": list}}, map[string]any{"a": map[string]any{}}},
		"Absent":   {"a field of no example is left out", "{a = {}, b = 1}", []any{fields}, map[string]any{"b": int64(1)}},
		"InList":   {"an entry of a list is a map", "{{}}", nil, []any{map[string]any{}}},
		"LikeList": {"or what any entry of the example is", "{{}}", []any{[]any{nil, list}}, []any{[]any{}}},
		"Argument": {"what comes from the argument stays", "o.list", []any{fields}, []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			argument := map[string]any{"list": []any{}}
			made, err := run(t, NewPool(limits(), own()), status, "function ReflectStatus(o) return "+tc.lua+" end", argument, tc.examples...)
			if diff := cmp.Diff(tc.want, made); err != nil || diff != "" {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestRun has the ways in which a call ends.
func TestRun(t *testing.T) {
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the manager stops"))
	short := limits()
	short.Time = time.Nanosecond
	timedOut, stop := NewPool(short).WithTimeout(t.Context())
	defer stop()
	const endless = "while true do local x = 1 end return 1"
	for name, tc := range map[string]struct {
		reason, script string
		ctx            context.Context
		arguments      []any
		read           func([]Value) error
		err            string
	}{
		"Context":  {"the end of the context", endless, canceled, nil, nil, "the manager stops"},
		"Time":     {"the time of the limits", endless, timedOut, nil, nil, "the script went beyond its limit of time (1ns)"},
		"Argument": {"what is no JSON value", "return 1", t.Context(), []any{struct{}{}}, nil, "a value of type struct {} cannot be given to a script"},
		"Read":     {"the error of read", "return 1", t.Context(), nil, func([]Value) error { return errors.New("unreadable") }, "unreadable"},
		"Panic":    {"a panic", "return 1", t.Context(), nil, func([]Value) error { panic("broken") }, "the script broke the virtual machine: broken"},
		"Raised":   {"an error with all its lines", "if true then error('a\\nb', 0) end return 1", t.Context(), nil, nil, "a\nb"},
		"Results": {"what a function does not return is nil", "return 1", t.Context(), nil, func(results []Value) error {
			return fmt.Errorf("%d: %s %s", len(results), results[0], results[1])
		}, "2: 1 nil"},
		"Good": {"a call without an error", "return 1", t.Context(), nil, nil, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(tc.script, status)
			if err != nil {
				t.Fatal(err)
			}
			read := func([]Value) error { return nil }
			if tc.read != nil {
				read = tc.read
			}
			p := NewPool(limits())
			err = p.Run(tc.ctx, Call{Script: s, Arguments: tc.arguments, Results: 2}, read)
			if got := fmt.Sprint(err); got != tc.err {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
			var raised ScriptError
			if errors.As(err, &raised) != (name == "Raised") {
				t.Errorf("%s: the error is of type %T", tc.reason, err)
			}
			if err := p.Run(t.Context(), Call{Script: s, Results: 1}, read); name == "Good" && err != nil {
				t.Errorf("the same call again: %v", err)
			}
		})
	}
}
