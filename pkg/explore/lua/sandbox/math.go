package sandbox

import (
	"math/rand/v2"

	glua "github.com/yuin/gopher-lua"
)

// openMath makes the math library of Lua 5.1, whose random numbers are the same in each call.
func openMath(m *machine) *glua.LTable {
	library := m.original(glua.OpenMath, glua.MathLibName)
	m.setFunctions(library, functions{
		"randomseed": func(*machine, *glua.LState) int { return 0 },
		"random":     mathRandom,
	})
	return library
}

func mathRandom(m *machine, l *glua.LState) int {
	if l.GetTop() == 0 {
		l.Push(glua.LNumber(m.rand().Float64()))
		return 1
	}
	low, high := int64(1), l.CheckInt64(1)
	if l.GetTop() > 1 {
		low, high = high, l.CheckInt64(2)
	}
	if high < low {
		l.RaiseError("bad argument to random: the interval from %d to %d is empty", low, high)
	}
	if high-low+1 <= 0 {
		l.RaiseError("bad argument to random: the interval from %d to %d is too large", low, high)
	}
	l.Push(glua.LNumber(low + m.rand().Int64N(high-low+1)))
	return 1
}

// rand is a generator that starts anew in each call, so that a script's answers do not vary.
func (m *machine) rand() *rand.Rand {
	if m.random == nil {
		m.random = rand.New(rand.NewPCG(1, 2))
	}
	return m.random
}
