package plane

import (
	"slices"
	"strings"
	"testing"

	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
)

func TestAuditArgs(t *testing.T) {
	p := testPlane(instance.API, false)
	audits := func(arg string) bool { return strings.HasPrefix(arg, "--audit-") }
	if args := p.auditArgs(); slices.ContainsFunc(args, audits) {
		t.Errorf("no audit log was asked for: %v", args)
	}
	p.Settings.AuditLog = true
	for _, want := range []string{"--audit-log-path=/state/one/logs/audit.log", "--audit-policy-file=/state/one/audit-policy.yaml", "--audit-log-mode=blocking"} {
		if !slices.Contains(p.auditArgs(), want) {
			t.Errorf("the arguments lack %s: %v", want, p.auditArgs())
		}
	}
}
