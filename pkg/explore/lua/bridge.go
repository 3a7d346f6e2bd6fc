package lua

import (
	"fmt"
	"maps"
	"slices"

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

// openBridge makes the metatable of tables that are not filled yet: the virtual machine calls it on the first read,
// write or #, and then it is taken off.
func (m *machine) openBridge() {
	m.lazy = m.state.NewTable()
	m.lazy.RawSetString("__index", m.state.NewFunction(func(l *glua.LState) int {
		t := l.Get(1).(*glua.LTable)
		m.fill(l, t)
		l.Push(t.RawGet(l.Get(2)))
		return 1
	}))
	m.lazy.RawSetString("__newindex", m.state.NewFunction(func(l *glua.LState) int {
		t := l.Get(1).(*glua.LTable)
		m.fill(l, t)
		l.SetTable(t, l.Get(2), l.Get(3))
		return 0
	}))
	m.lazy.RawSetString("__len", m.state.NewFunction(func(l *glua.LState) int {
		t := l.Get(1).(*glua.LTable)
		m.fill(l, t)
		l.Push(glua.LNumber(t.Len()))
		return 1
	}))
	m.openWide()
}

// collectWideIntegers finds the integers of an argument that a float64 cannot hold.
func (m *machine) collectWideIntegers(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			m.collectWideIntegers(child)
		}
	case []any:
		for _, child := range v {
			m.collectWideIntegers(child)
		}
	case int64:
		if v <= exact && v >= -exact {
			return
		}
		f := float64(v)
		if m.wideIntegers == nil {
			m.wideIntegers, m.ambiguousFloats = map[float64]int64{}, map[float64]bool{}
		}
		if other, known := m.wideIntegers[f]; known && other != v {
			m.ambiguousFloats[f] = true
		}
		m.wideIntegers[f] = v
	}
}

// in makes a Lua value of a JSON value.
func (m *machine) in(value any) (glua.LValue, error) {
	switch v := value.(type) {
	case nil:
		return glua.LNil, nil
	case bool:
		return glua.LBool(v), nil
	case string:
		return glua.LString(v), nil
	case int64:
		if (v > exact || v < -exact) && m.ambiguousFloats[float64(v)] {
			return m.wideInteger(v), nil
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
		t := m.state.CreateTable(0, max(len(v), 1))
		t.Metatable = m.lazy
		m.tables[t] = origin{value: value}
		return t, nil
	case []any:
		t := &glua.LTable{Metatable: m.lazy}
		m.tables[t] = origin{value: value}
		return t, nil
	}
	return nil, fmt.Errorf("a value of type %T cannot be given to a script", value)
}

// fill puts the entries of its origin into a table. Keys are in order, so that pairs goes through them in order.
func (m *machine) fill(l *glua.LState, t *glua.LTable) {
	if t.Metatable != m.lazy {
		return
	}
	from := m.tables[t]
	t.Metatable = glua.LNil
	m.tables[t] = origin{from.value, true}
	switch v := from.value.(type) {
	case map[string]any:
		m.meter.grow(l, 512+entryCost*len(v))
		m.meter.spend(l, len(v)/4)
		m.fillMap(l, t, v)
	case []any:
		if len(v) > maxList {
			m.meter.fail(l, &LimitError{"list", fmt.Sprintf("%d entries", maxList)})
		}
		m.meter.grow(l, 512+entryCost*len(v))
		m.meter.spend(l, len(v)/4)
		for i, child := range v {
			if value := m.must(l, child); value != glua.LNil {
				t.RawSetInt(i+1, value)
			}
		}
	}
}

func (m *machine) fillMap(l *glua.LState, t *glua.LTable, from map[string]any) {
	var few [16]string
	for _, key := range sortedKeys(from, few[:0]) {
		if value := m.must(l, from[key]); value != glua.LNil {
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

func (m *machine) must(l *glua.LState, value any) glua.LValue {
	v, err := m.in(value)
	if err != nil {
		l.RaiseError("%s", err.Error())
	}
	return v
}

// checkTable is a table argument, filled.
func (m *machine) checkTable(l *glua.LState, n int) *glua.LTable {
	t := l.CheckTable(n)
	m.fill(l, t)
	return t
}

// checkOwn is a table argument that may be changed.
func (m *machine) checkOwn(l *glua.LState, n int) *glua.LTable {
	t := m.checkTable(l, n)
	if _, frozen := m.proxiedLibraries[t]; frozen {
		l.RaiseError("libraries cannot be changed")
	}
	return t
}
