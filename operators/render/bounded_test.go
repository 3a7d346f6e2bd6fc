package render

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUntilStep checks lists of numbers at their edges: their length is bounded, and no number overflows.
func TestUntilStep(t *testing.T) {
	for name, tc := range map[string]struct {
		reason            string
		start, stop, step int
		want              []int
	}{
		"Up":          {"stop is not in it", 1, 4, 1, []int{1, 2, 3}},
		"Over":        {"a step over stop ends it", 0, 5, 2, []int{0, 2, 4}},
		"Down":        {"downward", 3, 0, -1, []int{3, 2, 1}},
		"Same":        {"from a number to itself", 2, 2, 1, []int{}},
		"SameDown":    {"also downward", 2, 2, -1, []int{}},
		"WrongWay":    {"upward with a step down", 0, 3, -1, []int{}},
		"WrongDown":   {"downward with a step up", 3, 0, 1, []int{}},
		"Zero":        {"no step never ends", 0, 3, 0, []int{}},
		"OverflowUp":  {"a step beyond the largest int", math.MaxInt - 1, math.MaxInt, 5, []int{math.MaxInt - 1}},
		"OverflowDn":  {"a step beyond the smallest int", math.MinInt + 1, math.MinInt, -5, []int{math.MinInt + 1}},
		"LargestStep": {"the largest step", 0, math.MaxInt, math.MaxInt, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := untilStep(tc.start, tc.stop, tc.step)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s: %v, -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
	if list, err := untilStep(0, MaxList, 1); len(list) != MaxList || err != nil {
		t.Errorf("the bound itself is allowed: %d, %v", len(list), err)
	}
	if _, err := untilStep(0, MaxList+1, 1); err == nil ||
		err.Error() != ": a list of numbers from 0 to 100001 by 1 would have more than 100000 entries" &&
			!strings.Contains(err.Error(), "a list of numbers from 0 to 100001 by 1 would have more than 100000 entries") {
		t.Errorf("one more: %v", err)
	}
}

// TestSeq checks each number of arguments, in both directions.
func TestSeq(t *testing.T) {
	for _, tc := range []struct {
		params []int
		want   string
	}{
		{nil, ""}, {[]int{0}, "1 0"}, {[]int{1}, "1"}, {[]int{-2}, "1 0 -1 -2"}, {[]int{5, 5}, "5"}, {[]int{2, 4}, "2 3 4"},
		{[]int{1, -1}, "1 0 -1"},
		{[]int{0, 3, 7}, "0 3 6"}, {[]int{7, -3, 0}, "7 4 1"}, {[]int{7, 3, 0}, ""}, {[]int{0, -1, 3}, ""}, {[]int{0, 0, 3}, ""},
		{[]int{1, 2, 3, 4}, ""},
	} {
		if got, err := seq(tc.params...); got != tc.want || err != nil {
			t.Errorf("%v: got %q, %v, want %q", tc.params, got, err, tc.want)
		}
	}
}

// TestIndent checks that each line is indented, empty ones as well, and that a negative number is refused.
func TestIndent(t *testing.T) {
	for _, tc := range []struct {
		spaces     int
		text, want string
	}{{0, "a\nb", "a\nb"}, {2, "", "  "}, {2, "a", "  a"}, {1, "a\n\nb\n", " a\n \n b\n "}, {3, "\n", "   \n   "}} {
		if got, err := indent(tc.spaces, tc.text); got != tc.want || err != nil {
			t.Errorf("%d of %q: got %q, %v", tc.spaces, tc.text, got, err)
		}
	}
	checkRendered(t, map[string]string{
		`{{ indent -1 "a" }}`:    `!indent accepts no negative number of spaces (-1)`,
		`{{ nindent -1 "a" }}`:   `!indent accepts no negative number of spaces (-1)`,
		`{{ repeat -2 "a" }}`:    `!repeat accepts no negative count (-2)`,
		`{{ nindent 2 "a\nb" }}`: "\n  a\n  b", `{{ repeat 0 "a" }}`: "",
	})
}

// TestBoundedAsBefore checks that functions with bounds do as their namesakes in sprig and text/template.
func TestBoundedAsBefore(t *testing.T) {
	checkRendered(t, map[string]string{
		`{{ replace "" "-" "ab" }}`: "-a-b-", `{{ replace "x" "" "axbx" }}`: "ab", `{{ (split "$" "a$b")._0 }}`: "a",
		`{{ len (split "," "") }}`:     "1",
		`{{ splitList "," "" | len }}`: "1", `{{ splitList "" "añ" | join "|" }}`: "a|ñ", `{{ wrap 5 "aa bb cc" }}`: "aa bb\ncc",
		`{{ wrapWith 2 "-" "abcd" }}`: "ab-cd",
		`{{ wrapWith 0 "-" "a b" }}`:  "a-b", `{{ print }}`: "", `{{ print 1 2 "a" "b" 3 }}`: "1 2ab3", `{{ println 1 "a" }}`: "1 a\n",
		`{{ html "<a&b>" 1 }}`: "&lt;a&amp;b&gt;1",
		`{{ js "'\"" }}`:       `\'\"`, `{{ urlquery "a b&c" }}`: "a+b%26c",
		`{{ printf "%5.2f|%-4s|%04d|%x|%v" 1.234 "a" 7 255 nil }}`: " 1.23|a   |0007|ff|<nil>",
		`{{ printf "%*d|%-*d|" 4 1 4 2 }}`:                         "   1|2   |", `{{ printf "%d%%" 5 }}`: "5%",
		`{{ printf "%[2]s %[1]s" "a" "b" }}`: "b a",
		`{{ until 0 }}`:                      "[]",
	})
}

// TestProduct checks the bound on products at its edge, without an overflow.
func TestProduct(t *testing.T) {
	beyond := func(a, b int) (panicked bool) {
		defer func() { panicked = recover() != nil }()
		product(a, b)
		return false
	}
	for _, tc := range []struct {
		a, b int
		want bool
	}{
		{0, math.MaxInt, false}, {math.MaxInt, 0, false}, {1, MaxValue, false}, {1, MaxValue + 1, true}, {2, MaxValue / 2, false},
		{2, MaxValue/2 + 1, true},
		{math.MaxInt, math.MaxInt, true}, {-1, math.MaxInt, false}, {MaxValue, 1, false}, {MaxValue + 1, 1, true},
	} {
		if got := beyond(tc.a, tc.b); got != tc.want {
			t.Errorf("%d times %d: refused %v", tc.a, tc.b, got)
		}
	}
}

// TestPrintfWidths checks that each way to ask for a width is bounded, and that a small one is not refused.
func TestPrintfWidths(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		refused      bool
	}{
		"Width":        {"three widths of a million", `{{ $x := printf "%999999d%999999d%999999d" 1 2 3 }}`, true},
		"Precision":    {"a precision counts as well", `{{ $x := printf "%.999999f%.999999f%.999999f" 1.0 1.0 1.0 }}`, true},
		"Star":         {"an argument of a star", `{{ $x := printf "%*d%*d%*d" 999999 1 999999 1 999999 1 }}`, true},
		"StarNegative": {"a negative width fills at the right", `{{ $x := printf "%*d%*d%*d" -999999 1 -999999 1 -999999 1 }}`, true},
		"Star64":       {"an argument of 64 bits", `{{ $n := int64 999999 }}{{ $x := printf "%*d%*d%*d" $n 1 $n 1 $n 1 }}`, true},
		"Beyond":       {"a number that no int has", `{{ $x := printf "%99999999999999999999d" 1 }}`, false},
		"One":          {"one width of a million", `{{ $x := printf "%999999d" 1 }}`, false},
		"SmallStar":    {"a small argument of a star", `{{ $x := printf "%*d" 10 1 }}`, false},
		"LargeOther":   {"a large number that is no width", `{{ $x := printf "%d" 999999999 }}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := rendered(tc.text)
			if refused := strings.Contains(got, "a value grows beyond 2097152 bytes"); refused != tc.refused || !refused && got != "" {
				t.Errorf("%s: %.200s", tc.reason, got)
			}
		})
	}
}

// TestSplitBound checks that a text of too many parts is refused before it is split.
func TestSplitBound(t *testing.T) {
	text := strings.Repeat(",", MaxList-1)
	if parts := splitList(",", text); len(parts) != MaxList {
		t.Errorf("the bound itself is allowed: %d", len(parts))
	}
	defer func() {
		if caught, ok := recover().(*Error); !ok || caught.Reason != "a text would be split into 100001 parts, more than 100000" {
			t.Errorf("one more: %v", caught)
		}
	}()
	splitList(",", text+",")
}
