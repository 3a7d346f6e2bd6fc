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

// asker is the user who asks for the previews of a namespace, so that the audit log tells their requests from others.
func asker(ns string) string { return "preview-of-" + ns }

// audited is how much the audit log holds; 0 if there is none.
func audited(t *testing.T) int64 {
	t.Helper()
	if !suite.IsDisposable() {
		return 0
	}
	info, err := os.Stat(suite.AuditLog())
	env.Must(t, err)
	return info.Size()
}

// checkWrites wants that a user has asked, and written nothing, since the audit log had a size. A DELETE says in its body, which the log
// leaves out, that it is a dry run: whoever compares objects sees whether it was one.
func checkWrites(t *testing.T, user string, since int64) {
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
		if slices.Contains([]string{"create", "update", "patch", "deletecollection"}, event.Verb) &&
			!strings.Contains(event.RequestURI, "dryRun=All") && !strings.Contains(event.RequestURI, "accessreviews") &&
			!strings.Contains(event.RequestURI, "selfsubject") {
			t.Errorf("the preview has written: %s %s", event.Verb, event.RequestURI)
		}
	}
	if !asked {
		t.Errorf("the audit log has no request of %s", user)
	}
}
