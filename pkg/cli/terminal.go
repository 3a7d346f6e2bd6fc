package cli

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// terminal tells whether progress is shown: only on a terminal.
func (t *tool) terminal() bool {
	file, ok := t.err.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// progress shows a line of what goes on, on a terminal.
func (t *tool) progress(format string, args ...any) {
	if t.terminal() {
		_, _ = fmt.Fprintf(t.err, format+"\n", args...)
	}
}

func (t *tool) say(format string, args ...any) { _, _ = fmt.Fprintf(t.out, format+"\n", args...) }

func (t *tool) warn(format string, args ...any) {
	_, _ = fmt.Fprintf(t.err, "Warning: "+format+"\n", args...)
}

func lower(s string) string { return strings.ToLower(s) }

// screen redraws a block of lines in place.
type screen struct {
	t     *tool
	lines int
}

// draw replaces what was drawn before.
func (s *screen) draw(text string) {
	if !s.t.terminal() {
		return
	}
	width := 0
	if file, ok := s.t.err.(*os.File); ok {
		width, _, _ = term.GetSize(int(file.Fd()))
	}
	var out strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\x1b[J", s.lines)
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for _, line := range lines {
		if runes := []rune(line); width > 1 && len(runes) >= width {
			line = string(runes[:width-2]) + "…"
		}
		out.WriteString(line + "\n")
	}
	s.lines = len(lines)
	_, _ = fmt.Fprint(s.t.err, out.String())
}
