package instances

import "testing"

// TestIndented: the lines of a log stand apart from the text around them.
func TestIndented(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"nothing was written", "", ""},
		{"empty lines are left out", "one\n\ntwo\n\n", "  one\n  two\n"},
		{"lines of Windows", "one\r\ntwo\r\n", "  one\n  two\n"},
		{"tabs and other letters stay", "a\tb ü\n", "  a\tb ü\n"},
	} {
		if got := indented(tc.text); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
