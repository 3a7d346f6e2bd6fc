package library

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// maxReport is the size of the largest report of a cluster, in bytes.
const maxReport = 4 << 10

func hub(t testing.TB) *Layer {
	t.Helper()
	l, err := NewForHub(host())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// hubInterpreter runs what the rules of Instances become for Karmada.
func hubInterpreter(t testing.TB) *interpreter {
	t.Helper()
	rules, err := InstanceRules()
	if err != nil {
		t.Fatal(err)
	}
	return newInterpreter(t, rules)
}

func hubFolder(t testing.TB) cases.Folder {
	t.Helper()
	found, err := cases.Load(os.DirFS("hub"), host())
	if err != nil || len(found) != 1 || len(found[0].Warnings) > 0 {
		t.Fatalf("%d folders with cases, error %v: %+v", len(found), err, found)
	}
	return found[0]
}

// TestHubCases checks C24: the rules of Instances answer their cases as the command line runs them, on a hub, and in Karmada.
func TestHubCases(t *testing.T) {
	folder := hubFolder(t)
	for _, result := range cases.RunAll(t.Context(), []cases.Folder{folder}, time.Now) {
		if result.State != cases.Passed || len(result.Warnings) > 0 {
			t.Errorf("%s: %s %s: %s", result.Name, result.Operation, result.State, strings.Join(append(result.Failures, result.Warnings...), "\n  "))
		}
	}
	l, asked := hub(t), map[explore.Operation]bool{}
	for n := range folder.Cases {
		c := folder.Cases[n]
		if failures, warnings := cases.Run(t.Context(), l, &c); len(failures)+len(warnings) > 0 {
			t.Errorf("%s: %s: %s", c.Place, c.Name, strings.Join(append(failures, warnings...), "\n  "))
		}
		asked[c.Request.Operation] = true
	}
	for at, script := range l.scripts {
		if at.kind.Kind == "Instance" && !asked[at.operation] {
			t.Errorf("%s has no case", at.operation)
		}
		if at.kind.Kind == "Instance" && len(script.Warnings()) > 0 {
			t.Errorf("%s: %v", at.operation, script.Warnings())
		}
	}
	if ran := hubInterpreter(t).run(t, folder); ran < 40 {
		t.Errorf("%d cases ran in the dialect of Karmada", ran)
	}
}

// TestInstanceRulesAreOfHubs checks C23 and C24: a hub has rules for all but components and the sum of statuses, and a cluster has none, so
// that Instances below others are judged there as before.
func TestInstanceRulesAreOfHubs(t *testing.T) {
	object := exploretest.Object(t, `{"apiVersion":"kudo.dev/v1beta1","kind":"Instance","metadata":{"name":"a","namespace":"b"},"spec":{"operatorVersion":{"name":"v"}}}`)
	member, l := bundled(t), hub(t)
	for _, operation := range explore.Operations() {
		r := explore.Request{Operation: operation, Object: object, Observed: object}
		if answer, known, err := member.Explore(t.Context(), r); known || err != nil {
			t.Errorf("%s in a cluster: %+v, %v", operation, answer, err)
		}
		without := slices.Contains([]explore.Operation{explore.Packing, explore.Components, explore.StatusAggregating}, operation)
		if _, known, err := l.Explore(t.Context(), r); known == without || err != nil {
			t.Errorf("%s on a hub: known %v, error %v", operation, known, err)
		}
	}
	kinds := l.Kinds()
	for _, kind := range member.Kinds() {
		if !slices.Contains(kinds, kind) {
			t.Errorf("a hub has no rule for %s", kind)
		}
	}
	if len(kinds) != len(member.Kinds())+1 {
		t.Errorf("a hub has rules for %d kinds, and a cluster for %d", len(kinds), len(member.Kinds()))
	}
}

// TestInstancesThatCannotBePlaced checks C24: where the answer would be wrong or incomplete, there is none.
func TestInstancesThatCannotBePlaced(t *testing.T) {
	const (
		divided = `"parameters":{"N":%s},"placement":{"divide":"N"}`
		number  = "spec.parameters.N, which spec.placement.divide names, is no whole number from 0 to 2147483647: set it to one"
		version = `"operatorVersion":{"name":"v"}`
	)
	value := func(text string) string { return strings.Replace(divided, "%s", text, 1) }
	for _, row := range []struct {
		reason    string
		operation explore.Operation
		spec      string
		want      string
	}{
		{"a text is divided", explore.Replica, value(`"six"`), number},
		{"a fraction is divided", explore.Replica, value(`"2.5"`), number},
		{"a negative number is divided", explore.Replica, value(`"-1"`), number},
		{"a hexadecimal number is divided", explore.Replica, value(`"0x10"`), number},
		{"a number with an exponent is divided", explore.Replica, value(`"1e3"`), number},
		{"a number in blanks is divided", explore.Replica, value(`" 6"`), number},
		{"a number over 32 bits is divided", explore.Replica, value(`"2147483648"`), number},
		{"a number over 64 bits is divided", explore.Replica, value(`"99999999999999999999"`), number},
		{"no text is divided", explore.Replica, value(`6`), number},
		{"nothing is divided", explore.Replica, value(`""`), number},
		{"a parameter that spec does not set is divided", explore.Replica, `"parameters":{"M":"1"},"placement":{"divide":"N"}`, number},
		{"there are no parameters", explore.Replica, `"placement":{"divide":"N"}`, number},
		{"a share of a parameter that spec does not set", explore.ReplicaRevising, `"parameters":{"M":"1"},"placement":{"divide":"N"}`,
			"spec.parameters does not set N, which spec.placement.divide names: set it to a whole number"},
		{"a share without parameters", explore.ReplicaRevising, `"placement":{"divide":"N"}`, "spec.parameters does not set N"},
		{"the version has no name", explore.Dependencies, `"operatorVersion":{}`, "spec.operatorVersion has no name: set it"},
		{"the version is of another namespace", explore.Dependencies, `"operatorVersion":{"name":"v","namespace":"c"}`, "spec.operatorVersion.namespace is another than that of the Instance: remove it"},
		{"a source has an unknown kind", explore.Dependencies, version + `,"parametersFrom":[{"kind":"Pod","name":"a"}]`, "spec.parametersFrom[0] has kind Pod: use Operator, OperatorVersion, Secret or ConfigMap"},
		{"a source has no name", explore.Dependencies, version + `,"parametersFrom":[{"kind":"Secret","name":"a"},{"kind":"Secret"}]`, "spec.parametersFrom[1] has no name: set it"},
		{"sources are no list", explore.Dependencies, version + `,"parametersFrom":"a"`, "spec.parametersFrom is no list: make it one"},
		{"what is included has no kind", explore.Dependencies, version + `,"placement":{"include":[{"name":"a"}]}`, "spec.placement.include[0] has kind nil: use"},
	} {
		object := exploretest.Object(t, `{"apiVersion":"kudo.dev/v1beta1","kind":"Instance","metadata":{"name":"a","namespace":"b"},"spec":{`+row.spec+`}}`)
		r := explore.Request{Operation: row.operation, Object: object, Replicas: 1}
		for _, layer := range []explore.Explorer{hub(t), hubInterpreter(t)} {
			if answer, known, err := layer.Explore(t.Context(), r); known || err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s, %T: got %+v, known %v, error %v, want %q", row.reason, layer, answer, known, err, row.want)
			}
		}
	}
}

