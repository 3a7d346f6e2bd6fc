package act

import (
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/repository/incluster"
	"kudo.dev/kudo/test/gen"
)

// operatorVersion returns an OperatorVersion of an operator as the cluster has it.
func operatorVersion(namespace, operator, version string) *v1beta1.OperatorVersion {
	ov := gen.Version(namespace, operator+"-"+version, gen.Param("SIZE", "1", ""), gen.ConfigMaps("app", 1), gen.Serial("deploy", "app"))
	ov.Spec.Operator.Name, ov.Spec.Version, ov.UID = operator, version, "uid"
	return ov
}

// installed are the OperatorVersions of namespace ns.
func installed(all ...*v1beta1.OperatorVersion) *incluster.Versions {
	var items []v1beta1.OperatorVersion
	for _, ov := range all {
		items = append(items, *ov)
	}
	return incluster.New("ns", items)
}

// TestUpgradeDependencies checks that what a version depends on must be installed, unless a parameter switches it off.
func TestUpgradeDependencies(t *testing.T) {
	old, version, cache := operatorVersion("ns", "web", "1.0.0"), operatorVersion("ns", "web", "2.0.0"), operatorVersion("ns", "cache", "1.0.0")
	version.Spec.Tasks = append(version.Spec.Tasks, v1beta1.Task{Name: "child", Kind: v1beta1.KudoOperatorTask,
		Spec: v1beta1.TaskSpec{Package: "cache", OperatorVersion: "1.0.0", EnablingParameter: "CACHE"}})
	version.Spec.Parameters = append(version.Spec.Parameters, v1beta1.Parameter{Name: "CACHE", Type: v1beta1.BooleanType, Default: new("true")})
	gen.Serial("deploy", "app", "child")(version)
	i := gen.Instance("site", old, nil)
	for _, tc := range []struct {
		reason    string
		installed *incluster.Versions
		set       map[string]string
		from      []v1beta1.ParametersSource
		want      string
		ordered   int
	}{
		{"it is not installed", installed(version), nil, nil, "needs OperatorVersion cache-1.0.0", 0},
		{"it is installed", installed(version, cache), nil, nil, "", 2},
		{"a parameter switches it off", installed(version), map[string]string{"CACHE": "false"}, nil, "", 1},
		{"a source may switch it off", installed(version), nil, []v1beta1.ParametersSource{{Kind: "Secret", Name: "s"}}, "", 1},
	} {
		i.Spec.ParametersFrom = tc.from
		u := Upgrade{Instance: i, Old: old, Version: version, Installed: tc.installed, Set: tc.set}
		_, err := u.Change(t.Context(), nil)
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if needed, err := u.Dependencies(); err == nil && len(needed.Ordered) != tc.ordered {
			t.Errorf("%s: %d OperatorVersions, want %d", tc.reason, len(needed.Ordered), tc.ordered)
		}
	}
}

// TestUpgradeCheck checks which moves are refused, and that the error names the remedy.
func TestUpgradeCheck(t *testing.T) {
	old := operatorVersion("ns", "web", "1.1.0")
	odd := operatorVersion("ns", "web", "stable")
	labeled := func(operator string) *v1beta1.Instance {
		i := gen.Instance("site", old, nil)
		i.Labels = map[string]string{v1beta1.OperatorLabel: operator}
		return i
	}
	for _, tc := range []struct {
		reason  string
		upgrade Upgrade
		want    string // part of the error; empty if there is none
	}{
		{"a higher version", Upgrade{Instance: labeled("web"), Old: old, Version: operatorVersion("ns", "web", "1.2.0")}, ""},
		{"another operator", Upgrade{Instance: labeled("web"), Old: old, Version: operatorVersion("ns", "db", "1.2.0")}, "runs operator web: it cannot be upgraded to operator db"},
		{"another operator than the label has", Upgrade{Instance: labeled("web"), Version: operatorVersion("ns", "db", "1.2.0")}, "runs operator web"},
		{"no operator is known", Upgrade{Instance: labeled(""), Version: operatorVersion("ns", "db", "1.2.0")}, ""},
		{"the same version", Upgrade{Instance: labeled("web"), Old: old, Version: old}, "runs web-1.1.0 already: to run its plan again, use kubectl kudo plan trigger"},
		{"one of the same name in another namespace", Upgrade{Instance: labeled("web"), Old: old, Version: operatorVersion("shared", "web", "1.1.0")}, ""},
		{"the same version, which does not exist", Upgrade{Instance: labeled("web"), Version: old}, "which does not exist"},
		{"a lower version", Upgrade{Instance: labeled("web"), Old: old, Version: operatorVersion("ns", "web", "1.0.0")}, "1.0.0 is lower than 1.1.0, which instance site runs: use --allow-downgrade"},
		{"a lower version that is allowed", Upgrade{Instance: labeled("web"), Old: old, Version: operatorVersion("ns", "web", "1.0.0"), AllowDowngrade: true}, ""},
		{"a version that cannot be compared", Upgrade{Instance: labeled("web"), Old: odd, Version: operatorVersion("ns", "web", "1.0.0")}, ""},
	} {
		tc.upgrade.Installed = installed(tc.upgrade.Version)
		err := tc.upgrade.Check()
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if _, again := tc.upgrade.Change(t.Context(), nil); (again != nil) != (err != nil) {
			t.Errorf("%s: the change is refused with %v", tc.reason, again)
		}
	}
}

