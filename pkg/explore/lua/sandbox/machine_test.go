package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMachineAfterErrors runs a script again after each sort of error: its machines must be as new.
func TestMachineAfterErrors(t *testing.T) {
	p := NewPool(Limits{Instructions: 10_000, Time: time.Minute, Memory: 8 << 20, Output: 1 << 10, Depth: 10})
	call := func(script string) (any, error) { return run(t, p, status, script, object(t, deployment)) }
	for _, tc := range []struct{ script, err string }{
		{"while true do local x = 1 end return {}", "the script went beyond its limit of instructions (10000)"},
		{"for i = 1, 9 do local t = {} t[60000] = i end return {}", "the script went beyond its limit of memory (8388608 bytes)"},
		{"return {x = ('x'):rep(1024)}", "the script went beyond its limit of output (1024 bytes)"},
		{"local function f() return 1 + f() end return {f()}", "stack overflow"},
		{"pcall(function() while true do local x = 1 end end) return {}", "the script went beyond its limit of instructions (10000)"},
		{"local x = ('x'):rep(2e6) return {}", "<nil>"},
	} {
		_, err := call(tc.script)
		if got, _, _ := strings.Cut(fmt.Sprint(err), "\n"); !strings.HasSuffix(got, tc.err) {
			t.Errorf("%s: error %q, want %q", tc.script, got, tc.err)
		}
		made, err := call("return {a = tostring({}), b = math.random(100), c = observedObj.spec.replicas, d = leaked}")
		if diff := cmp.Diff(map[string]any{"a": "table: 1", "b": int64(77), "c": int64(2)}, made); err != nil || diff != "" {
			t.Errorf("after %s: error %v (-want +got):\n%s", tc.script, err, diff)
		}
	}
}