// fullInstance has a value in each field that the rules of Instances read.
const fullInstance = `{"apiVersion":"kudo.dev/v1beta1","kind":"Instance",
 "metadata":{"name":"a","namespace":"b","generation":3,"labels":{"kudo.dev/operator":"o"},"annotations":{"kudo.dev/released":"u/1",
  "kudo.dev/template":"u/1","kudo.dev/defaulted":"S","resourcetemplate.karmada.io/uid":"u","resourcetemplate.karmada.io/generation":"1"}},
 "spec":{"operatorVersion":{"name":"v"},"parameters":{"N":"1","S":"x"},"parametersFrom":[{"kind":"Secret","name":"s"}],
  "placement":{"divide":"N","include":[{"kind":"Secret","name":"t"}]}},
 "status":{"observedGeneration":3,"aggregatedStatus":{"status":"COMPLETE","activePlanName":"deploy"},"queue":[{"planName":"backup"}],
  "conditions":[{"type":"Ready","status":"True","reason":"R","message":"m","observedGeneration":3}],
  "planStatus":{"deploy":{"status":"COMPLETE","revision":1,"scheduled":true,"lastUpdatedTimestamp":"2026-01-02T00:00:00Z","counted":{"status":"COMPLETE","revision":1}}},
  "baseline":{"operatorVersion":"b/v","revision":1}}}`

// hostile are values that no field expects, or that take more bytes in JSON than characters.
func hostile() []any {
	values := []any{nil, true, int64(0), int64(-1), int64(5), int64(1)<<62 + 1, 1.5, 1e300, "", "len", []any{}, []any{"a", nil, []any{int64(5)}}, map[string]any{},
		map[string]any{"len": []any{}, "1": "x"}}
	for _, char := range []string{"<", `"`, "\\", "\x00", "\n", "é", "€", "😀", "\u2028", "\ufffd", "a"} {
		values = append(values, strings.Repeat(char, 3000))
	}
	return values
}

// mutate calls a function for each value below a tree, replaced by each of the hostile values in turn.
func mutate(value any, set func(any), try func()) {
	for _, bad := range hostile() {
		set(bad)
		try()
	}
	set(value)
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			mutate(v[key], func(bad any) { v[key] = bad }, try)
		}
	case []any:
		for i := range v {
			mutate(v[i], func(bad any) { v[i] = bad }, try)
		}
	}
}

