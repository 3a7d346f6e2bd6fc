package sandbox

import "testing"

// TestPatternClasses has each class of characters, with one that is in it and one that is not.
func TestPatternClasses(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Letters":     {"%a and %A", "('1aZ_'):match('%a+'), ('aZ1_b'):match('%A+')", "aZ|1_", ""},
		"Control":     {"%c and %C", "#('a\\1\\127b'):match('%c+'), ('\\1ab\\2'):match('%C+')", "2|ab", ""},
		"Digits":      {"%d and %D", "('a09b'):match('%d+'), ('0a/:1'):match('%D+')", "09|a/:", ""},
		"Lower":       {"%l and %L", "('Aaz{'):match('%l+'), ('a`{A'):match('%L+')", "az|`{A", ""},
		"Punctuation": {"%p and %P", "('a!/:@[`{~b'):match('%p+'), ('!a1 !'):match('%P+')", "!/:@[`{~|a1 ", ""},
		"Space":       {"%s and %S", "#('a \\t\\n\\v\\f\\rb'):match('%s+'), (' ab '):match('%S+')", "6|ab", ""},
		"Upper":       {"%u and %U", "('aAZ['):match('%u+'), ('A@[a'):match('%U+')", "AZ|@[a", ""},
		"Word":        {"%w and %W", "('_aZ9-'):match('%w+'), ('a_-b'):match('%W+')", "aZ9|_-", ""},
		"Hexadecimal": {"%x and %X", "('g09afAFG'):match('%x+'), ('aGgf'):match('%X+')", "09afAF|Gg", ""},
		"Zero":        {"%z and %Z", "#('a\\0\\0b'):match('%z+'), ('\\0ab\\0'):match('%Z+')", "2|ab", ""},
		"Bytes": {
			"bytes above 127 are of no class",
			"('\\228'):match('%a'), ('\\228'):match('%p'), #('\\228'):match('[^%w]')",
			"nil|nil|1",
			"",
		},
		"Escaped": {"other characters after % are themselves", "('a.b'):match('%.'), ('a%b'):match('%%'), ('a-b'):match('%-')", ".|%|-", ""},
		"EscapedCase": {
			"a character next to a letter in ASCII is no class",
			"('[x'):match('%['), ('{x'):match('%{'), ('@'):match('%@')",
			"[|{|@",
			"",
		},
		"Dot":          {"a dot is any byte", "#('\\n\\0'):match('..')", "2", ""},
		"Set":          {"ranges and classes in a set", "('x5-'):match('[%d%-]+'), ('m'):match('[a-z]'), ('M'):match('[a-z]')", "5-|m|nil", ""},
		"SetRange":     {"both ends of a range", "('amz'):match('[a-m]+'), ('az'):match('[b-y]')", "am|nil", ""},
		"SetEnd":       {"a dash at the end is a character", "('-a'):match('[a-]+'), ('-'):match('[%a-]')", "-a|-", ""},
		"SetFirst":     {"] at the front is a character", "(']a'):match('[]a]+'), ('b]'):match('[^]]')", "]a|b", ""},
		"SetBackwards": {"a range from the larger to the smaller has nothing", "('b'):match('[c-a]')", "nil", ""},
		"SetPercent":   {"%] is a character in a set", "('a]b'):match('[%]]')", "]", ""},
	})
}

