package act

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// hostile is an Instance with a name that no API server accepts, as a status or a package may hold anywhere.
func hostile() *v1beta1.Instance {
	return &v1beta1.Instance{ObjectMeta: gen.Meta("lab; id", "db'$(id)")}
}

// TestCommand checks U4: each action has its command line, in which no name and no value is more than a word for a shell.
func TestCommand(t *testing.T) {
	version := gen.Version("lab", "db-1", gen.Param("VALUE", "a", ""), gen.Param("OTHER", "a", ""), gen.Param("PASSWORD", "", ""))
	version.Spec.Parameters[2].Sensitive = true
	db := gen.Instance("db", version, nil)
	for _, tc := range []struct {
		reason string
		action Action
		want   string
	}{
		{"a plan", Trigger{db, "backup"}, "kubectl kudo plan trigger --instance db -n lab --name backup"},
		{"a plan with a hostile name", Trigger{db, "a b;id"}, "kubectl kudo plan trigger --instance db -n lab --name 'a b;id'"},
		{"a plan that runs", Cancel{db}, "kubectl kudo plan cancel --instance db -n lab"},
		{"a failed plan", Retry{db}, "kubectl kudo plan retry --instance db -n lab"},
		{"an earlier run", Rollback{Instance: db, Revision: 3}, "kubectl kudo rollback --instance db -n lab --to-revision 3"},
		{"the run before, after the one that runs", Rollback{Instance: db, AfterRunning: true}, "kubectl kudo rollback --instance db -n lab --after-running"},
		{"a deletion", Uninstall{Instance: db}, "kubectl kudo uninstall --instance db -n lab"},
		{"a deletion that keeps data", Uninstall{db, true}, "kubectl kudo uninstall --instance db -n lab --keep-claims"},
		{"a hostile Instance", Retry{hostile()}, `kubectl kudo plan retry --instance 'db'\''$(id)' -n 'lab; id'`},
		{"parameters, in the order of their names", Update{Instance: db, Version: version, Set: map[string]string{"VALUE": "b c", "OTHER": "$(id)"}},
			`kubectl kudo update --instance db -n lab -p 'OTHER=$(id)' -p 'VALUE=b c'`},
		{"a parameter that is set back", Update{Instance: db, Version: version, Unset: []string{"VALUE"}}, "kubectl kudo update --instance db -n lab --unset VALUE"},
		{"a sensitive parameter, of which no value is in a command", Update{Instance: db, Version: version, Set: map[string]string{"PASSWORD": "hunter2"}},
			"kubectl kudo update --instance db -n lab -P FILE"},
		{"a parameter that the version does not have may be sensitive", Update{Instance: db, Version: version, Set: map[string]string{"TOKEN": "hunter2"}},
			"kubectl kudo update --instance db -n lab -P FILE"},
	} {
		if got := tc.action.Command(); got != tc.want {
			t.Errorf("%s:\n%s, want\n%s", tc.reason, got, tc.want)
		}
	}
}

