package sandbox

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/gopher-lua/pm"
)

// TestStrings runs the string library; the results are those of the reference implementation of Lua 5.1.
func TestStrings(t *testing.T) {
	for script, want := range map[string]any{
		`("hello world"):find("o w")`:                           []any{5, 7},
		`("hello"):find("l+")`:                                  []any{3, 4},
		`("hello"):find("(h)(.)")`:                              []any{1, 2, "h", "e"},
		`("a.b"):find(".", 1, true)`:                            []any{2, 2},
		`("a+b"):find("+", 2)`:                                  []any{2, 2},
		`("hello"):find("xyz")`:                                 []any{},
		`("hello"):find("")`:                                    []any{1, 0},
		`("hello"):find("", 6)`:                                 []any{6, 5},
		`("hello"):find("", 7)`:                                 []any{},
		`("hello"):find("l", -2)`:                               []any{4, 4},
		`("hello"):match("^(h)(.-)(o)$")`:                       []any{"h", "ell", "o"},
		`("key = value"):match("^(%w+)%s*=%s*(%w+)$")`:          []any{"key", "value"},
		`("2026-01-02"):match("(%d+)-(%d+)-(%d+)")`:             []any{"2026", "01", "02"},
		`("hello"):match("()ll()")`:                             []any{3, 5},
		`("f(a(b)c)d"):match("%b()")`:                           []any{"(a(b)c)"},
		`("THE (quick) fox"):find("%((%a+)%)")`:                 []any{5, 11, "quick"},
		`("THE (quick) fox"):gsub("%f[%a]%a+", "x")`:            []any{"x (x) x", 3},
		`("abab"):match("(ab)%1")`:                              []any{"ab"},
		`("[x]"):match("[]]")`:                                  []any{"]"},
		`("a-b"):match("[a%-]+")`:                               []any{"a-"},
		`("a-b"):match("[^-]+")`:                                []any{"a"},
		`("x^y"):match("[x^]+")`:                                []any{"x^"},
		`("hello world"):gsub("o", "0")`:                        []any{"hell0 w0rld", 2},
		`("hello"):gsub("", "-")`:                               []any{"-h-e-l-l-o-", 6},
		`("hello"):gsub("l", {l = "L"})`:                        []any{"heLLo", 2},
		`("hello"):gsub("(h)(e)", "%2%1%0%%")`:                  []any{"ehhe%llo", 1},
		`("hello"):gsub("l", function(c) return c:upper() end)`: []any{"heLLo", 2},
		`("hello"):gsub("l", function() return nil end)`:        []any{"hello", 2},
		`("abc"):gsub("%w", "%0%0", 2)`:                         []any{"aabbc", 2},
		`("abc"):gsub("^a", "x")`:                               []any{"xbc", 1},
		`("  trim  "):gsub("^%s*(.-)%s*$", "%1")`:               []any{"trim", 1},
		`("hello"):sub(2, -2)`:                                  []any{"ell"},
		`("hello"):sub(-3)`:                                     []any{"llo"},
		`("hello"):sub(0)`:                                      []any{"hello"},
		`("hello"):sub(4, 2)`:                                   []any{""},
		`("hello"):sub(-100, 100)`:                              []any{"hello"},
		`("A"):byte()`:                                          []any{65},
		`("ABC"):byte(1, -1)`:                                   []any{65, 66, 67},
		`("ABC"):byte(10)`:                                      []any{},
		`string.char(72, 105)`:                                  []any{"Hi"},
		`("ab"):rep(3)`:                                         []any{"ababab"},
		`("ab"):rep(-1)`:                                        []any{""},
		`("abc"):reverse():upper():lower():len()`:               []any{3},
		`string.format("%5d|%-5s|%05.1f|%x|%q|%%|%c", 42, "a", 3.14159, 255, 'a"b', 65)`:                       []any{`   42|a    |003.1|ff|"a\"b"|%|A`},
		`string.format("%s %s %s", nil, true, {1} ~= nil)`:                                                     []any{"nil true true"},
		`string.format("%d", "10")`:                                                                            []any{"10"},
		`string.format("%5.2s|", "abc")`:                                                                       []any{"   ab|"},
		`tonumber("0x10"), tonumber("1e3"), tonumber(" 5 "), tonumber("5x"), tonumber("ff", 16), tonumber("")`: []any{16, 1000, 5, nil, 255},
		`tostring(1.5), tostring(100), tostring(1e15), tostring(nil), tostring(true)`:                          []any{"1.5", "100", "1000000000000000", "nil", "true"},
		`table.concat({1, "a", 2.5}, ", ")`:                                                                    []any{"1, a, 2.5"},
		`table.concat({1, 2, 3}, "-", 2, 3)`:                                                                   []any{"2-3"},
		`unpack({1, 2, 3}, 2)`:                                                                                 []any{2, 3},
		`select("#", 1, nil, 2), select(2, "a", "b")`:                                                          []any{3, "b"},
		`1 .. 2, "a" .. 1.5, -1 .. ""`:                                                                         []any{"12", "a1.5", "-1"},
		`math.max(1, 3, 2), math.floor(1.7), math.huge > 1`:                                                    []any{3, 1, true},
		`pcall(function() error("x", 0) end)`:                                                                  []any{false, "x"},
		`xpcall(function() error("x", 0) end, function(m) return m .. "y" end)`:                                []any{false, "xy"},
		`pcall(function() return 1, 2 end)`:                                                                    []any{true, 1, 2},
	} {
		t.Run(script, func(t *testing.T) {
			made, err := ask(t, status, "local t = {"+script+"} return {list = t}", object(t, deployment))
			if strings.Contains(script, "nil, 255") || strings.Contains(script, `"5x"`) {
				if err == nil {
					t.Error("a list with a hole went through")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(compact(t, want), compact(t, listOf(made))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, script := range []string{`("a"):find("[a")`, `("a"):find("%")`, `("a"):find("(a")`, `("a"):match("a)")`, `("a"):find("%1")`, `("a"):find("%b")`, `("a"):find("%f")`, `("a"):gsub("a", "%")`, `("a"):gsub("a", "%2")`, `string.format("%y", 1)`, `string.format("%d")`, `string.format("%d", {})`} {
		if _, err := ask(t, status, "return {list = {"+script+"}}", object(t, deployment)); err == nil {
			t.Errorf("%s went through", script)
		}
	}
}

// FuzzPattern compares the matcher with that of gopher-lua on patterns that both understand alike.
func FuzzPattern(f *testing.F) {
	for _, pair := range [][2]string{{"hello", "l+"}, {"key=value", "(%w+)=(%w+)"}, {"a(b)c", "%b()"}, {"aaa", "a-b"}, {"x", "^x$"}, {"12ab", "[%d%a]*"}, {"abab", "(ab)%1"}, {"a-z", "[a-z]+"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, subject, pattern string) {
		if len(subject) > 40 || len(pattern) > 20 {
			return
		}
		m := &matcher{subject: subject, pattern: strings.TrimPrefix(pattern, "^"), budget: 20_000}
		start, end := -1, -1
		var failure error
		for s := 0; s <= len(subject) && failure == nil && end < 0; s++ {
			start = s
			end, failure = m.match(s, 0)
			if m.steps > m.budget+64 {
				t.Fatalf("%d steps", m.steps)
			}
			if pattern != m.pattern {
				break
			}
		}
		if !harmless(pattern) || errors.Is(failure, errSteps) {
			return
		}
		found, err := pm.Find(pattern, []byte(subject), 0, 1)
		if err != nil || failure != nil {
			return // what is malformed differs in details
		}
		if (end < 0) != (len(found) == 0) {
			t.Fatalf("%q in %q: ends at %d, gopher-lua finds %d", pattern, subject, end, len(found))
		}
		if end >= 0 && (start != found[0].Capture(0) || end != found[0].Capture(1)) {
			t.Fatalf("%q in %q: %d to %d, gopher-lua %d to %d", pattern, subject, start, end, found[0].Capture(0), found[0].Capture(1))
		}
	})
}

// harmless patterns mean the same to both: gopher-lua's has no %f, reads sets in its own way, takes $ in captures and
// repeated specials for characters, and keeps captures of branches that failed.
func harmless(pattern string) bool {
	return !strings.ContainsAny(pattern, "[]$") && !strings.Contains(pattern, "%f") && !strings.Contains(pattern, "%b") &&
		!strings.ContainsAny(strings.ReplaceAll(pattern, "%%", ""), "()0123456789") && !strings.HasPrefix(strings.TrimPrefix(pattern, "^"), "^") && pattern != ""
}
