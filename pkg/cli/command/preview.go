package command

import (
	"io"
	"slices"
	"strings"

	"kudo.dev/kudo/pkg/preview"
)

// FormatMarkdown is the format of previews for a comment on a pull request.
const FormatMarkdown = "markdown"

// CheckPreviewFormat refuses formats in which no preview is printed.
func CheckPreviewFormat(output string) error {
	if !slices.Contains([]string{"", "text", "json", "yaml", FormatMarkdown}, output) {
		return UsageError("invalid output format %q: use text, json, yaml or markdown", output)
	}
	return nil
}

// PrintPreview prints a preview in a format, without control characters: names come from packages that are not trusted yet.
func PrintPreview(env *Env, p *preview.Preview, format string) error {
	write := func(f func(io.Writer) error) error {
		var b strings.Builder
		if err := f(&b); err != nil {
			return err
		}
		return env.Print(b.String())
	}
	switch format {
	case "json", "yaml":
		return env.PrintValue(format, p)
	case FormatMarkdown:
		return write(p.WriteMarkdown)
	}
	return write(p.WriteText)
}
