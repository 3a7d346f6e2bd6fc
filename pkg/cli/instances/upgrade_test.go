package instances

import (
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestUpgradeKeepsInstallParameters: a new OperatorVersion gets the install parameters of the one before, so that what they share stays as it is.
func TestUpgradeKeepsInstallParameters(t *testing.T) {
	file := operators.ParamsFile{Parameters: []operators.Parameter{{Parameter: v1beta1.Parameter{Name: "SIZE"}}, {Parameter: v1beta1.Parameter{Name: "CLASS"}}}}
	pkg := &operators.Package{Operator: operators.OperatorFile{Name: "db", InstallPlan: "install"}, Params: file}
	plain := &operators.Package{Operator: operators.OperatorFile{Name: "db"}, Params: file}
	kept := map[string]string{"SIZE": "1Gi", "GONE": "x"}
	for _, tc := range []struct {
		reason    string
		pkg       *operators.Package
		old       map[string]string
		args      []string
		installed bool
		want      map[string]string
		err       string
	}{
		{reason: "those of the version before, without what the new one does not know", pkg: pkg, old: kept, want: map[string]string{"SIZE": "1Gi"}},
		{reason: "flags win", pkg: pkg, old: kept, args: []string{"SIZE=2Gi", "CLASS=fast"}, want: map[string]string{"SIZE": "2Gi", "CLASS": "fast"}},
		{reason: "the version before had none", pkg: pkg, args: []string{"CLASS=fast"}, want: map[string]string{"CLASS": "fast"}},
		{reason: "an OperatorVersion that is installed has its own", pkg: pkg, old: kept, installed: true},
		{reason: "which flags change", pkg: pkg, old: kept, installed: true, args: []string{"CLASS=fast"}, want: map[string]string{"CLASS": "fast"}},
		{reason: "without an install plan, there is nothing to keep", pkg: plain, old: kept},
		{reason: "nor to give", pkg: plain, args: []string{"SIZE=1Gi"}, err: "operator db has no install plan"},
		{reason: "no parameter of the package", pkg: pkg, args: []string{"OTHER=1"}, err: "OTHER"},
	} {
		next := gen.Version("lab", "next")
		next.Spec.Parameters = pkg.Definitions()
		var installed []client.Object
		if tc.installed {
			installed = append(installed, next.DeepCopy())
		}
		old := gen.Version("lab", "old")
		old.Spec.InstallParameters = tc.old
		u := &act.Upgrade{Old: old, Version: next}
		o := &upgradeOptions{env: command.NewEnv(strings.NewReader(""), io.Discard, io.Discard)}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.installing.Add(flags)
		for _, arg := range tc.args {
			if err := flags.Set("install-parameter", arg); err != nil {
				t.Fatal(err)
			}
		}
		err := o.setInstallParameters(t.Context(), apitest.Start(t, installed...).Client(), tc.pkg, u)
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
		}
		if err == nil && !maps.Equal(next.Spec.InstallParameters, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.reason, next.Spec.InstallParameters, tc.want)
		}
	}
}
