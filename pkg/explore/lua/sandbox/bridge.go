package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	glua "github.com/yuin/gopher-lua"
)

// origin is the JSON value that a table came from. A table is filled when it is first looked into; most never are, and
// go back as what they were.
type origin struct {
	value  any
	filled bool
}

// exact is the largest integer that no other shares its float64 with, as its negative is the smallest.
const exact = 1<<53 - 1

// bridge carries values between JSON and Lua, as they are of one call.
type bridge struct {
	state *glua.LState
	meter *meter
	// lazy is the metatable of tables that are not filled yet, wide that of wide integers.
	lazy, wide *glua.LTable

	// What follows belongs to one call.
	tables map[*glua.LTable]origin
	// wideIntegers are integers that a float64 cannot hold, by the float64 next to them; ambiguousFloats are those floats that stand
	// for more than one.
	wideIntegers    map[float64]int64
	ambiguousFloats map[float64]bool
	// names number the tables and functions that a script has written as text.
	names map[glua.LValue]int
}

func newBridge(state *glua.LState, m *meter) *bridge {
	b := &bridge{state: state, meter: m, tables: map[*glua.LTable]origin{}}
	b.openLazy()
	b.openWide()
	return b
}

// end forgets a call.
func (b *bridge) end() {
	b.wideIntegers, b.ambiguousFloats, b.names = nil, nil, nil
	clear(b.tables)
}

// openLazy makes the metatable of tables that are not filled yet: the virtual machine calls it on the first read, write or #, and then
// it is taken off.
func (b *bridge) openLazy() {
	b.lazy = b.state.NewTable()
	b.lazy.RawSetString("__index", b.state.NewFunction(func(l *glua.LState) int {
		t := l.Get(1).(*glua.LTable)
		b.fill(l, t)
		l.Push(t.RawGet(l.Get(2)))
		return 1
	}))
	b.lazy.RawSetString("__newindex", b.state.NewFunction(func(l *glua.LState) int {
		t := l.Get(1).(*glua.LTable)
		b.fill(l, t)
		l.SetTable(t, l.Get(2), l.Get(3))
		return 0
	}))
	b.lazy.RawSetString("__len", b.state.NewFunction(func(l *glua.LState) int {
		t := l.Get(1).(*glua.LTable)
		b.fill(l, t)
		l.Push(glua.LNumber(t.Len()))
		return 1
	}))
}

// collectWideIntegers finds the integers of an argument that a float64 cannot hold.
func (b *bridge) collectWideIntegers(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			b.collectWideIntegers(child)
		}
	case []any:
		for _, child := range v {
			b.collectWideIntegers(child)
		}
	case int64:
		if v <= exact && v >= -exact {
			return
		}
		f := float64(v)
		if b.wideIntegers == nil {
			b.wideIntegers, b.ambiguousFloats = map[float64]int64{}, map[float64]bool{}
		}
		if other, known := b.wideIntegers[f]; known && other != v {
			b.ambiguousFloats[f] = true
		}
		b.wideIntegers[f] = v
	}
}

// in makes a Lua value of a JSON value.
func (b *bridge) in(value any) (glua.LValue, error) {
	switch v := value.(type) {
	case nil:
		return glua.LNil, nil
	case bool:
		return glua.LBool(v), nil
	case string:
		return glua.LString(v), nil
	case int64:
		if (v > exact || v < -exact) && b.ambiguousFloats[float64(v)] {
			return b.wideInteger(v), nil
		}
		return glua.LNumber(v), nil
	case float64:
		return glua.LNumber(v), nil
	case int:
		return glua.LNumber(v), nil
	case int32:
		return glua.LNumber(v), nil
	case map[string]any:
		// With a size, the machine does not make room for 32 entries.
		t := b.state.CreateTable(0, max(len(v), 1))
		t.Metatable = b.lazy
		b.tables[t] = origin{value: value}
		return t, nil
	case []any:
		t := &glua.LTable{Metatable: b.lazy}
		b.tables[t] = origin{value: value}
		return t, nil
	}
	return nil, fmt.Errorf("a value of type %T cannot be given to a script", value)
}

// fill puts the entries of its origin into a table. Keys are in order, so that pairs goes through them in order.
func (b *bridge) fill(l *glua.LState, t *glua.LTable) {
	if t.Metatable != b.lazy {
		return
	}
	from := b.tables[t]
	t.Metatable = glua.LNil
	b.tables[t] = origin{from.value, true}
	switch v := from.value.(type) {
	case map[string]any:
		b.meter.grow(l, 512+entryCost*len(v))
		b.meter.spend(l, len(v)/4)
		b.fillMap(l, t, v)
	case []any:
		if len(v) > maxList {
			b.meter.fail(l, &LimitError{"list", fmt.Sprintf("%d entries", maxList)})
		}
		b.meter.grow(l, 512+entryCost*len(v))
		b.meter.spend(l, len(v)/4)
		for i, child := range v {
			if value := b.must(l, child); value != glua.LNil {
				t.RawSetInt(i+1, value)
			}
		}
	}
}

func (b *bridge) fillMap(l *glua.LState, t *glua.LTable, from map[string]any) {
	var few [16]string
	for _, key := range sortedKeys(from, few[:0]) {
		if value := b.must(l, from[key]); value != glua.LNil {
			t.RawSetString(key, value)
		}
	}
}

// sortedKeys are the keys of a map in order, in a buffer if it is large enough.
func sortedKeys(from map[string]any, buffer []string) []string {
	keys := slices.AppendSeq(buffer, maps.Keys(from))
	slices.Sort(keys)
	return keys
}

func (b *bridge) must(l *glua.LState, value any) glua.LValue {
	v, err := b.in(value)
	if err != nil {
		l.RaiseError("%s", err.Error())
	}
	return v
}

// plain is a value as text without metamethods. Tables and functions are numbered in the order in which a script asks:
// their addresses would vary.
func (b *bridge) plain(value glua.LValue) string {
	switch v := value.(type) {
	case glua.LString:
		return string(v)
	case glua.LNumber:
		return b.numeral(v)
	case *glua.LTable, *glua.LFunction:
		if b.names == nil {
			b.names = map[glua.LValue]int{}
		}
		if b.names[v] == 0 {
			b.names[v] = len(b.names) + 1
		}
		return v.Type().String() + ": " + strconv.Itoa(b.names[v])
	}
	if whole, ok := asWide(value); ok {
		return strconv.FormatInt(whole, 10)
	}
	if value.Type() == glua.LTUserData {
		return "userdata"
	}
	return value.String()
}
