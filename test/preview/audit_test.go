package preview

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"kudo.dev/kudo/test/env"
)

// asker returns the user who requests the previews of a namespace, by whose name their requests are found in the audit log.
func asker(ns string) string { return "preview-of-" + ns }

// auditLogSize returns the size of the audit log in bytes, or 0 if the suite runs on a cluster whose audit log it cannot read.
func auditLogSize(t *testing.T) int64 {
	t.Helper()
	if !suite.IsDisposable() {
		return 0
	}
	info, err := os.Stat(suite.AuditLog())
	env.Must(t, err)
	return info.Size()
}

// checkWrites fails the test if the audit log has no request of the user since the offset, or a write that is not a dry run, or any write
// if dry runs are not allowed. It skips DELETE where they are: the body that marks a dry run is not in the log. A comparison of objects
// finds a real one.
func checkWrites(t *testing.T, user string, since int64, dryRuns bool) {
	t.Helper()
	if !suite.IsDisposable() {
		return
	}
	file, err := os.Open(suite.AuditLog())
	env.Must(t, err)
	defer func() { _ = file.Close() }()
	_, err = file.Seek(since, io.SeekStart)
	env.Must(t, err)
	text, err := io.ReadAll(file)
	env.Must(t, err)
	asked := false
	for line := range bytes.Lines(text) {
		if !bytes.Contains(line, []byte(user)) {
			continue
		}
		var event struct {
			Verb, RequestURI string
			ImpersonatedUser struct{ Username string }
		}
		env.Must(t, json.Unmarshal(line, &event))
		if event.ImpersonatedUser.Username != user {
			continue
		}
		asked = true
		isWrite := slices.Contains([]string{"create", "update", "patch", "deletecollection"}, event.Verb) || event.Verb == "delete" && !dryRuns
		isDryRun := dryRuns && strings.Contains(event.RequestURI, "dryRun=All")
		isReview := strings.Contains(event.RequestURI, "accessreviews") || strings.Contains(event.RequestURI, "selfsubject")
		if isWrite && !isDryRun && !isReview {
			t.Errorf("the preview has written: %s %s", event.Verb, event.RequestURI)
		}
	}
	if !asked {
		t.Errorf("the audit log has no request of %s", user)
	}
}
