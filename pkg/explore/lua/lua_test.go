package lua

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// TestBridge passes objects through scripts.
func TestBridge(t *testing.T) {
	const head = `"apiVersion":"x/v1","kind":"X","metadata":{"name":"x"}`
	for name, tc := range map[string]struct{ reason, script, in, want, err string }{
		"Whole":     {"integers of 64 bits", "obj.spec.a = obj.spec.b", `{"a":1,"b":9007199254740993,"c":-9223372036854775808,"d":9223372036854775807}`, `{"a":9007199254740993,"b":9007199254740993,"c":-9223372036854775808,"d":9223372036854775807}`, ""},
		"Twins":     {"that are next to the same float", "obj.spec.a, obj.spec.b = obj.spec.b, obj.spec.a", `{"a":9007199254740993,"b":9007199254740992}`, `{"a":9007199254740992,"b":9007199254740993}`, ""},
		"Text":      {"and as text", "obj.spec = {a = tostring(obj.spec.a), b = obj.spec.b .. ''}", `{"a":9007199254740993,"b":9223372036854775807}`, `{"a":"9007199254740993","b":"9223372036854775807"}`, ""},
		"TwinText":  {"twins, too", "obj.spec = {a = tostring(obj.spec.a), b = obj.spec.b .. '', c = type(obj.spec.a), d = obj.spec.a == obj.spec.b, e = obj.spec.b < obj.spec.a}", `{"a":9007199254740993,"b":9007199254740992}`, `{"a":"9007199254740993","b":"9007199254740992","c":"number","d":false,"e":true}`, ""},
		"Floats":    {"floats stay", "obj.spec.c = obj.spec.a", `{"a":1.5,"b":1e300}`, `{"a":1.5,"b":1e300,"c":1.5}`, ""},
		"Nulls":     {"null stays", "obj.spec.x = 1", `{"a":null,"b":[null,1,null],"c":{"d":null}}`, `{"a":null,"b":[null,1,null],"c":{"d":null},"x":1}`, ""},
		"NullsSeen": {"also where the script looked", "local n = #obj.spec.b; n = obj.spec.c.d; obj.spec.e = nil", `{"a":null,"b":[null,1,null],"c":{"d":null},"e":1}`, `{"a":null,"b":[null,1,null],"c":{"d":null}}`, ""},
		"Empty":     {"[] is not {}", "local n = #obj.spec.a; n = obj.spec.b.x", `{"a":[],"b":{}}`, `{"a":[],"b":{}}`, ""},
		"Emptied":   {"a list that is emptied is a list", "table.remove(obj.spec.a); obj.spec.b.x = nil", `{"a":[1],"b":{"x":1}}`, `{"a":[],"b":{}}`, ""},
		"Fresh":     {"a fresh empty table is what was there, else nothing", "obj.spec = {a = {}, b = {}, c = {}, d = {{}}}", `{"a":[1],"b":{"x":1}}`, `{"a":[],"b":{},"d":[{}]}`, ""},
		"Keys":      {"keys of any characters", "for k, v in pairs(obj.spec) do obj.spec[k] = v + 1 end", `{"":1,"1":2,"a.b/c":3,"é\n":4}`, `{"":2,"1":3,"a.b/c":4,"é\n":5}`, ""},
		"Order":     {"pairs goes in order", "local t = {} for k in pairs(obj.spec) do table.insert(t, k) end obj.spec = t", `{"z":1,"b":1,"a":1,"m":1}`, `["a","b","m","z"]`, ""},
		"Shared":    {"a table may be twice in a result", "local t = {x = 1} obj.spec = {a = t, b = t, c = obj.spec, d = obj.spec}", `{"q":[]}`, `{"a":{"x":1},"b":{"x":1},"c":{"q":[]},"d":{"q":[]}}`, ""},
		"Circle":    {"but not in itself", "obj.spec.x = obj.spec", `{}`, "", "the script went beyond its limit of depth (100)"},
		"Mixed":     {"a table is a list or a map", "obj.spec = {1, x = 2}", `{}`, "", "the result's field spec has keys of a list and others, such as x"},
		"Hole":      {"lists have no holes", "obj.spec[2] = nil", `[1,2,3]`, "", "the result's field spec is a list without an entry 2: use table.remove"},
		"Function":  {"functions are no JSON", "obj.spec = print", `{}`, "", "the result's field spec is a function, which JSON has not"},
		"NaN":       {"nor is NaN", "obj.spec.x = 0/0", `{}`, "", "the result's field spec.x is NaN, which JSON has not"},
		"Library":   {"nor a library", "obj.spec.x = string", `{}`, "", "the result's field spec.x is a library"},
		"Zero":      {"0 is a number, and false a boolean", "obj.spec.c = obj.spec.a == 0 and obj.spec.b == false", `{"a":0,"b":false}`, `{"a":0,"b":false,"c":true}`, ""},
		"Length":    {"# of a list that was not looked into", "obj.spec = #obj.spec", `[1,2,3]`, `3`, ""},
		"Next":      {"next on one that was not looked into", "local k, v = next(obj.spec) obj.spec = {k, v}", `{"a":1}`, `["a",1]`, ""},
		"Sort":      {"sort does", "table.sort(obj.spec) table.insert(obj.spec, 1, 'first')", `["b","a"]`, `["first","a","b"]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := exploretest.Object(t, `{`+head+`,"spec":`+tc.in+`}`)
			before := exploretest.Text(t, in)
			answer, err := ask(t, explore.Packing, "function Pack(obj) "+tc.script+" return obj end", explore.Request{Object: in})
			if tc.err != "" || err != nil {
				if fmt.Sprint(err) != tc.err {
					t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			want := exploretest.Object(t, `{`+head+`,"spec":`+tc.want+`}`)
			if diff := cmp.Diff(want.Object, answer.Object.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if exploretest.Text(t, in) != before {
				t.Errorf("the argument was changed")
			}
		})
	}
}

// listOf is the list that a script has put into its status, which is an object. Without entries, the list is not in it.
func listOf(a explore.Answer) []any {
	status, _ := a.Status.(map[string]any)
	if list, ok := status["list"].([]any); ok {
		return list
	}
	return []any{}
}

// TestIsolation runs one script after another on the same machines.
func TestIsolation(t *testing.T) {
	h := host()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "x"}}}
	run := func(script string) (explore.Answer, error) {
		s, err := Compile(explore.Status, script)
		if err != nil {
			t.Fatal(err)
		}
		return h.Run(t.Context(), s, explore.Request{Operation: explore.Status, Object: object})
	}
	for name, poison := range map[string]string{
		"library":   "string.rep = nil return {}",
		"rawset":    "rawset(string, 'rep', nil) return {}",
		"insert":    "table.insert(string, 1) return {}",
		"metatable": "setmetatable(string, {}) return {}",
		"strings":   "getmetatable('').__index = nil return {}",
		"method":    "local s = 'x' s.rep = nil return {}",
		"kube":      "kube.resourceAdd = nil return {}",
		"module":    "require('string').rep = nil return {}",
	} {
		if _, err := run(poison); err == nil {
			t.Errorf("%s: %s went through", name, poison)
		}
	}
	for name, leak := range map[string]string{
		"global":   "leaked = 1 print = nil _G.tostring = nil string = {} setmetatable(_G, {__index = {leaked = 2}}) return {}",
		"metaless": "local mt = {} setmetatable(mt, mt) leaked = mt return {}",
	} {
		if _, err := run(leak); err != nil {
			t.Errorf("%s: globals may be assigned: %v", name, err)
		}
	}
	answer, err := run("return {list = {tostring(leaked), type(print), type(_G), ('x'):rep(3), tostring(rawget(_G, 'leaked')), math.random(1000000), tostring({})}}")
	if err != nil {
		t.Fatal(err)
	}
	again, err := run("return {list = {tostring(leaked), type(print), type(_G), ('x'):rep(3), tostring(rawget(_G, 'leaked')), math.random(1000000), tostring({})}}")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answer.Status, again.Status); diff != "" {
		t.Errorf("the same script twice:\n%s", diff)
	}
	if diff := cmp.Diff([]any{"nil", "function", "table", "xxx", "nil"}, listOf(answer)[:5]); diff != "" {
		t.Errorf("after poison and leaks (-want +got):\n%s", diff)
	}
	for _, name := range []string{"io", "debug", "package", "load", "loadstring", "dofile", "coroutine", "getfenv", "setfenv", "newproxy", "module"} {
		if answer, err := run("return {x = type(" + name + ")}"); err != nil || !cmp.Equal(answer.Status, any(map[string]any{"x": "nil"})) {
			t.Errorf("%s is there: %v %v", name, answer.Status, err)
		}
	}
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

func TestWarnings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, script string
		want           []string
	}{
		"Clean":  {"libraries, locals, parameters and own globals are known", "count = 0 local t = {} for k, v in pairs(observedObj) do t[k] = v count = count + 1 end repeat local x = 1 until x == 1 return string.len(_VERSION) == count", nil},
		"Typo":   {"what is defined nowhere is not", "if obj.x then return tru end\nreturn obsrvedObj.x", []string{"line 1: obj is not defined", "line 1: tru is not defined", "line 2: obsrvedObj is not defined"}},
		"Scopes": {"locals end with their block", "do local a = 1 end return a", []string{"line 1: a is not defined"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(explore.Healthy, tc.script)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.Warnings()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
