package excerpt

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func x(n int) string { return strings.Repeat("x", n) }

func condition(kind string, more ...any) map[string]any {
	out := map[string]any{"type": kind, "status": "True", "reason": "Done"}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return out
}

func repeat(n int, value any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = value
	}
	return out
}

// deep nests lists in one another.
func deep(levels int) any {
	var out any
	for range levels {
		out = []any{out}
	}
	return out
}

type object = map[string]any

// TestFitObject cuts the status of one object (C65).
func TestFitObject(t *testing.T) {
	numbered := object{"phase": "Ready"}
	for n := range 20 {
		numbered[fmt.Sprintf("list%02d", n)] = repeat(500, int64(n))
	}
	const a = `{"reason":"Done","status":"True","type":"A"}`
	texts := fmt.Sprintf(`"s0":%q,"s1":%q,"s2":%q,"s3":%q,"s4":%q`, x(150), x(151), x(152), x(153), x(154))
	scalars := object{"conditions": []any{condition("Ready")}}
	for n := range 10 {
		scalars[fmt.Sprintf("s%d", n)] = x(150 + n)
	}
	for _, tc := range []struct {
		reason  string
		status  any
		want    string
		omitted []string
	}{
		{"no status", nil, "", nil},
		{"an empty one is one", object{}, "{}", nil},
		{"a small one is complete, in the order of its fields", object{"b": int64(1), "a": []any{"x", object{"c": true}}}, `{"a":["x",{"c":true}],"b":1}`, nil},
		{"null is absent for the API server", object{"a": nil, "b": []any{nil, object{"c": nil}}}, `{"b":[null,{}]}`, nil},
		{"numbers as the API server returns them", object{"a": 1.0, "b": math.Copysign(0, -1), "c": 1e21, "d": 0.5}, `{"a":1,"b":0,"c":1e+21,"d":0.5}`, nil},
		{"1024 bytes are complete", object{"a": []any{x(1024 - 10)}}, `{"a":["` + x(1024-10) + `"]}`, nil},
		{"one more is not", object{"a": []any{x(1024 - 9)}, "b": true}, `{"b":true}`, []string{"status.a"}},
		{"the escapes of JSON count", object{"a": strings.Repeat("<", 200), "b": true}, `{"b":true}`, []string{"status.a"}},
		{"the largest extra is omitted, the others stay", object{"phase": "Ready", "nodes": repeat(2000, "n"), "ports": []any{int64(80)}},
			`{"phase":"Ready","ports":[80]}`, []string{"status.nodes"}},
		{"extras go before scalars, even if they are smaller", object{"message": x(900), "ports": repeat(100, int64(8))},
			`{"message":"` + x(900) + `"}`, []string{"status.ports"}},
		{"what alone is too large takes no extra along", object{"message": x(2000), "ports": []any{int64(80)}}, `{"ports":[80]}`, []string{"status.message"}},
		{"conditions keep type, status and reason", object{"phase": "Ready", "conditions": []any{condition("Ready", "message", x(600)), condition("Up", "message", x(600), "at", "now")}},
			`{"conditions":[{"reason":"Done","status":"True","type":"Ready"},{"at":"now","reason":"Done","status":"True","type":"Up"}],"phase":"Ready"}`, []string{"status.conditions[].message"}},
		{"and their messages if other fields are larger", object{"nodes": repeat(2000, "n"), "conditions": []any{condition("Ready", "message", "up")}},
			`{"conditions":[{"message":"up","reason":"Done","status":"True","type":"Ready"}]}`, []string{"status.nodes"}},
		{"a core field that is no scalar is another field", object{"conditions": []any{object{"type": "Ready", "status": repeat(600, int64(1))}}},
			`{"conditions":[{"type":"Ready"}]}`, []string{"status.conditions[].status"}},
		{"many conditions: the largest are omitted", object{"conditions": append(repeat(18, condition("A")), condition("Large", "reason", x(300)), object{"reason": x(2000)})},
			`{"conditions":[` + strings.Repeat(a+",", 17) + a + `]}`, []string{"status.conditions[19]", "status.conditions[Large]"}},
		{"conditions in another form are a field", object{"conditions": append(repeat(600, "a"), object{}), "phase": "Ready"}, `{"phase":"Ready"}`, []string{"status.conditions"}},
		{"scalars: the largest are omitted", scalars,
			`{"conditions":[{"reason":"Done","status":"True","type":"Ready"}],` + texts + `}`, []string{"status.s5", "status.s6", "status.s7", "status.s8", "status.s9"}},
		{"8 paths, and a count", numbered, `{"phase":"Ready"}`, []string{"status.list00", "status.list01", "status.list02", "status.list03",
			"status.list04", "status.list05", "status.list06", "status.list07", "and 12 more"}},
		{"no part is left", object{"message": x(2000)}, "", []string{"status.message"}},
		{"what is no object", x(10), "", []string{"status"}},
		{"nor a list", []any{}, "", []string{"status"}},
		{"text that is not UTF-8", object{"a": "\xff", "b": object{"\xff": true}, "c": true, "d\xff": true}, `{"c":true}`, []string{"status.a", "status.b", "status.d"}},
		{"numbers without JSON", object{"a": math.NaN(), "b": json.Number("1e999"), "c": true}, `{"c":true}`, []string{"status.a", "status.b"}},
		{"names in paths", object{"a.b": x(2000), "": x(2000), "a\x1b[2J\n]": x(2000), x(200): x(2000)}, "",
			[]string{`status[""]`, `status["a.b"]`, `status["a[2J ]"]`, `status["` + x(61) + `…"]`}},
	} {
		got := Fit([]Source{{Status: tc.status}})[0]
		if diff := cmp.Diff(tc.want, string(got.JSON)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
		if diff := cmp.Diff(tc.omitted, got.Omitted); diff != "" {
			t.Errorf("%s: omitted: -want +got:\n%s", tc.reason, diff)
		}
	}
}

// TestFitHostile cuts statuses that are as large as a client can make them: the work for each is bounded (C65).
func TestFitHostile(t *testing.T) {
	const many = 1 << 16
	keys, others, conditions := object{}, object{"type": "Ready"}, make([]any, many)
	for n := range many {
		keys[fmt.Sprint("k", n)], others[fmt.Sprint("k", n)] = int64(n), int64(n)
		conditions[n] = object{"type": fmt.Sprint("c", n)}
	}
	for _, tc := range []struct {
		reason string
		status any
		more   bool
	}{
		{"many fields", keys, true},
		{"many conditions", object{"conditions": conditions}, true},
		{"a condition of many fields", object{"conditions": []any{others}}, true},
		{"a deep field", object{"a": deep(many)}, false},
		{"a deep field of a condition", object{"conditions": []any{object{"type": "Ready", "message": deep(many)}}}, false},
		{"a long text", object{"a": strings.Repeat("<", 16*many)}, false},
		{"a long name", object{strings.Repeat("<", 16*many): "a"}, false},
	} {
		got := Fit([]Source{{Status: tc.status}})[0]
		checkBounds(t, tc.reason, got)
		if again := Fit([]Source{{Status: tc.status}})[0]; cmp.Diff(got, again) != "" {
			t.Errorf("%s: another result: %s", tc.reason, cmp.Diff(got, again))
		}
		if len(got.Omitted) == 0 || strings.HasPrefix(got.Omitted[len(got.Omitted)-1], "and ") != tc.more {
			t.Errorf("%s: omitted %q", tc.reason, got.Omitted)
		}
	}
}

// checkBounds checks what holds for each excerpt.
func checkBounds(t interface{ Fatalf(string, ...any) }, reason string, e Excerpt) {
	if len(e.JSON) > ObjectLimit || len(e.Omitted) > maxPaths+1 {
		t.Fatalf("%s: %d bytes, omitted %q", reason, len(e.JSON), e.Omitted)
	}
	for _, path := range e.Omitted {
		if len(path) > 3*maxName {
			t.Fatalf("%s: the path is %q", reason, path)
		}
	}
	if e.JSON == nil {
		return
	}
	var read map[string]any
	if err := utiljson.Unmarshal(e.JSON, &read); err != nil {
		t.Fatalf("%s: %s: %v", reason, e.JSON, err)
	}
	if again := Fit([]Source{{Status: read}})[0]; string(again.JSON) != string(e.JSON) || again.Omitted != nil {
		t.Fatalf("%s: of the excerpt %s is taken %s, omitted %q", reason, e.JSON, again.JSON, again.Omitted)
	}
}

// TestFitInstance has more objects than there is room for (C65).
func TestFitInstance(t *testing.T) {
	full := object{"phase": "Ready", "replicas": int64(3), "nodes": repeat(240, "n")} // 1000 bytes or so
	large := object{"phase": "Ready", "a" + x(30): repeat(2000, "n"), "b" + x(30): repeat(2000, "n")}
	last := &Excerpt{JSON: []byte(`{"phase":"Old"}`), Omitted: []string{"status.nodes"}}
	legacy := &Excerpt{JSON: []byte(`{"a":"` + x(2000) + `"}`)}
	for _, tc := range []struct {
		reason string
		count  int
		source Source
		want   Excerpt
	}{
		{"as many as there is room for", 64, Source{Status: full}, Excerpt{JSON: encode(full)}},
		{"more: each keeps its scalars", 100, Source{Status: full}, Excerpt{JSON: []byte(`{"phase":"Ready","replicas":3}`), Omitted: []string{"status.nodes"}}},
		{"many: paths are counted", 800, Source{Status: large}, Excerpt{JSON: []byte(`{"phase":"Ready"}`), Omitted: []string{"status.a" + x(30), "and 1 more"}}},
		{"too many: a mark", 5000, Source{Status: full}, Excerpt{Omitted: []string{"status"}}},
		{"small ones are complete", 2000, Source{Status: object{"phase": "Ready"}}, Excerpt{JSON: []byte(`{"phase":"Ready"}`)}},
		{"many without status", 5000, Source{}, Excerpt{}},
		{"what was known stays", 64, Source{Status: full, Last: last}, *last},
		{"as far as there is room", 5000, Source{Last: last}, Excerpt{Omitted: []string{"status"}}},
		{"nothing was known", 5000, Source{Last: &Excerpt{}}, Excerpt{}},
		{"what was known is larger than what is shown now", 1, Source{Last: legacy}, Excerpt{Omitted: []string{"status"}}},
	} {
		sources := make([]Source, tc.count)
		for i := range sources {
			sources[i] = tc.source
		}
		total := 0
		for i, got := range Fit(sources) {
			total += got.size()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatalf("%s: object %d: -want +got:\n%s", tc.reason, i, diff)
			}
		}
		if total > InstanceLimit {
			t.Errorf("%s: %d bytes", tc.reason, total)
		}
	}
}
