package lua

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

func noon() time.Time { return time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC) }

func host() *Host { return New(noon, DefaultLimits()) }

const (
	deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"lab"},"spec":{"replicas":2,"paused":false,
		"template":{"metadata":{"labels":{}},"spec":{"containers":[{"name":"a","image":"x","args":[],"resources":{"limits":{"cpu":"1500m"}}}]}}}}`
	observed = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"lab"},"spec":{"replicas":5,"paused":true},
		"status":{"readyReplicas":5,"conditions":[{"type":"Available","status":"True"}]}}`
)

// result is the part of an answer that its operation has.
func result(a explore.Answer, operation explore.Operation) any {
	switch operation {
	case explore.Healthy:
		if a.Outcome() == v1alpha1.HealthFailed || a.Message == "pulls" {
			return []any{a.Outcome(), a.Message}
		}
		return []any{a.Healthy, a.Message}
	case explore.Dependencies:
		return a.Dependencies
	case explore.Replica:
		return []any{a.Replicas, a.Requirements}
	case explore.Components:
		return a.Components
	case explore.Status:
		return a.Status
	}
	return a.Object
}

// ask compiles and runs a script.
func ask(t testing.TB, operation explore.Operation, script string, r explore.Request) (explore.Answer, error) {
	t.Helper()
	s, err := Compile(operation, script)
	if err != nil {
		return explore.Answer{}, err
	}
	r.Operation = operation
	return host().Run(t.Context(), s, r)
}

