package sandbox

import "testing"

// TestTableLibrary has the table library. The results are those of Lua 5.1.
func TestTableLibrary(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Concat":      {"texts and numbers", "table.concat({'a', 1, 2.5}), table.concat({}, ',') .. '.'", "a12.5|.", ""},
		"ConcatRange": {"a range", "table.concat({1, 2, 3}, '-', 2), table.concat({1, 2, 3}, '-', 3, 2) .. '.'", "2-3|.", ""},
		"ConcatHole": {
			"an entry that is missing",
			"table.concat({1, 2}, ',', 1, 3)",
			"",
			"script:6: invalid value (nil) at index 3 in table for concat",
		},
		"ConcatTable": {
			"an entry that is no text",
			"table.concat({'a', {}})",
			"",
			"script:6: invalid value (table) at index 2 in table for concat",
		},
		"ConcatLong": {
			"a range of more than a list may have",
			"table.concat({}, '', 1, 1e9)",
			"",
			"the script went beyond its limit of list (65535 entries)",
		},
		"ConcatOverflow": {
			"a range whose length is no integer",
			"table.concat({}, '', -2^62, 2^62 * 1.5)",
			"",
			"the script went beyond its limit of list (65535 entries)",
		},
		"ConcatLarge": {
			"a text of more than 4 MiB",
			"table.concat({('x'):rep(4194304), 'x'})",
			"",
			"the script went beyond its limit of string (4194304 bytes)",
		},
		"ConcatSeparator": {
			"separators count",
			"table.concat({'', '', ''}, ('x'):rep(2097152))",
			"",
			"the script went beyond its limit of string (4194304 bytes)",
		},
		"ConcatObject": {"a list of an object", "table.concat(observedObj.spec.template.spec.containers[1].args, ',') .. '.'", ".", ""},
		"Insert": {
			"at the end, and in front",
			"(function() local t = {2} table.insert(t, 3) table.insert(t, 1, 1) return table.concat(t, ',') end)()",
			"1,2,3",
			"",
		},
		"InsertEnd": {"one place behind the end", "(function() local t = {1} table.insert(t, 2, 2) return #t end)()", "2", ""},
		"InsertNil": {"nil adds nothing", "(function() local t = {1} table.insert(t, nil) return #t end)()", "1", ""},
		"InsertBeyond": {
			"two places behind the end",
			"table.insert({1}, 3, 1)",
			"",
			"script:6: bad argument #2 to insert (position 3 is out of bounds)",
		},
		"InsertZero": {
			"in front of the first place",
			"table.insert({1}, 0, 1)",
			"",
			"script:6: bad argument #2 to insert (position 0 is out of bounds)",
		},
		"InsertNothing": {"a value is needed", "table.insert({})", "", "script:6: wrong number of arguments to insert"},
		"InsertMany":    {"one value only", "table.insert({}, 1, 2, 3)", "", "script:6: wrong number of arguments to insert"},
		"InsertFull": {
			"into a list that is full",
			"(function() local t = {} t[65535] = 1 table.insert(t, 1) end)()",
			"",
			"the script went beyond its limit of list (65535 entries)",
		},
		"InsertLibrary": {"into a library", "table.insert(string, 1)", "", "script:6: libraries cannot be changed"},
		"Remove": {
			"the last, and the first",
			"(function() local t = {1, 2, 3} return table.remove(t), table.remove(t, 1), table.concat(t, ',') end)()",
			"3|1|2",
			"",
		},
		"RemoveNone": {
			"places that do not exist",
			"select('#', table.remove({})), select('#', table.remove({1}, 2)), select('#', table.remove({1}, 0))",
			"0|0|0",
			"",
		},
		"Sort": {
			"numbers, and texts by their bytes",
			"(function() local t, s = {10, 9, 2}, {'b', 'B', 'a'} table.sort(t) table.sort(s) " +
				"return table.concat(t, ','), table.concat(s, ',') end)()",
			"2,9,10|B,a,b",
			"",
		},
		"SortBy": {
			"by a function",
			"(function() local t = {1, 3, 2} table.sort(t, function(a, b) return a > b end) return table.concat(t, ',') end)()",
			"3,2,1",
			"",
		},
		"SortNilBy": {
			"nil is no function",
			"(function() local t = {2, 1} table.sort(t, nil) return table.concat(t, ',') end)()",
			"1,2",
			"",
		},
		"SortMixed": {"types that have no order", "table.sort({1, 'a'})", "", "script:6: attempt to compare string with number"},
		"SortHole": {
			"a list that has a hole",
			"(function() local t = {1, 2, 3} t[2] = nil table.sort(t) end)()",
			"",
			"script:6: cannot sort a list without an entry 2",
		},
		"SortError": {"an error of the function", "table.sort({1, 2}, function() error('unsorted') end)", "", "script:6: unsorted"},
		"Maxn":      {"the largest index", "table.maxn({1, 2}), table.maxn({}), table.getn({1, 2, 3})", "2|0|3", ""},
		"Unpack":    {"unpack of the library", "table.unpack({1, 2})", "1|2", ""},
		"NoTable":   {"a text is no table", "table.concat('x')", "", "script:6: bad argument #1 to concat (table expected, got string)"},
	})
}

// TestConcatenation has the operator .., which calls replace.
func TestConcatenation(t *testing.T) {
	const meta = "setmetatable({}, {__concat = function(a, b) return " +
		"(type(a) == 'table' and 'T' or a) .. '+' .. (type(b) == 'table' and 'T' or b) end})"
	checkExpressions(t, map[string]expression{
		"Order": {
			"operands are computed from the left",
			"(function() local s = '' local function f(x) s = s .. x return x end local r = f('a') .. f('b') .. f('c') return r, s end)()",
			"abc|abc",
			"",
		},
		"Meta":      {"metamethods of either side, joined from the right", "'a' .. " + meta + " .. 'b'", "aT+b", ""},
		"MetaFirst": {"that of the left one comes first", meta + " .. 'x' .. 'y'", "T+xy", ""},
		"Adjusted": {
			"a call is one operand",
			"(function() local function f() return 'a', 'b' end return f() .. 'c', 'c' .. f() end)()",
			"ac|ca",
			"",
		},
		"Vararg":  {"so is ...", "(function(...) return 'x' .. ... end)('a', 'b')", "xa", ""},
		"Nil":     {"nil is named", "'a' .. observedObj.none", "", "script:6: cannot concatenate a nil"},
		"NilLeft": {"on either side", "observedObj.none .. 'a'", "", "script:6: cannot concatenate a nil"},
		"Boolean": {"so is a boolean", "'a' .. 1 .. true", "", "script:6: cannot concatenate a boolean"},
		"Table":   {"and a table without a metamethod", "'a' .. {} .. 'b'", "", "script:6: cannot concatenate a table"},
		"Largest": {"4 MiB", "#(('x'):rep(4194303) .. 'y')", "4194304", ""},
		"Larger":  {"and no more", "#(('x'):rep(4194304) .. 'y')", "", "the script went beyond its limit of string (4194304 bytes)"},
		"Slowly": {
			"also where metamethods join",
			"#(" + meta + " .. (('x'):rep(4194304) .. 'y'))",
			"",
			"the script went beyond its limit of string (4194304 bytes)",
		},
	})
}
