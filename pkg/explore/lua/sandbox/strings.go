package sandbox

import (
	"errors"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// openString makes the string library of Lua 5.1, without dump. Texts have its functions as methods.
func openString(m *machine) *glua.LTable {
	library := m.newLibrary(functions{
		"byte": stringByte, "char": stringChar, "find": stringFind, "format": stringFormat, "gmatch": stringGmatch,
		"gsub": stringGsub, "match": stringMatch, "rep": stringRep, "sub": stringSub,
		"len":     func(m *machine, l *glua.LState) int { l.Push(glua.LNumber(len(m.checkText(l, 1)))); return 1 },
		"lower":   mapped(strings.ToLower),
		"upper":   mapped(strings.ToUpper),
		"reverse": mapped(reverse),
	})
	meta := m.state.NewTable()
	meta.RawSetString("__index", library)
	meta.RawSetString("__metatable", glua.LFalse)
	m.state.SetMetatable(glua.LString(""), meta)
	return library
}

// mapped makes a function of texts of one of Go.
func mapped(f func(string) string) function {
	return func(m *machine, l *glua.LState) int {
		text := m.checkText(l, 1)
		m.meter.text(l, len(text))
		made := f(text)
		if len(made) > len(text) { // bytes that are no UTF-8 grow to three each
			m.meter.text(l, len(made))
		}
		l.Push(glua.LString(made))
		return 1
	}
}

func reverse(text string) string {
	out := make([]byte, len(text))
	for i := range len(text) {
		out[len(text)-1-i] = text[i]
	}
	return string(out)
}

// span turns places from 1, negative ones from the end, into a half-open range.
func span(from, to, length int) (int, int) {
	if from < 0 {
		from = max(length+from+1, 1)
	}
	if to < 0 {
		to = length + to + 1
	}
	from, to = max(from, 1), min(to, length)
	if from > to {
		return 0, 0
	}
	return from - 1, to
}

func stringSub(m *machine, l *glua.LState) int {
	text := m.checkText(l, 1)
	from, to := span(l.CheckInt(2), l.OptInt(3, -1), len(text))
	m.meter.grow(l, 16)
	l.Push(glua.LString(text[from:to]))
	return 1
}

func stringByte(m *machine, l *glua.LState) int {
	text := m.checkText(l, 1)
	start := l.OptInt(2, 1)
	from, to := span(start, l.OptInt(3, start), len(text))
	if to-from > maxList {
		m.meter.fail(l, &LimitError{"list", "65535 entries"})
	}
	m.meter.grow(l, 16*(to-from))
	for i := from; i < to; i++ {
		l.Push(glua.LNumber(text[i]))
	}
	return to - from
}

func stringChar(m *machine, l *glua.LState) int {
	out := make([]byte, l.GetTop())
	m.meter.text(l, len(out))
	for i := range out {
		c := l.CheckInt(i + 1)
		if c < 0 || c > 255 {
			l.ArgError(i+1, "invalid value")
		}
		out[i] = byte(c)
	}
	l.Push(glua.LString(out))
	return 1
}

func stringRep(m *machine, l *glua.LState) int {
	text, n := m.checkText(l, 1), l.CheckInt(2)
	if n <= 0 || text == "" {
		l.Push(glua.LString(""))
		return 1
	}
	size := maxText + 1
	if n <= maxText/len(text) {
		size = n * len(text)
	}
	m.meter.text(l, size)
	l.Push(glua.LString(strings.Repeat(text, n)))
	return 1
}

// matchAt matches a pattern at a place, and turns breaches and malformed patterns into errors of the script.
func matchAt(m *machine, l *glua.LState, match *matcher, s, p int) int {
	match.budget = m.meter.limits.Instructions - m.meter.steps
	match.steps = 0
	end, err := match.match(s, p)
	m.meter.steps += match.steps
	if errors.Is(err, errSteps) {
		if m.meter.checkLimits(); m.meter.breach != nil {
			m.meter.fail(l, m.meter.breach)
		}
		m.meter.fail(l, &LimitError{"instructions", "steps of a pattern"})
	}
	if err != nil {
		l.RaiseError("%s", err.Error())
	}
	m.meter.spend(l, 0)
	return end
}

// pushCaptures pushes the captures of a match; the whole match if there are none and whole is set.
func pushCaptures(m *machine, l *glua.LState, match *matcher, s, e int, whole bool) int {
	if match.level == 0 && whole {
		l.Push(glua.LString(match.subject[s:e]))
		return 1
	}
	for i := range match.level {
		l.Push(captured(m, l, match, i))
	}
	m.meter.grow(l, 32*match.level)
	return match.level
}

func captured(m *machine, l *glua.LState, match *matcher, i int) glua.LValue {
	c := match.captures[i]
	switch c.length {
	case position:
		return glua.LNumber(c.start + 1)
	case unclosed:
		l.RaiseError("unfinished capture")
	}
	return glua.LString(match.subject[c.start : c.start+c.length])
}

func stringFind(m *machine, l *glua.LState) int  { return search(m, l, true) }
func stringMatch(m *machine, l *glua.LState) int { return search(m, l, false) }

func search(m *machine, l *glua.LState, find bool) int {
	text, pattern := m.checkText(l, 1), m.checkText(l, 2)
	start := l.OptInt(3, 1)
	if start < 0 {
		start = max(len(text)+start+1, 1)
	}
	start = max(start, 1) - 1
	if start > len(text) {
		l.Push(glua.LNil)
		return 1
	}
	if find && (l.ToBool(4) || !strings.ContainsAny(pattern, "^$*+?.([%-")) {
		m.meter.spend(l, (len(text)-start)/64)
		at := strings.Index(text[start:], pattern)
		if at < 0 {
			l.Push(glua.LNil)
			return 1
		}
		l.Push(glua.LNumber(start + at + 1))
		l.Push(glua.LNumber(start + at + len(pattern)))
		return 2
	}
	match := &matcher{subject: text, pattern: pattern}
	p := 0
	if strings.HasPrefix(pattern, "^") {
		p = 1
	}
	for s := start; s <= len(text); s++ {
		if e := matchAt(m, l, match, s, p); e >= 0 {
			if !find {
				return pushCaptures(m, l, match, s, e, true)
			}
			l.Push(glua.LNumber(s + 1))
			l.Push(glua.LNumber(e))
			return 2 + pushCaptures(m, l, match, s, e, false)
		}
		m.meter.spend(l, 1)
		if p == 1 {
			break
		}
	}
	l.Push(glua.LNil)
	return 1
}

func stringGmatch(m *machine, l *glua.LState) int {
	match := &matcher{subject: m.checkText(l, 1), pattern: m.checkText(l, 2)}
	s := 0
	m.meter.grow(l, 1<<10)
	l.Push(l.NewFunction(func(l *glua.LState) int {
		for ; s <= len(match.subject); s++ {
			e := matchAt(m, l, match, s, 0)
			m.meter.spend(l, 1)
			if e < 0 {
				continue
			}
			at := s
			if s = e; e == at {
				s++
			}
			return pushCaptures(m, l, match, at, e, true)
		}
		return 0
	}))
	return 1
}

func stringGsub(m *machine, l *glua.LState) int {
	text, pattern := m.checkText(l, 1), m.checkText(l, 2)
	replacement := l.CheckAny(3)
	switch replacement.Type() {
	case glua.LTString, glua.LTNumber, glua.LTTable, glua.LTFunction:
	default:
		l.ArgError(3, "string, function or table expected, got "+replacement.Type().String())
	}
	limit := l.OptInt(4, len(text)+1)
	p := 0
	if strings.HasPrefix(pattern, "^") {
		p = 1
	}
	match := &matcher{subject: text, pattern: pattern}
	var out strings.Builder
	count, s := 0, 0
	for count < limit {
		e := matchAt(m, l, match, s, p)
		m.meter.spend(l, 1)
		if e >= 0 {
			count++
			appendText(m, l, &out, replaced(m, l, match, replacement, s, e))
		}
		switch {
		case e > s:
			s = e
		case s < len(text):
			appendText(m, l, &out, text[s:s+1])
			s++
		default:
			s++
		}
		if s > len(text) || p == 1 {
			break
		}
	}
	if s < len(text) {
		appendText(m, l, &out, text[s:])
	}
	l.Push(glua.LString(out.String()))
	l.Push(glua.LNumber(count))
	return 2
}

// appendText adds to a text that is being built, within the limits.
func appendText(m *machine, l *glua.LState, out *strings.Builder, text string) {
	if out.Len()+len(text) > maxText {
		m.meter.text(l, out.Len()+len(text))
	}
	m.meter.grow(l, 2*len(text))
	out.WriteString(text)
}

// replaced is what takes the place of a match.
func replaced(m *machine, l *glua.LState, match *matcher, replacement glua.LValue, s, e int) string {
	whole := match.subject[s:e]
	var value glua.LValue
	switch r := replacement.(type) {
	case *glua.LTable:
		var key glua.LValue = glua.LString(whole)
		if match.level > 0 {
			key = captured(m, l, match, 0)
		}
		value = l.GetTable(r, key)
	case *glua.LFunction:
		// The function may itself match: captures are pushed before it runs.
		l.Push(r)
		l.Call(pushCaptures(m, l, match, s, e, true), 1)
		value = l.Get(-1)
		l.Pop(1)
	default:
		return expand(m, l, match, m.bridge.plain(replacement), whole)
	}
	switch {
	case glua.LVIsFalse(value):
		return whole
	case isText(value):
		return m.bridge.plain(value)
	}
	l.RaiseError("invalid replacement value (a %s)", value.Type().String())
	return ""
}

// expand replaces %0 to %9 in a replacement.
func expand(m *machine, l *glua.LState, match *matcher, template, whole string) string {
	if !strings.Contains(template, "%") {
		return template
	}
	var out strings.Builder
	for i := 0; i < len(template); i++ {
		if template[i] != '%' {
			out.WriteByte(template[i])
			continue
		}
		i++
		if i == len(template) {
			l.RaiseError("%s", "invalid use of '%' in replacement string")
		}
		switch c := template[i]; {
		case c == '0' || c == '1' && match.level == 0:
			appendText(m, l, &out, whole)
		case c >= '1' && c <= '9':
			if int(c-'1') >= match.level {
				l.RaiseError("invalid capture index")
			}
			appendText(m, l, &out, m.bridge.plain(captured(m, l, match, int(c-'1'))))
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}
