package sandbox

import (
	"math"
	"strconv"

	glua "github.com/yuin/gopher-lua"
)

// wideInteger stands for an integer that a number of Lua cannot hold, and that another of the same call would be taken
// for. It can be moved, compared with its like, and calculated with, as a number then.
func (b *bridge) wideInteger(v int64) glua.LValue {
	return &glua.LUserData{Value: v, Metatable: b.wide}
}

func asWide(v glua.LValue) (int64, bool) {
	if data, ok := v.(*glua.LUserData); ok {
		whole, ok := data.Value.(int64)
		return whole, ok
	}
	return 0, false
}

// openWide makes the metatable of wide integers.
func (b *bridge) openWide() {
	b.wide = b.state.NewTable()
	b.wide.RawSetString("__metatable", glua.LFalse)
	for name, less := range map[string]func(x, y int64) bool{
		"__eq": func(x, y int64) bool { return x == y },
		"__lt": func(x, y int64) bool { return x < y },
		"__le": func(x, y int64) bool { return x <= y },
	} {
		b.wide.RawSetString(name, b.state.NewFunction(func(l *glua.LState) int {
			x, isX := asWide(l.Get(1))
			y, isY := asWide(l.Get(2))
			l.Push(glua.LBool(isX && isY && less(x, y)))
			return 1
		}))
	}
	for name, operator := range map[string]func(x, y float64) float64{
		"__add": func(x, y float64) float64 { return x + y },
		"__sub": func(x, y float64) float64 { return x - y },
		"__mul": func(x, y float64) float64 { return x * y },
		"__div": func(x, y float64) float64 { return x / y },
		"__mod": func(x, y float64) float64 { return x - math.Floor(x/y)*y },
		"__pow": math.Pow,
	} {
		b.wide.RawSetString(name, b.state.NewFunction(func(l *glua.LState) int {
			l.Push(glua.LNumber(operator(nearestFloat(l, 1), nearestFloat(l, 2))))
			return 1
		}))
	}
	b.wide.RawSetString("__unm", b.state.NewFunction(func(l *glua.LState) int {
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

// number is a Lua number as a JSON value: an int64 if it is whole. Integers that share a float are wide integers in a script: a number that
// is this float was calculated, and is none of them.
func (b *bridge) number(n glua.LNumber) any {
	if whole, known := b.wideIntegers[float64(n)]; known && !b.ambiguousFloats[float64(n)] {
		return whole
	}
	if n >= -1<<63 && n < 1<<63 && glua.LNumber(int64(n)) == n {
		return int64(n)
	}
	return float64(n)
}

// numeral is a number as text.
func (b *bridge) numeral(n glua.LNumber) string {
	if whole, ok := b.number(n).(int64); ok {
		return strconv.FormatInt(whole, 10)
	}
	return n.String()
}
