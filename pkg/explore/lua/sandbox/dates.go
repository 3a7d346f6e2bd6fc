package sandbox

import (
	"strconv"
	"strings"
	"time"

	glua "github.com/yuin/gopher-lua"
)

// openOS makes the part of the os library of Lua 5.1 that tells the time of the call, in UTC.
func openOS(m *machine) *glua.LTable {
	return m.newLibrary(functions{
		"time":  osTime,
		"clock": func(_ *machine, l *glua.LState) int { l.Push(glua.LNumber(0)); return 1 },
		"date":  osDate,
	})
}

func osTime(m *machine, l *glua.LState) int {
	if l.GetTop() == 0 || l.Get(1) == glua.LNil {
		l.Push(glua.LNumber(m.now.Unix()))
		return 1
	}
	t := m.checkTable(l, 1)
	field := func(name string, otherwise int) int {
		n, ok := t.RawGetString(name).(glua.LNumber)
		if !ok && otherwise < 0 {
			l.RaiseError("field '%s' missing in date table", name)
		}
		if !ok {
			return otherwise
		}
		return int(n)
	}
	at := time.Date(field("year", -1), time.Month(field("month", -1)), field("day", -1), field("hour", 12), field("min", 0), field("sec", 0),
		0, time.UTC)
	l.Push(glua.LNumber(at.Unix()))
	return 1
}

// dates maps conversions of strftime to layouts of Go.
var dates = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02", 'D': "01/02/06", 'e': "_2",
	'F': "2006-01-02", 'H': "15", 'I': "03", 'j': "002", 'm': "01", 'M': "04", 'p': "PM", 'S': "05", 'T': "15:04:05", 'x': "01/02/06",
	'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
}

func osDate(m *machine, l *glua.LState) int {
	format := strings.TrimPrefix(l.OptString(1, "%c"), "!")
	at := m.now.UTC()
	if l.GetTop() > 1 && l.Get(2) != glua.LNil {
		at = time.Unix(l.CheckInt64(2), 0).UTC()
	}
	if strings.HasPrefix(format, "*t") {
		m.meter.grow(l, tableCost)
		t := l.NewTable()
		for _, f := range []struct {
			name  string
			value int
		}{{"year", at.Year()}, {"month", int(at.Month())}, {"day", at.Day()}, {"hour", at.Hour()}, {"min", at.Minute()}, {"sec", at.Second()},
			{"wday", int(at.Weekday()) + 1}, {"yday", at.YearDay()}} {
			t.RawSetString(f.name, glua.LNumber(f.value))
		}
		t.RawSetString("isdst", glua.LFalse)
		l.Push(t)
		return 1
	}
	m.meter.text(l, 16*len(format))
	var out strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			out.WriteByte(format[i])
			continue
		}
		i++
		layout, known := dates[format[i]]
		switch {
		case known:
			out.WriteString(at.Format(layout))
		case format[i] == 's':
			out.WriteString(strconv.FormatInt(at.Unix(), 10))
		case format[i] == 'w':
			out.WriteString(strconv.Itoa(int(at.Weekday())))
		default:
			out.WriteByte(format[i])
		}
	}
	l.Push(glua.LString(out.String()))
	return 1
}
