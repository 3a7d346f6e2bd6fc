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
	// wait is <!-- wait: CONDITION -->: conditions, one a line, each of which is tried until it holds. A reader is slow enough.
	wait
	// cleanup is <!-- cleanup: COMMAND -->: commands that delete what the page made, and that no later line depends on.
	cleanup
	// file is a block of yaml whose first line is "# NAME", or that stands below a line `NAME`. All files of a page are written
	// before its first command.
	file
	// skipped is a block of sh that only builds the programs, by make and go build: the test is started with them.
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
	// note is the name of a file.
	note string
}

var (
	fileLine  = regexp.MustCompile(`^# (\S+\.ya?ml)\n`)
	fileAbove = regexp.MustCompile("^`(\\S+\\.yaml)`$")
	heredoc   = regexp.MustCompile(`<<'?([A-Z]+)'?$`)
	onlyBuild = regexp.MustCompile(`^((make|go build) ([^\n]*\\\n)*[^\n]*[^\\\n]\n)+$`)
	looksRun  = regexp.MustCompile(`(?m)^(\$ |kubectl |kudo-local |make )`)
	// conditions only read, and cleanups only delete: a comment must not hold a command that readers need.
	conditions = regexp.MustCompile(`^(! )?(kubectl (kudo )?get |kubectl kudo plan status |kubectl wait |\[ -s )[^;&>]*$`)
	cleanups   = regexp.MustCompile(`^(kubectl delete |kubectl kudo (uninstall|uninstall-version|init --remove) |kudo-local down |rm )[^;&>|]*$`)
)

// reader goes through a page by lines.
type reader struct {
	lines []string
	at    int
	parts []part
}

// parse takes a page apart. It refuses blocks that look like commands and would not be run, and comments other than those of
// wait and cleanup: a reader must see every command that a later line depends on.
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
		case strings.HasPrefix(line, "<!--"):
			if err := r.comment(); err != nil {
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

// comment reads a comment, on one line or several.
func (r *reader) comment() error {
	first := r.at
	for r.at < len(r.lines) && !strings.HasSuffix(strings.TrimSpace(r.lines[r.at]), "-->") {
		r.at++
	}
	if r.at == len(r.lines) {
		return fmt.Errorf("line %d: the comment does not end", first+1)
	}
	r.at++
	text := strings.TrimSpace(strings.Join(r.lines[first:r.at], "\n"))
	text = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(text, "<!--"), "-->"))
	name := regexp.MustCompile(`^[a-z]*`).FindString(text)
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text, name), ":"))
	k, allowed := wait, conditions
	switch name {
	case "wait":
	case "cleanup":
		k, allowed = cleanup, cleanups
	default:
		return fmt.Errorf("line %d: the comment is neither wait nor cleanup: show readers what it says", first+1)
	}
	for _, line := range strings.Split(text, "\n") {
		if !allowed.MatchString(line) {
			return fmt.Errorf("line %d: %q does not only wait or delete: show readers the command", first+1, line)
		}
		if k == wait {
			line = "until " + line + "; do sleep 0.1; done"
		}
		r.parts = append(r.parts, part{kind: k, line: first + 1, text: line})
	}
	return nil
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
	switch {
	case language == "sh" && onlyBuild.MatchString(text):
		r.parts = append(r.parts, part{kind: skipped, line: first, text: text})
	case language == "sh":
		r.parts = append(r.parts, part{kind: script, line: first + 1, text: text})
	case language == "console":
		return r.console(first, lines)
	case looksRun.MatchString(text):
		return fmt.Errorf("line %d: a block of %q with commands: call it sh or console", first, language)
	case fileAbove.MatchString(above):
		r.parts = append(r.parts, part{kind: file, line: first + 1, text: text, note: fileAbove.FindStringSubmatch(above)[1]})
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
