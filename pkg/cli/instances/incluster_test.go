package instances

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
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

func deleting(ov v1beta1.OperatorVersion) v1beta1.OperatorVersion {
	ov.DeletionTimestamp = &metav1.Time{}
	return ov
}

func TestStockChoose(t *testing.T) {
	s := newStock("ns", []v1beta1.OperatorVersion{
		known("db", "5.7", "0.2.0"), known("db", "5.7", "0.10.0"), known("db", "5.7.1", "0.3.0"), known("db", "8.0.0", "1.0.0-rc.1"),
		known("web", "", "0.9.0"), known("web", "", "0.10.0"), deleting(known("web", "", "2.0.0")), deleting(known("old", "", "1.0.0")),
	})
	for name, tc := range map[string]struct{ reason, operator, app, version, want, text string }{
		"Highest":    {"by appVersion first", "db", "", "", "db-8.0.0-1.0.0-rc.1", ""},
		"Semantic":   {"ten is more than nine, and what goes does not count", "web", "", "", "web-0.10.0", ""},
		"Range":      {"the highest in a range; pre-releases are in none", "db", "", ">=0.2, <2", "db-5.7.1-0.3.0", ""},
		"Caret":      {"carets as with repositories", "db", "", "^0.2", "db-5.7-0.2.0", ""},
		"App":        {"a range of appVersion", "db", "~5.7.0", "0.x", "db-5.7.1-0.3.0", ""},
		"Exact":      {"a version means itself", "db", "5.7", "", "db-5.7-0.10.0", ""},
		"NoFit":      {"what there is is listed, the highest first", "web", "", "^1", "", "no OperatorVersion of operator web in namespace ns has operatorVersion ^1: there is web-0.10.0, web-0.9.0; web-2.0.0 is being deleted"},
		"NoFitBoth":  {"both wishes are named", "db", "^9", "1.0.0", "", "has appVersion ^9 with operatorVersion 1.0.0: there is db-8.0.0-1.0.0-rc.1, db-5.7.1-0.3.0, db-5.7-0.10.0, db-5.7-0.2.0"},
		"NoOperator": {"other operators are listed", "cache", "", "", "", "no OperatorVersion of operator cache is in namespace ns, which has those of db, web: kubectl kudo install PACKAGE --skip-instance -n ns installs one"},
		"Going":      {"so is what is being deleted", "old", "", "", "", "of db, web; old-1.0.0 is being deleted"},
		"NoRange":    {"a wish that is none", "db", "", "^abc", "", `"^abc" is neither a version nor a range`},
	} {
		ov, err := s.choose(tc.operator, repository.Versions{App: tc.app, Operator: tc.version})
		switch {
		case tc.want != "" && (err != nil || ov.Name != tc.want):
			t.Errorf("%s: %s: %v, %v", name, tc.reason, ov, err)
		case tc.want == "" && (err == nil || !strings.Contains(err.Error(), tc.text)):
			t.Errorf("%s: %s: got %v, want %s", name, tc.reason, err, tc.text)
		}
	}
	if _, err := newStock("ns", nil).choose("db", repository.Versions{}); err == nil || !strings.Contains(err.Error(), "operator db is in namespace ns: kubectl kudo install") {
		t.Errorf("an empty namespace: %v", err)
	}
}