func TestOperations(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		operation explore.Operation
		script    string
		request   explore.Request
		want      string
		err       string
	}{
		"RetainBody":       {"the body of the function, with the seed's names", explore.Retaining, "desiredObj.spec.replicas = runtimeObj.spec.replicas return desiredObj", explore.Request{}, strings.Replace(deployment, `"replicas":2`, `"replicas":5`, 1), ""},
		"RetainAlias":      {"the other name of the second argument", explore.Retaining, "desiredObj.spec.replicas = observedObj.spec.replicas return desiredObj", explore.Request{}, strings.Replace(deployment, `"replicas":2`, `"replicas":5`, 1), ""},
		"RetainChunk":      {"a chunk that defines it", explore.Retaining, "local function f(o) return o.spec.paused end\nfunction Retain(d, o) d.spec.paused = f(o) return d end", explore.Request{}, strings.Replace(deployment, `"paused":false`, `"paused":true`, 1), ""},
		"RetainLocal":      {"a local function will do", explore.Retaining, "local Retain = function(d, o) return d end", explore.Request{}, deployment, ""},
		"RetainAdds":       {"nothing that neither object has", explore.Retaining, "desiredObj.spec.strategy = {type = 'X'} return desiredObj", explore.Request{}, "", ".spec.strategy is in neither the desired nor the observed object: retaining must not add fields"},
		"RetainGrows":      {"a fixed point", explore.Retaining, "desiredObj.spec.replicas = desiredObj.spec.replicas + 1 return desiredObj", explore.Request{}, "", "retaining its own result changes it again: Retain must be idempotent"},
		"RetainRenames":    {"identity stays", explore.Retaining, "desiredObj.metadata.name = 'x' return desiredObj", explore.Request{}, "", `name was changed from "web" to "x": the identity of an object must stay`},
		"RetainNothing":    {"an object is wanted", explore.Retaining, "if false then return 1 end", explore.Request{}, "", "Retain returned a nil: want an object"},
		"Pack":             {"anything but the identity", explore.Packing, "desiredObj.spec.added = {x = 1} return desiredObj", explore.Request{}, strings.Replace(deployment, `"paused"`, `"added":{"x":1},"paused"`, 1), ""},
		"Healthy":          {"a boolean", explore.Healthy, "function InterpretHealth(o) return o.spec.replicas == 2 end", explore.Request{}, `[true,""]`, ""},
		"Unhealthy":        {"and what is waited for", explore.Healthy, "return false, 'waits for ' .. observedObj.spec.replicas", explore.Request{}, `[false,"waits for 2"]`, ""},
		"HealthyNil":       {"nil is no boolean: unknown is not no", explore.Healthy, "return observedObj.status and observedObj.status.ready", explore.Request{}, "", "InterpretHealth returned a nil: want a boolean"},
		"Replicas":         {"a number and requirements", explore.Replica, "local kube = require('kube') function GetReplicas(d) return d.spec.replicas, kube.accuratePodRequirements(d.spec.template) end", explore.Request{}, `[2,{"resourceRequest":{"cpu":"1500m"}}]`, ""},
		"ReplicasOnly":     {"without requirements", explore.Replica, "return 3", explore.Request{}, `[3,null]`, ""},
		"ReplicasMinus":    {"not negative", explore.Replica, "return -1", explore.Request{}, "", "GetReplicas returned -1 replicas: want a whole number from 0 to 2147483647"},
		"ReplicasLarge":    {"of 32 bits", explore.Replica, "return 2^31", explore.Request{}, "", "GetReplicas returned 2147483648 replicas: want a whole number from 0 to 2147483647"},
		"ReplicasHalf":     {"whole", explore.Replica, "return 1.5", explore.Request{}, "", "GetReplicas returned 1.5 replicas: want a whole number from 0 to 2147483647"},
		"ReplicasNil":      {"a number", explore.Replica, "return desiredObj.spec.none", explore.Request{}, "", "GetReplicas returned a nil: want a number of replicas"},
		"Revise":           {"the number goes in", explore.ReplicaRevising, "desiredObj.spec.replicas = desiredReplica return desiredObj", explore.Request{Replicas: 7}, strings.Replace(deployment, `"replicas":2`, `"replicas":7`, 1), ""},
		"ReviseStatus":     {"not the status", explore.ReplicaRevising, "desiredObj.status = {x = 1} return desiredObj", explore.Request{}, "", "status was changed: the operation must not write it"},
		"Status":           {"a table", explore.Status, "return {ready = observedObj.spec.replicas, none = observedObj.none, list = {1, 2}}", explore.Request{}, `{"ready":2,"list":[1,2]}`, ""},
		"StatusNil":        {"or nil", explore.Status, "return observedObj.status", explore.Request{}, `null`, ""},
		"StatusText":       {"nothing else", explore.Status, "return 'x'", explore.Request{}, "", "ReflectStatus returned a string: want a table or nil"},
		"Aggregate":        {"status from items", explore.StatusAggregating, "local n = 0 for i, item in ipairs(statusItems) do n = n + item.status.ready end desiredObj.status = {ready = n} return desiredObj", explore.Request{Items: exploretest.Items([]string{"a", "b"}, `{"ready":1}`, `{"ready":2}`)}, deployment[:len(deployment)-1] + `,"status":{"ready":3}}`, ""},
		"AggregateNone":    {"no items are nil", explore.StatusAggregating, "if statusItems == nil then return desiredObj end", explore.Request{}, deployment, ""},
		"AggregateEmpty":   {"an empty list is an empty table", explore.StatusAggregating, "if #statusItems == 0 then return desiredObj end", explore.Request{Items: exploretest.Items(nil)}, deployment, ""},
		"AggregateSpec":    {"what the chain drops is no error here", explore.StatusAggregating, "desiredObj = {status = {n = 1}} return desiredObj", explore.Request{}, `{"status":{"n":1}}`, ""},
		"Dependencies":     {"a list of references", explore.Dependencies, "return {{apiVersion = 'v1', kind = 'Secret', namespace = 'lab', name = 's'}}", explore.Request{}, `[{"apiVersion":"v1","kind":"Secret","namespace":"lab","name":"s"}]`, ""},
		"Failed":           {"an outcome", explore.Healthy, "return false, 'no image', 'Failed'", explore.Request{}, `["Failed","no image"]`, ""},
		"Progressing":      {"or the other", explore.Healthy, "return false, 'pulls', 'Progressing'", explore.Request{}, `["Progressing","pulls"]`, ""},
		"Contradiction":    {"healthy objects have not failed", explore.Healthy, "return true, '', 'Failed'", explore.Request{}, "", "health Failed contradicts healthy true"},
		"Contradiction2":   {"nor are others healthy", explore.Healthy, "return false, '', 'Healthy'", explore.Request{}, "", "health Healthy contradicts healthy false"},
		"OtherOutcome":     {"outcomes have names", explore.Healthy, "return false, '', 'failed'", explore.Request{}, "", `health "failed" is unknown: use Healthy, Progressing or Failed`},
		"OutcomeType":      {"that are texts", explore.Healthy, "return false, '', true", explore.Request{}, "", "InterpretHealth returned a boolean as its third value: want Healthy, Progressing or Failed"},
		"Components":       {"a list of components", explore.Components, "return {{name = 'a', replicas = 2, replicaRequirements = {resourceRequest = {cpu = '100m'}}}, {name = 'b'}}", explore.Request{}, `[{"name":"a","replicas":2,"replicaRequirements":{"resourceRequest":{"cpu":"100m"}}},{"name":"b","replicas":0}]`, ""},
		"ComponentsNil":    {"nil is none", explore.Components, "return nil", explore.Request{}, `null`, ""},
		"ComponentsEmpty":  {"and so is an empty table", explore.Components, "return {}", explore.Request{}, `null`, ""},
		"ComponentTwice":   {"names are unique", explore.Components, "return {{name = 'a', replicas = 1}, {name = 'a', replicas = 1}}", explore.Request{}, "", `component 1: name "a" is that of another component: names must be unique`},
		"ComponentName":    {"and there", explore.Components, "return {{replicas = 1}}", explore.Request{}, "", `component 0: name "" must have 1 to 32 characters`},
		"ComponentMinus":   {"with replicas", explore.Components, "return {{name = 'a', replicas = -1}}", explore.Request{}, "", `component "a": -1 replicas: must be 0 or more`},
		"ComponentHostile": {"a quantity that takes minutes", explore.Components, "return {{name = 'a', replicas = 1, replicaRequirements = {resourceRequest = {cpu = '1e999999999'}}}}", explore.Request{}, "", `GetComponents: field [0].replicaRequirements.resourceRequest.cpu: the exponent of quantity "1e999999999" has more than 2 digits: write it with a suffix, such as 1Gi`},
		"DependenciesNil":  {"nil is none", explore.Dependencies, "return nil", explore.Request{}, `null`, ""},
		"DependenciesNo":   {"an empty table, too", explore.Dependencies, "return {}", explore.Request{}, `null`, ""},
		"DependenciesBad":  {"whole references", explore.Dependencies, "return {{kind = 'Secret'}}", explore.Request{}, "", `dependency 0 ( Secret ""): apiVersion, kind, and name or labelSelector must be set`},
		"Pods":             {"what pods name", explore.Dependencies, "return kube.getPodDependencies({spec = {serviceAccountName = 'sa', containers = {{name = 'c', envFrom = {{secretRef = {name = 's'}}}}}}}, 'lab')", explore.Request{}, `[{"apiVersion":"v1","kind":"Secret","namespace":"lab","name":"s"},{"apiVersion":"v1","kind":"ServiceAccount","namespace":"lab","name":"sa"}]`, ""},
		"Error":            {"errors have a line", explore.Healthy, "\nerror('bad')", explore.Request{}, "", "the script must define function InterpretHealth(observedObj), or be its body and return a value"},
		"ErrorLine":        {"errors have a line", explore.Healthy, "\nif true then error('bad') end return true", explore.Request{}, "", "script:2: bad"},
		"Syntax":           {"so have those of syntax", explore.Healthy, "return\n\n)", explore.Request{}, "", `line 3: syntax error near ")"`},
		"Wrong":            {"another function is not it", explore.Healthy, "function Health(o) return true end", explore.Request{}, "", "the script must define function InterpretHealth(observedObj), or be its body and return a value; it defines Health"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.request.Object = exploretest.Object(t, deployment)
			if tc.operation == explore.Retaining {
				tc.request.Observed = exploretest.Object(t, observed)
			}
			answer, err := ask(t, tc.operation, tc.script, tc.request)
			if message := fmt.Sprint(err); tc.err != "" || err != nil {
				if message != tc.err {
					t.Fatalf("%s: error %q, want %q", tc.reason, message, tc.err)
				}
				return
			}
			text, err := json.Marshal(result(answer, tc.operation))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, tc.want), parsed(t, string(text))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func parsed(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err, text)
	}
	return value
}

