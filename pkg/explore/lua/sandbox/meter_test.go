package sandbox

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	glua "github.com/yuin/gopher-lua"
)

// asked is a context that counts how often it is asked for its end, and that ends at one of these.
type asked struct {
	context.Context
	times, end int
}

func (c *asked) Err() error {
	c.times++
	if c.end > 0 && c.times >= c.end {
		return context.Canceled
	}
	return nil
}

func started(ctx context.Context, l Limits) *meter {
	m := &meter{closed: make(chan struct{})}
	close(m.closed)
	m.start(ctx, l)
	return m
}

// TestMeterInstructions counts instructions to the limit.
func TestMeterInstructions(t *testing.T) {
	for name, tc := range map[string]struct {
		reason         string
		limit, context int // the context ends when it is asked for this time
		want           int // instructions that ran
		asked          int // how often the context was asked; its cause is another time
		err            string
	}{
		"Limit":    {"the limit itself may be reached", 100, 0, 100, 1, "the script went beyond its limit of instructions (100)"},
		"Interval": {"a limit that is a multiple of the interval of the clock", 128, 0, 128, 2, "the script went beyond its limit of instructions (128)"},
		"Few":      {"a limit below the interval", 3, 0, 63, 0, "the script went beyond its limit of instructions (3)"},
		"None":     {"no instruction at all", 0, 0, 63, 0, "the script went beyond its limit of instructions (0)"},
		"First":    {"a context that has ended is seen at the first interval", 1000, 1, 63, 2, "context canceled"},
		"Later":    {"one that ends is seen at the next one", 1000, 3, 191, 4, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := &asked{Context: t.Context(), end: tc.context}
			m := started(ctx, Limits{Instructions: tc.limit})
			n := 0
			for m.Done() == nil {
				n++
			}
			if n != tc.want || ctx.times != tc.asked {
				t.Errorf("%s: %d instructions ran, and the context was asked %d times, want %d and %d", tc.reason, n, ctx.times, tc.want, tc.asked)
			}
			if got := fmt.Sprint(m.Err()); got != tc.err {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
			if m.Done() == nil {
				t.Errorf("%s: instructions run after the breach", tc.reason)
			}
		})
	}
}

// TestMeterCosts counts steps, bytes and texts to their limits. A breach raises an error, and the first one stays.
func TestMeterCosts(t *testing.T) {
	const memory = "the script went beyond its limit of memory (1000 bytes)"
	const text = "the script went beyond its limit of string (4194304 bytes)"
	for name, tc := range map[string]struct {
		reason string
		costs  func(m *meter, l *glua.LState)
		want   meter
		err    string
	}{
		"Steps":     {"steps up to the limit", func(m *meter, l *glua.LState) { m.spend(l, 50); m.spend(l, 50) }, meter{steps: 100}, "<nil>"},
		"MoreSteps": {"one step more", func(m *meter, l *glua.LState) { m.spend(l, 101) }, meter{steps: 101}, "the script went beyond its limit of instructions (100)"},
		"Bytes":     {"bytes up to the limit", func(m *meter, l *glua.LState) { m.grow(l, 1); m.grow(l, 999) }, meter{memory: 1000}, "<nil>"},
		"MoreBytes": {"one byte more, which is not allocated", func(m *meter, l *glua.LState) { m.grow(l, 1000); m.grow(l, 1) }, meter{memory: 1000}, memory},
		"NoBytes":   {"nothing more is free", func(m *meter, l *glua.LState) { m.grow(l, 1000); m.grow(l, 0) }, meter{memory: 1000}, "<nil>"},
		"Negative":  {"a size that has overflowed", func(m *meter, l *glua.LState) { m.grow(l, -1) }, meter{}, memory},
		"Largest":   {"nor does the sum overflow", func(m *meter, l *glua.LState) { m.grow(l, 10); m.grow(l, 1<<63-1) }, meter{memory: 10}, memory},
		"Text":      {"a text takes its bytes and a header", func(m *meter, l *glua.LState) { m.text(l, 512) }, meter{memory: 528, steps: 2}, "<nil>"},
		"Empty":     {"an empty one its header", func(m *meter, l *glua.LState) { m.text(l, 0) }, meter{memory: 16}, "<nil>"},
		"TextMore":  {"a text that does not fit", func(m *meter, l *glua.LState) { m.text(l, 985) }, meter{}, memory},
		"TextLong":  {"a text that is too long, whatever the memory", func(m *meter, l *glua.LState) { m.text(l, 4<<20+1) }, meter{}, text},
		"TextMinus": {"a length that has overflowed", func(m *meter, l *glua.LState) { m.text(l, -1) }, meter{}, text},
		"First":     {"the first breach stays", func(m *meter, l *glua.LState) { caught(m, func() { m.text(l, -1) }); m.grow(l, 2000) }, meter{}, text},
		"Instruction": {
			"after a breach no instruction runs",
			func(m *meter, l *glua.LState) { caught(m, func() { m.grow(l, 2000) }); m.spend(l, 1) },
			meter{steps: 1},
			memory,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := started(t.Context(), Limits{Instructions: 100, Memory: 1000})
			state := glua.NewState(glua.Options{SkipOpenLibs: true})
			defer state.Close()
			state.Push(state.NewFunction(func(l *glua.LState) int { tc.costs(m, l); return 0 }))
			raised := state.PCall(0, 0, nil)
			if (raised != nil) != (tc.err != "<nil>") {
				t.Errorf("%s: raises %v", tc.reason, raised)
			}
			if diff := cmp.Diff([]int{tc.want.steps, tc.want.memory}, []int{m.steps, m.memory}); diff != "" {
				t.Errorf("%s: steps and bytes (-want +got):\n%s", tc.reason, diff)
			}
			if got := fmt.Sprint(m.Err()); got != tc.err {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

// caught runs a function that raises an error, as pcall does.
func caught(m *meter, f func()) {
	defer func() {
		if recover() == nil {
			m.breach = fmt.Errorf("no error was raised")
		}
	}()
	f()
}

// TestMeterStart begins anew after a breach.
func TestMeterStart(t *testing.T) {
	m := started(t.Context(), Limits{Instructions: 1})
	for m.Done() == nil {
		continue
	}
	m.memory = 10
	m.start(t.Context(), Limits{Instructions: 1000})
	for i := range 1000 {
		if m.Done() != nil {
			t.Fatalf("instruction %d of the next call does not run: %v", i, m.Err())
		}
	}
	if m.memory != 0 || m.Err() != nil {
		t.Errorf("the next call begins with %d bytes and error %v", m.memory, m.Err())
	}
}
