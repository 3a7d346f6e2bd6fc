package sandbox

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConcurrent runs one script in many goroutines on one pool, also after errors and after calls that have taken much memory: each
// call has its own globals, and the arguments are shared.
func TestConcurrent(t *testing.T) {
	s, err := Compile(`calls = (calls or 0) + 1
local n = tonumber(observedObj.metadata.name)
if n % 5 == 0 then error('call ' .. n, 0) end
if n % 7 == 0 then local large = ('x'):rep(2 ^ 21) end
observedObj.shared.list[1] = n
observedObj.shared.added = {n}
return {calls = calls, n = n, random = math.random(100), shared = observedObj.shared}`, status)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPool(limits(), own())
	shared := map[string]any{"list": []any{int64(-1), "x"}}
	before := compact(t, shared)
	var wait sync.WaitGroup
	problems := make([]string, 8)
	for worker := range problems {
		wait.Go(func() {
			for n := worker; n < 400 && problems[worker] == ""; n += len(problems) {
				argument := map[string]any{"metadata": map[string]any{"name": fmt.Sprint(n)}, "shared": shared}
				var made any
				err := p.Run(t.Context(), Call{Script: s, Arguments: []any{argument}, Results: 1}, func(results []Value) (err error) {
					made, err = results[0].JSON()
					return err
				})
				want, wantErr := any(map[string]any{
					"calls": int64(1), "n": int64(n), "random": int64(77),
					"shared": map[string]any{"list": []any{int64(n), "x"}, "added": []any{int64(n)}},
				}), "<nil>"
				if n%5 == 0 {
					want, wantErr = nil, fmt.Sprintf("call %d", n)
				}
				if diff := cmp.Diff(want, made); diff != "" || fmt.Sprint(err) != wantErr {
					problems[worker] = fmt.Sprintf("call %d: error %v (-want +got):\n%s", n, err, diff)
				}
			}
		})
	}
	wait.Wait()
	if problem := strings.Join(problems, ""); problem != "" {
		t.Error(problem)
	}
	if compact(t, shared) != before {
		t.Errorf("the argument was changed to %s", compact(t, shared))
	}
}

// TestOutput has the size of each sort of result: one byte less is a breach.
func TestOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, lua string
		size        int
	}{
		"Nothing": {"nil takes nothing", "{x = nil}", 2},
		"Boolean": {"a boolean", "{x = true}", 2 + 5 + 5},
		"Text":    {"a text, with its quotes", "{x = 'four'}", 2 + 5 + 4 + 3},
		"Number":  {"a number", "{x = 1.5}", 2 + 5 + 8},
		"Key":     {"a key, with its quotes", "{four = 1}", 2 + 8 + 8},
		"List":    {"entries of a list", "{x = {1, 2}}", 2 + 5 + 2 + 16},
		"Wide":    {"an integer that no number of Lua can hold", "{x = o.a}", 2 + 5 + 20},
		"Twice":   {"a table that is in the result twice counts twice", "(function() local t = {1} return {x = t, y = t} end)()", 2 + 2*(5+2+8)},
		"Kept":    {"what the script has not read counts, too", "{x = o.map}", 2 + 5 + (5 + 4) + (5 + 2 + 1 + 8)},
	} {
		t.Run(name, func(t *testing.T) {
			argument := object(t, `{"a":9007199254740993,"b":9007199254740992,"map":{"k":"x","l":[1]}}`)
			source := "function ReflectStatus(o) return " + tc.lua + " end"
			l := limits()
			for _, row := range []struct {
				output int
				want   string
			}{{tc.size, "<nil>"}, {tc.size - 1, fmt.Sprintf("the script went beyond its limit of output (%d bytes)", tc.size-1)}} {
				l.Output = row.output
				_, err := run(t, NewPool(l, own()), status, source, argument)
				if got := fmt.Sprint(err); got != row.want {
					t.Errorf("%s, with %d bytes: error %q, want %q", tc.reason, row.output, got, row.want)
				}
			}
		})
	}
}

// TestDropped closes the machine of a call that has failed, whose stacks may be in any state, and that of one that has taken much memory.
func TestDropped(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, script string
		read           func([]Value) error
		want           bool
	}{
		"Good":   {"a small call", "return 1", nil, false},
		"Caught": {"an error that the script has caught", "return {pcall(error)}", nil, false},
		"Raised": {"an error of the script", "if true then error('x') end return 1", nil, true},
		"Read":   {"an error of read", "return 1", func([]Value) error { return fmt.Errorf("unreadable") }, true},
		"Panic":  {"a panic", "return 1", func([]Value) error { panic("broken") }, true},
		"Small":  {"a text of less than 1 MiB", "local x = ('x'):rep(2 ^ 20 - 5000) return 1", nil, false},
		"Large":  {"a text of 1 MiB", "local x = ('x'):rep(2 ^ 20) return 1", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(tc.script, status)
			if err != nil {
				t.Fatal(err)
			}
			m := newMachine(nil)
			p := NewPool(limits())
			p.machines.New = func() any { return m }
			read := func([]Value) error { return nil }
			if tc.read != nil {
				read = tc.read
			}
			_ = p.Run(t.Context(), Call{Script: s, Results: 1}, read)
			if got := m.state.IsClosed(); got != tc.want {
				t.Errorf("%s: the machine is closed: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
