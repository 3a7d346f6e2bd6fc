package sandbox

import (
	"fmt"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// stringFormat is string.format of Lua 5.1. Widths and precisions have two digits at most, as there.
func stringFormat(m *machine, l *glua.LState) int {
	format := m.checkText(l, 1)
	var out strings.Builder
	argument := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			plain := strings.IndexByte(format[i:], '%')
			if plain < 0 {
				plain = len(format) - i
			}
			appendText(m, l, &out, format[i:i+plain])
			i += plain - 1
			continue
		}
		i++
		if i < len(format) && format[i] == '%' {
			appendText(m, l, &out, "%")
			continue
		}
		flags := directive(format[i:])
		if flags < 0 {
			l.RaiseError("invalid option in string.format: %s", strconv.Quote("%"+format[min(i, len(format)):]))
		}
		argument++
		appendText(m, l, &out, formatted(m, l, argument, format[i:i+flags], format[i+flags]))
		i += flags
		m.meter.spend(l, 1)
	}
	m.meter.text(l, out.Len())
	l.Push(glua.LString(out.String()))
	return 1
}

// directive is how many flags and digits come before the verb; -1 if there is none, or too many digits.
func directive(text string) int {
	i := 0
	for i < len(text) && strings.IndexByte("-+ #0", text[i]) >= 0 {
		i++
	}
	if i > 5 {
		return -1
	}
	for part := range 2 {
		if part == 1 {
			if i >= len(text) || text[i] != '.' {
				break
			}
			i++
		}
		digits := 0
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
			digits++
		}
		if digits > 2 {
			return -1
		}
	}
	if i >= len(text) || strings.IndexByte("cdiouxXeEfgGqs", text[i]) < 0 {
		return -1
	}
	return i
}

func formatted(m *machine, l *glua.LState, n int, flags string, verb byte) string {
	if n > l.GetTop() {
		l.ArgError(n, "no value")
	}
	switch verb {
	case 's':
		text := m.text(l, l.Get(n))
		m.meter.grow(l, len(text))
		return fmt.Sprintf("%"+flags+"s", text)
	case 'q':
		return quoted(m.checkText(l, n))
	case 'c':
		return fmt.Sprintf("%"+flags+"s", string([]byte{byte(l.CheckInt(n))}))
	case 'd', 'i':
		return fmt.Sprintf("%"+flags+"d", m.checkWhole(l, n))
	case 'o', 'u', 'x', 'X':
		if verb == 'u' {
			verb = 'd'
		}
		return fmt.Sprintf("%"+flags+string(verb), uint64(m.checkWhole(l, n)))
	}
	value := l.Get(n)
	if whole, wide := asWide(value); wide {
		return fmt.Sprintf("%"+flags+string(verb), float64(whole))
	}
	return fmt.Sprintf("%"+flags+string(verb), float64(m.checkNumber(l, n)))
}

// quoted is text as a literal of Lua.
func quoted(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(text) {
		switch c := text[i]; c {
		case '"', '\\', '\n':
			out.WriteByte('\\')
			out.WriteByte(c)
		case '\r':
			out.WriteString(`\r`)
		case 0:
			out.WriteString(`\000`)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