// listOf is the list that a script has put into its status, which is an object. Without entries, the list is not in it.
func listOf(a explore.Answer) []any {
	status, _ := a.Status.(map[string]any)
	if list, ok := status["list"].([]any); ok {
		return list
	}
	return []any{}
}

func TestClock(t *testing.T) {
	object := exploretest.Object(t, deployment)
	script := "return {list = {os.time(), os.date('!%Y-%m-%dT%H:%M:%SZ'), os.date('*t').hour, os.time({year = 2026, month = 2, day = 3, hour = 12})}}"
	answer, err := ask(t, explore.Status, script, explore.Request{Object: object})
	want := []any{noon().Unix(), "2026-02-03T12:00:00Z", int64(12), noon().Unix()}
	if err != nil || !cmp.Equal(listOf(answer), want) {
		t.Errorf("the host's clock: %v %v", answer.Status, err)
	}
	s, err := Compile(explore.Status, "return {list = {os.time()}}")
	if err != nil {
		t.Fatal(err)
	}
	ctx := WithTime(context.Background(), time.Unix(7, 0))
	if answer, err = host().Run(ctx, s, explore.Request{Operation: explore.Status, Object: object}); err != nil || !cmp.Equal(listOf(answer), []any{int64(7)}) {
		t.Errorf("the reconcile's time: %v %v", answer.Status, err)
	}
}
