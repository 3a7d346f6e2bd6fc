package instances

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

const hello = "../../../operators/catalog/hello/operator"

// noCluster gives a test a kubeconfig without clusters, and no repositories.
func noCluster(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUDO_HOME", t.TempDir())
}

// TestUsage checks that a wrong command line is refused before the cluster is connected, with the exit code of wrong usage.
func TestUsage(t *testing.T) {
	noCluster(t)
	for name, tc := range map[string]struct {
		command commandtest.Constructor
		args    []string
		want    string
	}{
		"install without package":          {NewInstall, []string{"install"}, "one package"},
		"install two packages":             {NewInstall, []string{"install", "a", "b"}, "got 2 arguments: a b"},
		"install unknown flag":             {NewInstall, []string{"install", hello, "--instanse", "x"}, "unknown flag: --instanse"},
		"install with a bad parameter":     {NewInstall, []string{"install", hello, "-p", "REPLICAS"}, "-p REPLICAS"},
		"install from a wrong source":      {NewInstall, []string{"install", hello, "--parameters-from", "pod/x"}, "must be secret/NAME or configmap/NAME"},
		"install from a source of no name": {NewInstall, []string{"install", hello, "--parameters-from", "secret/"}, "must be secret/NAME"},
		"install under a wrong name":       {NewInstall, []string{"install", hello, "--instance", "A_b"}, "--instance:"},
		"install with a bad wait":          {NewInstall, []string{"install", hello, "--wait-time", "soon"}, "neither a number of seconds"},
		"install with two accounts":        {NewInstall, []string{"install", hello, "--service-account", "a", "--create-service-account"}, "cannot be used with --create-service-account"},
		"install an account of nothing":    {NewInstall, []string{"install", hello, "--service-account", "a", "--skip-instance"}, "cannot be used with --skip-instance"},
		"install an install parameter":     {NewInstall, []string{"install", hello, "--install-parameter", "A=b"}, "operator hello has no install plan"},
		"install a nameless parameter":     {NewInstall, []string{"install", hello, "--install-parameter", "=b"}, "must be NAME=VALUE"},
		"install a range":                  {NewInstall, []string{"install", hello, "--operator-version", "^abc"}, "neither a version nor a range"},
		"update with an argument":          {NewUpdate, []string{"update", "x"}, "no arguments"},
		"update nothing":                   {NewUpdate, []string{"update", "--instance", "x"}, "nothing to update"},
		"update and unset":                 {NewUpdate, []string{"update", "--instance", "x", "-p", "A=b", "--unset", "A"}, "parameter A is both set and unset"},
		"update from a wrong source":       {NewUpdate, []string{"update", "--instance", "x", "--parameters-from", "x"}, "must be secret/NAME"},
		"upgrade without package":          {NewUpgrade, []string{"upgrade", "--instance", "x"}, "one package"},
		"upgrade to a range":               {NewUpgrade, []string{"upgrade", hello, "--instance", "x", "--app-version", "^abc"}, "neither a version nor a range"},
		"rollback to a word":               {NewRollback, []string{"rollback", "--instance", "x", "--to-revision", "last"}, "invalid argument"},
		"rollback with an argument":        {NewRollback, []string{"rollback", "x"}, "no arguments"},
		"uninstall with an argument":       {NewUninstall, []string{"uninstall", "x"}, "arguments"},
		"uninstall-version without name":   {NewUninstallVersion, []string{"uninstall-version"}, "the name of one OperatorVersion"},
		"uninstall-version both ways":      {NewUninstallVersion, []string{"uninstall-version", "x", "--force", "--leave-users"}, "--force cannot be used with --leave-users"},
		"get nothing":                      {NewGet, []string{"get"}, "one of instances, operators, operatorversions, shared and all"},
		"get in a wrong format":            {NewGet, []string{"get", "instances", "-o", "table"}, `invalid output format "table"`},
		"plan of no name":                  {NewPlan, []string{"plan", "trigger", "x"}, "no arguments"},
		"plan that is none":                {NewPlan, []string{"plan", "stat"}, `has no command "stat", did you mean status?`},
		"plan of two":                      {NewPlan, []string{"plan", "status", "--instance", "x", "--operator-version", "y"}, "exclude each other"},
		"plan that waits wrongly":          {NewPlan, []string{"plan", "wait", "--instance", "x", "--wait-time", "-1"}, "neither a number of seconds"},
		"account that is none":             {NewAccount, []string{"account", "make"}, `has no command "make"`},
		"account with an argument":         {NewAccount, []string{"account", "create", "x"}, "no arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs := commandtest.Expect(t, tc.command, command.ExitUsage, "", tc.args...)
			if out != "" || !strings.HasPrefix(errs, "Error: ") || !strings.Contains(errs, tc.want) {
				t.Errorf("no %q in\n%s%s", tc.want, out, errs)
			}
		})
	}
}

