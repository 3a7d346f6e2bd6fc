package lua

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
	"kudo.dev/kudo/pkg/explore/lua/sandbox"
)

// TestAnswers has what an operation's function may return, and what is refused.
func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		operation explore.Operation
		script    string
		want      any
		err       string
	}{
		"Message":        {"a message is a text", explore.Healthy, "return false, 5", []any{false, ""}, ""},
		"HealthyMessage": {"what is healthy waits for nothing", explore.Healthy, "return true, 'waits'", []any{true, ""}, ""},
		"LineOfMessage":  {"the first line of a message", explore.Healthy, "return false, 'one\\ntwo'", []any{false, "one"}, ""},
		"LongMessage": {
			"300 characters of a message",
			explore.Healthy,
			"return false, ('ä'):rep(301)",
			[]any{false, strings.Repeat("ä", 299) + "…"},
			"",
		},
		"WholeMessage": {
			"but all of one that has 300",
			explore.Healthy,
			"return false, ('ä'):rep(300)",
			[]any{false, strings.Repeat("ä", 300)},
			"",
		},
		"BytesMessage":  {"what is no UTF-8 or not printed is left out", explore.Healthy, "return false, 'a\\255\\27b'", []any{false, "ab"}, ""},
		"HealthyText":   {"a text is no boolean", explore.Healthy, "return 'true'", nil, "InterpretHealth returned a string: want a boolean"},
		"HealthyNumber": {"nor is a number", explore.Healthy, "return 1", nil, "InterpretHealth returned a number: want a boolean"},
		"ReplicaText":   {"a text is no number", explore.Replica, "return '3'", nil, "GetReplicas returned a string: want a number of replicas"},
		"ReplicaMost": {
			"the largest number of replicas",
			explore.Replica,
			"return 2147483647",
			[]any{int32(2147483647), (*v1alpha1.ReplicaRequirements)(nil)},
			"",
		},
		"ReplicaNaN": {
			"NaN",
			explore.Replica,
			"return 0/0",
			nil,
			"GetReplicas returned NaN replicas: want a whole number from 0 to 2147483647",
		},
		"Requirements": {
			"a text as requirements",
			explore.Replica,
			"return 1, 'x'",
			nil,
			"GetReplicas's requirements: json: cannot unmarshal string into Go value of type v1alpha1.ReplicaRequirements",
		},
		"Quantity": {
			"a quantity that is none",
			explore.Replica,
			"return 1, {resourceRequest = {cpu = 'much'}}",
			nil,
			"GetReplicas's requirements: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
		},
		"PackNumber": {"an object is a table", explore.Packing, "return 5", nil, "Pack returned a number: want an object"},
		"PackList":   {"and no list", explore.Packing, "return {1}", nil, "Pack returned a list: want an object"},
		"PackEmpty": {
			"an empty table is no object",
			explore.Packing,
			"return {}",
			nil,
			`apiVersion was changed from "apps/v1" to nothing: the identity of an object must stay`,
		},
		"ReviseNil": {
			"nil is no object",
			explore.ReplicaRevising,
			"local x = 1 if x == 2 then return desiredObj end",
			nil,
			"ReviseReplica returned a nil: want an object",
		},
		"StatusTrue":  {"a boolean is no status", explore.Status, "return true", nil, "ReflectStatus returned a boolean: want a table or nil"},
		"StatusEmpty": {"an empty status", explore.Status, "return {}", map[string]any{}, ""},
		"Dependencies": {
			"a text is no list",
			explore.Dependencies,
			"return 'x'",
			nil,
			"GetDependencies: json: cannot unmarshal string into Go value of type []v1alpha1.DependentObjectReference",
		},
		"NoFunction": {
			"what a name holds must be a function",
			explore.Healthy,
			"InterpretHealth = 5",
			nil,
			"InterpretHealth is no function, but a number",
		},
		"NilFunction": {
			"also if it is set to nil",
			explore.Healthy,
			"InterpretHealth = nil",
			nil,
			"InterpretHealth is no function, but a nil",
		},
		"ErrorTable":  {"an error that is a table", explore.Healthy, "if true then error({code = 7}) end return true", nil, "table: 1"},
		"ErrorNumber": {"an error that is a number", explore.Healthy, "if true then error(7, 0) end return true", nil, "7"},
		"ErrorLines":  {"the first line of an error", explore.Healthy, "if true then error('a\\nb', 0) end return true", nil, "a"},
		"ErrorLong": {
			"300 characters of an error",
			explore.Healthy,
			"if true then error(('x'):rep(1000), 0) end return true",
			nil,
			strings.Repeat("x", 299) + "…",
		},
		"ErrorOutside": {
			"an error outside of the function",
			explore.Healthy,
			"error('early') function InterpretHealth() return true end",
			nil,
			"script:1: early",
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := ask(t, tc.operation, tc.script, explore.Request{Object: exploretest.Object(t, deployment)})
			if tc.err != "" || err != nil {
				if got := fmt.Sprint(err); got != tc.err {
					t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, result(answer, tc.operation)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRetainingTwice(t *testing.T) {
	request := explore.Request{Object: exploretest.Object(t, deployment), Observed: exploretest.Object(t, observed)}
	script := "if desiredObj.spec.replicas == 5 then error('again', 0) end desiredObj.spec.replicas = 5 return desiredObj"
	_, err := ask(t, explore.Retaining, script, request)
	if got := fmt.Sprint(err); got != "retaining its own result: again" {
		t.Errorf("an error about its own result: %s", got)
	}
	// A result that is the desired object is a fixed point: the script is not asked again.
	counted := "calls = (calls or 0) + 1 if desiredObj.spec.replicas ~= 2 then error('again', 0) end return desiredObj"
	if _, err := ask(t, explore.Retaining, counted, request); err != nil {
		t.Errorf("an object that stays: %v", err)
	}
}

func TestWrongOperation(t *testing.T) {
	s, err := Compile(explore.Healthy, "return true")
	if err != nil {
		t.Fatal(err)
	}
	_, err = host().Run(t.Context(), s, explore.Request{Operation: explore.Status, Object: exploretest.Object(t, deployment)})
	if got := fmt.Sprint(err); got != "the script answers ExploreHealthy, and is asked ExploreStatus" {
		t.Errorf("a script of another operation: %s", got)
	}
}

// TestItems has the statuses that a script sums up.
func TestItems(t *testing.T) {
	items := exploretest.Items([]string{"a", "b", "c"}, `{"ready":9007199254740993}`, "", "null")
	items[1].Applied, items[1].AppliedMessage = false, "denied"
	script := `local t = {} for i, item in ipairs(statusItems) do
t[i] = {item.clusterName, tostring(item.applied), item.appliedMessage or 'no message', type(item.status), item.status and item.status.ready or 0} end
desiredObj.status = {items = t} return desiredObj`
	request := explore.Request{Object: exploretest.Object(t, deployment), Items: items}
	answer, err := ask(t, explore.StatusAggregating, script, request)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"items": []any{
		[]any{"a", "true", "no message", "table", int64(9007199254740993)},
		[]any{"b", "nil", "denied", "nil", int64(0)}, []any{"c", "true", "no message", "nil", int64(0)},
	}}
	if diff := cmp.Diff(want, answer.Object.Object["status"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	request.Items = []v1alpha1.AggregatedStatusItem{{ClusterName: "far", Status: &runtime.RawExtension{Raw: []byte("{")}}}
	_, err = ask(t, explore.StatusAggregating, "return desiredObj", request)
	if got := fmt.Sprint(err); got != "the status of cluster far: unexpected end of JSON input" {
		t.Errorf("a status that is no JSON: %s", got)
	}
}

// TestContext has the end of the caller's context, and the time-out of the script.
func TestContext(t *testing.T) {
	s, err := Compile(explore.Healthy, "while true do local x = 1 end return true")
	if err != nil {
		t.Fatal(err)
	}
	request := explore.Request{Operation: explore.Healthy, Object: exploretest.Object(t, deployment)}
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the manager stops"))
	_, err = host().Run(canceled, s, request)
	if got := fmt.Sprint(err); got != "the manager stops" {
		t.Errorf("the caller's context: %s", got)
	}
	limits := DefaultLimits()
	limits.Time = time.Nanosecond
	_, err = New(noon, limits).Run(t.Context(), s, request)
	var breach *sandbox.LimitError
	if !errors.As(err, &breach) || *breach != (sandbox.LimitError{Limit: "time", Value: "1ns"}) {
		t.Errorf("a time-out: %v", err)
	}
}