// TestHostileInstances checks C27: whatever an Instance holds, the report has at most 4 KiB, and only fields of the right types. Other
// operations answer, or have an error.
func TestHostileInstances(t *testing.T) {
	object := exploretest.Object(t, fullInstance)
	desired := exploretest.Object(t, fullInstance)
	layers, reports := []explore.Explorer{hub(t), hubInterpreter(t)}, 0
	try := func() {
		for _, layer := range layers {
			for _, operation := range []explore.Operation{explore.Healthy, explore.Dependencies, explore.Replica, explore.ReplicaRevising} {
				answer, known, err := layer.Explore(t.Context(), explore.Request{Operation: operation, Object: object, Replicas: 1})
				if known == (err != nil) || known && operation == explore.Healthy && answer.Healthy && !isReady(object) {
					t.Errorf("%T: %s: %+v, known %v, error %v", layer, operation, answer, known, err)
				}
			}
			if _, known, err := layer.Explore(t.Context(), explore.Request{Operation: explore.Retaining, Object: desired, Observed: object}); !known || err != nil {
				t.Errorf("%T: an observed object that is not as expected cannot be retained: %v", layer, err)
			}
			answer, known, err := layer.Explore(t.Context(), explore.Request{Operation: explore.Status, Object: object})
			if problem := wrongWith(answer.Status); !known || err != nil || problem != "" {
				t.Errorf("%T: the report of %v: %s, known %v, error %v", layer, object.Object["status"], problem, known, err)
			}
			reports++
		}
	}
	for _, field := range []string{"metadata", "spec", "status"} {
		value := object.Object[field]
		if fields, isMap := value.(map[string]any); isMap && field == "metadata" { // which always is one, with a name
			for _, key := range []string{"generation", "annotations"} {
				mutate(fields[key], func(bad any) { fields[key] = bad }, try)
			}
			continue
		}
		mutate(value, func(bad any) { object.Object[field] = bad }, try)
	}
	if reports < 2000 {
		t.Errorf("there were %d reports", reports)
	}
}

// isReady reports whether the condition Ready is that of the generation.
func isReady(object *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	conditions, _ := value.([]any)
	return len(conditions) == 1 && explore.Equal(conditions[0].(map[string]any)["observedGeneration"], object.Object["metadata"].(map[string]any)["generation"])
}

// wrongWith returns what no report of a cluster may have, or "".
func wrongWith(report any) string {
	fields, _ := report.(map[string]any)
	text, err := json.Marshal(report)
	if err != nil || len(text) > maxReport {
		return fmt.Sprintf("it has %d bytes, error %v", len(text), err)
	}
	for key, value := range fields {
		isNumber := slices.Contains([]string{"generation", "observedGeneration", "revision", "queued"}, key)
		switch value := value.(type) {
		case int64:
			if !isNumber || value <= 0 {
				return fmt.Sprintf("%s is %d", key, value)
			}
		case string:
			limit := map[bool]int{true: 512, false: 253}[key == "message"]
			if isNumber || value == "" || len([]rune(value)) > limit {
				return fmt.Sprintf("%s is %q", key, value)
			}
		default:
			return fmt.Sprintf("%s is %v", key, value)
		}
	}
	if ready := fields["ready"]; len(fields) > 0 && ready != "True" && ready != "False" && ready != "Unknown" {
		return fmt.Sprintf("ready is %v", ready)
	}
	return ""
}

// TestLargestReport checks C27: all texts of a status at their worst at once.
func TestLargestReport(t *testing.T) {
	for _, char := range []string{"<", `"`, "\x00", "€", "\u2028", "a", "😀"} {
		object := exploretest.Object(t, fullInstance)
		var fill func(value any) any
		fill = func(value any) any {
			switch v := value.(type) {
			case map[string]any:
				for key := range v {
					if key != "type" {
						v[key] = fill(v[key])
					}
				}
			case []any:
				for i := range v {
					v[i] = fill(v[i])
				}
			case string:
				return strings.Repeat(char, 5000)
			}
			return value
		}
		fill(object.Object["status"])
		fill(object.Object["spec"])
		for _, layer := range []explore.Explorer{hub(t), hubInterpreter(t)} {
			answer, known, err := layer.Explore(t.Context(), explore.Request{Operation: explore.Status, Object: object})
			message, _ := answer.Status.(map[string]any)["message"].(string)
			if problem := wrongWith(answer.Status); !known || err != nil || problem != "" || !strings.HasSuffix(message, char+"…") {
				t.Errorf("%T, %q: %s, message %q, known %v, error %v", layer, char, problem, message, known, err)
			}
		}
	}
}

// TestHubConformance checks what holds for each layer.
func TestHubConformance(t *testing.T) {
	var rows []exploretest.Case
	for _, c := range hubFolder(t).Cases {
		rows = append(rows, exploretest.Case{Name: string(c.Request.Operation) + " " + c.Name, Request: c.Request})
	}
	exploretest.Run(t, hub(t), rows...)
}
