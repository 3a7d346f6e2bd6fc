package operators

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// named is a package of a name and versions.
func named(name, appVersion, operatorVersion string) *Package {
	return &Package{Operator: OperatorFile{Name: name, AppVersion: appVersion, OperatorVersion: operatorVersion}}
}

// TestValidateNames checks the whole message of each name that Kubernetes does not take, at its field.
func TestValidateNames(t *testing.T) {
	long := strings.Repeat("x", 63)
	for name, tc := range map[string]struct {
		reason string
		pkg    *Package
		want   []string
	}{
		"Right":   {"plain names", named("x", "", "1.0.0"), nil},
		"Dots":    {"dots and dashes inside", named("x.y-z", "5.7-rc.1", "1.0.0-a.1"), nil},
		"Digit":   {"a digit in front", named("3scale", "", "1"), nil},
		"Longest": {"what a label takes", named(long, "", "1.0.0"), nil},
		"Long": {"what a label does not take", named(long+"y", "", "1.0.0"),
			[]string{`operator.yaml: name: "` + long +
				`y" is longer than 63 characters, so it cannot be the label kudo.dev/operator: shorten it`}},
		"NoName": {"a name is needed", named("", "", "1.0.0"),
			[]string{"operator.yaml: name: a name is required, as it names the operator in the cluster"}},
		"NoVersion": {"a version is needed", named("x", "1", ""),
			[]string{`operator.yaml: operatorVersion: a version is required, like "0.1.0"`}},
		"Nothing": {"both are reported at once", named("", "", ""),
			[]string{"operator.yaml: name: a name is required, as it names the operator in the cluster",
				`operator.yaml: operatorVersion: a version is required, like "0.1.0"`}},
		"Underscore": {"no underscores", named("my_op", "", "1.0.0"),
			[]string{`operator.yaml: name: "my_op" cannot name an object: use lower case letters, digits, - and .`}},
		"Slash": {"no slashes, which would be other paths of the API", named("../x", "", "1.0.0"),
			[]string{`operator.yaml: name: "../x" cannot name an object: use lower case letters, digits, - and .`}},
		"DashEnd": {"no dash at the end", named("x-", "", "1.0.0"),
			[]string{`operator.yaml: name: "x-" cannot name an object: use lower case letters, digits, - and .`}},
		"TwoDots": {"no empty part", named("x..y", "", "1.0.0"),
			[]string{`operator.yaml: name: "x..y" cannot name an object: use lower case letters, digits, - and .`}},
		"Line": {"no line break", named("x\n", "", "1.0.0"),
			[]string{`operator.yaml: name: "x\n" cannot name an object: use lower case letters, digits, - and .`}},
		"Letters": {"no letters of other scripts", named("é", "", "1.0.0"),
			[]string{`operator.yaml: name: "é" cannot name an object: use lower case letters, digits, - and .`}},
		"VersionPlus": {"no build of a version", named("x", "", "1.0.0+b"),
			[]string{
				`operator.yaml: operatorVersion: "1.0.0+b" is part of the name of the OperatorVersion: use lower case letters, digits, - and .`}},
		"VersionUpper": {"no upper case in versions", named("x", "1.0-RC1", "1.0.0-A"),
			[]string{
				`operator.yaml: operatorVersion: "1.0.0-A" is part of the name of the OperatorVersion: use lower case letters, digits, - and .`,
				`operator.yaml: appVersion: "1.0-RC1" is part of the name of the OperatorVersion: use lower case letters, digits, - and .`}},
		"VersionSpace": {"no space in versions", named("x", "1 0", "1.0.0"),
			[]string{`operator.yaml: appVersion: "1 0" is part of the name of the OperatorVersion: use lower case letters, digits, - and .`}},
		"Whole": {"the name of the whole", named("x", strings.Repeat("1", 125), strings.Repeat("2", 125)+"3"), []string{
			`operator.yaml: name: "x-` + strings.Repeat("1", 59) +
				`…", made of name, appVersion and operatorVersion, cannot name an object (must be no more than 253 characters)`}},
		"WholeEdge": {"the longest name of the whole", named("x", strings.Repeat("1", 125), strings.Repeat("2", 125)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, findings(tc.pkg.ValidateNames())); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			operator, version, err := Convert(tc.pkg, "ns")
			var errs Errors
			if errors.As(err, &errs) != (tc.want != nil) || (operator == nil) != (tc.want != nil) || (version == nil) != (tc.want != nil) {
				t.Errorf("%s: Convert returns %v, %v, %v", tc.reason, operator, version, err)
			}
		})
	}
}

// TestConvertFields checks that each field of a package that the API has reaches it, and that the objects share nothing.
func TestConvertFields(t *testing.T) {
	p, err := Read(pkg(`
name: x
operatorVersion: 1.0.0
appVersion: 2.0.0
description: d
kudoVersion: 0.19.0
kubernetesVersion: 1.25.0
url: u
maintainers: [{name: m, email: e}]
namespaceManifest: ns.yaml
installPlan: install
installPolicy: {sharedUpdates: SameOperator}
crdTarball: {httpSource: {url: h, sha256: s}}
tasks: [{name: t, kind: Toggle, spec: {resources: [a], parameter: P}}]
plans: {install: {strategy: serial, phases: [{name: p, steps: [{name: s, tasks: [t]}]}]}}
`, `parameters: [{name: P, enum: [a, b], sensitive: true, pattern: a, maxLines: 2, trigger: install,
  type: string, description: e, displayName: f, group: g}]`))
	if err != nil {
		t.Fatal(err)
	}
	operator, version, err := Convert(p, "ns")
	if err != nil {
		t.Fatal(err)
	}
	wantOperator := v1beta1.OperatorSpec{Description: "d", KudoVersion: "0.19.0", KubernetesVersion: "1.25.0", URL: "u",
		Maintainers: []v1beta1.Maintainer{{Name: "m", Email: "e"}}, NamespaceManifest: "ns.yaml"}
	if diff := cmp.Diff(wantOperator, operator.Spec); diff != "" {
		t.Errorf("Operator: -want +got:\n%s", diff)
	}
	yes, no, two := true, false, int32(2)
	spec := version.Spec
	if diff := cmp.Diff([]v1beta1.Parameter{{Name: "P", DisplayName: "f", Description: "e", Trigger: "install", Type: "string",
		Enum:     &[]string{"a", "b"},
		Required: &yes, Immutable: &no, Sensitive: true, Pattern: "a", MaxLines: &two}}, spec.Parameters); diff != "" {
		t.Errorf("parameters: -want +got:\n%s", diff)
	}
	if spec.InstallPlan != "install" || spec.InstallPolicy.SharedUpdates != v1beta1.SameOperatorUpdates ||
		spec.CRDTarball.HTTPSource.SHA256 != "s" || spec.Operator.Name != "x" {
		t.Errorf("OperatorVersion: %+v", spec)
	}
	// What is changed in the objects must not reach the package.
	before := p.DeepCopy()
	operator.Spec.Maintainers[0].Name = "changed"
	spec.InstallPolicy.SharedUpdates, spec.CRDTarball.HTTPSource.URL = "changed", "changed"
	spec.Tasks[0].Spec.Resources[0], spec.Plans["install"].Phases[0].Steps[0].Tasks[0] = "changed", "changed"
	(*spec.Parameters[0].Enum)[0], *spec.Parameters[0].MaxLines = "changed", 9
	if diff := cmp.Diff(before, p, cmp.AllowUnexported(Package{})); diff != "" {
		t.Errorf("the package is changed: -want +got:\n%s", diff)
	}
}
