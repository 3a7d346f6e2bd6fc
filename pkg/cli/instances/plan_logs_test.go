package instances

import "testing"

// TestIndented: what a container writes does not reach the terminal as a command.
func TestIndented(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"nothing was written", "", ""},
		{"empty lines are left out", "one\n\ntwo\n\n", "  one\n  two\n"},
		{"lines of Windows", "one\r\ntwo\r\n", "  one\n  two\n"},
		{"tabs and other letters stay", "a\tb ü\n", "  a\tb ü\n"},
		{"control sequences of terminals", "\x1b]0;title\x07\x1b[2Jgone\u009b\n", "  �]0;title��[2Jgone�\n"},
		{"bytes that are no text", "a\xff\n", "  a�\n"},
	} {
		if got := indented(tc.text); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
