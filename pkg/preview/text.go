package preview

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"kudo.dev/kudo/pkg/text"
)

const (
	// maxFields is how many fields of an object a text shows.
	maxFields = 20
	// maxWhy bounds an explanation in a text, in bytes.
	maxWhy = 600
	// maxMarkdown bounds a comment, in bytes: forges refuse longer ones.
	maxMarkdown = 60_000
)

// signs stand before objects in a text.
var signs = map[Effect]string{
	Create: "+", Modify: "~", Recreate: "±", Delete: "-", Keep: "=", Join: "&", Adopt: "*", Refused: "✗", Unknown: "?", Unchanged: " ",
}

// WriteText writes a preview for people, and those of children below it. Unchanged objects are only counted.
func (p *Preview) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, one := range p.withChildren() {
		one.writeText(&b)
	}
	fmt.Fprintf(&b, "%s\n%s\n", p.Summary(), p.Digest)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *Preview) writeText(b *strings.Builder) {
	fmt.Fprintf(b, "%s of %s", p.Verb, p.Subject)
	if p.As != "" {
		fmt.Fprintf(b, ", asked as %s", text.Plain(p.As, maxValue))
	}
	b.WriteString("\n")
	for _, reason := range p.Refused {
		fmt.Fprintf(b, "✗ refused: %s\n", text.Plain(reason, maxWhy))
	}
	for i, run := range p.Runs {
		fmt.Fprintf(b, "plan %d: %s\n", i+1, strings.Join(run.lines(), "\n  "))
	}
	for _, line := range p.Placement.lines() {
		fmt.Fprintf(b, "  %s\n", line)
	}
	for _, o := range p.Objects {
		if o.Effect != Unchanged {
			o.writeText(b)
		}
	}
	for _, d := range p.Definitions {
		fmt.Fprintf(b, "  %s\n", d)
	}
	for _, s := range p.Stays {
		fmt.Fprintf(b, "  = %s stays: %s\n", text.Plain(s.Object, maxPath), text.Plain(s.Why, maxWhy))
	}
	if lines := p.Rights.lines(); len(lines) > 0 {
		fmt.Fprintf(b, "  rights of ServiceAccount %s\n      %s\n", text.Plain(p.Rights.Account, maxValue), strings.Join(lines, "\n      "))
	}
	for _, reason := range p.UnknownReasons {
		fmt.Fprintf(b, "  ? not known: %s\n", text.Plain(reason, maxWhy))
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(b, "  ! %s\n", text.Plain(warning, maxWhy))
	}
}

// name is how people read which plan runs.
func (r Run) name() string {
	if r.Of == "" {
		return r.Plan
	}
	return r.Plan + " of " + r.Of
}

// lines are how people read a run: the plan, where it would fail, and what its objects declare.
func (r Run) lines() []string {
	out := []string{fmt.Sprintf("%s (%s), %s", r.name(), text.Plain(r.Cause, maxValue), count(r.Steps, "step"))}
	if r.Failure != nil {
		out = append(out, fmt.Sprintf("✗ would fail%s: %s", at(r.Failure.Step), text.Plain(r.Failure.Message, maxWhy)))
	}
	if len(r.Capacity) > 0 {
		out = append(out, "its objects declare: "+r.capacity())
	}
	return out
}

// capacity formats for people how the resources change that the objects of a plan declare.
func (r Run) capacity() string {
	parts := make([]string, len(r.Capacity))
	for i, c := range r.Capacity {
		parts[i] = c.String()
	}
	return text.Plain(text.List(parts, maxFields), maxWhy)
}

func at(step string) string {
	if step == "" {
		return ""
	}
	return " at " + step
}

func (o Object) writeText(b *strings.Builder) {
	fmt.Fprintf(b, "  %s %s", signs[o.Effect], o.ID())
	if len(o.Places) > 0 {
		fmt.Fprintf(b, "  [%s]", text.List(o.Places, 2))
	}
	b.WriteString("\n")
	for _, line := range o.details(maxFields) {
		fmt.Fprintf(b, "      %s\n", line)
	}
}

