package render

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestMarked checks what stands around a text, and that text without marks is left alone.
func TestMarked(t *testing.T) {
	if got := marked(7, "a", ""); got != "\uf3f17;a\uf3f2" {
		t.Errorf("a word: %q", got)
	}
	if got := marked(12, "[1]", "[x]"); got != "\uf3f112;[1]\uf3f1[x]\uf3f2" {
		t.Errorf("with a skeleton: %q", got)
	}
	if got := marked(7, "", "x"); got != "" {
		t.Errorf("empty text has no marks: %q", got)
	}
	for _, text := range []string{"", "a", "é\n", "v7", "7;a"} {
		if got, err := unmarked(text); got != text || err != nil {
			t.Errorf("%q without marks: %q, %v", text, got, err)
		}
	}
}

// TestSeparate checks both texts of a marked text: what was printed, and words in the place of values.
func TestSeparate(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, plain, filled string }{
		"Nothing": {"no text", "", "", ""},
		"NoMarks": {"no value is printed", "a: b", "a: b", "a: b"},
		"One":     {"a value becomes a word", "a: " + marked(3, "b c", "") + "!", "a: b c!", "a: v3\uf3f1!"},
		"Two":     {"two values side by side", marked(0, "x", "") + marked(10, "y", ""), "xy", "v0\uf3f1v10\uf3f1"},
		"Skeleton": {"a skeleton takes the place of its text", "a: " + marked(1, "[p, q]", "[x1v1\uf3f1, x2v1\uf3f1]") + "\n", "a: [p, q]\n",
			"a: [x1v1\uf3f1, x2v1\uf3f1]\n"},
		"Lines": {"a text of several lines", marked(2, "a\nb;c\n", "") + "d", "a\nb;c\nd", "v2\uf3f1d"},
		"Cut":   {"a stretch that was cut to nothing has no word", "a" + "\uf3f15;\uf3f2" + "b", "ab", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			plain, filled, err := separate(tc.text)
			if plain != tc.plain || filled != tc.filled || err != nil {
				t.Errorf("%s: got %q, %q, %v, want %q, %q", tc.reason, plain, filled, err, tc.plain, tc.filled)
			}
		})
	}
}

// TestSeparateRefuses checks that marks that are not in order are an error, and no wrong text.
func TestSeparateRefuses(t *testing.T) {
	const o, c = string(opening), string(closing)
	for text, want := range map[string]string{
		o: "marks are out of order", c: "marks are out of order", "a" + c + "b": "marks are out of order", o + "a" +
			c: "marks are out of order",
		o + "x;a" + c: "marks are out of order", o + ";a" + c: "marks are out of order", o + "1" + o + "2;a" + c: "marks are out of order", c +
			"1;a" + o: "marks are out of order",
		o + "1;a": "a mark is missing", o + "1;a" + o: "a mark is missing", o + "1;a" + o + "s": "a mark is missing", marked(1, "a", "") +
			c: "marks are out of order",
		o + "99999999999999999999;a" + c: "marks are out of order",
	} {
		for name, read := range map[string]func() error{
			"separate":   func() error { _, _, err := separate(text); return err },
			"unmarked":   func() error { _, err := unmarked(text); return err },
			"cutMarked":  func() error { _, err := cutMarked(text, 0, 0); return err },
			"trim":       func() error { _, err := trimmers["trim"]("", text); return err },
			"trimPrefix": func() error { _, err := trimmers["trimPrefix"]("a", text); return err },
		} {
			if err := read(); err == nil || err.Error() != want {
				t.Errorf("%s of %q: error %v, want %s", name, text, err, want)
			}
		}
	}
}

