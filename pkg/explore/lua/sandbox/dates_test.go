package sandbox

import "testing"

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
