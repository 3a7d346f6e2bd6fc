package exploretest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	glua "github.com/yuin/gopher-lua"
)

// TestLua passes JSON values through a Lua machine. What JSON has not, and an empty list, come back as something else.
func TestLua(t *testing.T) {
	machine := glua.NewState()
	t.Cleanup(machine.Close)
	for name, tc := range map[string]struct{ value, want any }{
		"nil":        {nil, nil},
		"text":       {"a", "a"},
		"boolean":    {true, true},
		"integer":    {int64(3), float64(3)},
		"number":     {1.5, 1.5},
		"map":        {map[string]any{"a": map[string]any{"b": false}}, map[string]any{"a": map[string]any{"b": false}}},
		"empty text": {"", ""},
		"line break": {"a\n\"b\"", "a\n\"b\""},
		"negative":   {int64(-1), float64(-1)},
		"empty map":  {map[string]any{}, map[string]any{}},
		"lists":      {[]any{[]any{"a"}, []any{"b", "c"}}, []any{[]any{"a"}, []any{"b", "c"}}},
		"list":       {[]any{"a", int64(1), map[string]any{}}, []any{"a", float64(1), map[string]any{}}},
		"empty list": {[]any{}, map[string]any{}},
		"nil field":  {map[string]any{"a": nil}, map[string]any{}},
		"other":      {struct{}{}, nil},
	} {
		if diff := cmp.Diff(tc.want, FromLua(ToLua(machine, tc.value))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := FromLua(machine.GetGlobal("print")); got != nil {
		t.Errorf("a function is %v", got)
	}
	if err := machine.DoString(`made = {a = {1, 2}, [true] = "c"}`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": []any{1.0, 2.0}, "true": "c"}, FromLua(machine.GetGlobal("made"))); diff != "" {
		t.Errorf("a table of a script (-want +got):\n%s", diff)
	}
}

// TestLuaCopies checks that a script that changes a table does not change the value that the table was made of.
func TestLuaCopies(t *testing.T) {
	machine := glua.NewState()
	t.Cleanup(machine.Close)
	value := map[string]any{"spec": map[string]any{"replicas": int64(1)}}
	machine.SetGlobal("object", ToLua(machine, value))
	if err := machine.DoString("object.spec.replicas = 2"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"spec": map[string]any{"replicas": int64(1)}}, value); diff != "" {
		t.Errorf("the value has changed (-want +got):\n%s", diff)
	}
}
