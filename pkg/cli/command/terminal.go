package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
	"golang.org/x/text/width"

	"kudo.dev/kudo/pkg/text"
)

// screen redraws a block of lines in place.
type screen struct {
	env *Env
	// rows is how many rows of the terminal the block fills.
	rows int
}

// draw replaces what was drawn before. Of a block that is higher than the terminal, the last rows are drawn: what has left the terminal
// at its top cannot be replaced.
func (s *screen) draw(block string) { s.replace(block, false) }

// leave replaces what was drawn before by a block that is not replaced any more, and so is drawn as a whole.
func (s *screen) leave(block string) { s.replace(block, true) }

func (s *screen) replace(block string, whole bool) {
	if !s.env.IsTerminal() {
		return
	}
	columns, height := 0, 0
	if file, ok := s.env.Err.(*os.File); ok {
		columns, height, _ = term.GetSize(int(file.Fd()))
	}
	var out strings.Builder
	if s.rows > 0 {
		fmt.Fprintf(&out, "\x1b[%dA\x1b[J", s.rows)
	}
	lines := strings.Split(strings.TrimRight(text.EscapeControls(block), "\n"), "\n")
	if room := height - 2; !whole && height > 2 && len(lines) > room+1 { // the cursor has a row of its own, and the ellipsis another
		lines = append([]string{"…"}, lines[len(lines)-room:]...)
	}
	for _, line := range lines {
		out.WriteString(fit(line, columns) + "\n")
	}
	s.rows = len(lines)
	_, _ = fmt.Fprint(s.env.Err, out.String())
}

// fit shortens a line so that it fills no second row of a terminal, which the next redraw would not count. The width is 0 if it is not
// known.
func fit(line string, columns int) string {
	line = strings.ReplaceAll(line, "\t", " ")
	if columns < 2 {
		return line
	}
	used, kept := 0, 0
	for at, r := range line {
		cells := 1
		if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
			cells = 2
		}
		if used += cells; used >= columns {
			return line[:kept] + "…"
		}
		if used < columns-1 {
			kept = at + utf8.RuneLen(r)
		}
	}
	return line
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
