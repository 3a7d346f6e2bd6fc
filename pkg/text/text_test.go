package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNearest(t *testing.T) {
	names := []string{"description", "default", "displayName", "enum"}
	for given, want := range map[string]string{
		"desribtion": "description", "displayname": "displayName", "dfeault": "default", "enums": "enum", "type": "", "xyz": "", "": "",
	} {
		if got := Nearest(given, names); got != want {
			t.Errorf("nearest of %q is %q, want %q", given, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		limit        int
		want         string
	}{
		{"a short text stays", "abc", 3, "abc"},
		{"the ellipsis counts", "abcdefgh", 6, "abc…"},
		{"a rune is not cut", "aäöü", 6, "aä…"},
		{"no part of a rune before the ellipsis", "aäöü", 5, "a…"},
		{"invalid bytes are removed", "a\xffb", 9, "ab"},
		{"a limit below the ellipsis", "abcdef", 2, "…"},
		{"nothing", "", 0, ""},
	} {
		if got := Truncate(tc.text, tc.limit); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("aäöü", 5)
	f.Add("\xff\xfe", 1)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = max(len(Ellipsis), limit%4096)
		got := Truncate(s, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("%q cut at %d is %q", s, limit, got)
		}
		if again := Truncate(got, limit); again != got {
			t.Errorf("%q cut twice is %q, cut once %q", s, again, got)
		}
	})
}

func TestQuote(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"a\nb", `"a\nb"`},
		{strings.Repeat("x", 64), `"` + strings.Repeat("x", 64) + `"`},
		{strings.Repeat("x", 65), `"` + strings.Repeat("x", 64) + `"… (65 bytes)`},
		{strings.Repeat("x", 63) + "ä", `"` + strings.Repeat("x", 63) + `"… (65 bytes)`},
	} {
		if got := Quote(tc.text, 64); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.text, got, tc.want)
		}
	}
}

func TestList(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b and 1 more": {"a", "b", "c"}} {
		if got := List(names, 2); got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := OneLine(" a\r\n\tb  c\n"); got != "a b c" {
		t.Errorf("%q", got)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		" a\r\n\tb  c\n": "a b c", "a \x01 b": "a b", "\x1b[2Ja": "[2Ja", "a\u202eb": "ab", "a\xffb": "ab", "ää": "ää", "123456789": "12345…",
	} {
		got := Plain(in, 8)
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
		if again := Plain(got, 8); again != got {
			t.Errorf("%q: %q is another text the second time: %q", in, got, again)
		}
	}
}

func TestJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		value  any
		want   string
	}{
		"Nil":     {"nothing is null", nil, "null"},
		"Map":     {"keys are sorted", map[string]any{"b": 1, "a": "x"}, `{"a":"x","b":1}`},
		"Long":    {"the end is cut", strings.Repeat("a", 40), `"` + strings.Repeat("a", 16) + "…"},
		"NotJSON": {"it is printed", func() {}, "0x"},
	} {
		if got := JSON(tc.value, 20); got != tc.want && (tc.want != "0x" || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// TestGrouped checks where the commas of a number are.
func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12400: "12,400", 100000: "100,000", 1234567: "1,234,567", -999: "-999", -1000: "-1,000"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestShellQuote checks that a shell takes each word as one argument, whatever a tenant has put into it.
func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{"web": "web", "a b": "'a b'", "": "''", "$(rm)": "'$(rm)'", "it's": `'it'\''s'`, "/home/x/config": "/home/x/config",
		"role/system:node": "role/system:node", "a;b": "'a;b'", "a\nb": "'a\nb'", "~": "'~'", "#": "'#'", "^x": "'^x'", "a&": "'a&'", "`x`": "'`x`'"} {
		if got := ShellQuote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