// TestChecks checks what actions refuse before the cluster is asked what they would do: each error names the object, the field and the remedy.
func TestChecks(t *testing.T) {
	version := gen.Version("lab", "db-1", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"), gen.Serial("install", "cm"), gen.InstallPlan("install"))
	version.Spec.Parameters = append(version.Spec.Parameters, v1beta1.Parameter{Name: "SIZE", Type: v1beta1.IntegerType})
	fixed := true
	version.Spec.Parameters = append(version.Spec.Parameters, v1beta1.Parameter{Name: "CLASS", Immutable: &fixed})
	db := gen.Instance("db", version, map[string]string{"VALUE": "b", "CLASS": "fast"})
	update := func(set map[string]string, unset ...string) func() error {
		return func() error {
			return Update{Instance: db, Version: version, Set: set, Unset: unset}.Check(t.Context())
		}
	}
	trigger := func(plan string) func() error {
		return func() error { return Trigger{db, plan}.Check(version) }
	}
	for _, tc := range []struct {
		reason string
		check  func() error
		want   string // of the error; empty for none
	}{
		{"a value of its type", update(map[string]string{"SIZE": "3"}), ""},
		{"a parameter that is set is unset", update(nil, "VALUE"), ""},
		{"a value of another type", update(map[string]string{"SIZE": "many"}), "SIZE"},
		{"a parameter that does not exist", update(map[string]string{"SIZ": "3"}), "parameter SIZ is not defined by operatorversion db-1"},
		{"a fixed parameter", update(map[string]string{"CLASS": "slow"}), "parameter CLASS is immutable"},
		{"a fixed parameter that stays", update(map[string]string{"CLASS": "fast"}), ""},
		{"a parameter that is not set is unset", update(nil, "SIZE"), "parameter SIZE of instance db is not set"},
		{"a plan", trigger("deploy"), ""},
		{"a plan that does not exist", trigger("backup"), `plan "backup" does not exist in operatorversion db-1: it has [deploy]`},
		{"the install plan", trigger("install"), "use kubectl kudo plan retry --operator-version db-1"},
	} {
		err := tc.check()
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestRetryPlan checks that only a failed plan is retried: the one that was started last.
func TestRetryPlan(t *testing.T) {
	db := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "db")}
	run := func(status v1beta1.ExecutionStatus, revision int64) v1beta1.PlanStatus {
		return v1beta1.PlanStatus{Status: status, Revision: revision, UID: "u"}
	}
	for _, tc := range []struct {
		reason string
		plans  map[string]v1beta1.PlanStatus
		want   string
	}{
		{"the last one has failed", map[string]v1beta1.PlanStatus{"deploy": run(v1beta1.Complete, 1), "backup": run(v1beta1.FatalError, 2)}, "backup"},
		{"an earlier one has failed", map[string]v1beta1.PlanStatus{"deploy": run(v1beta1.FatalError, 1), "backup": run(v1beta1.Complete, 2)}, ""},
		{"none has run", nil, ""},
	} {
		db.Status.PlanStatus = tc.plans
		got, err := Retry{db}.Plan()
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %v, want %q", tc.reason, got, err, tc.want)
		}
	}
}

// TestCancel checks which run is cancelled, what the preview says, and that the edit names the run.
func TestCancel(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(1, 0))
	for _, tc := range []struct {
		reason  string
		status  v1beta1.ExecutionStatus
		deleted bool
		uid     string
		want    string
	}{
		{"a plan runs", v1beta1.InProgress, false, "run-3", "what run 3 of plan cleanup has written"},
		{"no plan runs", v1beta1.Complete, false, "", ""},
		{"a failed cleanup of an Instance that is being deleted", v1beta1.FatalError, true, "run-3", "the cleanup is given up"},
	} {
		db := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "db")}
		db.Status.PlanStatus = map[string]v1beta1.PlanStatus{v1beta1.CleanupPlan: {Status: tc.status, UID: "run-3", Revision: 3}}
		if tc.deleted {
			db.DeletionTimestamp = &deleted
		}
		change, err := Cancel{db}.Change(t.Context(), nil)
		p, failed := Cancel{db}.Preview(t.Context(), nil, change)
		if (err != nil) != (tc.uid == "") || (failed != nil) != (tc.uid == "") {
			t.Errorf("%s: %v, %v", tc.reason, err, failed)
			continue
		}
		if err != nil {
			continue
		}
		change.Apply(db)
		var text strings.Builder
		if err := p.WriteText(&text); err != nil || !strings.Contains(text.String(), tc.want) || p.Digest == "" {
			t.Errorf("%s: no %q in %s (%v)", tc.reason, tc.want, text.String(), err)
		}
		if got := db.Annotations[v1beta1.CancelAnnotation]; got != tc.uid || !change.IsBound {
			t.Errorf("%s: the run %q is cancelled", tc.reason, got)
		}
	}
}
