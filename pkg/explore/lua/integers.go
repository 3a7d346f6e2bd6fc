package lua

import (
	"math"
	"strconv"

	glua "github.com/yuin/gopher-lua"
)

// wideInteger stands for an integer that a number of Lua cannot hold, and that another of the same call would be taken
// for. It can be moved, compared with its like, and calculated with, as a number then.
func (m *machine) wideInteger(v int64) glua.LValue {
	return &glua.LUserData{Value: v, Metatable: m.wide}
}

func asWide(v glua.LValue) (int64, bool) {
	if data, ok := v.(*glua.LUserData); ok {
		whole, ok := data.Value.(int64)
		return whole, ok
	}
	return 0, false
}

// openWide makes the metatable of wide integers.
func (m *machine) openWide() {
	m.wide = m.state.NewTable()
	m.wide.RawSetString("__metatable", glua.LFalse)
	for name, less := range map[string]func(a, b int64) bool{
		"__eq": func(a, b int64) bool { return a == b },
		"__lt": func(a, b int64) bool { return a < b },
		"__le": func(a, b int64) bool { return a <= b },
	} {
		m.wide.RawSetString(name, m.state.NewFunction(func(l *glua.LState) int {
			a, isA := asWide(l.Get(1))
			b, isB := asWide(l.Get(2))
			l.Push(glua.LBool(isA && isB && less(a, b)))
			return 1
		}))
	}
	for name, operator := range map[string]func(a, b float64) float64{
		"__add": func(a, b float64) float64 { return a + b },
		"__sub": func(a, b float64) float64 { return a - b },
		"__mul": func(a, b float64) float64 { return a * b },
		"__div": func(a, b float64) float64 { return a / b },
		"__mod": func(a, b float64) float64 { return a - math.Floor(a/b)*b },
		"__pow": math.Pow,
	} {
		m.wide.RawSetString(name, m.state.NewFunction(func(l *glua.LState) int {
			l.Push(glua.LNumber(operator(nearestFloat(l, 1), nearestFloat(l, 2))))
			return 1
		}))
	}
	m.wide.RawSetString("__unm", m.state.NewFunction(func(l *glua.LState) int {
		l.Push(glua.LNumber(-nearestFloat(l, 1)))
		return 1
	}))
}

// nearestFloat is an operand as the number that is nearest to it.
func nearestFloat(l *glua.LState, n int) float64 {
	if whole, ok := asWide(l.Get(n)); ok {
		return float64(whole)
	}
	return float64(l.CheckNumber(n))
}

// number is a Lua number as a JSON value: an int64 if it is whole.
func (m *machine) number(n glua.LNumber) any {
	if whole, known := m.wideIntegers[float64(n)]; known {
		return whole
	}
	if n >= -1<<63 && n < 1<<63 && glua.LNumber(int64(n)) == n {
		return int64(n)
	}
	return float64(n)
}

// numeral is a number as text.
func (m *machine) numeral(n glua.LNumber) string {
	if whole, ok := m.number(n).(int64); ok {
		return strconv.FormatInt(whole, 10)
	}
	return n.String()
}