func TestStockDependencies(t *testing.T) {
	switched := on("late", "", "1.0.0")
	switched.EnablingParameter = "LATE"
	all := []v1beta1.OperatorVersion{
		known("leaf", "3.1", "0.1.0"), known("left", "", "1.0.0", on("leaf", "3.1", "0.1.0")), known("right", "", "1.0.0", on("leaf", "3.1", "0.1.0"), on("left", "", "1.0.0")),
		known("top", "", "1.0.0", on("right", "", "1.0.0"), on("left", "", "1.0.0")),
		known("lost", "", "1.0.0", on("leaf", "3.1", "0.2.0"), on("none", "", "1.0.0")), known("deep", "", "1.0.0", on("lost", "", "1.0.0")),
		known("path", "", "1.0.0", on("../leaf", "", ""), on("leaf", "", "^0.1"), on("leaf", "", "")), known("range", "", "1.0.0", on("leaf", "", "^abc")),
		known("a", "", "1.0.0", on("b", "", "1.0.0")), known("b", "", "1.0.0", on("a", "", "1.0.0")),
		known("optional", "", "1.0.0", switched), known("above", "", "1.0.0", on("optional", "", "1.0.0")),
		deleting(known("gone", "", "1.0.0")), known("waits", "", "1.0.0", on("gone", "", "1.0.0")),
	}
	all[1].Spec.Tasks = append(all[1].Spec.Tasks, v1beta1.Task{Name: "unused", Kind: v1beta1.KudoOperatorTask, Spec: on("nowhere", "", "1")})
	s := newStock("ns", all)
	for name, tc := range map[string]struct {
		reason, root string
		values       params.Values
		want         []string
		warnings     int
		texts        []string
	}{
		"None":    {reason: "no dependencies", root: "leaf-3.1-0.1.0", want: []string{"leaf-3.1-0.1.0"}},
		"Diamond": {reason: "each once, after what it depends on; tasks of no plan do not count", root: "top-1.0.0", want: []string{"leaf-3.1-0.1.0", "left-1.0.0", "right-1.0.0", "top-1.0.0"}},
		"Missing": {reason: "all that are missing are named, however deep, with what there is and the command that installs them", root: "deep-1.0.0", texts: []string{
			"operatorversion ns/deep-1.0.0 depends on what is not installed in its namespace:\n",
			`task "a" of operatorversion lost-1.0.0 needs OperatorVersion leaf-3.1-0.2.0 (of this operator, there is leaf-3.1-0.1.0): kubectl kudo install leaf --app-version 3.1 --operator-version 0.2.0 --skip-instance -n ns`,
			`task "b" of operatorversion lost-1.0.0 needs OperatorVersion none-1.0.0: kubectl kudo install none --operator-version 1.0.0 --skip-instance -n ns`,
		}},
		"Unresolved": {reason: "what is not resolved is no OperatorVersion; what would fit is named", root: "path-1.0.0", texts: []string{
			`task "a" of operatorversion path-1.0.0 names package "../leaf", and not the one`, `task "b" of operatorversion path-1.0.0 names package "leaf" of operatorVersion ^0.1`, "(leaf-3.1-0.1.0 would do)", `task "c"`,
		}},
		"NoRange":   {reason: "neither is what is no range", root: "range-1.0.0", texts: []string{`"^abc" is neither a version nor a range`}},
		"Circle":    {reason: "the way around is named", root: "a-1.0.0", texts: []string{"in a circle: a-1.0.0 -> b-1.0.0 -> a-1.0.0"}},
		"Off":       {reason: "what is switched off need not be there", root: "optional-1.0.0", values: params.Values{"LATE": "false"}, want: []string{"optional-1.0.0"}},
		"On":        {reason: "what is switched on must be", root: "optional-1.0.0", values: params.Values{"LATE": "true"}, texts: []string{"late-1.0.0"}},
		"NoValue":   {reason: "what no boolean is does not switch off", root: "optional-1.0.0", values: params.Values{"LATE": ""}, texts: []string{"late-1.0.0"}},
		"Elsewhere": {reason: "nor is one that is written elsewhere", root: "optional-1.0.0", values: params.Values{"A": "b"}, want: []string{"optional-1.0.0"}, warnings: 1},
		"Unknown":   {reason: "the values of a dependency are not known: a warning", root: "above-1.0.0", want: []string{"optional-1.0.0", "above-1.0.0"}, warnings: 1},
		"Deleting":  {reason: "an OperatorVersion that is being deleted does not count", root: "waits-1.0.0", texts: []string{"gone-1.0.0, which is being deleted"}},
	} {
		n, err := s.withDependencies(s.byName[tc.root], tc.values)
		var got []string
		if err == nil {
			for _, ov := range n.ordered {
				got = append(got, ov.Name)
			}
			if len(n.warnings) != tc.warnings {
				t.Errorf("%s: %s: %v", name, tc.reason, n.warnings)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.texts != nil) {
			t.Errorf("%s: %s: %v %s", name, tc.reason, err, diff)
		}
		if missing := slices.IndexFunc(tc.texts, func(text string) bool { return !strings.Contains(err.Error(), text) }); err != nil && missing >= 0 {
			t.Errorf("%s: %s: lacks %s:\n%v", name, tc.reason, tc.texts[missing], err)
		}
	}
}

// TestInClusterUsage: what makes no sense together is wrong usage, before any cluster is asked.
func TestInClusterUsage(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, want string
		args         []string
	}{
		"Skip":    {"nothing would be done", "neither with --skip-instance", []string{"db", "--skip-instance"}},
		"Repo":    {"no repository is asked", "--repo goes without --in-cluster", []string{"db", "--repo", "r"}},
		"Install": {"the install plan is not run by it", "--install-parameter goes without --in-cluster", []string{"db", "--install-parameter", "A=b"}},
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
