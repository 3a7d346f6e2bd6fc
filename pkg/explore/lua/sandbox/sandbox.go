// Package sandbox runs scripts in Lua 5.1 that can do no harm, on github.com/yuin/gopher-lua.
//
// A script is compiled once. Each call runs in an environment of its own over libraries that it cannot change, under limits on
// instructions, time, memory and output. Arguments and results are JSON values, which cross faithfully: integers of 64 bits, null,
// empty lists and empty maps stay different. There is no way to files, processes, other code or the clock.
package sandbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	glua "github.com/yuin/gopher-lua"
)

// maxKept is how many bytes a call may have allocated for its machine to be used again.
const maxKept = 1 << 20

// Pool runs scripts, and uses their virtual machines again. It is safe for concurrent use.
type Pool struct {
	limits   Limits
	machines sync.Pool
}

// NewPool returns a pool of machines whose scripts find these libraries beside those of Lua. The limits bind each call.
func NewPool(limits Limits, libraries ...Library) *Pool {
	return &Pool{limits: limits, machines: sync.Pool{New: func() any { return newMachine(libraries) }}}
}

// Call is one call of a script.
type Call struct {
	Script *Script
	// Arguments of the script's function: JSON values as encoding/json makes them, with int64 for integers. Scripts do not change
	// them.
	Arguments []any
	// Results is how many values the function returns; what it does not return is nil.
	Results int
	// Now is the time that the os library tells.
	Now time.Time
}

// WithTimeout returns a context that ends after the time that the limits allow. Several calls may share it.
func (p *Pool) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.limits.Time, &LimitError{"time", p.limits.Time.String()})
}

// Run calls the function of a script, and gives its results to read; they are valid until read returns. The call ends when the context
// does, so that the context should be one of WithTimeout. Errors are a *LimitError, the cause of the context's end, a ScriptError, that
// of an argument that is no JSON value, or that of read.
func (p *Pool) Run(ctx context.Context, c Call, read func(results []Value) error) (err error) {
	m := p.machines.Get().(*machine)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the script broke the virtual machine: %v", r)
		}
		// After an error the machine is dropped: its stacks may be in any state.
		if err != nil || m.meter.memory > maxKept {
			m.state.Close()
			return
		}
		m.end()
		p.machines.Put(m)
	}()
	m.begin(ctx, p.limits, c.Now)
	for _, a := range c.Arguments {
		m.bridge.collectWideIntegers(a)
	}
	var room [2]glua.LValue
	arguments := room[:0]
	for _, a := range c.Arguments {
		argument, err := m.bridge.in(a)
		if err != nil {
			return err
		}
		arguments = append(arguments, argument)
	}
	results, err := m.run(c.Script, arguments, c.Results)
	if err != nil {
		return err
	}
	return read(results)
}

// ScriptError is an error that a script has raised and not caught, with its line. The text is the script's: it may be long, have
// several lines, and any characters.
type ScriptError string

func (e ScriptError) Error() string { return string(e) }
