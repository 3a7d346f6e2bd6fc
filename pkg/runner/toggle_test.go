package runner

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans/task"
)

// TestBoolParameter has the values of the parameter of a Toggle.
func TestBoolParameter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		value  any
		want   bool
		err    string
	}{
		"True":   {"true", "true", true, ""},
		"One":    {"1", "1", true, ""},
		"False":  {"false in capitals", "FALSE", false, ""},
		"Empty":  {"no value", "", false, `parameter ON is "": set it to true or false`},
		"Yes":    {"yes is none", "yes", false, `parameter ON is "yes": set it to true or false`},
		"Space":  {"space is not left out", " true", false, `parameter ON is " true": set it to true or false`},
		"Number": {"a value that is no text", 1, false, `parameter ON is "": set it to true or false`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&Run{values: map[string]any{"ON": tc.value}}).boolParameter("ON")
			if message := fmt.Sprint(err); got != tc.want || message != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: %v, error %q, want %q", tc.reason, got, message, tc.err)
			}
		})
	}
	if _, err := (&Run{}).boolParameter("ON"); fmt.Sprint(err) != `parameter "ON" is not defined in the OperatorVersion` {
		t.Errorf("a parameter that is not defined: %v", err)
	}
}

// TestDummyMessages has the messages of a Dummy, which end with the remedy where there is one.
func TestDummyMessages(t *testing.T) {
	for want, dummy := range map[string]task.Dummy{
		"": {Done: true},
		`task "t" is never done: cancel the plan with kubectl kudo plan cancel`: {},
		`task "t" was told to fail`:                    {WantErr: true},
		`task "t" was told to fail with a fatal error`: {WantErr: true, Fatal: true},
	} {
		if got := (&PreparedTask{Name: "t"}).dummy(dummy).outcome.Message; got != want {
			t.Errorf("%+v: %q, want %q", dummy, got, want)
		}
	}
	if (&PreparedTask{task: task.Toggle{}}).NeverCompletes() {
		t.Error("a Toggle completes")
	}
}

// TestRightsHint has the errors to which a remedy is added.
func TestRightsHint(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New(text))
	}
	version := &ParsedVersion{Spec: &v1beta1.OperatorVersionSpec{}}
	version.Spec.Operator.Name = "web"
	run := &Run{Subject: Subject{Namespace: "ns", Name: "i"}, Version: version, Account: apply.Account{Namespace: "ns", Name: "sa"}}
	const impersonate, cluster = `User "m" cannot impersonate resource "serviceaccounts"`,
		`User "sa" cannot create resource "nodes" at the cluster scope`
	for name, tc := range map[string]struct {
		reason string
		run    *Run
		err    error
		want   string
	}{
		"Impersonate": {
			"the manager cannot act as the account",
			run,
			forbidden(impersonate),
			". Let kudo act as the account: kubectl kudo account create -n ns --instance i " +
				"creates the RoleBinding to ClusterRole kudo-run-as that allows it",
		},
		"Cluster": {
			"the account lacks a right for the cluster",
			run,
			fmt.Errorf("create: %w", forbidden(cluster)),
			". Ask an administrator to move such objects to an install plan, " +
				"to bind what kubectl kudo package rights web prints to " + run.Account.String() + ", or to label " +
				"Namespace ns " + v1beta1.PrivilegedLabel + "=true",
		},
		"Namespace": {"a right in the namespace", run, forbidden("no"), ""},
		"Other":     {"an error that is no lack of rights", run, errors.New(impersonate), ""},
		"NoRun":     {"no run", nil, forbidden(impersonate), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&PreparedTask{run: tc.run}).rightsHint(tc.err); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
