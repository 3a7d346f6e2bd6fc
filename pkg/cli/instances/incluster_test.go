package instances

import (
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestInClusterUsage: flags that contradict each other are wrong usage, before a cluster is connected.
func TestInClusterUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, want string
		args         []string
	}{
		"Skip":    {"nothing would be done", "cannot be used with --skip-instance", []string{"db", "--skip-instance"}},
		"Repo":    {"no repository is asked", "--repo cannot be used with --in-cluster", []string{"db", "--repo", "r"}},
		"Install": {"the install plan is not run by it", "--install-parameter cannot be used with --in-cluster", []string{"db", "--install-parameter", "A=b"}},
		"Path":    {"a path names a package", "is a path or a URL", []string{"./db"}},
		"Range":   {"neither version nor range", "neither a version nor a range", []string{"db", "--operator-version", "^abc"}},
		"App":     {"of appVersion, too", "neither a version nor a range", []string{"db", "--app-version", ">>1"}},
	} {
		_, errs := commandtest.Expect(t, NewInstall, command.ExitUsage, "", append([]string{"install", "--in-cluster"}, tc.args...)...)
		if !strings.Contains(errs, tc.want) {
			t.Errorf("%s: %s: %s", name, tc.reason, errs)
		}
	}
}
