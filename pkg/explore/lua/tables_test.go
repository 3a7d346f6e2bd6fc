package lua

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

// TestMath has what differs from the library of the virtual machine.
func TestMath(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Same": {
			"random numbers do not depend on the seed",
			"(function() math.randomseed(7) local a = math.random() return a > 0 and a < 1 end)()",
			"true",
			"",
		},
		"Upper": {"from 1", "math.random(1)", "1", ""},
		"Both":  {"both bounds", "math.random(-3, -3), math.random(2^53, 2^53)", "-3|9007199254740992", ""},
		"Within": {
			"within the bounds",
			"(function() for i = 1, 100 do local r = math.random(3, 5) if r < 3 or r > 5 then return r end end return 'within' end)()",
			"within",
			"",
		},
		"Zero":  {"no number from 1 to 0", "math.random(0)", "", "script:6: bad argument to random: the interval from 1 to 0 is empty"},
		"Empty": {"no number between", "math.random(2, 1)", "", "script:6: bad argument to random: the interval from 2 to 1 is empty"},
		"TooLarge": {
			"more numbers than an integer holds",
			"math.random(-1023, 2^63 - 1024)",
			"",
			"script:6: bad argument to random: the interval from -1023 to 9223372036854774784 is too large",
		},
		"FarTooFar": {
			"by far",
			"math.random(-2^63, 2^63 - 1024)",
			"",
			"script:6: bad argument to random: the interval from -9223372036854775808 to 9223372036854774784 is too large",
		},
		"Text":      {"a text is no bound", "math.random('x')", "", "script:6: bad argument #1 to random (number expected, got string)"},
		"Rounding":  {"floor and ceil", "math.floor(-1.5), math.ceil(-1.5), math.floor(2^40 + 0.5)", "-2|-1|1099511627776", ""},
		"Remainder": {"% has the sign of the divisor, fmod that of the dividend", "-5 % 3, 5 % -3, math.fmod(-5, 3)", "1|-1|-2", ""},
		"Several":   {"the largest and the smallest", "math.max(2, 7, 5), math.min(2, -7, 5), math.abs(-2)", "7|-7|2", ""},
	})
}

// TestDates has os.date and os.time; the clock says noon of 3 February 2026, a Tuesday.
func TestDates(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Default": {"the form of C", "os.date()", "Tue Feb  3 12:00:00 2026", ""},
		"Days":    {"days", "os.date('%a %A %d %e %j %w')", "Tue Tuesday 03  3 034 2", ""},
		"Months":  {"months and years", "os.date('%b %B %m %y %Y')", "Feb February 02 26 2026", ""},
		"Hours":   {"times", "os.date('%H %I %M %p %S %X %T', 13 * 3600 + 62)", "13 01 01 PM 02 13:01:02 13:01:02", ""},
		"Forms":   {"whole dates", "os.date('%D %F %x', 0)", "01/01/70 1970-01-01 01/01/70", ""},
		"Seconds": {"seconds since 1970", "os.date('%s', 86400), os.time()", "86400|1770120000", ""},
		"Zone":    {"the zone is UTC, with and without !", "os.date('%z %Z'), os.date('!%H'), os.date('%H')", "+0000 UTC|12|12", ""},
		"Percent": {"% itself, at the end, and before others", "os.date('%%'), os.date('x%'), os.date('%Q')", "%|x%|Q", ""},
		"Table": {
			"the parts",
			"(function() local t = os.date('*t', 0) return t.year, t.month, t.day, t.hour, t.min, t.sec, t.wday, t.yday, t.isdst end)()",
			"1970|1|1|0|0|0|5|1|false",
			"",
		},
		"TableUTC": {"also behind !", "os.date('!*t', 3600).hour", "1", ""},
		"Negative": {"before 1970", "os.date('%F', -86400)", "1969-12-31", ""},
		"Parts":    {"the time of parts", "os.time({year = 1970, month = 1, day = 2, hour = 3, min = 4, sec = 5})", "97445", ""},
		"Noon":     {"noon, if there is no hour", "os.time({year = 1970, month = 1, day = 1})", "43200", ""},
		"Overflow": {"parts beyond their range go on", "os.time({year = 1970, month = 13, day = 0, hour = 24})", "31536000", ""},
		"Missing":  {"a part is missing", "os.time({year = 2026, month = 2})", "", "script:6: field 'day' missing in date table"},
		"Text":     {"a text is no part", "os.time({year = '2026', month = 2, day = 3})", "", "script:6: field 'year' missing in date table"},
		"NoTable":  {"a number is no table", "os.time(5)", "", "script:6: bad argument #1 to time (table expected, got number)"},
		"Clock":    {"the clock of the process stands still", "os.clock()", "0", ""},
		"NoProcess": {
			"there is no way to the process",
			"os.exit, os.execute, os.getenv, os.remove, os.rename, os.tmpname",
			"nil|nil|nil|nil|nil|nil",
			"",
		},
		"LongForm": {
			"the length of the form is bounded",
			"os.date(('%c'):rep(200000))",
			"",
			"the script went beyond its limit of string (4194304 bytes)",
		},
	})
}
