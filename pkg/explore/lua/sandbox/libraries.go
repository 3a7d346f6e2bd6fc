package sandbox

import (
	"errors"
	"maps"
	"slices"

	glua "github.com/yuin/gopher-lua"
)

// Library is a table of functions, beside the libraries of Lua. Scripts find it as the global of its name, and by require.
type Library struct {
	// Name of the table: not that of a library of Lua.
	Name string
	// Functions of the table, by name.
	Functions map[string]Function
}

// Function is a function of a Library. Its result is nil, bool, string, int64, float64, or a map[string]any or []any of these, which
// belongs to the script then. An error is raised in the script, which may catch it.
type Function func(Arguments) (result any, err error)

// ArgumentError says of an argument of a Function what is wrong with it; the name of the function is added.
type ArgumentError struct {
	// Number of the argument, from 1.
	Number int
	// Reason, as in "string expected, got nil".
	Reason string
}

// Error is the reason.
func (e *ArgumentError) Error() string { return e.Reason }

// function is a function of Lua's own libraries. It reads its arguments from the stack of the call, pushes its results there, and
// returns how many these are.
type function func(m *machine, l *glua.LState) int

// functions are functions by the name that scripts call them by.
type functions map[string]function

// builtins are Lua's own libraries. There is no way to files, other code or other environments: no io, package, debug, coroutine.
var builtins = []struct {
	name string
	open func(*machine) *glua.LTable
}{{"string", openString}, {"table", openTable}, {"math", openMath}, {"os", openOS}}

// baseNames are the globals of the base library.
var baseNames = slices.Concat([]string{"_G", "_VERSION"}, originals, slices.Collect(maps.Keys(baseFunctions())))

// libraryNames returns the names of Lua's own libraries, and of others.
func libraryNames(libraries []Library) []string {
	out := make([]string, 0, len(builtins)+len(libraries))
	for _, builtin := range builtins {
		out = append(out, builtin.name)
	}
	for _, library := range libraries {
		out = append(out, library.Name)
	}
	return out
}

// openLibraries fills the globals.
func (m *machine) openLibraries(libraries []Library) {
	m.globals = m.newLibrary(baseFunctions())
	base := m.original(glua.OpenBase, "_G")
	for _, name := range originals {
		m.globals.RawSetString(name, base.RawGetString(name))
	}
	m.next, m.nextIndex = m.globals.RawGetString("next"), m.bind(nextIndex)
	m.globals.RawSetString("_VERSION", glua.LString(glua.LuaVersion))
	for _, builtin := range builtins {
		m.addLibrary(builtin.name, builtin.open(m))
	}
	for _, library := range libraries {
		fs := functions{}
		for name, f := range library.Functions {
			fs[name] = f.call
		}
		m.addLibrary(library.Name, m.newLibrary(fs))
	}
}

// newLibrary makes a table of functions.
func (m *machine) newLibrary(fs functions) *glua.LTable {
	library := m.state.NewTable()
	m.setFunctions(library, fs)
	return library
}

// setFunctions puts functions into a table, in the order of their names.
func (m *machine) setFunctions(library *glua.LTable, fs functions) {
	for _, name := range slices.Sorted(maps.Keys(fs)) {
		library.RawSetString(name, m.bind(fs[name]))
	}
}

// bind makes a value of Lua of a function.
func (m *machine) bind(f function) *glua.LFunction {
	return m.state.NewFunction(func(l *glua.LState) int { return f(m, l) })
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

// addLibrary gives scripts a library, by a proxy that they cannot change.
func (m *machine) addLibrary(name string, library *glua.LTable) {
	proxy, meta := m.state.NewTable(), m.state.NewTable()
	meta.RawSetString("__index", library)
	meta.RawSetString("__metatable", glua.LFalse)
	meta.RawSetString("__newindex", m.state.NewFunction(func(l *glua.LState) int {
		l.RaiseError("library %s cannot be changed", name)
		return 0
	}))
	proxy.Metatable = meta
	m.libraries = append(m.libraries, name)
	m.proxiedLibraries[proxy] = library
	m.globals.RawSetString(name, proxy)
}

// call calls the function with the arguments on the stack.
func (f Function) call(m *machine, l *glua.LState) int {
	result, err := f(Arguments{m, l})
	var wrong *ArgumentError
	if errors.As(err, &wrong) {
		l.ArgError(wrong.Number, wrong.Reason)
	}
	if err != nil {
		l.RaiseError("%s", err.Error())
	}
	if text, ok := result.(string); ok {
		m.meter.text(l, len(text))
	}
	l.Push(m.bridge.must(l, result))
	return 1
}