// details are the lines below the name of an object, with at most so many fields.
func (o Object) details(fields int) []string {
	var out []string
	if o.Why != "" {
		label := ""
		if o.Effect == Refused {
			label = "refused: "
		}
		out = append(out, label+text.Plain(o.Why, maxWhy))
	}
	for _, b := range o.Blame[:min(len(o.Blame), fields)] {
		out = append(out, b.String())
	}
	for _, f := range o.Fields[:min(len(o.Fields), fields)] {
		out = append(out, f.String())
	}
	if more := len(o.Fields) - fields; more > 0 {
		out = append(out, "and "+count(more, "more field"))
	}
	if o.Metadata > 0 {
		out = append(out, fmt.Sprintf("and %s of kudo", count(o.Metadata, "label or annotation")))
	}
	if o.Restart != nil {
		out = append(out, o.Restart.String())
	}
	return out
}

// String is how people read a field that changes.
func (f Field) String() string {
	if f.Masked {
		return f.Path + ": (masked, changed)"
	}
	return fmt.Sprintf("%s: %s -> %s", f.Path, cmp.Or(f.From, "(none)"), cmp.Or(f.To, "(none)"))
}

// String formats a restart for people.
func (r *Restart) String() string {
	verb := "restarts"
	if r.Uncertain {
		verb = "may restart"
	}
	return fmt.Sprintf("%s %s (%s): %s", verb, count(int(r.Pods), "pod"), r.Strategy, r.Why)
}

// withChildren lists a preview and all below it.
func (p *Preview) withChildren() []*Preview {
	out := []*Preview{p}
	for _, child := range p.Children {
		out = append(out, child.withChildren()...)
	}
	return out
}

