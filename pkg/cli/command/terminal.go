package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// screen redraws a block of lines in place.
type screen struct {
	env   *Env
	lines int
}

// draw replaces what was drawn before.
func (s *screen) draw(text string) {
	if !s.env.IsTerminal() {
		return
	}
	width := 0
	if file, ok := s.env.Err.(*os.File); ok {
		width, _, _ = term.GetSize(int(file.Fd()))
	}
	var out strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\x1b[J", s.lines)
	}
	lines := strings.Split(strings.TrimRight(EscapeControls(text), "\n"), "\n")
	for _, line := range lines {
		if runes := []rune(line); width > 1 && len(runes) >= width {
			line = string(runes[:width-2]) + "…"
		}
		out.WriteString(line + "\n")
	}
	s.lines = len(lines)
	_, _ = fmt.Fprint(s.env.Err, out.String())
}

// IsTerminal reports whether stderr is a terminal, on which commands show progress.
func (env *Env) IsTerminal() bool {
	file, ok := env.Err.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Progressf prints a line of progress to stderr if it is a terminal.
func (env *Env) Progressf(format string, args ...any) {
	if env.IsTerminal() {
		env.Notef(format, args...)
	}
}

// Printf prints a line to stdout.
func (env *Env) Printf(format string, args ...any) {
	_, _ = fmt.Fprintf(env.printer(), format+"\n", args...)
}

// Print prints texts to stdout as they are, but for their control characters.
func (env *Env) Print(texts ...string) error {
	_, err := io.WriteString(env.printer(), strings.Join(texts, ""))
	return err
}

// Notef prints a line to stderr that a script does not need.
func (env *Env) Notef(format string, args ...any) {
	_, _ = fmt.Fprintf(env.messages(), format+"\n", args...)
}

// Warnf prints a warning to stderr.
func (env *Env) Warnf(format string, args ...any) {
	env.Notef("Warning: "+format, args...)
}