// TestNoCluster checks that each command that is called rightly says that no cluster is configured, and what to do.
func TestNoCluster(t *testing.T) {
	noCluster(t)
	for _, tc := range []struct {
		command commandtest.Constructor
		args    []string
	}{
		{NewInstall, []string{"install", hello}},
		{NewInstall, []string{"install", "hello", "--in-cluster"}},
		{NewUpdate, []string{"update", "--instance", "x", "-p", "A=b"}},
		{NewUpgrade, []string{"upgrade", hello, "--instance", "x"}},
		{NewRollback, []string{"rollback", "--instance", "x"}},
		{NewUninstall, []string{"uninstall", "--instance", "x"}},
		{NewUninstallVersion, []string{"uninstall-version", "x"}},
		{NewGet, []string{"get", "all"}},
		{NewGet, []string{"get", "shared"}},
		{NewPlan, []string{"plan", "status", "--instance", "x"}},
		{NewPlan, []string{"plan", "history", "--operator-version", "x"}},
		{NewPlan, []string{"plan", "cancel", "--instance", "x"}},
		{NewAccount, []string{"account", "create", "--instance", "x"}},
	} {
		out, errs := commandtest.Expect(t, tc.command, command.ExitError, "", tc.args...)
		if out != "" || !strings.Contains(errs, "no cluster is configured: set --kubeconfig or KUBECONFIG") {
			t.Errorf("%v:\n%s%s", tc.args, out, errs)
		}
	}
}

// TestInstallChecksPackage checks that a package and its values are checked before the cluster is connected.
func TestInstallChecksPackage(t *testing.T) {
	noCluster(t)
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte("REPLICAS: many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"the package exists", []string{"./none"}, "no such folder or archive"},
		{"parameters are defined", []string{hello, "-p", "REPLIKAS=2"}, "parameter REPLIKAS is not defined by operator hello"},
		{"values have their type", []string{hello, "-p", "REPLICAS=many"}, "REPLICAS"},
		{"those of files, too", []string{hello, "-P", file}, "REPLICAS"},
		{"files exist", []string{hello, "-P", file + ".none"}, "parameter file: "},
	} {
		_, errs := commandtest.Expect(t, NewInstall, command.ExitError, "", append([]string{"install"}, tc.args...)...)
		if !strings.Contains(errs, tc.want) || strings.Contains(errs, "no cluster") {
			t.Errorf("%s: no %q in\n%s", tc.reason, tc.want, errs)
		}
	}
}

// TestHelp checks that each command has a short text, and that commands that need an Instance have the flag that names it.
func TestHelp(t *testing.T) {
	for _, construct := range []commandtest.Constructor{
		NewInstall, NewUpdate, NewUpgrade, NewRollback, NewUninstall, NewUninstallVersion, NewGet, NewPlan, NewAccount,
	} {
		visit(construct(command.NewEnv(strings.NewReader(""), nil, nil)), func(cmd *cobra.Command) {
			if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
				t.Errorf("%s: the short text is %q", cmd.CommandPath(), cmd.Short)
			}
			if strings.Contains(cmd.Use, "--instance") && cmd.Flags().Lookup("instance") == nil {
				t.Errorf("%s has no flag --instance", cmd.CommandPath())
			}
		})
	}
}

// visit calls do for a command and all below it.
func visit(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, child := range cmd.Commands() {
		visit(child, do)
	}
}
