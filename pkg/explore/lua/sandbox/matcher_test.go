package sandbox

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// TestClasses compares each class of characters with the functions of package unicode, for each byte.
func TestClasses(t *testing.T) {
	letter := func(r rune) bool { return unicode.IsLetter(r) }
	digit := func(r rune) bool { return unicode.IsDigit(r) }
	for class, in := range map[byte]func(rune) bool{
		'a': letter, 'd': digit, 'l': unicode.IsLower, 'u': unicode.IsUpper,
		'c': unicode.IsControl, 's': unicode.IsSpace,
		'p': func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) },
		'w': func(r rune) bool { return letter(r) || digit(r) },
		'x': func(r rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", r) },
		'z': func(r rune) bool { return r == 0 },
	} {
		for c := range 256 {
			want := c < 128 && in(rune(c))
			if got := inClass(byte(c), class); got != want {
				t.Errorf("%%%c has byte %d: %v, want %v", class, c, got, want)
			}
			if got := inClass(byte(c), class-'a'+'A'); got == want {
				t.Errorf("%%%c has byte %d, as has %%%c", class-'a'+'A', c, class)
			}
		}
	}
}

// TestSpan compares the bounds of parts of texts with their definition: each place from one to the other that the text has.
func TestSpan(t *testing.T) {
	const text = "abcd"
	for length := range len(text) + 1 {
		for from := -6; from <= 6; from++ {
			for to := -6; to <= 6; to++ {
				absolute := func(place int) int {
					if place < 0 {
						return length + place + 1
					}
					return place
				}
				want := ""
				for place := 1; place <= length; place++ {
					if absolute(from) <= place && place <= absolute(to) {
						want += text[place-1 : place]
					}
				}
				start, end := span(from, to, length)
				if start < 0 || end < start || end > length {
					t.Fatalf("places %d to %d of %d: the range %d:%d", from, to, length, start, end)
				}
				if got := text[start:end]; got != want {
					t.Errorf("places %d to %d of %q: %q, want %q", from, to, text[:length], got, want)
				}
			}
		}
	}
}

// TestMatcherBudget has patterns that take long: the matcher ends within its budget.
func TestMatcherBudget(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	for name, tc := range map[string]struct {
		reason, subject, pattern string
		budget                   int
		want                     int
		err                      error
	}{
		"Enough":      {"a budget that is enough", "aaab", "a*b", 20, 4, nil},
		"Exponential": {"repetitions of repetitions", long[:200], strings.Repeat("a*", 30) + "b", 1_000, -1, errSteps},
		"Least":       {"the least of each", long[:200], strings.Repeat(".-", 10) + "b", 1_000, -1, errSteps},
		"Most":        {"a long run", long, "a*", 1_000, -1, errSteps},
		"Balance":     {"a pair that is far apart", "(" + long, "%b()", 1_000, -1, errSteps},
		"Set":         {"a large set", "a", "[" + strings.Repeat("b", 2_000) + "]", 1_000, -1, errSteps},
		"Nothing":     {"no budget", "a", "a", 0, -1, errSteps},
		"Empty":       {"an empty pattern takes no step", "a", "", 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := &matcher{subject: tc.subject, pattern: tc.pattern, budget: tc.budget}
			end, err := m.match(0, 0)
			if end != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%s: ends at %d with error %v, want %d and %v", tc.reason, end, err, tc.want, tc.err)
			}
			if m.steps > tc.budget+1 {
				t.Errorf("%s: %d steps of %d", tc.reason, m.steps, tc.budget)
			}
		})
	}
}

// TestDirectives has what may stand between % and the verb of a format.
func TestDirectives(t *testing.T) {
	for text, want := range map[string]int{
		"d": 0, "5d": 1, "05d": 2, "-5d": 2, "+ #0-d": 5, "+ #0-+d": -1, "99d": 2, "100d": -1, ".5f": 2, ".f": 1, "5.25f": 4, "5.255f": -1,
		"5.5.5f": -1, "": -1, "5": -1, ".": -1, "v": -1, "*d": -1, "dx": 0, "%": -1, "q": 0, "ld": -1, "é": -1, "\x00": -1,
	} {
		if got := directive(text); got != want {
			t.Errorf("%q: %d bytes in front of the verb, want %d", text, got, want)
		}
	}
}
