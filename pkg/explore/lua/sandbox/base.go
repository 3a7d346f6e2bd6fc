package sandbox

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// originals are functions of the virtual machine's base library that need no limit.
var originals = []string{"assert", "error", "rawequal", "select"}

// baseFunctions are the functions of the base library, without load, getfenv and their like, and without originals.
func baseFunctions() functions {
	return functions{
		"collectgarbage": func(_ *machine, l *glua.LState) int { l.Push(glua.LNumber(0)); return 1 },
		"print":          func(*machine, *glua.LState) int { return 0 },
		"getmetatable":   baseGetMetatable, "setmetatable": baseSetMetatable,
		"next": baseNext, "ipairs": baseIpairs, "pairs": basePairs,
		"pcall": basePcall, "xpcall": baseXpcall,
		"rawget": baseRawGet, "rawset": baseRawSet, "require": baseRequire,
		"tonumber": baseToNumber, "tostring": baseToString, "type": baseType, "unpack": baseUnpack,
	}
}

func baseIpairs(m *machine, l *glua.LState) int {
	t := m.checkTable(l, 1)
	l.Push(m.nextIndex)
	l.Push(t)
	l.Push(glua.LNumber(0))
	return 3
}

// nextIndex is what ipairs returns to step through a list.
func nextIndex(_ *machine, l *glua.LState) int {
	t, i := l.CheckTable(1), l.CheckInt(2)+1
	value := t.RawGetInt(i)
	if value == glua.LNil {
		return 0
	}
	l.Push(glua.LNumber(i))
	l.Push(value)
	return 2
}

func basePairs(m *machine, l *glua.LState) int {
	t := m.checkTable(l, 1)
	l.Push(m.next)
	l.Push(t)
	l.Push(glua.LNil)
	return 3
}

func baseNext(m *machine, l *glua.LState) int {
	t := m.checkTable(l, 1)
	if library, frozen := m.proxiedLibraries[t]; frozen {
		t = library
	}
	key, value := t.Next(l.Get(2))
	l.Push(key)
	if key == glua.LNil {
		return 1
	}
	l.Push(value)
	return 2
}

func baseGetMetatable(m *machine, l *glua.LState) int {
	if t, ok := l.CheckAny(1).(*glua.LTable); ok {
		m.bridge.fill(l, t)
	}
	l.Push(l.GetMetatable(l.Get(1)))
	return 1
}

func baseSetMetatable(m *machine, l *glua.LState) int {
	t := m.checkOwn(l, 1)
	l.CheckTypes(2, glua.LTNil, glua.LTTable)
	if meta, ok := t.Metatable.(*glua.LTable); ok && meta.RawGetString("__metatable") != glua.LNil {
		l.RaiseError("cannot change a protected metatable")
	}
	if meta, ok := l.Get(2).(*glua.LTable); ok {
		m.bridge.fill(l, meta)
	}
	t.Metatable = l.Get(2)
	l.Push(t)
	return 1
}

// basePcall catches errors of the script, but no breach of a limit.
func basePcall(m *machine, l *glua.LState) int {
	l.CheckAny(1)
	err := l.PCall(l.GetTop()-1, glua.MultRet, nil)
	if err != nil {
		return caughtError(m, l, err)
	}
	l.Insert(glua.LTrue, 1)
	return l.GetTop()
}

func baseXpcall(m *machine, l *glua.LState) int {
	function, handler := l.CheckAny(1), l.CheckFunction(2)
	l.SetTop(0)
	l.Push(function)
	err := l.PCall(0, glua.MultRet, handler)
	if err != nil {
		return caughtError(m, l, err)
	}
	l.Insert(glua.LTrue, 1)
	return l.GetTop()
}

func caughtError(m *machine, l *glua.LState, err error) int {
	if m.meter.breach != nil {
		l.RaiseError("%s", m.meter.breach.Error())
	}
	// The virtual machine writes a trace of the stack for each error.
	m.meter.grow(l, 16<<10)
	m.meter.spend(l, 100)
	var object glua.LValue = glua.LString(err.Error())
	var failure *glua.ApiError
	if errors.As(err, &failure) && failure.Object != nil {
		object = failure.Object
	}
	l.SetTop(0)
	l.Push(glua.LFalse)
	l.Push(object)
	return 2
}

