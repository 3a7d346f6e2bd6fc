package sandbox

import "testing"

// TestNumerals converts texts to numbers as Lua 5.1 does.
func TestNumerals(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Decimal":     {"digits", "tonumber('42')", "42", ""},
		"Fraction":    {"a point, and nothing in front of it", "tonumber('.5'), tonumber('-.5'), tonumber('5.')", "0.5|-0.5|5", ""},
		"Exponent":    {"an exponent with a sign", "tonumber('1e-2'), tonumber('1E+2')", "0.01|100", ""},
		"Signs":       {"one sign at most", "tonumber('+5'), tonumber('-5'), tonumber('--5'), tonumber('-')", "5|-5|nil|nil", ""},
		"Space":       {"space of each sort around it", "tonumber(' \\t\\n\\v\\f\\r7 \\t'), tonumber('7 8'), tonumber(' ')", "7|nil|nil", ""},
		"Hexadecimal": {"hexadecimal in either case", "tonumber('0xfF'), tonumber('0XA'), tonumber('-0x10')", "255|10|-16", ""},
		"NoDigits":    {"digits must follow 0x", "tonumber('0x'), tonumber('0xg'), tonumber('-0x')", "nil|nil|nil", ""},
		"Go": {
			"what only Go reads is no numeral",
			"tonumber('1_000'), tonumber('0b1'), tonumber('0o7'), tonumber('inf'), tonumber('nan'), tonumber('0x1p4')",
			"nil|nil|nil|nil|nil|nil",
			"",
		},
		"Bases": {
			"integers in other bases",
			"tonumber('zz', 36), tonumber('777', 8), tonumber('-101', 2), tonumber('FF', 16)",
			"1295|511|-5|255",
			"",
		},
		"BaseDigits": {
			"digits that the base has not",
			"tonumber('8', 8), tonumber('2', 2), tonumber('1.5', 8), tonumber('', 8), tonumber('-', 16)",
			"nil|nil|nil|nil|nil",
			"",
		},
		"BasePrefix": {"0x belongs to bases 10 and 16", "tonumber('0x10', 16), tonumber('0x10', 8)", "16|nil", ""},
		"BaseBounds": {"bases from 2 to 36", "tonumber('1', 1), tonumber('1', 37), tonumber('1', 36), tonumber('1', 2)", "nil|nil|1|1", ""},
		"BaseLarge": {
			"integers of 64 bits at most",
			"tonumber('ffffffffffffffff', 16) > 1e19, tonumber('10000000000000000', 16)",
			"true|nil",
			"",
		},
		"Long":         {"texts of 400 bytes at most", "tonumber(('0'):rep(399) .. '1'), tonumber(('0'):rep(400) .. '1')", "1|nil", ""},
		"Range":        {"beyond the range of a float64", "tonumber('1e400'), tonumber('-1e400'), tonumber('1e-400')", "nil|nil|0", ""},
		"Number":       {"a number stays", "tonumber(1.5), tonumber(7, 10)", "1.5|7", ""},
		"Others":       {"nothing else is a number", "tonumber(nil), tonumber(true), tonumber({}), tonumber(print)", "nil|nil|nil|nil", ""},
		"NoArgument":   {"an argument is needed", "tonumber()", "", "script:6: bad argument #1 to tonumber (value expected)"},
		"Arithmetic":   {"operators read the same numerals", "'10' + 5, '0x10' * 2, -'3'", "15|32|-3", ""},
		"NoArithmetic": {"operators refuse other texts", "'ten' + 5", "", "script:6: cannot perform add operation between string and number"},
	})
}

