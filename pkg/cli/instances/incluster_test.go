package instances

import (
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/gen"
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
		if name == "Skip" {
			continue
		}
		_, errs = commandtest.Expect(t, NewUpgrade, command.ExitUsage, "", append([]string{"upgrade", "--in-cluster", "--instance", "x"}, tc.args...)...)
		if !strings.Contains(errs, tc.want) {
			t.Errorf("upgrade: %s: %s: %s", name, tc.reason, errs)
		}
	}
}

// TestUpgradeInCluster moves an Instance to an OperatorVersion of the cluster: the highest one, or the one that flags name.
func TestUpgradeInCluster(t *testing.T) {
	version, newer, other := web("1.0.0"), web("1.2.0"), web("9.0.0")
	other.Name, other.Spec.Operator.Name = "db-9.0.0", "db"
	dependent := web("2.0.0")
	dependent.Spec.Tasks = append(dependent.Spec.Tasks, v1beta1.Task{Name: "child", Kind: "KudoOperator",
		Spec: v1beta1.TaskSpec{Package: "cache", OperatorVersion: "1.0.0"}})
	gen.Serial("deploy", "apply", "child")(dependent)
	for _, tc := range []struct {
		reason, line string
		code         int
		want         string // part of the error, or what is printed
	}{
		{"the highest depends on what is not installed", "web", command.ExitError, "needs OperatorVersion cache-1.0.0: kubectl kudo install cache"},
		{"the one that a flag names", "web --operator-version 1.2.0", 0, "instance lab/site upgraded\n"},
		{"the one that is named", "operatorversion/web-1.27-1.2.0", 0, "instance lab/site upgraded\n"},
		{"a range", "web --operator-version ^1", 0, "instance lab/site upgraded\n"},
		{"with a value", "web --operator-version 1.2.0 -p VALUE=z", 0, "instance lab/site upgraded\n"},
		{"a value that it does not know", "web --operator-version 1.2.0 -p OTHER=z", command.ExitError, "parameter OTHER is not defined by operatorversion web-1.27-1.2.0"},
		{"the version that it has", "web --operator-version 1.0.0", command.ExitError, "already"},
		{"another operator", "db", command.ExitError, "it cannot be upgraded to operator db"},
		{"an operator that is not there", "none", command.ExitError, "none"},
	} {
		server := onServer(t, version, newer, other, dependent, site(version))
		args := append([]string{"upgrade", "--in-cluster", "--instance", "site"}, strings.Fields(tc.line)...)
		out, errs := commandtest.Expect(t, NewUpgrade, tc.code, "", args...)
		if tc.code == 0 && out != tc.want || tc.code != 0 && !strings.Contains(errs, tc.want) {
			t.Errorf("%s: %s%s, want %q", tc.reason, out, errs, tc.want)
		}
		stored := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
		server.Read(stored)
		if moved := stored.Spec.OperatorVersion.Name == newer.Name; moved != (tc.code == 0) || moved && strings.Contains(tc.line, "VALUE=z") != (stored.Spec.Parameters["VALUE"] == "z") {
			t.Errorf("%s: the Instance has the spec %+v", tc.reason, stored.Spec)
		}
	}
}