// Summary is the line that a preview ends with. It counts what children do, too.
func (p *Preview) Summary() string {
	runs, steps, restarts, pods, effectsOf := 0, 0, 0, int64(0), map[Effect]int{}
	for _, one := range p.withChildren() {
		runs += len(one.Runs)
		for _, run := range one.Runs {
			steps += run.Steps
		}
		for _, o := range one.Objects {
			effectsOf[o.Effect]++
			if o.Restart != nil {
				restarts, pods = restarts+1, pods+o.Restart.Pods
			}
		}
	}
	effectsOf[Unknown] = p.Unknown()
	var parts []string
	for _, effect := range effects {
		n := effectsOf[effect]
		always := effect == Create || effect == Modify || effect == Delete || effect == Unchanged || effect == Refused || effect == Unknown
		if n == 0 && !always {
			continue
		}
		part := fmt.Sprintf("%d %s", n, effect)
		if effect == Modify && restarts > 0 {
			part += fmt.Sprintf(" (%s: %s)", count(restarts, "restart"), count(int(pods), "pod"))
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("%s, %s: %s%s; data: %s", count(runs, "plan"), count(steps, "step"), strings.Join(parts, ", "), p.Rights.summary(),
		p.losses())
}

// losses is the part of the last line about data: what is lost, or that nothing is, as far as that is known.
func (p *Preview) losses() string {
	var parts []string
	lost := p.lost()
	if lost.claims > 0 {
		parts = append(parts, count(lost.claims, "claim")+" deleted")
	}
	if lost.sets > 0 {
		parts = append(parts, "claims of "+count(lost.sets, "StatefulSet")+" deleted")
	}
	if lost.others > 0 {
		parts = append(parts, count(lost.others, "object")+" destroyed with their content")
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case p.Unknown() > 0:
		return "none known to be lost"
	}
	return "none lost"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if singular, rest, found := strings.Cut(noun, " or "); found { // label or annotation
		return fmt.Sprintf("%d %ss or %ss", n, singular, rest)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// marker is a comment by which a bot finds the last comment that it has written about a subject.
const marker = "<!-- kudo preview: %s -->\n"

// WriteMarkdown writes a preview for a comment on a pull request: a line, a table, and folded differences. It is bounded, and what others
// have written in it is escaped.
func (p *Preview) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	left := 0
	fmt.Fprintf(&b, marker, strings.ReplaceAll(escape(p.Subject), "--", "- -"))
	fmt.Fprintf(&b, "**%s of %s**: %s\n\n", escape(p.Verb), escape(p.Subject), escape(p.Summary()))
	for _, one := range p.withChildren() {
		for _, note := range one.notes() {
			if b.Len()+len(note) > maxMarkdown/2 {
				left++
				continue
			}
			b.WriteString(note)
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "- and %s, for which this comment has no room\n", count(left, "more note"))
	}
	b.WriteString("\n| effect | object | what |\n| --- | --- | --- |\n")
	if left := p.writeRows(&b); left > 0 {
		fmt.Fprintf(&b, "\n%s are left out, since this comment would be too long.\n", count(left, "object"))
	}
	fmt.Fprintf(&b, "\n%s\n", p.Digest)
	_, err := io.WriteString(w, b.String())
	return err
}

// notes are the lines above the table.
func (p *Preview) notes() []string {
	var out []string
	note := func(sign, format string, args ...any) {
		out = append(out, fmt.Sprintf("- %s%s\n", sign, escape(text.Plain(fmt.Sprintf(format, args...), maxWhy))))
	}
	for _, reason := range p.Refused {
		note(":x: ", "refused: %s", reason)
	}
	for _, run := range p.Runs {
		note("", "plan %s (%s), %s", run.name(), text.Plain(run.Cause, maxValue), count(run.Steps, "step"))
		if run.Failure != nil {
			note(":x: ", "plan %s would fail%s: %s", run.name(), at(run.Failure.Step), run.Failure.Message)
		}
		if len(run.Capacity) > 0 {
			note("", "the objects of plan %s declare: %s", run.name(), run.capacity())
		}
	}
	for _, line := range p.Placement.lines() {
		note("", "%s", line)
	}
	for _, d := range p.Definitions {
		note("", "%s", d)
	}
	for _, s := range p.Stays {
		note("", "%s stays: %s", s.Object, s.Why)
	}
	for _, line := range p.Rights.lines() {
		note(":key: ", "rights of %s: %s", p.Rights.Account, line)
	}
	for _, reason := range p.UnknownReasons {
		note(":grey_question: ", "not known: %s", reason)
	}
	for _, warning := range p.Warnings {
		note(":warning: ", "%s", warning)
	}
	return out
}

// writeRows writes the rows of the table, and returns how many objects did not fit.
func (p *Preview) writeRows(b *strings.Builder) (left int) {
	for _, one := range p.withChildren() {
		for _, o := range one.Objects {
			if o.Effect == Unchanged {
				continue
			}
			row := o.markdown()
			if b.Len()+len(row) > maxMarkdown {
				left++
				continue
			}
			b.WriteString(row)
		}
	}
	return left
}

func (o Object) markdown() string {
	var what []string
	if o.Why != "" {
		what = append(what, escape(text.Plain(o.Why, maxWhy)))
	}
	for _, b := range o.Blame[:min(len(o.Blame), maxFields)] {
		what = append(what, escape(b.String()))
	}
	if o.Restart != nil {
		what = append(what, escape(o.Restart.String()))
	}
	if len(o.Fields) > 0 {
		var lines []string
		for _, f := range o.Fields[:min(len(o.Fields), maxFields)] {
			lines = append(lines, "<code>"+escape(f.String())+"</code>")
		}
		if more := len(o.Fields) - maxFields; more > 0 {
			lines = append(lines, "and "+count(more, "more field"))
		}
		what = append(what, fmt.Sprintf("<details><summary>%s</summary>%s</details>", count(len(o.Fields), "field"), strings.Join(lines, "<br>")))
	}
	return fmt.Sprintf("| %s | %s | %s |\n", o.Effect, escape(o.ID()), strings.Join(what, "<br>"))
}

// markdownEscapes makes text harmless in a cell of a table: as HTML, and as Markdown.
var markdownEscapes = strings.NewReplacer("\n", " ", "\r", " ", "&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", `\`,
	"&#92;", "|", "&#124;", "`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "]", "&#93;", "@", "&#64;", "#", "&#35;",
	"!", "&#33;", "~", "&#126;")

func escape(s string) string { return markdownEscapes.Replace(s) }
