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

// argsOf splits a command line, in which HELLO is the package hello.
func argsOf(line string) []string { return strings.Fields(strings.ReplaceAll(line, "HELLO", hello)) }

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
		line    string // in which HELLO is the package hello
		want    string
	}{
		"install without package":          {NewInstall, "install", "one package"},
		"install two packages":             {NewInstall, "install a b", "got 2 arguments: a b"},
		"install unknown flag":             {NewInstall, "install HELLO --nope x", "unknown flag: --nope"},
		"install with a bad parameter":     {NewInstall, "install HELLO -p REPLICAS", "-p REPLICAS"},
		"install from a wrong source":      {NewInstall, "install HELLO --parameters-from pod/x", "must be secret/NAME or configmap/NAME"},
		"install from a source of no name": {NewInstall, "install HELLO --parameters-from secret/", "must be secret/NAME"},
		"install under a wrong name":       {NewInstall, "install HELLO --instance A_b", "--instance:"},
		"install with a bad wait":          {NewInstall, "install HELLO --wait-time soon", "neither a number of seconds"},
		"install with two accounts":        {NewInstall, "install HELLO --service-account a --create-service-account", "name an account, or have one made"},
		"install an account of nothing":    {NewInstall, "install HELLO --service-account a --skip-instance", "cannot be used with --skip-instance"},
		"install an install parameter":     {NewInstall, "install HELLO --install-parameter A=b", "operator hello has no install plan"},
		"install a nameless parameter":     {NewInstall, "install HELLO --install-parameter =b", "must be NAME=VALUE"},
		"install a range":                  {NewInstall, "install HELLO --operator-version ^abc", "neither a version nor a range"},
		"update with two names":            {NewUpdate, "update x y", "y is one argument too many"},
		"update nothing":                   {NewUpdate, "update --instance x", "nothing to update"},
		"update and unset":                 {NewUpdate, "update --instance x -p A=b --unset A", "parameter A is both set and unset"},
		"update from a wrong source":       {NewUpdate, "update --instance x --parameters-from x", "must be secret/NAME"},
		"upgrade without package":          {NewUpgrade, "upgrade --instance x", "one package"},
		"upgrade to a range":               {NewUpgrade, "upgrade HELLO --instance x --app-version ^abc", "neither a version nor a range"},
		"rollback to a word":               {NewRollback, "rollback --instance x --to-revision last", "invalid argument"},
		"rollback with two names":          {NewRollback, "rollback x y", "y is one argument too many"},
		"uninstall with two names":         {NewUninstall, "uninstall x y", "y is one argument too many"},
		"uninstall-version without name":   {NewUninstallVersion, "uninstall-version", "the name of one OperatorVersion"},
		"uninstall-version both ways":      {NewUninstallVersion, "uninstall-version x --force --leave-users", "cannot be used with --leave-users"},
		"rollback of nothing":              {NewRollback, "rollback", "--instance is missing"},
		"uninstall nothing":                {NewUninstall, "uninstall", "--instance is missing"},
		"update of nothing":                {NewUpdate, "update -p A=b", "--instance is missing"},
		"upgrade of nothing":               {NewUpgrade, "upgrade HELLO", "--instance is missing"},
		"account of nothing":               {NewAccount, "account create", "--instance is missing"},
		"plan of nothing":                  {NewPlan, "plan cancel", "--instance is missing"},
		"plan status in a wrong format":    {NewPlan, "plan status --instance x --wait -o table", "invalid output format"},
		"plan history in a wrong format":   {NewPlan, "plan history --operator-version x -o wide", "invalid output format"},
		"plan trigger without a plan":      {NewPlan, "plan trigger --instance x", "--name is missing"},
		"get nothing":                      {NewGet, "get", "one of instances, operators, operatorversions, shared and all"},
		"get in a wrong format":            {NewGet, "get instances -o table", `invalid output format "table"`},
		"plan of no name":                  {NewPlan, "plan trigger x", "name the plan to start"},
		"plan that is none":                {NewPlan, "plan stat", `has no command "stat", did you mean status?`},
		"plan of two":                      {NewPlan, "plan status --instance x --operator-version y", "exclude each other"},
		"plan that waits wrongly":          {NewPlan, "plan wait --instance x --wait-time -1", "neither a number of seconds"},
		"account that is none":             {NewAccount, "account make", `has no command "make"`},
		"account with two names":           {NewAccount, "account create x y", "y is one argument too many"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs := commandtest.Expect(t, tc.command, command.ExitUsage, "", argsOf(tc.line)...)
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