// TestUpgradeChange checks that parameters are held against the version that the Instance is moved to.
func TestUpgradeChange(t *testing.T) {
	old, version := operatorVersion("ns", "web", "1.0.0"), operatorVersion("ns", "web", "2.0.0")
	version.Spec.Parameters = append(version.Spec.Parameters, v1beta1.Parameter{Name: "COUNT", Type: v1beta1.IntegerType, Required: new(true)},
		v1beta1.Parameter{Name: "PIN", Type: v1beta1.BooleanType})
	old.Spec.Parameters = append(old.Spec.Parameters, v1beta1.Parameter{Name: "PIN", Sensitive: true})
	i := gen.Instance("site", old, nil)
	for _, tc := range []struct {
		reason string
		set    map[string]string
		want   string
	}{
		{"a parameter that is required now", nil, "COUNT"},
		{"a value of another type", map[string]string{"COUNT": "many"}, "COUNT"},
		{"a parameter that the version does not have", map[string]string{"COUNT": "1", "NEW": "x"}, "parameter NEW is not defined by operatorversion web-2.0.0"},
		{"all that it needs", map[string]string{"COUNT": "1"}, ""},
		{"a value that was sensitive, of another type", map[string]string{"COUNT": "1", "PIN": "123"}, "PIN"},
	} {
		_, err := Upgrade{Instance: i, Old: old, Version: version, Installed: installed(version), Set: tc.set}.Change(t.Context(), nil)
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "123") {
			t.Errorf("%s: the error has the value: %v", tc.reason, err)
		}
	}
}

// TestUpgradeEdit checks which version an upgrade leaves: one that was deleted, or that the cluster never had, is none.
func TestUpgradeEdit(t *testing.T) {
	live := operatorVersion("ns", "web", "0.1.0")
	fromFile := live.DeepCopy()
	fromFile.UID = ""
	i := gen.Instance("i", live, nil)
	for _, tc := range []struct {
		reason    string
		old, want *v1beta1.OperatorVersion
	}{
		{"it exists", live, live},
		{"it was deleted", nil, nil},
		{"it comes from a file", fromFile, nil},
	} {
		edit := Upgrade{Instance: i, Old: tc.old, Version: live, Versions: []*v1beta1.OperatorVersion{live}}.edit()
		if edit.Old != tc.want || edit.After.Spec.OperatorVersion.Name != live.Name || len(edit.Versions) != 1 || !edit.KeepsVersions {
			t.Errorf("%s: %+v", tc.reason, edit.Old)
		}
	}
}

// TestUpgradeApply checks that the namespace of an OperatorVersion is named only if it is another one than that of the Instance.
func TestUpgradeApply(t *testing.T) {
	i := gen.Instance("site", operatorVersion("ns", "web", "1.0.0"), map[string]string{"SIZE": "2"})
	for namespace, want := range map[string]string{"ns": "", "shared": "shared"} {
		got := Upgrade{Instance: i, Version: operatorVersion(namespace, "web", "2.0.0"), Set: map[string]string{"NEW": "x"}}.Changed().Spec
		if got.OperatorVersion.Name != "web-2.0.0" || got.OperatorVersion.Namespace != want || got.Parameters["SIZE"] != "2" || got.Parameters["NEW"] != "x" {
			t.Errorf("%s: %+v", namespace, got)
		}
	}
	if i.Spec.OperatorVersion.Name != "web-1.0.0" || i.Spec.Parameters["NEW"] != "" {
		t.Errorf("the Instance itself is changed: %+v", i.Spec)
	}
}

// TestUpgradeCommand checks the command lines of upgrades (U4): a sensitive value stands in none.
func TestUpgradeCommand(t *testing.T) {
	old, version := operatorVersion("ns", "web", "1.0.0"), operatorVersion("ns", "web", "2.0.0")
	version.Spec.Parameters = append(version.Spec.Parameters, v1beta1.Parameter{Name: "PASSWORD", Sensitive: true})
	i := gen.Instance("site", old, nil)
	for want, upgrade := range map[string]Upgrade{
		"operatorversion/web-2.0.0 --in-cluster":                         {Instance: i, Old: old, Version: version},
		"operatorversion/web-2.0.0 --in-cluster -p 'SIZE=$(id)' -P FILE": {Instance: i, Old: old, Version: version, Set: map[string]string{"SIZE": "$(id)", "PASSWORD": "x"}},
		"operatorversion/web-1.0.0 --in-cluster --allow-downgrade":       {Instance: i, Old: version, Version: old},
	} {
		if got := upgrade.Command(); got != "kubectl kudo upgrade --instance site -n ns "+want {
			t.Errorf("the command is %s, want %s", got, want)
		}
	}
	if got := PackageUpgradeCommand(i); got != "kubectl kudo upgrade --instance site -n ns PACKAGE --dry-run" {
		t.Errorf("the command is %s", got)
	}
}
