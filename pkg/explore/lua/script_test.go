package lua

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
	"kudo.dev/kudo/pkg/explore/lua/sandbox"
)

// TestFunctions has the function of each operation: scripts are written for these names.
func TestFunctions(t *testing.T) {
	want := map[explore.Operation]sandbox.Entry{
		explore.Packing:           {Name: "Pack", Parameters: []string{"desiredObj"}},
		explore.Retaining:         {Name: "Retain", Parameters: []string{"desiredObj", "runtimeObj"}, Aliases: map[string]string{"observedObj": "runtimeObj"}},
		explore.Healthy:           {Name: "InterpretHealth", Parameters: []string{"observedObj"}},
		explore.Dependencies:      {Name: "GetDependencies", Parameters: []string{"desiredObj"}},
		explore.Replica:           {Name: "GetReplicas", Parameters: []string{"desiredObj"}},
		explore.Components:        {Name: "GetComponents", Parameters: []string{"desiredObj"}},
		explore.ReplicaRevising:   {Name: "ReviseReplica", Parameters: []string{"desiredObj", "desiredReplica"}},
		explore.Status:            {Name: "ReflectStatus", Parameters: []string{"observedObj"}},
		explore.StatusAggregating: {Name: "AggregateStatus", Parameters: []string{"desiredObj", "statusItems"}},
	}
	if diff := cmp.Diff(want, entries); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, operation := range explore.Operations() {
		if entries[operation].Name == "" {
			t.Errorf("operation %s has no function", operation)
		}
	}
	if got := entries["ExploreNothing"]; got.Name != "" {
		t.Errorf("an operation that does not exist has function %s", got.Name)
	}
}

func TestCompileErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		operation explore.Operation
		source    string
		err       string
	}{
		"Operation": {
			"an operation has a function",
			"Other",
			"return 1",
			fmt.Sprintf(`operation "Other" has no script: use one of %v`, explore.Operations()),
		},
		"Script": {"the error of the script", explore.Healthy, "return = 1", `line 1: syntax error near "="`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(tc.operation, tc.source)
			if diff := cmp.Diff(tc.err, fmt.Sprint(err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestScriptValue has what a script says about itself.
func TestScriptValue(t *testing.T) {
	s, err := Compile(explore.Replica, "return x + y + x + #kube")
	if err != nil {
		t.Fatal(err)
	}
	if s.Operation() != explore.Replica {
		t.Errorf("the script answers %s", s.Operation())
	}
	want := []string{"line 1: x is not defined", "line 1: y is not defined"}
	s.Warnings()[0] = "changed"
	if diff := cmp.Diff(want, s.Warnings()); diff != "" {
		t.Errorf("warnings after a caller has changed them (-want +got):\n%s", diff)
	}
}

// TestEntryOf checks that each operation has a function, whose parameters differ.
func TestEntryOf(t *testing.T) {
	for _, operation := range explore.Operations() {
		entry, err := EntryOf(operation)
		if err != nil || entry.Name == "" || len(entry.Parameters) == 0 {
			t.Errorf("%s: %+v, %v", operation, entry, err)
		}
		if len(entry.Parameters) == 2 && entry.Parameters[0] == entry.Parameters[1] {
			t.Errorf("%s: the parameters are %v", operation, entry.Parameters)
		}
	}
	if _, err := EntryOf("ExploreNothing"); err == nil {
		t.Error("an unknown operation has a function")
	}
}

// TestBothForms checks that a script gives the same answer as the body of the operation's function and as a chunk that defines the function.
func TestBothForms(t *testing.T) {
	object := exploretest.Object(t, `{"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a", "namespace": "ns"}, "spec": {"n": 3}, "status": {"ok": true}}`)
	bodies := map[explore.Operation]string{
		explore.Packing:           "desiredObj.spec.n = 4 return desiredObj",
		explore.Retaining:         "desiredObj.spec.n = observedObj.spec.n return desiredObj",
		explore.Healthy:           "return observedObj.status.ok, 'waits'",
		explore.Dependencies:      "return {{apiVersion = 'v1', kind = 'Secret', namespace = 'ns', name = desiredObj.metadata.name}}",
		explore.Replica:           "return desiredObj.spec.n",
		explore.Components:        "return {{name = 'web', replicas = desiredObj.spec.n}}",
		explore.ReplicaRevising:   "desiredObj.spec.n = desiredReplica return desiredObj",
		explore.Status:            "return observedObj.status",
		explore.StatusAggregating: "desiredObj.status = {copies = #statusItems} return desiredObj",
	}
	for _, operation := range explore.Operations() {
		entry, err := EntryOf(operation)
		if err != nil {
			t.Fatal(err)
		}
		r := explore.Request{Operation: operation, Object: object, Replicas: 5, Items: []v1alpha1.AggregatedStatusItem{{ClusterName: "m1"}}}
		if operation == explore.Retaining {
			r.Observed = object
		}
		function := "function " + entry.Name + "(" + strings.Join(entry.Parameters, ", ") + ") "
		for alias, parameter := range entry.Aliases {
			function += "local " + alias + " = " + parameter + " "
		}
		var answers []explore.Answer
		for _, source := range []string{bodies[operation], function + bodies[operation] + " end"} {
			script, err := Compile(operation, source)
			if err != nil {
				t.Fatalf("%s: %v", operation, err)
			}
			answer, err := host().Run(t.Context(), script, r)
			if err != nil {
				t.Fatalf("%s: %v", operation, err)
			}
			answers = append(answers, answer)
		}
		if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
			t.Errorf("%s: the answers of both forms differ:\n%s", operation, diff)
		}
	}
}
