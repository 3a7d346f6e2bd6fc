package incluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/repository"
)

// known is an OperatorVersion with KudoOperator tasks.
func known(operator, app, version string, dependencies ...v1beta1.TaskSpec) v1beta1.OperatorVersion {
	ov := v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: operators.VersionName(operator, app, version)}}
	ov.Spec.Operator, ov.Spec.AppVersion, ov.Spec.Version = corev1.ObjectReference{Name: operator}, app, version
	step := v1beta1.Step{Name: "s"}
	for i, d := range dependencies {
		name := string(rune('a' + i))
		ov.Spec.Tasks = append(ov.Spec.Tasks, v1beta1.Task{Name: name, Kind: v1beta1.KudoOperatorTask, Spec: d})
		step.Tasks = append(step.Tasks, name)
	}
	ov.Spec.Plans = map[string]v1beta1.Plan{"deploy": {Phases: []v1beta1.Phase{{Name: "p", Steps: []v1beta1.Step{step}}}}}
	return ov
}

func on(operator, app, version string) v1beta1.TaskSpec {
	return v1beta1.TaskSpec{Package: operator, AppVersion: app, OperatorVersion: version}
}

// digestOf returns the content digest of an OperatorVersion.
func digestOf(t *testing.T, ov v1beta1.OperatorVersion) string {
	t.Helper()
	digest, err := content.Digest(&ov)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// TestResolveContent checks S33: what is installed under the name of a dependency has the content that the package was locked with.
func TestResolveContent(t *testing.T) {
	db, broken := known("db", "", "1.0.0"), known("bad", "", "1.0.0")
	broken.Spec.Templates = map[string]string{"a.yaml": "\xff"}
	locked := func(operator, digest string) v1beta1.TaskSpec {
		return v1beta1.TaskSpec{Package: operator, OperatorVersion: "1.0.0", Content: digest}
	}
	other := "sha256:" + strings.Repeat("0", 64)
	s := New("ns", []v1beta1.OperatorVersion{db, broken})
	for name, tc := range map[string]struct {
		reason string
		task   v1beta1.TaskSpec
		text   string
	}{
		"Any":    {"any content", locked("db", ""), ""},
		"Same":   {"the content that is wanted", locked("db", digestOf(t, db)), ""},
		"Other":  {"another content", locked("db", other), "needs OperatorVersion db-1.0.0 of content " + other + ", and the one that is installed has " + digestOf(t, db)},
		"Broken": {"a content that has no digest", locked("bad", other), "needs OperatorVersion bad-1.0.0, whose content cannot be compared"},
	} {
		web := known("web", "", "1.0.0", tc.task)
		_, err := s.Resolve(&web, nil)
		if (err == nil) != (tc.text == "") || err != nil && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
}

func deleting(ov v1beta1.OperatorVersion) v1beta1.OperatorVersion {
	ov.DeletionTimestamp = &metav1.Time{}
	return ov
}

func TestChoose(t *testing.T) {
	evil := known("db-5.7-0.2.0", "", "9.0.0")
	evil.Name = "evil"
	s := New("ns", []v1beta1.OperatorVersion{
		known("db", "5.7", "0.2.0"), known("db", "5.7", "0.10.0"), known("db", "5.7.1", "0.3.0"), known("db", "8.0.0", "1.0.0-rc.1"),
		known("web", "", "0.9.0"), known("web", "", "0.10.0"), deleting(known("web", "", "2.0.0")), deleting(known("old", "", "1.0.0")), evil,
	})
	for name, tc := range map[string]struct{ reason, operator, app, version, want, text string }{
		"Highest": {"by appVersion first", "db", "", "", "db-8.0.0-1.0.0-rc.1", ""},
		"Semantic": {
			"ten is more than nine, and what goes does not count",
			"web", "", "", "web-0.10.0", "",
		},
		"Range": {
			"the highest in a range; pre-releases are in none",
			"db", "", ">=0.2, <2", "db-5.7.1-0.3.0", "",
		},
		"Caret":          {"carets as with repositories", "db", "", "^0.2", "db-5.7-0.2.0", ""},
		"App":            {"a range of appVersion", "db", "~5.7.0", "0.x", "db-5.7.1-0.3.0", ""},
		"Name":           {"an OperatorVersion by its own name, though an operator has it", "operatorversion/db-5.7-0.2.0", "", "", "db-5.7-0.2.0", ""},
		"NameOfOperator": {"the operator by the same name", "db-5.7-0.2.0", "", "", "evil", ""},
		"NameOf": {
			"an OperatorVersion has its versions already",
			"operatorversion/db-5.7-0.2.0", "", "0.2.0", "", "operatorversion db-5.7-0.2.0 has its versions: leave out operatorVersion 0.2.0",
		},
		"NameDeleted": {"not one that is being deleted", "operatorversion/web-2.0.0", "", "", "", "operatorversion ns/web-2.0.0 does not exist or is being deleted"},
		"Exact":       {"a version means itself", "db", "5.7", "", "db-5.7-0.10.0", ""},
		"NoFit": {
			"what there is is listed, the highest first",
			"web", "", "^1", "", "no OperatorVersion of operator web in namespace ns has operatorVersion ^1: " +
				"there is web-0.10.0, web-0.9.0; web-2.0.0 is being deleted",
		},
		"NoFitBoth": {
			"both wishes are named",
			"db", "^9", "1.0.0", "", "has appVersion ^9 with operatorVersion 1.0.0: " +
				"there is db-8.0.0-1.0.0-rc.1, db-5.7.1-0.3.0, db-5.7-0.10.0, db-5.7-0.2.0",
		},
		"NoOperator": {
			"other operators are listed",
			"cache", "", "", "", "no OperatorVersion of operator cache is in namespace ns, which has those of db, db-5.7-0.2.0, web: " +
				"kubectl kudo install PACKAGE --skip-instance -n ns installs one",
		},
		"Going": {
			"so is what is being deleted",
			"old", "", "", "", "of db, db-5.7-0.2.0, web; old-1.0.0 is being deleted",
		},
		"NoRange": {
			"a wish that is none",
			"db", "", "^abc", "", `"^abc" is neither a version nor a range`,
		},
	} {
		ov, err := s.Choose(tc.operator, repository.Versions{App: tc.app, Operator: tc.version})
		switch {
		case tc.want != "" && (err != nil || ov.Name != tc.want):
			t.Errorf("%s: %s: %v, %v", name, tc.reason, ov, err)
		case tc.want == "" && (err == nil || !strings.Contains(err.Error(), tc.text)):
			t.Errorf("%s: %s: got %v, want %s", name, tc.reason, err, tc.text)
		}
	}
	_, err := New("ns", nil).Choose("db", repository.Versions{})
	if err == nil || !strings.Contains(err.Error(), "operator db is in namespace ns: kubectl kudo install") {
		t.Errorf("an empty namespace: %v", err)
	}
}

func TestResolve(t *testing.T) {
	switched := on("late", "", "1.0.0")
	switched.EnablingParameter = "LATE"
	all := []v1beta1.OperatorVersion{
		known("leaf", "3.1", "0.1.0"),
		known("left", "", "1.0.0", on("leaf", "3.1", "0.1.0")),
		known("right", "", "1.0.0", on("leaf", "3.1", "0.1.0"), on("left", "", "1.0.0")),
		known("top", "", "1.0.0", on("right", "", "1.0.0"), on("left", "", "1.0.0")),
		known("lost", "", "1.0.0", on("leaf", "3.1", "0.2.0"), on("none", "", "1.0.0")),
		known("deep", "", "1.0.0", on("lost", "", "1.0.0")),
		known("path", "", "1.0.0", on("../leaf", "", ""), on("leaf", "", "^0.1"), on("leaf", "", "")),
		known("range", "", "1.0.0", on("leaf", "", "^abc")),
		known("a", "", "1.0.0", on("b", "", "1.0.0")), known("b", "", "1.0.0", on("a", "", "1.0.0")),
		known("optional", "", "1.0.0", switched), known("above", "", "1.0.0", on("optional", "", "1.0.0")),
		deleting(known("gone", "", "1.0.0")), known("waits", "", "1.0.0", on("gone", "", "1.0.0")),
	}
	all[1].Spec.Tasks = append(all[1].Spec.Tasks, v1beta1.Task{Name: "unused", Kind: v1beta1.KudoOperatorTask, Spec: on("nowhere", "", "1")})
	s := New("ns", all)
	for name, tc := range map[string]struct {
		reason, root string
		values       params.Values
		want         []string
		warnings     int
		texts        []string
	}{
		"None": {reason: "no dependencies", root: "leaf-3.1-0.1.0", want: []string{"leaf-3.1-0.1.0"}},
		"Diamond": {
			reason: "each once, after what it depends on; tasks of no plan do not count",
			root:   "top-1.0.0", want: []string{"leaf-3.1-0.1.0", "left-1.0.0", "right-1.0.0", "top-1.0.0"},
		},
		"Missing": {
			reason: "all that are missing are named, however deep, with what there is and the command that installs them",
			root:   "deep-1.0.0", texts: []string{
				"operatorversion ns/deep-1.0.0 depends on what is not installed in its namespace:\n",
				`task "a" of operatorversion lost-1.0.0 needs OperatorVersion leaf-3.1-0.2.0 (of this operator, there is leaf-3.1-0.1.0): ` +
					`kubectl kudo install leaf --app-version 3.1 --operator-version 0.2.0 --skip-instance -n ns`,
				`task "b" of operatorversion lost-1.0.0 needs OperatorVersion none-1.0.0: ` +
					`kubectl kudo install none --operator-version 1.0.0 --skip-instance -n ns`,
			}},
		"Unresolved": {reason: "what is not resolved is no OperatorVersion; what would fit is named", root: "path-1.0.0", texts: []string{
			`task "a" of operatorversion path-1.0.0 names package "../leaf", and not the one`,
			`task "b" of operatorversion path-1.0.0 names package "leaf" of operatorVersion ^0.1`, "(leaf-3.1-0.1.0 would do)", `task "c"`,
		}},
		"NoRange": {
			reason: "neither is what is no range",
			root:   "range-1.0.0", texts: []string{`"^abc" is neither a version nor a range`},
		},
		"Circle": {
			reason: "the way around is named",
			root:   "a-1.0.0", texts: []string{"in a circle: a-1.0.0 -> b-1.0.0 -> a-1.0.0"},
		},
		"Off": {
			reason: "what is switched off need not be there",
			root:   "optional-1.0.0", values: params.Values{"LATE": "false"}, want: []string{"optional-1.0.0"},
		},
		"On": {
			reason: "what is switched on must be",
			root:   "optional-1.0.0", values: params.Values{"LATE": "true"}, texts: []string{"late-1.0.0"},
		},
		"NoValue": {
			reason: "what no boolean is does not switch off",
			root:   "optional-1.0.0", values: params.Values{"LATE": ""}, texts: []string{"late-1.0.0"},
		},
		"Elsewhere": {
			reason: "nor is one that is written elsewhere",
			root:   "optional-1.0.0", values: params.Values{"A": "b"}, want: []string{"optional-1.0.0"}, warnings: 1,
		},
		"Unknown": {
			reason: "the values of a dependency are not known: a warning",
			root:   "above-1.0.0", want: []string{"optional-1.0.0", "above-1.0.0"}, warnings: 1,
		},
		"Deleting": {
			reason: "an OperatorVersion that is being deleted does not count",
			root:   "waits-1.0.0", texts: []string{"gone-1.0.0, which is being deleted"},
		},
	} {
		n, err := s.Resolve(s.byName[tc.root], tc.values)
		var got []string
		if err == nil {
			for _, ov := range n.Ordered {
				got = append(got, ov.Name)
			}
			if len(n.Warnings) != tc.warnings {
				t.Errorf("%s: %s: %v", name, tc.reason, n.Warnings)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.texts != nil) {
			t.Errorf("%s: %s: %v %s", name, tc.reason, err, diff)
		}
		for _, text := range tc.texts {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %s: lacks %s:\n%v", name, tc.reason, text, err)
			}
		}
	}
}

// TestListReads checks that the OperatorVersions of one namespace are read, and that an error names the namespace.
func TestListReads(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	here, elsewhere := known("db", "", "1.0.0"), known("db", "", "2.0.0")
	elsewhere.Namespace = "other"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&here, &elsewhere).Build()
	found, err := List(t.Context(), c, "ns")
	if err != nil {
		t.Fatal(err)
	}
	if ov, err := found.Choose("db", repository.Versions{}); err != nil || ov.Name != "db-1.0.0" {
		t.Errorf("a higher version of another namespace does not count: %v, %v", ov, err)
	}

	failing := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("no answer")
		},
	}).Build()
	if _, err := List(t.Context(), failing, "ns"); err == nil || err.Error() != "list the OperatorVersions of namespace ns: no answer" {
		t.Errorf("the error names what was read: %v", err)
	}
}

