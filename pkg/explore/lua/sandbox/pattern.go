package sandbox

import (
	"errors"
	"fmt"
)

// matcher matches Lua 5.1 patterns by backtracking, as lstrlib.c does, and counts its steps: some patterns take time
// that is exponential in their length, whatever the length of the subject.
type matcher struct {
	subject, pattern string
	level            int
	captures         [maxCaptures]capture
	depth            int
	steps            int
	budget           int
}

type capture struct {
	start, length int
}

const (
	maxCaptures  = 32
	unclosed     = -1
	position     = -2
	maxRecursion = 200
)

// errSteps is the breach of a matcher's budget.
var errSteps = errors.New("steps of a pattern")

// errDepth is the error of a pattern that recurs too deeply.
var errDepth error = patternError("too complex")

// patternError is a malformed pattern.
type patternError string

func (e patternError) Error() string { return "malformed pattern (" + string(e) + ")" }

// match tries to match a pattern at a place of the subject. It returns the end of the match, or -1.
func (m *matcher) match(s, p int) (end int, err error) {
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(error)
			if !ok {
				panic(r)
			}
			end, err = -1, failure
		}
	}()
	m.level, m.depth = 0, 0
	return m.do(s, p), nil
}

func (m *matcher) step() {
	m.steps++
	if m.steps > m.budget {
		panic(errSteps)
	}
}

// descend counts a level of recursion.
func (m *matcher) descend() {
	m.depth++
	if m.depth > maxRecursion {
		panic(errDepth)
	}
}

func fail(format string, args ...any) { panic(patternError(fmt.Sprintf(format, args...))) }

// do matches the subject from s on with the pattern from p on, and returns where the match ends, or -1 if there is none.
func (m *matcher) do(s, p int) int {
	m.descend()
	defer func() { m.depth-- }()
	for s >= 0 && p < len(m.pattern) {
		m.step()
		switch m.pattern[p] {
		case '(':
			return m.open(s, p+1)
		case ')':
			return m.close(s, p+1)
		case '$', '%':
			if next, at, special := m.special(s, p); special {
				s, p = next, at
				continue
			}
		}
		end := m.classEnd(p)
		switch m.quantifier(end) {
		case '?':
			if m.single(s, p, end) {
				if found := m.do(s+1, end+1); found >= 0 {
					return found
				}
			}
			p = end + 1
		case '*':
			return m.most(s, p, end, 0)
		case '+':
			return m.most(s, p, end, 1)
		case '-':
			return m.least(s, p, end)
		default:
			if !m.single(s, p, end) {
				return -1
			}
			s, p = s+1, end
		}
	}
	return s
}

// matchEnd matches the end of the subject.
func (m *matcher) matchEnd(s int) int {
	if s == len(m.subject) {
		return s
	}
	return -1
}

// quantifier returns the character behind a class, which may say how often the class is matched, or 0 if there is none.
func (m *matcher) quantifier(end int) byte {
	if end < len(m.pattern) {
		return m.pattern[end]
	}
	return 0
}

// special handles %b, %f, back references, and a $ at the end; the last result is false for what is an ordinary class.
func (m *matcher) special(s, p int) (next, at int, is bool) {
	if m.pattern[p] == '$' {
		return m.matchEnd(s), p + 1, p+1 == len(m.pattern)
	}
	if p+1 == len(m.pattern) {
		return 0, 0, false
	}
	switch c := m.pattern[p+1]; {
	case c == 'b':
		return m.balance(s, p+2), p + 4, true
	case c == 'f':
		p += 2
		if p >= len(m.pattern) || m.pattern[p] != '[' {
			fail("missing '[' after '%%f'")
		}
		end := m.classEnd(p)
		var before, here byte
		if s > 0 {
			before = m.subject[s-1]
		}
		if s < len(m.subject) {
			here = m.subject[s]
		}
		if !m.set(before, p, end-1) && m.set(here, p, end-1) {
			return s, end, true
		}
		return -1, end, true
	case c >= '0' && c <= '9':
		return m.back(s, c), p + 2, true
	}
	return 0, 0, false
}

