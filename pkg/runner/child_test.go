package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
)

// child builds the Instance of a dependency with parameters.
func child(parameters map[string]string) *v1beta1.Instance {
	c := &v1beta1.Instance{}
	c.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance"))
	c.Namespace, c.Name, c.Spec.Parameters = "ns", "i-db", parameters
	return c
}

// TestMoveToSecret has parameters of a child, of which those that hold a sensitive value of the parent go to a Secret.
func TestMoveToSecret(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		sensitive  map[string]string
		given      map[string]string
		left, data map[string]string
	}{
		"None":     {"no value is sensitive", nil, map[string]string{"A": "pass-word-1"}, map[string]string{"A": "pass-word-1"}, nil},
		"Whole":    {"the value itself", map[string]string{"P": "pass-word-1"}, map[string]string{"A": "pass-word-1", "B": "x"}, map[string]string{"B": "x"}, map[string]string{"A": "pass-word-1"}},
		"Part":     {"a text that holds it", map[string]string{"P": "pass-word-1"}, map[string]string{"URL": "db://u:pass-word-1@h"}, nil, map[string]string{"URL": "db://u:pass-word-1@h"}},
		"Short":    {"a short value counts, too: a message would not mask it", map[string]string{"P": "ab"}, map[string]string{"A": "xaby", "B": "xay"}, map[string]string{"B": "xay"}, map[string]string{"A": "xaby"}},
		"Unset":    {"a sensitive parameter without a value is in every text, and hides none", map[string]string{"P": ""}, map[string]string{"A": "x", "B": ""}, map[string]string{"A": "x", "B": ""}, nil},
		"Base64":   {"its base64", map[string]string{"P": "pass-word-1"}, map[string]string{"A": "cGFzcy13b3JkLTE="}, nil, map[string]string{"A": "cGFzcy13b3JkLTE="}},
		"Multiple": {"of several values each", map[string]string{"P": "pass-word-1", "Q": "pass-word-2"}, map[string]string{"A": "pass-word-1", "B": "pass-word-2", "C": "x"}, map[string]string{"C": "x"}, map[string]string{"A": "pass-word-1", "B": "pass-word-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			u, c := run(nil), child(tc.given)
			u.Parameters = tc.sensitive
			for name := range tc.sensitive {
				u.Sensitive = append(u.Sensitive, name)
			}
			secrets, hidden, err := u.moveToSecret(c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]map[string]string{tc.left, tc.data}, []map[string]string{c.Spec.Parameters, hidden}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: left and hidden (-want +got):\n%s", tc.reason, diff)
			}
			if len(tc.data) == 0 {
				if secrets != nil || c.Spec.ParametersFrom != nil {
					t.Errorf("%s: a Secret is made for nothing: %v, %v", tc.reason, secrets, c.Spec.ParametersFrom)
				}
				return
			}
			data, _, _ := unstructured.NestedMap(secrets[0].Object, "data")
			if got := apply.IDOf(secrets[0]).String(); got != "Secret ns/i-db-parameters" || len(data) != len(tc.data) || len(secrets) != 1 {
				t.Errorf("%s: %s has %v", tc.reason, got, data)
			}
			if diff := cmp.Diff([]v1beta1.ParametersSource{{Kind: "Secret", Name: "i-db-parameters"}}, c.Spec.ParametersFrom); diff != "" {
				t.Errorf("%s: sources (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChildObject checks that a child is applied without what belongs to the API server, the controller and users.
func TestChildObject(t *testing.T) {
	c := child(map[string]string{"A": "1"})
	c.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {}}
	c.Spec.OperatorVersion.Name = "db-1.0.0"
	got, err := childObject(c)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": map[string]any{"namespace": "ns", "name": "i-db"},
		"spec": map[string]any{"operatorVersion": map[string]any{"name": "db-1.0.0"}, "parameters": map[string]any{"A": "1"}}}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDeleteDisabledChild deletes the Secret of a child after it, if a plan has made one: another may be a user's.
func TestDeleteDisabledChild(t *testing.T) {
	secret := apply.ID{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "i-db-parameters"}}
	secret.Version, secret.Kind = "v1", "Secret"
	elsewhere := secret
	elsewhere.Namespace = "other"
	for name, tc := range map[string]struct {
		reason    string
		inventory Inventory
		last      []string
	}{
		"None":      {"there is none", Inventory{}, nil},
		"Made":      {"a plan has made one", Inventory{secret: {}}, []string{"Secret ns/i-db-parameters"}},
		"Elsewhere": {"one of another namespace is not it", Inventory{elsewhere: {}}, nil},
	} {
		w := (&PreparedTask{}).deleteDisabledChild(child(nil), tc.inventory)
		var last []string
		for _, obj := range w.deleteLast {
			last = append(last, apply.IDOf(obj).String())
		}
		if diff := cmp.Diff(tc.last, last); diff != "" || !w.deletes || len(w.objects) != 1 || w.objects[0].GetName() != "i-db" {
			t.Errorf("%s: %s: deletes %v, %v (-want +got):\n%s", name, tc.reason, w.deletes, w.objects, diff)
		}
	}
}

// recorder keeps what an execution commits.
type recorder struct {
	// intents are the messages of the tasks at each commit.
	intents []string
	effects int
	// events are those of all effects.
	events [][2]string
	// fail is the commit that fails; 0 is none.
	fail int
}

// RecordIntent implements ProgressRecorder.
func (r *recorder) RecordIntent(_ context.Context, st v1beta1.PlanStatus, intent Intent) error {
	r.intents = append(r.intents, fmt.Sprintf("%s, %d objects, %v", st.Status, len(intent.Objects), intent.Done))
	if r.fail == len(r.intents) {
		return errors.New("conflict")
	}
	return nil
}

// RecordEffects implements ProgressRecorder.
func (r *recorder) RecordEffects(effects Effects) {
	r.effects++
	r.events = append(r.events, effects.Events...)
}

// TestExecute goes through plans of Dummy tasks, which touch no cluster.
func TestExecute(t *testing.T) {
	dummy := func(name string, spec v1beta1.TaskSpec) v1beta1.Task {
		return v1beta1.Task{Name: name, Kind: v1beta1.DummyTask, Spec: spec}
	}
	done, endless := v1beta1.TaskSpec{Done: true}, v1beta1.TaskSpec{}
	for name, tc := range map[string]struct {
		reason  string
		tasks   []v1beta1.Task
		fail    int
		state   v1beta1.ExecutionStatus
		want    ExecutionResult
		commits int
		effects int
		message string
		err     string
	}{
		"Done":      {"steps one after another, in one call", []v1beta1.Task{dummy("a", done), dummy("b", done)}, 0, v1beta1.Complete, ExecutionResult{OnlyEndlessLeft: true}, 2, 2, "", ""},
		"Endless":   {"a task that is never done is tried once", []v1beta1.Task{dummy("a", done), dummy("b", endless), dummy("c", done)}, 0, v1beta1.InProgress, ExecutionResult{OnlyEndlessLeft: true}, 2, 2, "", ""},
		"Transient": {"one that fails is tried by the next reconcile", []v1beta1.Task{dummy("a", v1beta1.TaskSpec{WantErr: true})}, 0, v1beta1.InProgress, ExecutionResult{Transient: true}, 1, 1, "", ""},
		"Fatal":     {"a fatal error ends the plan", []v1beta1.Task{dummy("a", v1beta1.TaskSpec{WantErr: true, Fatal: true}), dummy("b", done)}, 0, v1beta1.FatalError, ExecutionResult{}, 1, 1, `task "a" was told to fail with a fatal error`, ""},
		"Commit":    {"nothing is done before the commit", []v1beta1.Task{dummy("a", done), dummy("b", done)}, 2, v1beta1.InProgress, ExecutionResult{OnlyEndlessLeft: true}, 2, 1, "", "conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			u, hooks := run(nil), &recorder{fail: tc.fail}
			u.Version, u.Plan, u.Account = version(t, nil, tc.tasks...), "deploy", apply.Account{Namespace: "ns", Name: "sa"}
			u.Version.Spec.Plans["deploy"].Phases[0].Strategy = v1beta1.Serial
			r := New(Options{Accounts: apply.NewAccounts(&rest.Config{Host: "http://127.0.0.1:1"}, nil, apply.NewKinds(nil, nil, nil), nil, nil)})
			clock := clocktesting.NewFakePassiveClock(time.Unix(1, 0))
			st := plans.Start("deploy", u.Version.Spec.Plans["deploy"], "run", 1, clock.Now())
			got, err := r.Execute(t.Context(), u, nil, &st, clock, hooks)
			if text := fmt.Sprint(err); text != tc.err && (err != nil || tc.err != "") {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || st.Status != tc.state {
				t.Errorf("%s: the plan is %s (-want +got):\n%s", tc.reason, st.Status, diff)
			}
			if len(hooks.intents) != tc.commits || hooks.effects != tc.effects || !strings.Contains(st.Message, tc.message) {
				t.Errorf("%s: commits %q, %d effects, message %q", tc.reason, hooks.intents, hooks.effects, st.Message)
			}
		})
	}
}

// TestPrepareRefusals has tasks that fail before anything is rendered, with what the message says.
func TestPrepareRefusals(t *testing.T) {
	r := New(Options{Accounts: apply.NewAccounts(&rest.Config{Host: "http://127.0.0.1:1"}, nil, apply.NewKinds(nil, nil, nil), nil, nil)})
	r.RefusePipes(errors.New("pin the image"))
	for name, tc := range map[string]struct {
		reason  string
		task    v1beta1.Task
		account apply.Account
		state   plans.State
		want    string
	}{
		"NoAccount": {"a run without an account", v1beta1.Task{Name: "t", Kind: v1beta1.DummyTask}, apply.Account{}, plans.Transient, "Instance ns/i: " + apply.ErrNoAccount.Error()},
		"Kind":      {"a kind of tasks that there is not", v1beta1.Task{Name: "t", Kind: "Dance"}, apply.Account{Namespace: "ns", Name: "sa"}, plans.Fatal, "Dance"},
		"Pipes":     {"Pipe tasks are refused", v1beta1.Task{Name: "t", Kind: v1beta1.PipeTask, Spec: v1beta1.TaskSpec{Pod: "p", Pipe: []v1beta1.PipeSpec{{File: "/x", Kind: "Secret", Key: "k"}}}}, apply.Account{Namespace: "ns", Name: "sa"}, plans.Fatal, `task "t": pin the image`},
		"Version":   {"a dependency without a version", v1beta1.Task{Name: "t", Kind: v1beta1.KudoOperatorTask, Spec: v1beta1.TaskSpec{Package: "db"}}, apply.Account{Namespace: "ns", Name: "sa"}, plans.Fatal, `task "t": spec.operatorVersion is empty: install the package with kubectl kudo install, which resolves dependencies, or name the version`},
		"Enabled":   {"a dependency that an unknown parameter enables", v1beta1.Task{Name: "t", Kind: v1beta1.KudoOperatorTask, Spec: v1beta1.TaskSpec{Package: "db", OperatorVersion: "1.0.0", EnablingParameter: "ON"}}, apply.Account{Namespace: "ns", Name: "sa"}, plans.Fatal, `task "t": parameter "ON" is not defined in the OperatorVersion`},
	} {
		u := run(nil)
		u.Version, u.Plan, u.Source, u.Account = version(t, nil, tc.task), "deploy", "ns/v", tc.account
		w := r.Prepare(t.Context(), u, nil, plans.Place{})
		if w.outcome == nil || w.outcome.State != tc.state || !strings.Contains(w.outcome.Message, tc.want) {
			t.Errorf("%s: %s: %+v, want %q", name, tc.reason, w.outcome, tc.want)
		}
	}
	u := run(nil)
	u.Version, u.Plan, u.Source, u.Account = version(t, nil, v1beta1.Task{Name: "t", Kind: v1beta1.DummyTask}), "deploy", "ns/v", apply.Account{Namespace: "ns", Name: "sa"}
	u.Version.Spec.Plans["deploy"].Phases[0].Steps[0].Tasks[0] = "absent"
	if w := r.Prepare(t.Context(), u, nil, plans.Place{}); w.outcome == nil || w.outcome.Message != `task "absent" is not defined in OperatorVersion ns/v` {
		t.Errorf("a task that is not defined: %+v", w.outcome)
	}
}

// TestVersionsOfObjects checks that an OperatorVersion is hashed once a generation, and that the cache is bounded.
func TestVersionsOfObjects(t *testing.T) {
	c := NewVersions()
	object := func(uid string, generation int64, text string) *v1beta1.OperatorVersion {
		ov := &v1beta1.OperatorVersion{}
		ov.UID, ov.Generation, ov.Spec.Version = types.UID(uid), generation, text
		return ov
	}
	get := func(ov *v1beta1.OperatorVersion) *ParsedVersion {
		t.Helper()
		v, err := c.ForObject(ov)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first := get(object("a", 1, "1.0.0"))
	if get(object("a", 1, "not read")) != first {
		t.Error("the content of a generation is read twice")
	}
	if get(object("a", 2, "2.0.0")).Spec.Version != "2.0.0" || get(object("b", 1, "3.0.0")).Spec.Version != "3.0.0" {
		t.Error("another generation, or another object, has the content of the first")
	}
	if get(object("c", 7, "1.0.0")) != first {
		t.Error("two objects of one content are parsed twice")
	}
	mine := object("d", 1, "4.0.0")
	shared := get(mine)
	if mine.Spec.Version = "changed"; shared.Spec.Version != "4.0.0" {
		t.Error("who changes his object changes the content of others")
	}
	for n := range 2 * maxVersions {
		get(object(fmt.Sprint("many", n), 1, fmt.Sprint(n)))
	}
	if sizes := []int{len(c.objects), len(c.content)}; slices.Max(sizes) > maxVersions {
		t.Errorf("%v are kept", sizes)
	}
}