// TestTrimmers checks that each trimmer does on marked text what its namesake does on the same text without marks, that all
// marks stay in order, and that what is left of a value is still marked.
func TestTrimmers(t *testing.T) {
	plain := map[string]func(cut, text string) string{
		"trim":       func(_, text string) string { return strings.TrimSpace(text) },
		"trimAll":    func(cut, text string) string { return strings.Trim(text, cut) },
		"trimPrefix": func(cut, text string) string { return strings.TrimPrefix(text, cut) },
		"trimSuffix": func(cut, text string) string { return strings.TrimSuffix(text, cut) },
	}
	texts := []string{
		"", "a", " a ", "ab", marked(1, "a", ""), marked(1, " a ", ""), " " + marked(1, " a ", "") + " ",
		marked(1, "ab", "") + marked(2, "ba", ""),
		"a" + marked(1, "b", "") + "a", marked(1, "a", "") + "b" + marked(2, "a", ""), marked(1, "é a é", ""),
		"\n" + marked(3, "a\nb", "") + "\n\n", marked(1, "  ", ""),
		marked(1, "a", "") + " " + marked(2, " ", "") + "\t", marked(1, "aa", "") + "a" + marked(2, "aa", ""), " " +
			marked(4, "[a]", "[x1v4"+string(opening)+"]") + " ",
	}
	for name, trim := range trimmers {
		for _, cut := range []string{"", "a", "b", "ab", "aba", " ", "é", "é ", "\n"} {
			for _, text := range texts {
				before, _, err := separate(text)
				if err != nil {
					t.Fatal(err)
				}
				got, err := trim(cut, text)
				if err != nil {
					t.Errorf("%s %q of %q: %v", name, cut, text, err)
					continue
				}
				after, _, err := separate(got)
				if want := plain[name](cut, before); after != want || err != nil || !utf8.ValidString(got) {
					t.Errorf("%s %q of %q: got %q, %v, want %q", name, cut, text, after, err, want)
				}
			}
		}
	}
	got, err := trimmers["trim"]("", " "+marked(1, " a b ", "")+" ")
	if want := marked(1, "a b", ""); got != want || err != nil {
		t.Errorf("what is left is marked: %q, %v, want %q", got, err, want)
	}
}

// TestWords checks that no text of a template is read as a marked word.
func TestWords(t *testing.T) {
	if got := word(12); got != "v12\uf3f1" || !hasWord("a"+got) {
		t.Errorf("got %q", got)
	}
	for _, text := range []string{"", "v12", "x1v12", "\uf3f2"} {
		if hasWord(text) {
			t.Errorf("%q holds no word", text)
		}
	}
}

// TestKeeps checks when a scalar with values still holds the text of the template around them.
func TestKeeps(t *testing.T) {
	v := func(n int) string { return word(n) }
	for _, tc := range []struct {
		reason, is, want string
		keeps            bool
	}{
		{"no value: the same text", "a", "a", true}, {"no value: another text", "b", "a", false},
		{"no value: white space counts", "a b", "ab", false},
		{"a value alone", "anything", v(1), true}, {"an empty value", "", v(1), true}, {"text in front", "ax", "a" + v(1), true},
		{"text in front is cut off", "x", "a" + v(1), false},
		{"text behind", "xb", v(1) + "b", true}, {"text behind is cut off", "x", v(1) + "b", false},
		{"text at both ends", "axb", "a" + v(1) + "b", true},
		{"the ends may not overlap", "aba", "aba" + v(1) + "aba", false}, {"text between two values", "x-y", v(1) + "-" + v(2), true},
		{"text between is missing", "xy", v(1) + "-" + v(2), false},
		{"texts between in their order", "1a2b3", v(1) + "a" + v(2) + "b" + v(3), true},
		{"texts between in another order", "1b2a3", v(1) + "a" + v(2) + "b" + v(3), false},
		{"white space does not count", "a x\nb", "a" + v(1) + " b", true},
		{"white space of Unicode does not count", "a\u2028x", "a " + v(1), true},
		{"words of a skeleton", "axb", "ax3" + v(1) + "b", true}, {"two skeletons", "q", "x1" + v(1) + "x2" + v(1), true},
	} {
		if got := keeps(tc.is, tc.want); got != tc.keeps {
			t.Errorf("%s: keeps(%q, %q) is %v", tc.reason, tc.is, tc.want, got)
		}
	}
}
