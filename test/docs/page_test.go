package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// kind says what the test does with a part of a page.
type kind int

const (
	// script is a block of sh, all of whose commands must succeed; what it prints is not looked at.
	script kind = iota
	// shown is a command of a block of console. What the page shows below it is what it must print; below nothing, it must
	// only succeed. One that shows a line that begins with Error or error must fail.
	shown
	// hidden is <!-- run … -->: commands that readers need not see, such as what a page takes for granted.
	hidden
	// file is a block of yaml whose first line is "# NAME", or that stands below a line `NAME` or <!-- file: NAME -->. All files
	// of a page are there before its first command.
	file
	// skipped is a block of commands below <!-- not run: REASON -->, or of make's alone: make builds and starts the test.
	skipped
)

// part is something on a page that the test acts upon.
type part struct {
	kind kind
	// line is the number of its first line on the page.
	line int
	// text is commands, or the content of a file.
	text string
	// prints is what the page shows below a command.
	prints []string
	// note is the name of a file, or the reason why a block is not run.
	note string
}

var (
	fileLine  = regexp.MustCompile(`^# (\S+\.ya?ml)\n`)
	fileAbove = regexp.MustCompile("^(?:<!-- file: (\\S+) -->|`(\\S+\\.yaml)`)$")
	notRun    = regexp.MustCompile(`^<!-- not run: (.+) -->$`)
	heredoc   = regexp.MustCompile(`<<'?([A-Z]+)'?$`)
	onlyMake  = regexp.MustCompile(`^(make [^\n]*\n)+$`)
	looksRun  = regexp.MustCompile(`(?m)^(\$ |kubectl |kudo-local |make )`)
)

// reader goes through a page by lines.
type reader struct {
	lines []string
	at    int
	parts []part
}

// parse takes a page apart. It refuses blocks that look like commands and would not be run.
func parse(text string) ([]part, error) {
	r := &reader{lines: strings.Split(text, "\n")}
	above := ""
	for r.at < len(r.lines) {
		line := strings.TrimSpace(r.lines[r.at])
		switch {
		case strings.HasPrefix(line, "```"):
			if err := r.block(strings.TrimPrefix(line, "```"), above); err != nil {
				return nil, err
			}
		case strings.HasPrefix(line, "<!-- run"):
			if err := r.hidden(); err != nil {
				return nil, err
			}
		default:
			r.at++
		}
		if line != "" {
			above = line
		}
	}
	return r.parts, nil
}

// hidden reads a comment of commands, on one line or several.
func (r *reader) hidden() error {
	first := r.at
	var lines []string
	for ; r.at < len(r.lines); r.at++ {
		line, ends := strings.CutSuffix(r.lines[r.at], "-->")
		if r.at == first {
			line = strings.TrimPrefix(strings.TrimPrefix(line, "<!-- run"), ":")
		}
		lines = append(lines, line)
		if ends {
			r.at++
			r.parts = append(r.parts, part{kind: hidden, line: first + 1, text: strings.TrimSpace(strings.Join(lines, "\n"))})
			return nil
		}
	}
	return fmt.Errorf("line %d: the comment does not end", first+1)
}

// block reads a fenced block, which may be indented.
func (r *reader) block(language, above string) error {
	first := r.at + 1
	indent := r.lines[r.at][:strings.Index(r.lines[r.at], "`")]
	var lines []string
	for r.at++; ; r.at++ {
		if r.at == len(r.lines) {
			return fmt.Errorf("line %d: the block does not end", first)
		}
		if strings.TrimSpace(r.lines[r.at]) == "```" {
			r.at++
			break
		}
		lines = append(lines, strings.TrimPrefix(r.lines[r.at], indent))
	}
	text := strings.Join(lines, "\n") + "\n"
	commands := language == "sh" || language == "console"
	if reason := notRun.FindStringSubmatch(above); reason != nil {
		if !commands {
			return fmt.Errorf("line %d: only commands can be left out, and this is a block of %q", first, language)
		}
		r.parts = append(r.parts, part{kind: skipped, line: first, text: text, note: reason[1]})
		return nil
	}
	switch {
	case language == "sh" && onlyMake.MatchString(text):
		r.parts = append(r.parts, part{kind: skipped, line: first, text: text, note: "make builds and starts the test"})
	case language == "sh":
		r.parts = append(r.parts, part{kind: script, line: first + 1, text: text})
	case language == "console":
		return r.console(first, lines)
	case looksRun.MatchString(text):
		return fmt.Errorf("line %d: a block of %q with commands: call it sh or console", first, language)
	case fileAbove.MatchString(above):
		m := fileAbove.FindStringSubmatch(above)
		r.parts = append(r.parts, part{kind: file, line: first + 1, text: text, note: m[1] + m[2]})
	case language == "yaml" && fileLine.MatchString(text):
		r.parts = append(r.parts, part{kind: file, line: first + 1, text: text, note: fileLine.FindStringSubmatch(text)[1]})
	}
	return nil
}

// console reads commands and what is shown below them. A command goes on after a backslash, and to the end of a here
// document.
func (r *reader) console(first int, lines []string) error {
	found, until, continued := false, "", false
	for n, line := range lines {
		command, starts := strings.CutPrefix(line, "$ ")
		last := len(r.parts) - 1
		switch {
		case until != "":
			r.parts[last].text += "\n" + line
			if line == until {
				until = ""
			}
			continue
		case continued:
			r.parts[last].text += "\n" + line
			continued = strings.HasSuffix(line, `\`)
			continue
		case starts:
			found = true
			r.parts = append(r.parts, part{kind: shown, line: first + n + 1, text: command})
		case !found:
			return fmt.Errorf("line %d: a block of console begins with a command, after \"$ \"", first)
		case strings.TrimSpace(line) != "":
			r.parts[last].prints = append(r.parts[last].prints, line)
		}
		if starts {
			if end := heredoc.FindStringSubmatch(command); end != nil {
				until = end[1]
			}
			continued = strings.HasSuffix(command, `\`)
		}
	}
	return nil
}
