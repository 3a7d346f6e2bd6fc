package text

import "testing"

// TestEscapeControls: no character reaches a terminal or a page that hides or moves what stands beside it.
func TestEscapeControls(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"plain", "Größe: 2 → 3 🚀\n\tnext", "Größe: 2 → 3 🚀\n\tnext"},
		{"escape sequence", "a\x1b[2J\x1b]0;title\ab", `a\x1b[2J\x1b]0;title\ab`},
		{"carriage return hides the line", "failed\rready ", `failed\rready `},
		{"one character that begins a sequence", "a\u009b2Jb", `a\u009b2Jb`},
		{"backspaces", "no\b\bok", `no\b\bok`},
		{"direction of text", "a\u202eb\u2066c", `a\u202eb\u2066c`},
		{"bytes that are no text", "a\x9bb", "a\ufffdb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := EscapeControls(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