// TestPatternItems has repetitions, captures and anchors.
func TestPatternItems(t *testing.T) {
	checkExpressions(t, map[string]expression{
		"Optional":      {"? takes one if it can", "('aab'):match('^a?a?a?b'), ('b'):match('a?b')", "aab|b", ""},
		"OptionalBack":  {"? gives it back", "('ab'):match('a?ab')", "ab", ""},
		"Most":          {"* takes the most, and gives back", "('<a><b>'):match('<.*>'), ('aaa'):match('a*aa')", "<a><b>|aaa", ""},
		"Least":         {"- takes the least", "('<a><b>'):match('<.->'), ('aaa'):match('a-$')", "<a>|aaa", ""},
		"OneOrMore":     {"+ takes one at least", "('aab'):match('a+'), ('b'):match('a+')", "aa|nil", ""},
		"OneAtLeast":    {"+ keeps one", "('aa'):match('a+a'), ('a'):match('a+a')", "aa|nil", ""},
		"Nested":        {"captures in captures, by their opening", "('abc'):match('((a)(b))c')", "ab|a|b", ""},
		"Places":        {"places in front and behind", "('abc'):match('()b()')", "2|3", ""},
		"Reference":     {"a reference to a capture", `('"it\'s"'):match('(["\']).-%1')`, `"`, ""},
		"ReferenceNone": {"that does not fit", "('abac'):match('(%w)x%1')", "nil", ""},
		"Undone":        {"captures of a branch that failed are undone", "('aab'):match('(a*)(a)b')", "a|a", ""},
		"Balance": {
			"balanced pairs",
			"('x(a(b)c)(d)'):match('%b()'), ('((a)'):match('^%b()'), ('xax'):match('%bxx')",
			"(a(b)c)|nil|xax",
			"",
		},
		"Frontier":        {"the border of a set", "('foo bar'):gsub('%f[%w]%w+%f[%W]', '<%0>')", "<foo> <bar>|2", ""},
		"FrontierEnd":     {"also at the end of the text", "('foo'):find('%f[%z]')", "4|3", ""},
		"FrontierNone":    {"not within", "('foo'):find('o%f[o]')", "nil", ""},
		"Anchors":         {"both anchors", "('ab'):match('^ab$'), ('abc'):match('^ab$'), (''):match('^$') == ''", "ab|nil|true", ""},
		"Captures":        {"32 captures", "select('#', ('x'):rep(32):match(('(x)'):rep(32)))", "32", ""},
		"TooMany":         {"and no more", "('x'):rep(33):match(('(x)'):rep(33))", "", "script:6: malformed pattern (too many captures)"},
		"Recursion":       {"items that each may take nothing", "('x'):rep(199):match(('x?'):rep(199)) == ('x'):rep(199)", "true", ""},
		"TooDeep":         {"and no more than 200", "('x'):rep(200):match(('x?'):rep(200))", "", "script:6: malformed pattern (too complex)"},
		"OpenSet":         {"a set that does not end", "('a'):match('[a')", "", "script:6: malformed pattern (missing ']')"},
		"OpenSetPercent":  {"also behind %", "('a'):match('[%')", "", "script:6: malformed pattern (ends with '%')"},
		"EmptySet":        {"[] is not empty, but does not end", "('a'):match('[]')", "", "script:6: malformed pattern (missing ']')"},
		"Percent":         {"% at the end", "('a'):match('a%')", "", "script:6: malformed pattern (ends with '%')"},
		"OpenCapture":     {"a capture that does not end", "('a'):match('(a')", "", "script:6: unfinished capture"},
		"CloseOnly":       {"one that does not begin", "('a'):match('a)')", "", "script:6: malformed pattern (invalid pattern capture)"},
		"ReferenceOpen":   {"a reference within its capture", "('aa'):match('(a%1)')", "", "script:6: malformed pattern (invalid capture index)"},
		"ReferencePlace":  {"a reference to a place", "('aa'):match('()a%1')", "", "script:6: malformed pattern (invalid capture index)"},
		"ReferenceZero":   {"%0 is no reference", "('aa'):match('a%0')", "", "script:6: malformed pattern (invalid capture index)"},
		"BalanceMissing":  {"%b needs two characters", "('a'):match('%b(')", "", "script:6: malformed pattern (missing arguments to '%b')"},
		"FrontierMissing": {"%f needs a set", "('a'):match('%fa')", "", "script:6: malformed pattern (missing '[' after '%f')"},
		"Caught":          {"a script may catch these", "(pcall(string.match, 'a', '[a'))", "false", ""},
	})
}
