package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	glua "github.com/yuin/gopher-lua"
)

// limitArrays keeps t[67108862]=1 from allocating a gigabyte. The bound is global to the virtual machine's package, so
// it is set once, before the first machine exists.
var limitArrays = sync.OnceFunc(func() { glua.MaxArrayIndex = maxList + 1 })

// machine is a virtual machine, which runs one call at a time. Between calls nothing remains in it:
//
//	environment of the call (fresh) --__index--> globals --> proxies of libraries (empty, cannot be written)
//	                                                            --__index--> the libraries themselves
//
// The environment of a script that may assign to a name of the globals holds a copy of them instead: when such a script assigns nil,
// the name must have no value, and not the library's again. The copy takes 60 allocations, which other scripts do without.
type machine struct {
	state  *glua.LState
	meter  meter
	bridge *bridge
	// globals are all that scripts find, and globalNames their names, in order; envMeta makes an environment inherit them.
	globals     *glua.LTable
	globalNames []string
	envMeta     *glua.LTable
	// libraries are the names of the libraries, and proxiedLibraries maps the proxy of each to the library.
	libraries        []string
	proxiedLibraries map[*glua.LTable]*glua.LTable
	// next and nextIndex are what pairs and ipairs return.
	next, nextIndex glua.LValue
	// helpers are the functions of the hidden names.
	helpers [4]*glua.LFunction

	// What follows belongs to one call.
	now    time.Time
	random *rand.Rand
}

func newMachine(libraries []Library) *machine {
	limitArrays()
	m := &machine{
		state: glua.NewState(glua.Options{SkipOpenLibs: true, CallStackSize: 200, RegistrySize: 1024, RegistryMaxSize: 1 << 17,
			RegistryGrowStep: 4096}),
		proxiedLibraries: map[*glua.LTable]*glua.LTable{},
	}
	m.meter.closed = make(chan struct{})
	close(m.meter.closed)
	m.bridge = newBridge(m.state, &m.meter)
	m.openLibraries(libraries)
	m.globals.ForEach(func(name, _ glua.LValue) { m.globalNames = append(m.globalNames, string(name.(glua.LString))) })
	slices.Sort(m.globalNames)
	m.envMeta = m.state.NewTable()
	m.envMeta.RawSetString("__index", m.globals)
	for i, f := range []function{concatenate, newTable, newKey, setIndex} {
		m.helpers[i] = m.bind(f)
	}
	return m
}

// begin prepares for a call.
func (m *machine) begin(ctx context.Context, limits Limits, now time.Time) {
	m.meter.start(ctx, limits)
	m.state.SetContext(&m.meter)
	m.now = now
}

// end forgets a call.
func (m *machine) end() {
	m.meter.Context = nil
	m.random = nil
	m.bridge.end()
	m.state.SetTop(0)
}

// run calls a script's function and returns as many values.
func (m *machine) run(s *Script, args []glua.LValue, results int) (values []Value, err error) {
	env := m.environment(s.ownGlobals)
	main := m.state.NewFunctionFromProto(s.proto)
	main.Env = env
	m.state.Push(main)
	for _, f := range m.helpers {
		m.state.Push(f)
	}
	if err := m.call(len(m.helpers), 1); err != nil {
		return nil, err
	}
	function := m.state.Get(-1)
	if function.Type() != glua.LTFunction {
		return nil, fmt.Errorf("%s is no function, but a %s", s.entry, function.Type())
	}
	for _, a := range args {
		m.state.Push(a)
	}
	if err := m.call(len(args), results); err != nil {
		return nil, err
	}
	values = make([]Value, results)
	for i := range values {
		values[i] = Value{m, m.state.Get(i - results)}
	}
	m.state.Pop(results)
	return values, nil
}

// environment makes the globals of a call: a copy, or a table that inherits them.
func (m *machine) environment(isCopy bool) *glua.LTable {
	if !isCopy {
		env := m.state.CreateTable(0, 4)
		env.Metatable = m.envMeta
		return env
	}
	env := m.state.CreateTable(0, len(m.globalNames)+4)
	for _, name := range m.globalNames {
		env.RawSetString(name, m.globals.RawGetString(name))
	}
	env.RawSetString("_G", env)
	return env
}

// call is a protected call. A breach of a limit counts even if the script caught its error.
func (m *machine) call(args, results int) error {
	err := m.state.PCall(args, results, nil)
	if m.meter.breach != nil {
		return m.meter.breach
	}
	var failure *glua.ApiError
	if !errors.As(err, &failure) {
		return err
	}
	if failure.Object == nil || failure.Object == glua.LNil {
		return ScriptError(failure.Error())
	}
	return ScriptError(m.bridge.plain(failure.Object))
}