func baseRawGet(m *machine, l *glua.LState) int {
	l.Push(l.RawGet(m.checkTable(l, 1), l.CheckAny(2)))
	return 1
}

func baseRawSet(m *machine, l *glua.LState) int {
	t := m.checkOwn(l, 1)
	m.reserve(l, t, l.Get(2))
	l.RawSet(t, l.CheckAny(2), l.CheckAny(3))
	l.Push(t)
	return 1
}

// baseRequire knows the libraries, as scripts require those beside Lua's own.
func baseRequire(m *machine, l *glua.LState) int {
	name := l.CheckString(1)
	if !slices.Contains(m.libraries, name) {
		l.RaiseError("module %s does not exist: there are %s", strconv.Quote(name), strings.Join(m.libraries, ", "))
	}
	l.Push(m.globals.RawGetString(name))
	return 1
}

func baseType(m *machine, l *glua.LState) int {
	name := l.CheckAny(1).Type().String()
	if _, wide := asWide(l.Get(1)); wide {
		name = "number"
	}
	l.Push(glua.LString(name))
	return 1
}

func baseUnpack(m *machine, l *glua.LState) int {
	t := m.checkTable(l, 1)
	from, to := l.OptInt(2, 1), l.OptInt(3, t.Len())
	count := to - from + 1
	if to < from {
		return 0
	}
	if count > maxList || count < 0 {
		m.meter.fail(l, &LimitError{"list", strconv.Itoa(maxList) + " entries"})
	}
	m.meter.grow(l, 16*count)
	m.meter.spend(l, count/4)
	for i := from; i <= to; i++ {
		l.Push(t.RawGetInt(i))
	}
	return count
}

func baseToString(m *machine, l *glua.LState) int {
	l.Push(glua.LString(m.text(l, l.CheckAny(1))))
	return 1
}

// text is what tostring makes of a value.
func (m *machine) text(l *glua.LState, value glua.LValue) string {
	if t, ok := value.(*glua.LTable); ok && t.Metatable != m.bridge.lazy && t.Metatable != glua.LNil {
		if f, ok := l.GetMetaField(t, "__tostring").(*glua.LFunction); ok {
			l.Push(f)
			l.Push(t)
			l.Call(1, 1)
			made := l.Get(-1)
			l.Pop(1)
			if made.Type() != glua.LTString {
				l.RaiseError("__tostring must return a string")
			}
			return string(made.(glua.LString))
		}
	}
	made := m.bridge.plain(value)
	if value.Type() != glua.LTString {
		m.meter.text(l, len(made))
	}
	return made
}

func baseToNumber(m *machine, l *glua.LState) int {
	value := l.CheckAny(1)
	base := l.OptInt(2, 10)
	switch v := value.(type) {
	case glua.LNumber:
		l.Push(v)
		return 1
	case glua.LString:
		if n, ok := parseNumeral(strings.Trim(string(v), " \n\t\r\v\f"), base); ok {
			l.Push(n)
			return 1
		}
	default:
		if _, wide := asWide(value); wide {
			l.Push(value)
			return 1
		}
	}
	l.Push(glua.LNil)
	return 1
}

// parseNumeral reads a numeral of Lua: decimal with point and exponent, hexadecimal, or an integer in another base.
func parseNumeral(text string, base int) (glua.LNumber, bool) {
	if base < 2 || base > 36 || len(text) > 400 || strings.Contains(text, "_") {
		return 0, false
	}
	digits, negative := strings.CutPrefix(text, "-")
	if hex, ok := strings.CutPrefix(strings.ToLower(digits), "0x"); ok && (base == 10 || base == 16) {
		digits, base = hex, 16
	} else if base == 10 {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || strings.ContainsAny(text, "xXpPiInN") {
			return 0, false
		}
		return glua.LNumber(n), true
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil || digits == "" {
		return 0, false
	}
	if negative {
		return -glua.LNumber(n), true
	}
	return glua.LNumber(n), true
}
