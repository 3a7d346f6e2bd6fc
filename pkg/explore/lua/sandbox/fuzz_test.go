package sandbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// FuzzRun compiles and runs scripts twice on the machines of one pool: both calls end alike, whatever the first one did to its machine, and
// within the limits, and the argument stays.
func FuzzRun(f *testing.F) {
	for _, seed := range []string{
		"return observedObj", "return {own.count(1, nil), own.text(5), own.table({1, {a = 'x'}})}", "return {pcall(own.wrong)}", "own.strange()",
		"function ReflectStatus(o) o.spec.replicas = nil return o end", "observedObj.a[3] = observedObj.wide return observedObj",
		"local t = {} for k in pairs(string) do t[#t + 1] = k end return t", "return {tostring({}), tostring(print), tostring(observedObj)}",
		"x = (x or 0) + 1 string = nil return {x, math.random(), os.date()}", "setmetatable(observedObj, {__index = function(t, k) return k end}) return {observedObj.q}",
		"local s = 'x' while true do s = s .. s end return s", "local t = {} t[1], t[60000] = 2, {} return t", "return {observedObj.wide + 1, -observedObj.twin, observedObj.wide .. ''}",
		"return {select(2, xpcall(error, function(e) return {e} end))}", "return table.concat({('a-b'):gsub('(%w)-(%w)', '%2-%1')}, ' ')", "error({observedObj})",
		"for w in ('a b'):gmatch('%a') do _G[w] = w end return {a, b}", "return {('%5.2s|%q'):format('abc', '\\n')}", "goto e do local a = 1 end ::e:: return {next(observedObj.empty)}",
	} {
		f.Add(seed)
	}
	p := NewPool(Limits{Instructions: 20_000, Time: time.Minute, Memory: 4 << 20, Output: 1 << 16, Depth: 20}, own())
	const text = `{"kind":"X","spec":{"replicas":2},"a":[1,null,"x"],"empty":{},"none":[],"wide":9007199254740993,"twin":9007199254740992}`
	argument, before := object(f, text), object(f, text)
	f.Fuzz(func(t *testing.T, source string) {
		first, firstErr := run(t, p, status, source, argument, argument)
		again, err := run(t, p, status, source, argument, argument)
		if diff := cmp.Diff([]any{first, fmt.Sprint(firstErr)}, []any{again, fmt.Sprint(err)}); diff != "" {
			t.Fatalf("the second call ends otherwise (-first +second):\n%s", diff)
		}
		if !cmp.Equal(argument, before) {
			t.Fatal("the script changed the caller's object")
		}
		var breach *LimitError
		if errors.As(err, &breach) && breach.Limit == "time" {
			t.Fatalf("%d instructions took a minute", 20_000)
		}
		if err == nil && len(compact(t, first)) > 6<<16 { // a byte of text may take six, as in �
			t.Fatalf("the result has %d bytes", len(compact(t, first)))
		}
	})
}