// TestSpec checks that specs are found by name, and that one that is being deleted is not.
func TestSpec(t *testing.T) {
	v := New("ns", []v1beta1.OperatorVersion{known("db", "5", "1.0.0"), deleting(known("db", "5", "2.0.0"))})
	if spec := v.Spec("db-5-1.0.0"); spec == nil || spec.Version != "1.0.0" || spec.AppVersion != "5" {
		t.Errorf("the spec of an installed version: %+v", spec)
	}
	for _, name := range []string{"db-5-2.0.0", "db", ""} {
		if spec := v.Spec(name); spec != nil {
			t.Errorf("%q has a spec: %+v", name, spec)
		}
	}
}

// TestWarnings checks what a warning says of a dependency that a parameter may switch on.
func TestWarnings(t *testing.T) {
	switched := on("late", "", "1.0.0")
	switched.EnablingParameter = "LATE"
	v := New("ns", []v1beta1.OperatorVersion{known("top", "", "1.0.0", switched)})
	found, err := v.Resolve(v.byName["top-1.0.0"], nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`if parameter LATE is true: task "a" of operatorversion top-1.0.0 needs OperatorVersion late-1.0.0: ` +
		`kubectl kudo install late --operator-version 1.0.0 --skip-instance -n ns installs it from a repository`}
	if diff := cmp.Diff(want, found.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestIsFalse(t *testing.T) {
	for value, want := range map[any]bool{"false": true, "0": true, "F": true, "true": false, "": false, "off": false, 0: false, nil: false} {
		if got := isFalse(value); got != want {
			t.Errorf("isFalse(%#v) is %t", value, got)
		}
	}
}

// TestOf checks that the OperatorVersions of an operator come with the highest first, and that one is found by its name, as long as it is
// there to stay.
func TestOf(t *testing.T) {
	s := New("ns", []v1beta1.OperatorVersion{known("db", "", "0.2.0"), known("web", "", "1.0.0"), known("db", "", "0.10.0"), deleting(known("db", "", "9.0.0"))})
	var names []string
	for _, ov := range s.Of("db") {
		names = append(names, ov.Name)
	}
	if diff := cmp.Diff([]string{"db-0.10.0", "db-0.2.0"}, names); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
	if len(s.Of("none")) != 0 || len(s.Of("")) != 0 {
		t.Error("an operator that is not there has OperatorVersions")
	}
	for name, found := range map[string]bool{"db-0.2.0": true, "db-9.0.0": false, "none": false, "": false} {
		if got := s.Find(name); (got != nil) != found || got != nil && got.Name != name || (s.Spec(name) != nil) != found {
			t.Errorf("%q: found %t", name, got != nil)
		}
	}
}

// TestVersionPrefix checks that only an OperatorVersion is meant behind the prefix, and that its error names what lists those that there are.
func TestVersionPrefix(t *testing.T) {
	s := New("ns", []v1beta1.OperatorVersion{known("db", "", "1.0.0")})
	for name, want := range map[string]string{VersionPrefix + "db-1.0.0": "", VersionPrefix + "db": "kubectl kudo get operatorversions -n ns", VersionPrefix: "does not exist"} {
		ov, err := s.Choose(name, repository.Versions{})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && ov.Name != "db-1.0.0" {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
