package lua

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// libraries are the names of tables that scripts find; functions are those of the base library.
var (
	libraries = []string{"string", "table", "math", "os", "kube"}
	functions = []string{
		"assert", "collectgarbage", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "print", "rawequal", "rawget",
		"rawset", "require", "select", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall",
	}
)

// isLibrary reports whether scripts find a global of this name.
func isLibrary(name string) bool {
	return name == "_G" || name == "_VERSION" || slices.Contains(hidden, name) ||
		slices.Contains(libraries, name) || slices.Contains(functions, name)
}

// openLibraries fills the globals. There is no way to files, other code or other environments: no io, package, debug,
// load, coroutine, getfenv.
func (m *machine) openLibraries() {
	original := m.original(glua.OpenBase, "_G")
	m.globals = m.state.NewTable()
	for _, name := range []string{"assert", "error", "rawequal", "select"} {
		m.globals.RawSetString(name, original.RawGetString(name))
	}
	for name, f := range map[string]glua.LGFunction{
		"collectgarbage": func(l *glua.LState) int { l.Push(glua.LNumber(0)); return 1 },
		"getmetatable":   m.getMetatable, "setmetatable": m.setMetatable,
		"next": m.next, "pcall": m.pcall, "xpcall": m.xpcall,
		"print":  func(*glua.LState) int { return 0 },
		"rawget": m.rawGet, "rawset": m.rawSet, "require": m.require,
		"tonumber": m.toNumber, "tostring": m.toString, "type": m.typeOf, "unpack": m.unpack,
	} {
		m.globals.RawSetString(name, m.state.NewFunction(f))
	}
	m.openIteration()
	m.globals.RawSetString("_VERSION", glua.LString(glua.LuaVersion))
	text := m.stringLibrary()
	for name, library := range map[string]*glua.LTable{
		"string": text, "table": m.tableLibrary(), "math": m.mathLibrary(), "os": m.osLibrary(), "kube": m.kubeLibrary(),
	} {
		m.globals.RawSetString(name, m.freeze(name, library))
	}
	meta := m.state.NewTable()
	meta.RawSetString("__index", text)
	meta.RawSetString("__metatable", glua.LFalse)
	m.state.SetMetatable(glua.LString(""), meta)
}

// original opens a library of the virtual machine, out of the reach of scripts.
func (m *machine) original(open glua.LGFunction, name string) *glua.LTable {
	m.state.Push(m.state.NewFunction(open))
	m.state.Push(glua.LString(name))
	m.state.Call(1, 1)
	library := m.state.Get(-1).(*glua.LTable)
	m.state.Pop(1)
	return library
}

func (m *machine) openIteration() {
	step := m.state.NewFunction(func(l *glua.LState) int {
		t, i := l.CheckTable(1), l.CheckInt(2)+1
		value := t.RawGetInt(i)
		if value == glua.LNil {
			return 0
		}
		l.Push(glua.LNumber(i))
		l.Push(value)
		return 2
	})
	next := m.globals.RawGetString("next")
	m.globals.RawSetString("ipairs", m.state.NewFunction(func(l *glua.LState) int {
		t := m.checkTable(l, 1)
		l.Push(step)
		l.Push(t)
		l.Push(glua.LNumber(0))
		return 3
	}))
	m.globals.RawSetString("pairs", m.state.NewFunction(func(l *glua.LState) int {
		t := m.checkTable(l, 1)
		l.Push(next)
		l.Push(t)
		l.Push(glua.LNil)
		return 3
	}))
}

