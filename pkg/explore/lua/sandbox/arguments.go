package sandbox

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// Arguments are what a script has given to a Function; they are counted from 1. They are valid until the function returns. A breach of
// a limit ends the function.
type Arguments struct {
	machine *machine
	state   *glua.LState
}

// Len returns the number of arguments.
func (a Arguments) Len() int { return a.state.GetTop() }

// IsNil reports whether an argument is nil, or absent.
func (a Arguments) IsNil(n int) bool { return a.state.Get(n) == glua.LNil }

// Text returns an argument that is a text or a number as text. The error is an *ArgumentError.
func (a Arguments) Text(n int) (string, error) {
	if text, ok := a.machine.asText(a.state.Get(n)); ok {
		return text, nil
	}
	return "", a.wrongType(n, glua.LTString)
}

// Table returns an argument that is a table as a JSON value: a map[string]any or a []any, of values as in Value.JSON. Its size counts
// against the limits of the call. The error is an *ArgumentError.
func (a Arguments) Table(n int) (any, error) {
	t, ok := a.state.Get(n).(*glua.LTable)
	if !ok {
		return nil, a.wrongType(n, glua.LTTable)
	}
	x := &exporter{m: a.machine}
	value, err := x.out(t)
	if err != nil {
		return nil, &ArgumentError{n, err.Error()}
	}
	a.Spend(x.size / 16)
	a.machine.meter.grow(a.state, 2*x.size)
	return value, nil
}

// Spend counts work of the function as so many instructions of the virtual machine.
func (a Arguments) Spend(instructions int) { a.machine.meter.spend(a.state, instructions) }

func (a Arguments) wrongType(n int, want glua.LValueType) error {
	return &ArgumentError{n, fmt.Sprintf("%s expected, got %s", want, a.state.Get(n).Type())}
}

// checkTable is a table argument, filled.
func (m *machine) checkTable(l *glua.LState, n int) *glua.LTable {
	t := l.CheckTable(n)
	m.bridge.fill(l, t)
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

// asText is a value as text, if it is a text or a number.
func (m *machine) asText(value glua.LValue) (string, bool) {
	switch v := value.(type) {
	case glua.LString:
		return string(v), true
	case glua.LNumber:
		return m.bridge.numeral(v), true
	}
	if _, wide := asWide(value); wide {
		return m.bridge.plain(value), true
	}
	return "", false
}

// checkText is a text argument; numbers are text, too.
func (m *machine) checkText(l *glua.LState, n int) string {
	text, ok := m.asText(l.Get(n))
	if !ok {
		l.TypeError(n, glua.LTString)
	}
	return text
}

// checkNumber is a number argument; text that is a numeral counts.
func (m *machine) checkNumber(l *glua.LState, n int) glua.LNumber {
	if text, ok := l.Get(n).(glua.LString); ok {
		if number, ok := parseNumeral(strings.TrimSpace(string(text)), 10); ok {
			return number
		}
	}
	return l.CheckNumber(n)
}

// checkWhole is a number argument as an integer; a fraction is cut off.
func (m *machine) checkWhole(l *glua.LState, n int) int64 {
	if whole, wide := asWide(l.Get(n)); wide {
		return whole
	}
	number := m.checkNumber(l, n)
	if whole, ok := m.bridge.number(number).(int64); ok {
		return whole
	}
	return int64(number)
}
