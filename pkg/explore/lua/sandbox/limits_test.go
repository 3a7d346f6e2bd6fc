package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestSpending has work in library functions that no instruction of the virtual machine counts.
func TestSpending(t *testing.T) {
	limits := Limits{Instructions: 20_000, Time: time.Minute, Memory: 8 << 20, Output: 1 << 20, Depth: 10}
	const instructions = "the script went beyond its limit of instructions (20000)"
	const memory = "the script went beyond its limit of memory (8388608 bytes)"
	for name, tc := range map[string]struct{ reason, script, err string }{
		"Find":        {"plain search", "local s = ('x'):rep(1e6) for i = 1, 10 do s:find('y', 1, true) end", instructions},
		"Steps":       {"steps of a pattern", "return {('x'):rep(200):find('.-.-.-y')}", instructions},
		"Set":         {"characters of a set", "return {('x'):rep(100):find('[' .. ('b'):rep(1000) .. ']')}", instructions},
		"Balanced":    {"characters between brackets", "return {('('):rep(1000):find('%b()')}", instructions},
		"Gmatch":      {"places that do not match", "for m in ('x'):rep(50000):gmatch('y') do local a = m end", instructions},
		"Gsub":        {"places that are copied", "local s = ('x'):rep(50000):gsub('y', '')", instructions},
		"Format":      {"verbs", "local f = ('%s'):rep(100) for i = 1, 400 do f:format(unpack(list)) end", instructions},
		"Concat":      {"entries", "for i = 1, 100 do table.concat(list) end", instructions},
		"Sort":        {"comparisons", "for i = 1, 100 do table.sort(list) end", instructions},
		"Insert":      {"entries that are moved", "for i = 1, 400 do table.insert(list, 1, 1) end", instructions},
		"Remove":      {"entries that are moved back", "for i = 1, 400 do table.remove(list, 1) list[#list + 1] = 1 end", instructions},
		"Unpack":      {"values", "for i = 1, 100 do select('#', unpack(list)) end", instructions},
		"Own":         {"functions of another library", "for i = 1, 20 do own.spend() end", instructions},
		"Errors":      {"errors that are caught", "for i = 1, 200 do pcall(error, 'x') end", instructions},
		"Copies":      {"copies of a text", "local s, k = ('x'):rep(1e6), {} for i = 1, 8 do k[i] = s:reverse() end", instructions},
		"Joined":      {"texts that are joined", "local s, k = ('x'):rep(1e6), {} for i = 1, 8 do k[i] = s .. i end", instructions},
		"Bytes":       {"bytes as numbers", "local s = ('x'):rep(60000) for i = 1, 10 do select('#', s:byte(1, 60000)) end", memory},
		"Tables":      {"tables", "for i = 1, 3000 do local t = {} end", memory},
		"Places":      {"places in front of a far one", "for i = 1, 5 do local t = {} t[60000] = 1 end", memory},
		"RawPlaces":   {"also by rawset", "for i = 1, 5 do rawset({}, 60000, 1) end", memory},
		"Constructed": {"and in a constructor", "for i = 1, 5 do local t = {[60000] = 1} end", memory},
		"Replaced":    {"replacements", "local s = ('x'):rep(4000):gsub('x', ('y'):rep(1200))", memory},
		"Dates":       {"dates", "local f = ('%c'):rep(100000) for i = 1, 3 do os.date(f) end", instructions},
		"Within": {
			"a little of each is within the limits",
			"local s = ('x'):rep(1e4) s:find('y') table.sort(list) local t = {} t[60000] = 1",
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := "local list = {} for i = 1, 1000 do list[i] = i end "
			_, err := run(t, NewPool(limits, own()), status, list+wrap(tc.script), object(t, deployment))
			if got := fmt.Sprint(err); got != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

// wrap ends a script that returns nothing.
func wrap(script string) string {
	if strings.HasPrefix(script, "return") {
		return script
	}
	return script + " return {}"
}