func TestToString(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Whole": {
			"whole numbers have neither point nor exponent",
			"1e15, -1e15, 2^53, 100 / 2",
			"1000000000000000|-1000000000000000|9007199254740992|50",
			"",
		},
		"Zero":  {"zero has no sign", "-0, 0 * -1", "0|0", ""},
		"Large": {"beyond 64 bits an exponent", "2^63, 1e20, -2^63", "9.223372036854776e+18|1e+20|-9223372036854775808", ""},
		"Numbered": {
			"tables and functions are numbered in the order of asking",
			"tostring({}), tostring(print), tostring({})",
			"table: 1|function: 2|table: 3",
			"",
		},
		"SameNumber": {"the same one has the same number", "tostring(print) == tostring(print), tostring({}) == tostring({})", "true|false", ""},
		"Metamethod": {
			"__tostring answers for a table",
			"setmetatable({n = 'x'}, {__tostring = function(t) return 'my ' .. t.n end})",
			"my x",
			"",
		},
		"NoFunction": {"one that is no function counts as none", "setmetatable({}, {__tostring = 'x'})", "table: 1", ""},
		"Wrong": {
			"it returns a string",
			"setmetatable({}, {__tostring = function() return {} end})",
			"",
			"script:3: __tostring must return a string",
		},
		"NumberWrong": {
			"a number is none",
			"setmetatable({}, {__tostring = function() return 5 end})",
			"",
			"script:3: __tostring must return a string",
		},
		"None": {"an argument is needed", "tostring()", "", "script:6: bad argument #1 to tostring (value expected)"},
	})
}

// TestErrors has the functions that raise and catch errors.
func TestErrors(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Caught": {"pcall returns the message with its line", "pcall(error, 'bad')", "false|script:6: bad", ""},
		"Level":  {"the line of the function that raises it", "pcall(function() error('bad') end)", "false|script:6: bad", ""},
		"Table": {
			"an error may be a table",
			"(function() local ok, e = pcall(error, {code = 7}) return ok, e.code end)()",
			"false|7",
			"",
		},
		"Arguments":  {"pcall passes arguments on", "pcall(function(...) return select('#', ...), ... end, 1, nil, 3)", "true|3|1|nil|3", ""},
		"Nested":     {"an error in the caught function's caller", "pcall(pcall, error, 'x')", "true|false|script:6: x", ""},
		"NoFunction": {"what is no function cannot be called", "(pcall(5))", "false", ""},
		"NoArgument": {"pcall needs an argument", "pcall()", "", "script:6: bad argument #1 to pcall (value expected)"},
		"Handler": {
			"the handler of xpcall sees the error",
			"xpcall(function() error({1}) end, function(e) return type(e) .. #e end)",
			"false|table1",
			"",
		},
		"Success":       {"xpcall returns all values", "xpcall(function() return 1, nil, 3 end, print)", "true|1|nil|3", ""},
		"NoHandler":     {"xpcall needs a handler", "xpcall(print)", "", "script:6: bad argument #2 to xpcall (function expected, got nil)"},
		"Assert":        {"assert passes its arguments on", "assert(1, 2, 3)", "1|2|3", ""},
		"AssertFalse":   {"assert raises its second one", "assert(nil, 'no replicas')", "", "script:6: no replicas"},
		"AssertDefault": {"or a message of its own", "assert(false)", "", "script:6: assertion failed!"},
		"Index": {
			"an index into nil names the type",
			"observedObj.none.x",
			"",
			"script:6: attempt to index a non-table object(nil) with key 'x'",
		},
		"Call": {"so does a call of nil", "observedObj.none()", "", "script:6: attempt to call a non-function object"},
	})
}

// TestRequire has the modules that scripts find.
func TestRequire(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Libraries": {
			"each library is a module, too",
			"require('string') == string, require('table') == table, require('math') == math, require('os') == os, require('own') == own",
			"true|true|true|true|true",
			"",
		},
		"Others": {"there is no other", "require('io')", "", `script:6: module "io" does not exist: there are string, table, math, os, own`},
		"Quoted": {
			"its name is quoted",
			"require('a\\n')",
			"",
			`script:6: module "a\n" does not exist: there are string, table, math, os, own`,
		},
		"Function": {
			"a global function is none",
			"require('print')",
			"",
			`script:6: module "print" does not exist: there are string, table, math, os, own`,
		},
		"NoName": {"a name is a text", "require({})", "", "script:6: bad argument #1 to require (string expected, got table)"},
	})
}

