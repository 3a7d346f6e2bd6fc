package sandbox

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMalformedInput runs scripts that want to bring the process down. Each must end within bounds of time and memory, also
// under -race, and as the breach of a limit where one is named.
func TestMalformedInput(t *testing.T) {
	for name, tc := range map[string]struct{ script, limit string }{
		"loop":              {"while true do end", "instructions"},
		"loop in pcall":     {"while true do pcall(function() while true do end end) end", "instructions"},
		"loop in xpcall":    {"while true do xpcall(function() while true do end end, function() while true do end end) end", "instructions"},
		"array":             {"local t = {} t[67108862] = 1 t[65534] = 1 return t", ""},
		"many arrays":       {"local k = {} for i = 1, 1e6 do local t = {} t[65000] = 1 k[i] = t end", "memory"},
		"arrays in a list":  {"local k = {} for i = 1, 1e6 do k[i] = {[65000] = 1} end", "memory"},
		"arrays by swap":    {"local k = {} for i = 1, 1e6 do local t = {} t[65000], k[i] = 1, t end", "memory"},
		"arrays by rawset":  {"local k = {} for i = 1, 1e6 do local t = {} rawset(t, 65000, 1) k[i] = t end", "memory"},
		"arrays by meta":    {"local k = {} for i = 1, 1e6 do local t = {} local s = setmetatable({}, {__newindex = t}) s[65000] = 1 k[i] = t end", "memory"},
		"doubling":          {"local s = 'x' while true do s = s .. s end", "string"},
		"doubling in pcall": {"local s = 'x' while true do pcall(function() s = s .. s end) end", "string"},
		"keeping":           {"local k, s = {}, ('x'):rep(100000) for i = 1, 1e6 do k[i] = s .. i end", "memory"},
		"rep":               {"return ('x'):rep(1073741824)", "string"},
		"rep of rep":        {"local k = {} for i = 1, 1e6 do k[i] = ('x'):rep(1000000) end", "memory"},
		"format":            {"return string.format('%1073741824d', 1)", ""},
		"format many":       {"local k = {} for i = 1, 1e6 do k[i] = string.format(('%99d'):rep(1000), 1) end", ""},
		"format text":       {"local s = ('x'):rep(1000000) local k = {} for i = 1, 1e6 do k[i] = string.format('%s%s%s', s, s, s) end", "memory"},
		"gsub":              {"local s = ('x'):rep(100000) return (s:gsub('x', s))", "string"},
		"gsub table":        {"local s = ('x'):rep(10000) for i = 1, 100 do s = s:gsub('x', {x = 'xx'}) end", ""},
		"concat":            {"local t, s = {}, ('x'):rep(100000) for i = 1, 60000 do t[i] = s end return table.concat(t)", "string"},
		"unpack":            {"return unpack({}, 1, 1e9)", "list"},
		"unpack many":       {"local t = {} for i = 1, 60000 do t[i] = i end local function f(...) return select('#', ...) end while true do f(unpack(t)) end return {}", ""},
		"pattern":           {"return ('a'):rep(300):find(('.-'):rep(10) .. 'b')", "instructions"},
		"pattern stars":     {"return ('a'):rep(30):find(('a*'):rep(30) .. 'b')", "instructions"},
		"pattern set":       {"return ('a'):rep(100000):find('[' .. ('b'):rep(100000) .. ']')", "instructions"},
		"pattern gmatch":    {"for x in ('a'):rep(3000000):gmatch('.-.-.-.-b') do end", "instructions"},
		"recursion":         {"local function f() return 1 + f() end return f()", ""},
		"recursion pcall":   {"local function f() pcall(f) pcall(f) end f() return {}", "memory"},
		"metatable chain":   {"local t = {} for i = 1, 1e5 do t = setmetatable({}, {__index = t}) end return {x = t.x}", "memory"},
		"metatable circle":  {"local t = {} setmetatable(t, {__index = t}) return {x = t.x}", ""},
		"index function":    {"local t = setmetatable({}, {__index = function(t, k) return t[k .. 'x'] end}) return {x = t.x}", ""},
		"tostring":          {"local t = setmetatable({}, {__tostring = function(t) return tostring(t) end}) return {tostring(t)}", ""},
		"sort":              {"local t = {} for i = 1, 60000 do t[i] = i % 7 end while true do table.sort(t) end", "instructions"},
		"sort liar":         {"local t = {} for i = 1, 1000 do t[i] = i end table.sort(t, function() return true end) return {}", ""},
		"insert first":      {"local t = {} while true do table.insert(t, 1, 1) end", ""},
		"length":            {"local t = {} t[65000] = 1 t[65000] = nil local n = 0 while true do n = n + #t end", ""},
		"tables":            {"local k = {} for i = 1, 1e6 do local t = {} t.a = 1 t[1] = 1 t[0.5] = 1 k[i] = t end", "memory"},
		"closures":          {"local k = {} for i = 1, 1e6 do k[i] = function() return i end end return {}", "instructions"},
		"keys":              {"local k = {} for i = 1, 1e6 do k[i + 0.5] = i end", "instructions"},
		"deep":              {"local t = {} for i = 1, 10000 do t = {t} end return t", "depth"},
		"bomb":              {"local t = {1} for i = 1, 60 do t = {t, t} end return t", "output"},
		"output":            {"local t, s = {}, ('x'):rep(100000) for i = 1, 100 do t[i] = s end return t", "output"},
		"error":             {"error(setmetatable({}, {__tostring = function() while true do end end}))", ""},
		"error in handler":  {"xpcall(error, function() error('x') end) return {}", ""},
		"lists":             {"local k = {} while true do k[#k + 1] = 1 end", ""},
		"upper":             {"local s, k = ('x'):rep(1000000), {} while true do k[#k + 1] = s:upper() end", "memory"},
		"compare":           {"local a = ('x'):rep(4000000) local b = ('x'):rep(4000000) while true do local c = a < b end", ""},
	} {
		t.Run(name, func(t *testing.T) {
			script := tc.script
			if !strings.Contains(script, "return") {
				script += " return {}"
			}
			s, err := Compile(script, status)
			if err != nil {
				t.Fatal(err)
			}
			p := NewPool(Limits{Instructions: 1_000_000, Time: 2 * time.Second, Memory: 64 << 20, Output: 3 << 20, Depth: 100})
			call := Call{Script: s, Arguments: []any{object(t, deployment)}, Results: 1, Now: noon()}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			ctx, cancel := p.WithTimeout(t.Context())
			defer cancel()
			err = p.Run(ctx, call, func(results []Value) error { _, err := results[0].JSON(); return err })
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if took > 5*time.Second {
				t.Errorf("took %v", took)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 400<<20 {
				t.Errorf("allocated %d MiB", used>>20)
			}
			var breach *LimitError
			if tc.limit != "" && (!errors.As(err, &breach) || breach.Limit != tc.limit && breach.Limit != "time") {
				t.Errorf("error %v: want the breach of %q (or of time, on a slow machine)", err, tc.limit)
			}
			t.Logf("%v, %d MiB: %v", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, err)
		})
	}
}

// TestHostileSource compiles sources that want to bring the compiler down.
func TestHostileSource(t *testing.T) {
	for name, source := range map[string]string{
		"large":       "return '" + strings.Repeat("x", 300_000) + "'",
		"parentheses": "return " + strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000),
		"tables":      "return " + strings.Repeat("{", 100_000) + strings.Repeat("}", 100_000),
		"not":         "return " + strings.Repeat("not ", 60_000) + "1",
		"minus":       "return " + strings.Repeat("- ", 100_000) + "1",
		"plus":        "return 1" + strings.Repeat("+1", 100_000),
		"functions":   strings.Repeat("return function() ", 10_000) + strings.Repeat(" end", 10_000),
		"ifs":         strings.Repeat("if x then ", 10_000) + "return 1 " + strings.Repeat("end ", 10_000),
		"locals":      strings.Repeat("local a ", 300) + "return a",
		"calls":       "return f" + strings.Repeat("()", 100_000),
		"binary":      "return \x00\xff\x1bLua",
		"number":      "return 0x" + strings.Repeat("f", 100_000),
		"unfinished":  "return [==[" + strings.Repeat("x", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			if _, err := Compile(source, status); err != nil && len(err.Error()) > 2000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	t.Run("a chain of 1000 operands", func(t *testing.T) {
		made, err := ask(t, status, "return {x = 'a'"+strings.Repeat(" .. 1", 1000)+"}", object(t, deployment))
		if err != nil || made.(map[string]any)["x"] != "a"+strings.Repeat("1", 1000) {
			t.Errorf("%v %v", made, err)
		}
	})
}
