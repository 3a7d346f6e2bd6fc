package lua

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	glua "github.com/yuin/gopher-lua"

	"kudo.dev/kudo/pkg/text"
)

// limitArrays keeps t[67108862]=1 from allocating a gigabyte. The bound is global to the virtual machine's package, so
// it is set once, before the first machine exists.
var limitArrays = sync.OnceFunc(func() { glua.MaxArrayIndex = maxList + 1 })

// maxMessage is the longest message of a script, in characters.
const maxMessage = 300

// machine is a virtual machine, which runs one call at a time. Between calls nothing remains in it:
//
//	environment of the call (fresh) --__index--> globals --> proxies of libraries (empty, cannot be written)
//	                                                            --__index--> the libraries themselves
//
// The environment of a script that may assign to a name of the globals holds a copy of them instead: when such a script assigns nil,
// the name must have no value, and not the library's again. The copy takes 60 allocations, which other scripts do without.
type machine struct {
	state   *glua.LState
	meter   meter
	globals *glua.LTable
	envMeta *glua.LTable
	// globalNames are the names of the globals, in order.
	globalNames []string
	lazy        *glua.LTable
	wide        *glua.LTable
	// proxiedLibraries maps each proxy to its library.
	proxiedLibraries map[*glua.LTable]*glua.LTable
	// helpers are the functions of the names of that name.
	helpers [4]*glua.LFunction

	// What follows belongs to one call.
	now    time.Time
	random *rand.Rand
	tables map[*glua.LTable]origin
	// wideIntegers are integers that a float64 cannot hold, by the float64 next to them; ambiguousFloats are those floats that stand
	// for more than one.
	wideIntegers    map[float64]int64
	ambiguousFloats map[float64]bool
	names           map[glua.LValue]int
}

func newMachine() *machine {
	limitArrays()
	m := &machine{
		state: glua.NewState(glua.Options{SkipOpenLibs: true, CallStackSize: 200, RegistrySize: 1024, RegistryMaxSize: 1 << 17,
			RegistryGrowStep: 4096}),
		proxiedLibraries: map[*glua.LTable]*glua.LTable{},
		tables:           map[*glua.LTable]origin{},
	}
	m.meter.closed = make(chan struct{})
	close(m.meter.closed)
	m.openLibraries()
	m.globals.ForEach(func(name, _ glua.LValue) { m.globalNames = append(m.globalNames, string(name.(glua.LString))) })
	slices.Sort(m.globalNames)
	m.envMeta = m.state.NewTable()
	m.envMeta.RawSetString("__index", m.globals)
	m.openBridge()
	for i, f := range []glua.LGFunction{m.concatenate, m.newTable, m.newKey, m.setIndex} {
		m.helpers[i] = m.state.NewFunction(f)
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
	m.random, m.wideIntegers, m.ambiguousFloats, m.names = nil, nil, nil, nil
	clear(m.tables)
	m.state.SetTop(0)
}

// run calls a script's function and returns as many values.
func (m *machine) run(s *Script, args []glua.LValue, results int) (values []glua.LValue, err error) {
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
		return nil, fmt.Errorf("%s is no function, but a %s", FunctionOf(s.operation).Name, function.Type())
	}
	for _, a := range args {
		m.state.Push(a)
	}
	if err := m.call(len(args), results); err != nil {
		return nil, err
	}
	values = make([]glua.LValue, results)
	for i := range values {
		values[i] = m.state.Get(i - results)
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
		return errors.New(shortMessage(failure.Error()))
	}
	return errors.New(shortMessage(m.plain(failure.Object)))
}

// shortMessage is the first line of a message, bounded and without control characters: messages go to conditions.
func shortMessage(message string) string {
	first, _, _ := strings.Cut(message, "\n")
	runes := []rune(text.Plain(first, len(first)))
	if len(runes) > maxMessage {
		return string(runes[:maxMessage-1]) + "…"
	}
	return string(runes)
}

// rand is a generator that starts anew in each call, so that a script's answers do not vary.
func (m *machine) rand() *rand.Rand {
	if m.random == nil {
		m.random = rand.New(rand.NewPCG(1, 2))
	}
	return m.random
}

// freeze makes a proxy of a library.
func (m *machine) freeze(name string, library *glua.LTable) *glua.LTable {
	proxy, meta := m.state.NewTable(), m.state.NewTable()
	meta.RawSetString("__index", library)
	meta.RawSetString("__metatable", glua.LFalse)
	meta.RawSetString("__newindex", m.state.NewFunction(func(l *glua.LState) int {
		l.RaiseError("library %s cannot be changed", name)
		return 0
	}))
	proxy.Metatable = meta
	m.proxiedLibraries[proxy] = library
	return proxy
}
