package command

import (
	"context"
	"strings"

	"kudo.dev/kudo/pkg/diagnostics"
	"kudo.dev/kudo/pkg/health/culprit"
)

// log returns the last lines that a container has written, each behind a bar.
func (e *explainer) log(ctx context.Context, f culprit.Finding) string {
	if !f.HasLog() || e.set == nil {
		return ""
	}
	if e.noLog != "" {
		return barred(diagnostics.LogEnd{Note: e.noLog})
	}
	return barred(diagnostics.ReadLogEnd(ctx, e.set, f, e.redact.Text))
}

// barred returns the lines of a log, each behind a bar, and what is to be said of it.
func barred(end diagnostics.LogEnd) string {
	var out strings.Builder
	for _, line := range end.Lines {
		out.WriteString("  | " + line + "\n")
	}
	if end.Note != "" {
		out.WriteString("  " + end.Note + "\n")
	}
	return out.String()
}
