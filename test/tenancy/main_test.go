// Package tenancy tests that no user gets more rights than were given to the user: what users of one namespace may set, on a
// real control plane with admission, changes nothing that they could not change themselves.
package tenancy

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"kudo.dev/kudo/test/env"
)

var (
	suite env.Suite
	ctx   = context.Background()
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "32") // parallel tests wait for the manager, and compute nothing
	suite.Setup = func() (func() error, error) { return checkAudit, nil }
	suite.Main(m, "--audit-log", "--init-arg=--crd-allowed-hosts=127.0.0.1")
}

// checkAudit fails the suite if the manager has asked for what is not in its role. KUDO_TENANCY_AUDIT names a file for a
// summary of its requests.
func checkAudit() error {
	if !suite.IsDisposable() {
		return nil
	}
	events, err := readAudit(suite.AuditLog())
	if err != nil {
		return err
	}
	if found := tenants.judge(events); len(found) > 0 {
		return fmt.Errorf("the audit log has %d requests of the manager outside of its role:\n%s", len(found), strings.Join(found[:min(len(found), 20)], "\n"))
	}
	if file := os.Getenv("KUDO_TENANCY_AUDIT"); file != "" {
		return os.WriteFile(file, []byte(summary(events)), 0o600)
	}
	return nil
}
