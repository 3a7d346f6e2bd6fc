package sandbox

import (
	"context"
	"fmt"
	"time"

	glua "github.com/yuin/gopher-lua"
)

// Limits bound one call of a script. A breach ends the call; the script cannot catch it.
type Limits struct {
	// Instructions of the virtual machine; library functions count as many as their work is worth.
	Instructions int
	// Time on the clock on the wall, which Pool.WithTimeout starts.
	Time time.Duration
	// Memory in bytes that a script allocates in all, whether or not it drops it again. It is an estimate that errs on
	// the high side.
	Memory int
	// Output is how many bytes the result has at most, as JSON about.
	Output int
	// Depth of tables within one another in the result.
	Depth int
}

const (
	// maxText bounds one string, so that comparing and hashing strings takes bounded time.
	maxText = 4 << 20
	// maxSource bounds the text of a script, in bytes.
	maxSource = 256 << 10
	// maxNesting bounds expressions and blocks within one another: the compiler is recursive.
	maxNesting = 500
	// maxList bounds lists: the virtual machine keeps longer ones as maps, and loses their order.
	maxList = 65535
	// tableCost is what a table takes that gets one entry of each sort.
	tableCost = 3 << 10
	// entryCost is what an entry of a table takes.
	entryCost = 96
	// clockInterval is how many instructions run between two reads of the clock.
	clockInterval = 64
)

// LimitError is the breach of a limit.
type LimitError struct {
	// Limit is its name: instructions, time, memory, string, list, output, depth or steps of a pattern.
	Limit string
	// Value of the limit, with its unit.
	Value string
}

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the script went beyond its limit of %s (%s)", e.Limit, e.Value)
}

// meter counts what one call uses. It is the context of the virtual machine, which asks Done before each instruction.
type meter struct {
	context.Context
	limits      Limits
	steps, next int
	memory      int
	breach      error
	closed      chan struct{}
}

func (m *meter) start(ctx context.Context, limits Limits) {
	m.Context, m.limits = ctx, limits
	m.steps, m.next, m.memory, m.breach = 0, clockInterval, 0, nil
}

// Done counts an instruction. It returns nil, on which the virtual machine does not wait, or a closed channel.
func (m *meter) Done() <-chan struct{} {
	m.steps++
	if m.steps < m.next {
		return nil
	}
	return m.checkLimits()
}

func (m *meter) checkLimits() <-chan struct{} {
	m.next = m.steps + clockInterval
	switch {
	case m.breach != nil:
	case m.steps > m.limits.Instructions:
		m.breach = &LimitError{"instructions", fmt.Sprint(m.limits.Instructions)}
	case m.Context.Err() != nil:
		m.breach = m.ended()
	default:
		m.next = min(m.next, m.limits.Instructions+1)
		return nil
	}
	m.next = 0
	return m.closed
}

// ended tells a time-out of the script from the end of the caller's context.
func (m *meter) ended() error {
	if cause := context.Cause(m.Context); cause != nil {
		return cause
	}
	return m.Context.Err()
}

// Err is the breach, if there is one.
func (m *meter) Err() error { return m.breach }

// spend counts steps of a library function.
func (m *meter) spend(state *glua.LState, steps int) {
	m.steps += steps
	if m.steps >= m.next && m.checkLimits() != nil {
		state.RaiseError("%s", m.breach.Error())
	}
}

// grow counts bytes before they are allocated.
func (m *meter) grow(state *glua.LState, bytes int) {
	if bytes < 0 || m.memory > m.limits.Memory-bytes {
		m.fail(state, &LimitError{"memory", fmt.Sprintf("%d bytes", m.limits.Memory)})
	}
	m.memory += bytes
}

// text counts a string before it is made.
func (m *meter) text(state *glua.LState, bytes int) {
	if bytes < 0 || bytes > maxText {
		m.fail(state, &LimitError{"string", fmt.Sprintf("%d bytes", maxText)})
	}
	m.grow(state, bytes+16)
	m.spend(state, bytes>>8)
}

func (m *meter) fail(state *glua.LState, breach error) {
	if m.breach == nil {
		m.breach = breach
	}
	m.next = 0
	state.RaiseError("%s", m.breach.Error())
}
