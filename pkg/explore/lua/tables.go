package lua

import (
	"math/bits"
	"strconv"
	"strings"
	"time"

	glua "github.com/yuin/gopher-lua"
)

// newTable is what {} calls: it counts the table.
func (m *machine) newTable(l *glua.LState) int {
	m.meter.grow(l, tableCost)
	return 1
}

// smallIndex is the index up to which the room of an array is part of the cost of its table.
const smallIndex = 64

// newKey counts the room that {[k] = v} takes if k is a large index.
func (m *machine) newKey(l *glua.LState) int {
	if n, ok := l.Get(1).(glua.LNumber); ok && n > smallIndex && n <= maxList {
		m.meter.grow(l, 32*int(n))
	}
	return 1
}

// setIndex is what t[k] = v calls.
func (m *machine) setIndex(l *glua.LState) int {
	if t, ok := l.Get(1).(*glua.LTable); ok {
		m.fill(l, t)
		m.reserve(l, t, l.Get(2))
	}
	l.SetTable(l.Get(1), l.Get(2), l.Get(3))
	return 0
}

// reserve counts the room that an array takes up to an index.
func (m *machine) reserve(l *glua.LState, t *glua.LTable, key glua.LValue) {
	n, ok := key.(glua.LNumber)
	if !ok || n <= smallIndex || n > maxList || n != glua.LNumber(int(n)) {
		return
	}
	if t.Metatable != glua.LNil || int(n) > t.MaxN()+1 {
		m.meter.grow(l, 32*int(n))
	}
}

// concatenate is what a..b..c calls. Operands join from the right, as metamethods may see.
func (m *machine) concatenate(l *glua.LState) int {
	n := l.GetTop()
	size, plain := 0, true
	for i := 1; i <= n; i++ {
		switch v := l.Get(i).(type) {
		case glua.LString:
			size += len(v)
		case glua.LNumber:
			size += 24
		default:
			_, wide := asWide(v)
			size, plain = size+24, plain && wide
		}
	}
	if !plain {
		return m.concatenateSlowly(l, n)
	}
	m.meter.text(l, size)
	var out strings.Builder
	out.Grow(size)
	for i := 1; i <= n; i++ {
		out.WriteString(m.plain(l.Get(i)))
	}
	l.Push(glua.LString(out.String()))
	return 1
}

// concatenateSlowly asks metamethods for what is neither text nor number.
func (m *machine) concatenateSlowly(l *glua.LState, n int) int {
	right := l.Get(n)
	for i := n - 1; i > 0; i-- {
		left := l.Get(i)
		if m.isText(left) && m.isText(right) {
			a, b := m.plain(left), m.plain(right)
			m.meter.text(l, len(a)+len(b))
			right = glua.LString(a + b)
			continue
		}
		f := l.GetMetaField(left, "__concat")
		if f == glua.LNil {
			f = l.GetMetaField(right, "__concat")
		}
		if f.Type() != glua.LTFunction {
			wrong := left
			if m.isText(left) {
				wrong = right
			}
			l.RaiseError("cannot concatenate a %s", wrong.Type().String())
		}
		l.Push(f)
		l.Push(left)
		l.Push(right)
		l.Call(2, 1)
		right = l.Get(-1)
		l.Pop(1)
	}
	l.Push(right)
	return 1
}

func (m *machine) isText(value glua.LValue) bool {
	_, wide := asWide(value)
	return wide || glua.LVCanConvToString(value)
}

// tableLibrary is the table library of Lua 5.1.
func (m *machine) tableLibrary() *glua.LTable {
	original := m.original(glua.OpenTable, glua.TabLibName)
	sort := original.RawGetString("sort")
	return m.state.SetFuncs(m.state.NewTable(), map[string]glua.LGFunction{
		"concat": m.tableConcat,
		"getn":   func(l *glua.LState) int { l.Push(glua.LNumber(m.checkTable(l, 1).Len())); return 1 },
		"insert": m.tableInsert,
		"maxn":   func(l *glua.LState) int { l.Push(glua.LNumber(m.checkTable(l, 1).MaxN())); return 1 },
		"remove": m.tableRemove,
		"sort": func(l *glua.LState) int {
			t := m.checkOwn(l, 1)
			n := t.Len()
			for i := 1; i <= n; i++ {
				if t.RawGetInt(i) == glua.LNil {
					l.RaiseError("cannot sort a list without an entry %d", i)
				}
			}
			m.meter.spend(l, n*bits.Len(uint(n)))
			args := l.GetTop()
			l.Push(sort)
			for i := 1; i <= min(args, 2) && l.Get(i) != glua.LNil; i++ {
				l.Push(l.Get(i))
			}
			l.Call(l.GetTop()-args-1, 0)
			return 0
		},
		"unpack": m.unpack,
	})
}