// TestTables has the functions of the base library that read and write tables, also those that no one has read before.
func TestTables(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Next": {
			"next goes through an object in the order of its keys",
			"next(observedObj.metadata), (next(observedObj.metadata, 'name'))",
			"name|namespace",
			"",
		},
		"NextEnd":     {"after the last there is nil", "next(observedObj.metadata, 'namespace')", "nil", ""},
		"NextEmpty":   {"an empty table has no next", "next({}), next(observedObj.spec.template.metadata.labels)", "nil|nil", ""},
		"NextLibrary": {"a library has entries", "next(own) ~= nil, type((next(string)))", "true|string", ""},
		"RawGet": {
			"rawget reads what nothing has read before",
			"rawget(observedObj.spec, 'replicas'), rawget(observedObj.spec, 'none')",
			"2|nil",
			"",
		},
		"RawGetNoMeta":    {"rawget asks no metamethod", "rawget(setmetatable({}, {__index = {x = 1}}), 'x')", "nil", ""},
		"RawSet":          {"rawset returns the table", "rawset({}, 'x', 1).x", "1", ""},
		"RawSetNoMeta":    {"and asks no metamethod", "rawset(setmetatable({}, {__newindex = error}), 'x', 1).x", "1", ""},
		"RawEqual":        {"rawequal compares tables by identity", "rawequal({}, {}), rawequal(print, print)", "false|true", ""},
		"Metatable":       {"the metatable of an object is none", "getmetatable(observedObj.spec), getmetatable({})", "nil|nil", ""},
		"StringMetatable": {"that of texts is hidden", "getmetatable('')", "false", ""},
		"Protected":       {"__metatable stands for it", "getmetatable(setmetatable({}, {__metatable = 'mine'}))", "mine", ""},
		"NoChange": {
			"and protects it",
			"setmetatable(setmetatable({}, {__metatable = 'mine'}), {})",
			"",
			"script:6: cannot change a protected metatable",
		},
		"Removed": {"nil takes a metatable away", "setmetatable(setmetatable({}, {__index = {x = 1}}), nil).x", "nil", ""},
		"LazyMetatable": {
			"an object may be a metatable, before it was read",
			"setmetatable({}, {__index = observedObj.metadata}).name",
			"web",
			"",
		},
		"NoTable": {
			"only tables get one",
			"setmetatable('x', {})",
			"",
			"script:6: bad argument #1 to setmetatable (table expected, got string)",
		},
		"WrongMeta": {
			"a metatable is a table or nil",
			"setmetatable({}, 5)",
			"",
			"script:6: bad argument #2 to setmetatable (nil or table expected, got number)",
		},
		"Select":         {"select counts from the end, too", "select(-1, 'a', 'b'), select('#')", "b|0", ""},
		"Unpack":         {"unpack with bounds beyond the list", "unpack({1, 2}, 0, 3)", "nil|1|2|nil", ""},
		"UnpackNone":     {"an empty interval", "select('#', unpack({1, 2}, 3, 2))", "0", ""},
		"UnpackLargest":  {"65535 values at most", "select('#', unpack({}, 1, 65535))", "65535", ""},
		"UnpackTooLarge": {"and no more", "unpack({}, 1, 65536)", "", "the script went beyond its limit of list (65535 entries)"},
		"UnpackRange": {
			"an interval whose length is no integer",
			"unpack({}, -2^62, 2^62 * 1.5)",
			"",
			"the script went beyond its limit of list (65535 entries)",
		},
		"Ipairs": {
			"ipairs ends before nil",
			"(function() local n = 0 for i, v in ipairs({1, 2, nil, 4}) do n = n + v end return n end)()",
			"3",
			"",
		},
		"IpairsObject": {
			"ipairs on a list of an object",
			"(function() for i, c in ipairs(observedObj.spec.template.spec.containers) do return i, c.name end end)()",
			"1|a",
			"",
		},
		"PairsText": {"pairs wants a table", "pairs('x')", "", "script:6: bad argument #1 to pairs (table expected, got string)"},
		"Type": {
			"type of each sort",
			"type(nil), type(true), type(1), type('x'), type({}), type(print), type(observedObj)",
			"nil|boolean|number|string|table|function|table",
			"",
		},
		"TypeNone": {"type needs an argument", "type()", "", "script:6: bad argument #1 to type (value expected)"},
		"Quiet":    {"print and collectgarbage do nothing", "print('x'), collectgarbage('count')", "nil|0", ""},
		"Version":  {"the version is that of the language", "_VERSION", "Lua 5.1", ""},
	})
}
