package sandbox

import (
	"math/bits"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// newTable is what {} calls: it counts the table.
func newTable(m *machine, l *glua.LState) int {
	m.meter.grow(l, tableCost)
	return 1
}

// smallIndex is the index up to which the room of an array is part of the cost of its table.
const smallIndex = 64

// newKey counts the room that {[k] = v} takes if k is a large index.
func newKey(m *machine, l *glua.LState) int {
	if n, ok := l.Get(1).(glua.LNumber); ok && n > smallIndex && n <= maxList {
		m.meter.grow(l, 32*int(n))
	}
	return 1
}

// setIndex is what t[k] = v calls.
func setIndex(m *machine, l *glua.LState) int {
	if t, ok := l.Get(1).(*glua.LTable); ok {
		m.bridge.fill(l, t)
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
func concatenate(m *machine, l *glua.LState) int {
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
		return concatenateSlowly(m, l, n)
	}
	m.meter.text(l, size)
	var out strings.Builder
	out.Grow(size)
	for i := 1; i <= n; i++ {
		out.WriteString(m.bridge.plain(l.Get(i)))
	}
	l.Push(glua.LString(out.String()))
	return 1
}

// concatenateSlowly asks metamethods for what is neither text nor number.
func concatenateSlowly(m *machine, l *glua.LState, n int) int {
	right := l.Get(n)
	for i := n - 1; i > 0; i-- {
		left := l.Get(i)
		if isText(left) && isText(right) {
			a, b := m.bridge.plain(left), m.bridge.plain(right)
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
			if isText(left) {
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

func isText(value glua.LValue) bool {
	_, wide := asWide(value)
	return wide || glua.LVCanConvToString(value)
}

// openTable makes the table library of Lua 5.1.
func openTable(m *machine) *glua.LTable {
	sort := m.original(glua.OpenTable, glua.TabLibName).RawGetString("sort")
	return m.newLibrary(functions{
		"concat": tableConcat,
		"getn":   func(m *machine, l *glua.LState) int { l.Push(glua.LNumber(m.checkTable(l, 1).Len())); return 1 },
		"insert": tableInsert,
		"maxn":   func(m *machine, l *glua.LState) int { l.Push(glua.LNumber(m.checkTable(l, 1).MaxN())); return 1 },
		"remove": tableRemove,
		"sort":   func(m *machine, l *glua.LState) int { return tableSort(m, l, sort) },
		"unpack": baseUnpack,
	})
}

// tableSort calls sort of the virtual machine, which wants a list without holes.
func tableSort(m *machine, l *glua.LState, sort glua.LValue) int {
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
}

func tableConcat(m *machine, l *glua.LState) int {
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
		if !isText(value) {
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
		out.WriteString(m.bridge.plain(t.RawGetInt(i)))
	}
	l.Push(glua.LString(out.String()))
	return 1
}

func tableInsert(m *machine, l *glua.LState) int {
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

func tableRemove(m *machine, l *glua.LState) int {
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