func (m *machine) tableConcat(l *glua.LState) int {
	t := m.checkTable(l, 1)
	separator := l.OptString(2, "")
	from, to := l.OptInt(3, 1), l.OptInt(4, t.Len())
	if to-from > maxList || to-from < 0 {
		if to < from {
			l.Push(glua.LString(""))
			return 1
		}
		m.meter.fail(l, &LimitError{"list", strconv.Itoa(maxList) + " entries"})
	}
	size := 0
	for i := from; i <= to; i++ {
		value := t.RawGetInt(i)
		if !m.isText(value) {
			l.RaiseError("invalid value (%s) at index %d in table for concat", value.Type().String(), i)
		}
		size += len(separator) + 24
		if text, ok := value.(glua.LString); ok {
			size += len(text) - 24
		}
	}
	m.meter.spend(l, to-from)
	m.meter.text(l, size)
	var out strings.Builder
	out.Grow(size)
	for i := from; i <= to; i++ {
		if i > from {
			out.WriteString(separator)
		}
		out.WriteString(m.plain(t.RawGetInt(i)))
	}
	l.Push(glua.LString(out.String()))
	return 1
}

func (m *machine) tableInsert(l *glua.LState) int {
	t := m.checkOwn(l, 1)
	n := t.Len()
	if n >= maxList {
		m.meter.fail(l, &LimitError{"list", strconv.Itoa(maxList) + " entries"})
	}
	m.meter.grow(l, entryCost)
	switch l.GetTop() {
	case 2:
		if l.Get(2) != glua.LNil {
			t.RawSetInt(n+1, l.Get(2))
		}
	case 3:
		at := l.CheckInt(2)
		if at < 1 || at > n+1 {
			l.RaiseError("bad argument #2 to insert (position %d is out of bounds)", at)
		}
		m.meter.spend(l, (n-at)/8)
		for i := n; i >= at; i-- {
			t.RawSetInt(i+1, t.RawGetInt(i))
		}
		t.RawSetInt(at, l.Get(3))
	default:
		l.RaiseError("wrong number of arguments to insert")
	}
	return 0
}

func (m *machine) tableRemove(l *glua.LState) int {
	t := m.checkOwn(l, 1)
	n := t.Len()
	at := l.OptInt(2, n)
	if at < 1 || at > n {
		return 0
	}
	m.meter.spend(l, (n-at)/8)
	l.Push(t.RawGetInt(at))
	for i := at; i < n; i++ {
		t.RawSetInt(i, t.RawGetInt(i+1))
	}
	t.RawSetInt(n, glua.LNil)
	return 1
}

// mathLibrary is the math library of Lua 5.1, whose random numbers are the same in each call.
func (m *machine) mathLibrary() *glua.LTable {
	library := m.original(glua.OpenMath, glua.MathLibName)
	return m.state.SetFuncs(library, map[string]glua.LGFunction{
		"randomseed": func(*glua.LState) int { return 0 },
		"random": func(l *glua.LState) int {
			if l.GetTop() == 0 {
				l.Push(glua.LNumber(m.rand().Float64()))
				return 1
			}
			low, high := int64(1), l.CheckInt64(1)
			if l.GetTop() > 1 {
				low, high = high, l.CheckInt64(2)
			}
			if high < low {
				l.RaiseError("bad argument to random: the interval from %d to %d is empty", low, high)
			}
			if high-low+1 <= 0 {
				l.RaiseError("bad argument to random: the interval from %d to %d is too large", low, high)
			}
			l.Push(glua.LNumber(low + m.rand().Int64N(high-low+1)))
			return 1
		},
	})
}

// osLibrary tells the time of the reconcile, in UTC.
func (m *machine) osLibrary() *glua.LTable {
	return m.state.SetFuncs(m.state.NewTable(), map[string]glua.LGFunction{
		"time":  m.osTime,
		"clock": func(l *glua.LState) int { l.Push(glua.LNumber(0)); return 1 },
		"date":  m.osDate,
	})
}

func (m *machine) osTime(l *glua.LState) int {
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

func (m *machine) osDate(l *glua.LState) int {
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
