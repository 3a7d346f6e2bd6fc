package sandbox

import glua "github.com/yuin/gopher-lua"

// Value is a value that a script has returned.
type Value struct {
	machine *machine
	value   glua.LValue
}

// Type returns the name of the type in Lua: nil, boolean, number, string, table or function; userdata for an integer that no number of
// Lua can hold.
func (v Value) Type() string { return v.value.Type().String() }

// IsNil reports whether the value is nil.
func (v Value) IsNil() bool { return v.value == glua.LNil }

// IsTable reports whether the value is a table.
func (v Value) IsTable() bool { return v.value.Type() == glua.LTTable }

// IsEmpty reports whether the value is a table without entries that the script has made or read.
func (v Value) IsEmpty() bool {
	t, ok := v.value.(*glua.LTable)
	if !ok || t.Metatable == v.machine.bridge.lazy {
		return false
	}
	key, _ := t.Next(glua.LNil)
	return key == glua.LNil
}

// Bool returns the value, and whether it is a boolean.
func (v Value) Bool() (value, ok bool) {
	b, ok := v.value.(glua.LBool)
	return bool(b), ok
}

// Number returns the value, and whether it is a number.
func (v Value) Number() (value float64, ok bool) {
	n, ok := v.value.(glua.LNumber)
	return float64(n), ok
}

// Text returns the value, and whether it is a text.
func (v Value) Text() (value string, ok bool) {
	s, ok := v.value.(glua.LString)
	return string(s), ok
}

// String returns what tostring returns for the value, without metamethods.
func (v Value) String() string { return v.machine.bridge.plain(v.value) }

// JSON returns the value as nil, bool, string, int64, float64, or a map[string]any or []any of these, which share nothing with the
// arguments of the call. An empty table that the script has made is a list or a map, as the first of the examples that has one in this
// place; if none has, it is left out of a map, and a map elsewhere. The error is a *LimitError on size or depth, or names the place of
// what is no JSON value.
func (v Value) JSON(examples ...any) (any, error) {
	return (&exporter{m: v.machine, examples: examples}).out(v.value)
}