func (m *machine) next(l *glua.LState) int {
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

func (m *machine) getMetatable(l *glua.LState) int {
	if t, ok := l.CheckAny(1).(*glua.LTable); ok {
		m.fill(l, t)
	}
	l.Push(l.GetMetatable(l.Get(1)))
	return 1
}

func (m *machine) setMetatable(l *glua.LState) int {
	t := m.checkOwn(l, 1)
	l.CheckTypes(2, glua.LTNil, glua.LTTable)
	if meta, ok := t.Metatable.(*glua.LTable); ok && meta.RawGetString("__metatable") != glua.LNil {
		l.RaiseError("cannot change a protected metatable")
	}
	if meta, ok := l.Get(2).(*glua.LTable); ok {
		m.fill(l, meta)
	}
	t.Metatable = l.Get(2)
	l.Push(t)
	return 1
}

// pcall catches errors of the script, but no breach of a limit.
func (m *machine) pcall(l *glua.LState) int {
	l.CheckAny(1)
	err := l.PCall(l.GetTop()-1, glua.MultRet, nil)
	if err != nil {
		return m.pcallError(l, err)
	}
	l.Insert(glua.LTrue, 1)
	return l.GetTop()
}

func (m *machine) xpcall(l *glua.LState) int {
	function, handler := l.CheckAny(1), l.CheckFunction(2)
	l.SetTop(0)
	l.Push(function)
	err := l.PCall(0, glua.MultRet, handler)
	if err != nil {
		return m.pcallError(l, err)
	}
	l.Insert(glua.LTrue, 1)
	return l.GetTop()
}

func (m *machine) pcallError(l *glua.LState, err error) int {
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

func (m *machine) rawGet(l *glua.LState) int {
	l.Push(l.RawGet(m.checkTable(l, 1), l.CheckAny(2)))
	return 1
}

func (m *machine) rawSet(l *glua.LState) int {
	t := m.checkOwn(l, 1)
	m.reserve(l, t, l.Get(2))
	l.RawSet(t, l.CheckAny(2), l.CheckAny(3))
	l.Push(t)
	return 1
}

// require knows the libraries, as scripts begin with `local kube = require("kube")`.
func (m *machine) require(l *glua.LState) int {
	name := l.CheckString(1)
	if !slices.Contains(libraries, name) {
		l.RaiseError("module %s does not exist: there are %s", strconv.Quote(name), strings.Join(libraries, ", "))
	}
	l.Push(m.globals.RawGetString(name))
	return 1
}

func (m *machine) typeOf(l *glua.LState) int {
	name := l.CheckAny(1).Type().String()
	if _, wide := asWide(l.Get(1)); wide {
		name = "number"
	}
	l.Push(glua.LString(name))
	return 1
}

func (m *machine) unpack(l *glua.LState) int {
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

func (m *machine) toString(l *glua.LState) int {
	l.Push(glua.LString(m.text(l, l.CheckAny(1))))
	return 1
}

// text is what tostring makes of a value.
func (m *machine) text(l *glua.LState, value glua.LValue) string {
	if t, ok := value.(*glua.LTable); ok && t.Metatable != m.lazy && t.Metatable != glua.LNil {
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
	made := m.plain(value)
	if value.Type() != glua.LTString {
		m.meter.text(l, len(made))
	}
	return made
}

// plain is a value as text without metamethods. Tables and functions are numbered in the order in which a script asks:
// their addresses would vary.
func (m *machine) plain(value glua.LValue) string {
	switch v := value.(type) {
	case glua.LString:
		return string(v)
	case glua.LNumber:
		return m.numeral(v)
	case *glua.LTable, *glua.LFunction:
		if m.names == nil {
			m.names = map[glua.LValue]int{}
		}
		if m.names[v] == 0 {
			m.names[v] = len(m.names) + 1
		}
		return v.Type().String() + ": " + strconv.Itoa(m.names[v])
	}
	if whole, ok := asWide(value); ok {
		return strconv.FormatInt(whole, 10)
	}
	if value.Type() == glua.LTUserData {
		return "userdata"
	}
	return value.String()
}

func (m *machine) toNumber(l *glua.LState) int {
	value := l.CheckAny(1)
	base := l.OptInt(2, 10)
	switch v := value.(type) {
	case glua.LNumber:
		l.Push(v)
		return 1
	case glua.LString:
		if n, ok := m.parse(strings.Trim(string(v), " \n\t\r\v\f"), base); ok {
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

// parse reads a numeral of Lua: decimal with point and exponent, hexadecimal, or an integer in another base.
func (m *machine) parse(text string, base int) (glua.LNumber, bool) {
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
