package plane

import "kudo.dev/kudo/cmd/kudo-local/internal/instance"

// auditPolicy has one event for each request, when it is answered: who asked,
// as whom, for what, and the code of the answer. Bodies are left out, since
// those of Secrets are kept out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// AuditLog is the path of the audit log of the API server.
func (p *Plane) AuditLog() string { return p.Log("audit") }

func (p *Plane) auditPolicyFile() string { return p.Path("audit-policy.yaml") }

// writeAuditPolicy writes the policy, if the instance keeps an audit log.
func (p *Plane) writeAuditPolicy() error {
	if !p.Settings.AuditLog {
		return nil
	}
	return instance.WriteFile(p.auditPolicyFile(), []byte(auditPolicy))
}

// auditArgs are the flags of the API server about its audit log. An event is
// written before the request is answered, so that none is missing when the
// server is killed.
func (p *Plane) auditArgs() []string {
	if !p.Settings.AuditLog {
		return nil
	}
	return []string{
		"--audit-policy-file=" + p.auditPolicyFile(),
		"--audit-log-path=" + p.AuditLog(),
		"--audit-log-mode=blocking",
		// In megabytes; older files keep their time in their names.
		"--audit-log-maxsize=1024",
		"--audit-log-maxbackup=1",
	}
}