// open begins a capture, whose parenthesis is before p: of a place if it is empty, else of what is matched until its end.
func (m *matcher) open(s, p int) int {
	what := unclosed
	if p < len(m.pattern) && m.pattern[p] == ')' {
		what, p = position, p+1
	}
	if m.level >= maxCaptures {
		fail("too many captures")
	}
	m.captures[m.level] = capture{s, what}
	m.level++
	found := m.do(s, p)
	if found < 0 {
		m.level--
	}
	return found
}

func (m *matcher) close(s, p int) int {
	last := -1
	for i := m.level - 1; i >= 0; i-- {
		if m.captures[i].length == unclosed {
			last = i
			break
		}
	}
	if last < 0 {
		fail("invalid pattern capture")
	}
	m.captures[last].length = s - m.captures[last].start
	found := m.do(s, p)
	if found < 0 {
		m.captures[last].length = unclosed
	}
	return found
}

// most matches a class as often as it can, and then less often.
func (m *matcher) most(s, p, end, least int) int {
	n := 0
	for m.single(s+n, p, end) {
		m.step()
		n++
	}
	for ; n >= least; n-- {
		m.step()
		if found := m.do(s+n, end+1); found >= 0 {
			return found
		}
	}
	return -1
}

// least matches a class as seldom as it can, and then more often.
func (m *matcher) least(s, p, end int) int {
	for {
		m.step()
		if found := m.do(s, end+1); found >= 0 {
			return found
		}
		if !m.single(s, p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pattern) {
		fail("missing arguments to '%%b'")
	}
	if s >= len(m.subject) || m.subject[s] != m.pattern[p] {
		return -1
	}
	open, shut, depth := m.pattern[p], m.pattern[p+1], 1
	for i := s + 1; i < len(m.subject); i++ {
		m.step()
		switch m.subject[i] {
		case shut:
			if depth--; depth == 0 {
				return i + 1
			}
		case open:
			depth++
		}
	}
	return -1
}

func (m *matcher) back(s int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.captures[i].length == unclosed {
		fail("invalid capture index")
	}
	c := m.captures[i]
	if c.length == position {
		fail("invalid capture index")
	}
	m.steps += c.length / 64
	if len(m.subject)-s < c.length || m.subject[c.start:c.start+c.length] != m.subject[s:s+c.length] {
		return -1
	}
	return s + c.length
}

// classEnd is where the class that begins at p ends.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pattern) {
			fail("ends with '%%'")
		}
		return p + 1
	case '[':
		if p < len(m.pattern) && m.pattern[p] == '^' {
			p++
		}
		for first := true; ; first = false {
			m.step()
			if p >= len(m.pattern) {
				fail("missing ']'")
			}
			c := m.pattern[p]
			p++
			if c == '%' {
				if p >= len(m.pattern) {
					fail("ends with '%%'")
				}
				p++
			} else if c == ']' && !first {
				return p
			}
		}
	}
	return p
}

// single reports whether there is a character at s, and it matches the class from p to end.
func (m *matcher) single(s, p, end int) bool {
	return s < len(m.subject) && m.class(m.subject[s], p, end)
}

// class reports whether a character matches the class from p to end.
func (m *matcher) class(c byte, p, end int) bool {
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		return m.set(c, p, end-1)
	}
	return m.pattern[p] == c
}

// set reports whether the set [...] contains a character; end is the index of its closing bracket.
func (m *matcher) set(c byte, p, end int) bool {
	in := true
	p++
	if m.pattern[p] == '^' {
		in = false
		p++
	}
	for p < end {
		m.step()
		switch {
		case m.pattern[p] == '%' && p+1 < end:
			p++
			if inClass(c, m.pattern[p]) {
				return in
			}
			p++
		case p+2 < end && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return in
			}
			p += 3
		default:
			if m.pattern[p] == c {
				return in
			}
			p++
		}
	}
	return !in
}

// inClass reports whether a character is in the class %k, in the C locale.
func inClass(c, k byte) bool {
	var in bool
	letter := func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
	digit := c >= '0' && c <= '9'
	switch k | 0x20 {
	case 'a':
		in = letter(c)
	case 'c':
		in = c < 0x20 || c == 0x7f
	case 'd':
		in = digit
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > 0x20 && c < 0x7f && !letter(c) && !digit
	case 's':
		in = c == ' ' || c >= '\t' && c <= '\r'
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = letter(c) || digit
	case 'x':
		in = digit || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return c == k
	}
	if !letter(k) {
		return c == k
	}
	return in != (k >= 'A' && k <= 'Z')
}
