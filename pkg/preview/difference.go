package preview

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kudo.dev/kudo/pkg/text"
)

// maxDifferences is how many lines of a difference a text shows.
const maxDifferences = 40

// statement is a line of what a preview says.
type statement struct {
	// subject is the edit, and about the object that the line is about; empty for the edit itself.
	subject, about string
	line           string
}

// String is how people read it.
func (s statement) String() string {
	out := s.about
	if out == "" {
		out = s.subject
	}
	if s.line != "" {
		out += ": " + s.line
	}
	return text.Plain(out, maxWhy)
}

// WriteDifference writes what only one of two previews of an edit says: with - what was reviewed, and with + what would happen now.
func WriteDifference(w io.Writer, reviewed, now *Preview) error {
	first, second := reviewed.statements(), now.statements()
	removed, added := without(first, second), without(second, first)
	var lines []string
	for _, topic := range topics(slices.Concat(removed, added)) {
		for _, side := range []struct {
			sign string
			all  []statement
		}{{"-", removed}, {"+", added}} {
			for _, s := range side.all {
				if s.topic() == topic {
					lines = append(lines, side.sign+" "+s.String())
				}
			}
		}
	}
	if len(lines) == 0 {
		lines = []string{"both say the same: they differ in what they do not show, such as the end of a long value, the content of " +
			"a new object or of the OperatorVersion, and the account"}
	}
	if more := len(lines) - maxDifferences; more > 0 {
		lines = append(lines[:maxDifferences], "and "+count(more, "more line"))
	}
	_, err := fmt.Fprintf(w, "difference (- reviewed, + now):\n  %s\n", strings.Join(lines, "\n  "))
	return err
}

func (s statement) topic() [2]string { return [2]string{s.subject, s.about} }

// topics lists what statements are about, in the order of the statements.
func topics(all []statement) [][2]string {
	var out [][2]string
	seen := map[[2]string]bool{}
	for _, s := range all {
		if topic := s.topic(); !seen[topic] {
			seen[topic] = true
			out = append(out, topic)
		}
	}
	return out
}

// without returns the statements of one preview that another one does not make.
func without(all, others []statement) []statement {
	known := map[statement]bool{}
	for _, s := range others {
		known[s] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(s statement) bool { return known[s] })
}

// statements are what a preview and those of its children say, of what their digests cover.
func (p *Preview) statements() []statement {
	var out []statement
	for _, one := range p.withChildren() {
		out = append(out, one.ownStatements()...)
	}
	return out
}

func (p *Preview) ownStatements() []statement {
	subject := p.Verb + " of " + p.Subject
	out := []statement{{subject: subject}}
	say := func(about, format string, args ...any) {
		out = append(out, statement{subject, about, fmt.Sprintf(format, args...)})
	}
	for _, reason := range p.Refused {
		say("", "refused: %s", reason)
	}
	for i, run := range p.Runs {
		for _, line := range run.lines() {
			say("", "plan %d: %s", i+1, line)
		}
	}
	for _, o := range p.Objects {
		say(o.ID(), "%s", strings.Join(append([]string{string(o.Effect)}, o.Places...), " "))
		for _, line := range o.details(len(o.Fields)) {
			say(o.ID(), "%s", line)
		}
	}
	for _, s := range p.Stays {
		say(s.Object, "stays: %s", s.Why)
	}
	for _, reason := range p.UnknownReasons {
		say("", "not known: %s", reason)
	}
	return out
}
