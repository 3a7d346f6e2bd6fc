package instances

import (
	"strings"
	"testing"
	"time"

	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
)

// TestLimitReads checks that what a command reads before its preview is limited by --timeout, with an error that names the flag, and that
// nothing is limited without a preview and after it (P4).
func TestLimitReads(t *testing.T) {
	version := web("1.0.0")
	server := onServer(t, version, site(version))
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	for _, tc := range []struct {
		reason, slow string
		command      commandtest.Constructor
		line         string
	}{
		{"the Instance", "Instance", NewUpdate, "update site -p VALUE=c --dry-run --timeout 300ms"},
		{"the OperatorVersion", "OperatorVersion", NewUpdate, "update site -p VALUE=c --dry-run --timeout 300ms"},
		{"with --expect, too", "Instance", NewUpdate, "update site -p VALUE=c --expect sha256:x --timeout 300ms"},
		{"of a diff", "Instance", NewDiff, "diff --instance site --timeout 300ms"},
		{"of a plan", "Instance", NewPlan, "plan preview site --timeout 300ms"},
	} {
		server.Before(func(r apitest.Request) (any, error) {
			if r.Kind == tc.slow {
				<-ended
			}
			return nil, nil
		})
		_, errs, code := commandtest.Run(t, tc.command, "", argsOf(tc.line)...)
		if code == 0 || !strings.Contains(errs, "the cluster did not answer within 300ms: try again later, or with a longer --timeout") {
			t.Errorf("%s: exit code %d, %s", tc.reason, code, errs)
		}
	}
	server.Before(func(r apitest.Request) (any, error) { // each answer comes in time, and all together do not
		if r.Verb == "get" {
			<-time.After(200 * time.Millisecond)
		}
		return nil, nil
	})
	_, errs, code := commandtest.Run(t, NewUpdate, "", argsOf("update site -p VALUE=c --dry-run --timeout 300ms")...)
	if code == 0 || !strings.Contains(errs, "the cluster did not answer within 300ms") {
		t.Errorf("two reads: exit code %d, %s", code, errs)
	}
	server.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "Instance" && len(r.Query["dryRun"]) == 0 && r.Verb == "patch" {
			<-time.After(3100 * time.Millisecond)
		}
		return nil, nil
	})
	out, _ := commandtest.Expect(t, NewUpdate, 0, "", argsOf("update site -p VALUE=c --dry-run -o yaml")...)
	_, digest, _ := strings.Cut(out, "digest: ")
	digest, _, _ = strings.Cut(digest, "\n")
	commandtest.Expect(t, NewUpdate, 0, "", argsOf("update site -p VALUE=c --timeout 3s --expect "+digest)...)
}
