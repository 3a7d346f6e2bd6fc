package act

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/repository/incluster"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestInstallCheck checks which installations are refused, and that the error names the remedy.
func TestInstallCheck(t *testing.T) {
	version, cache := operatorVersion("ns", "web", "1.0.0"), operatorVersion("ns", "cache", "1.0.0")
	version.Spec.Parameters = append(version.Spec.Parameters, v1beta1.Parameter{Name: "COUNT", Type: v1beta1.IntegerType, Required: new(true)})
	dependent := operatorVersion("ns", "web", "2.0.0")
	dependent.Spec.Tasks = append(dependent.Spec.Tasks, v1beta1.Task{Name: "child", Kind: v1beta1.KudoOperatorTask,
		Spec: v1beta1.TaskSpec{Package: "cache", OperatorVersion: "1.0.0"}})
	gen.Serial("deploy", "app", "child")(dependent)
	server := apitest.Start(t, gen.Instance("taken", version, nil))
	for _, tc := range []struct {
		reason, name string
		version      *v1beta1.OperatorVersion
		installed    *incluster.Versions
		set          map[string]string
		want         string // part of the error; empty if there is none
	}{
		{"all that it needs", "site", version, installed(version), map[string]string{"COUNT": "1"}, ""},
		{"a name of another form", "Site", version, installed(version), map[string]string{"COUNT": "1"}, "cannot name an Instance"},
		{"a name that is taken", "taken", version, installed(version), map[string]string{"COUNT": "1"}, "instance ns/taken exists already"},
		{"a parameter is required", "site", version, installed(version), nil, "COUNT"},
		{"a value of another type", "site", version, installed(version), map[string]string{"COUNT": "many"}, "COUNT"},
		{"a parameter that it does not have", "site", version, installed(version), map[string]string{"COUNT": "1", "NEW": "x"}, "parameter NEW is not defined by operatorversion web-1.0.0"},
		{"a dependency that is not installed", "site", dependent, installed(dependent), nil, "needs OperatorVersion cache-1.0.0"},
		{"a dependency that is installed", "site", dependent, installed(dependent, cache), nil, ""},
	} {
		n := Install{Instance: gen.Instance(tc.name, tc.version, tc.set), Version: tc.version, Installed: tc.installed}
		err := n.Check(t.Context(), server.Client())
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestInstallCreate checks that an Instance is created once, and that one of its name is not changed.
func TestInstallCreate(t *testing.T) {
	version := operatorVersion("ns", "web", "1.0.0")
	server := apitest.Start(t)
	n := Install{Instance: gen.Instance("site", version, map[string]string{"SIZE": "2"}), Version: version}
	if err := n.Create(t.Context(), server.Client()); err != nil {
		t.Fatal(err)
	}
	n.Instance.Spec.Parameters = map[string]string{"SIZE": "3"}
	if err := n.Create(t.Context(), server.Client()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the error is %v", err)
	}
	stored := &v1beta1.Instance{ObjectMeta: gen.Meta("ns", "site")}
	if server.Read(stored); stored.Spec.Parameters["SIZE"] != "2" || n.Instance.ResourceVersion != "" {
		t.Errorf("the Instance has the parameters %v", stored.Spec.Parameters)
	}
}

// TestInstallCommand checks the command lines of installations (U4): a sensitive value stands in none.
func TestInstallCommand(t *testing.T) {
	version := operatorVersion("ns", "web", "1.0.0")
	version.Spec.Parameters = append(version.Spec.Parameters, v1beta1.Parameter{Name: "PASSWORD", Sensitive: true})
	for want, change := range map[string]func(*v1beta1.Instance){
		"operatorversion/web-1.0.0 --in-cluster": func(*v1beta1.Instance) {},
		"operatorversion/web-1.0.0 --in-cluster --service-account 'a b' -p 'SIZE=it'\\''s' -P FILE": func(i *v1beta1.Instance) {
			i.Spec.ServiceAccountName, i.Spec.Parameters = "a b", map[string]string{"SIZE": "it's", "PASSWORD": "x"}
		},
		"operatorversion/web-1.0.0 --in-cluster -P FILE": func(i *v1beta1.Instance) {
			i.Spec.Parameters = map[string]string{"SIZE": ""} // -p SIZE= is refused
		},
	} {
		i := gen.Instance("site", version, nil)
		change(i)
		if got := NeedsFile(Install{Instance: i, Version: version}); got != strings.Contains(want, "FILE") {
			t.Errorf("%s: needs a file: %t", want, got)
		}
		if got := (Install{Instance: i, Version: version}).Command(); got != "kubectl kudo install --instance site -n ns "+want {
			t.Errorf("the command is %s, want %s", got, want)
		}
	}
}
